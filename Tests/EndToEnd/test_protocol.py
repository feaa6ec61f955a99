"""DNS itself: header, EDNS, truncation, TCP."""

import socket
import struct
import time

import dns.edns
import dns.flags
import dns.message
import pytest

from dns_client import Stream, addresses, ask, exchange, has_opt, labels
from networks import HAS_IPV6
from resolvers import reply_to
from waiting import eventually, waited_since


@pytest.fixture(scope="module")
def slow_service(service):
    return service("aes")


@pytest.fixture(scope="module", autouse=True)
def running(module_daemon, slow_service):
    return module_daemon(slow_service)


@pytest.mark.parametrize("transport", ["udp", "tcp"])
@pytest.mark.parametrize("kind", ["A", "MX", "HTTPS", "ANY"])
def test_header_bits(transport, kind):
    for recursion in (dns.flags.RD, 0):
        for checking in (dns.flags.CD, 0):
            message = dns.message.make_query("www.example.com", kind, flags=recursion | checking)
            reply = ask(None, transport=transport, message=message)
            assert reply.flags & dns.flags.QR and reply.flags & dns.flags.RA
            assert not reply.flags & dns.flags.AA
            assert reply.flags & (dns.flags.RD | dns.flags.CD) == recursion | checking


def test_the_letters_of_the_question_come_back_as_sent(chance):
    for name in ("www.example.com", "example.com", "localhost", "bad.invalid", "only-local.example.com"):
        for _ in range(10):
            mixed = "".join(letter.upper() if chance.random() < 0.5 else letter for letter in name)
            for kind in (b"\0\1", b"\0\x1c", b"\0\x0f"):
                query = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0" + labels(mixed) + kind + b"\0\1"
                assert query[12:] in exchange(query)


def test_authentic_data_only_for_who_asks(daemon, scripted_resolver):
    resolver = scripted_resolver(
        lambda asked: reply_to(asked.message, "60 IN TXT signed", flags=dns.flags.RA | dns.flags.AD)
        if asked.name.to_text().startswith("signed") else reply_to(asked.message, "60 IN TXT plain"))
    daemon(None, {"fallback": {"servers": [resolver.endpoint]}, "listen": {"addresses": ["127.0.0.1:2053"]}}, port=2053)
    for _ in range(2):  # the second time from the cache
        for name, signed in (("signed.example.com", True), ("plain.example.com", False)):
            def authentic(port=2053, flags=dns.flags.RD, name=name, **options):
                message = dns.message.make_query(name, "TXT", flags=flags, **options)
                return bool(ask(None, message=message, port=port).flags & dns.flags.AD)
            assert authentic(flags=dns.flags.RD | dns.flags.AD) == signed
            assert authentic(use_edns=0, want_dnssec=True) == signed
            assert not authentic()


@pytest.mark.parametrize("name, kind", [("www.example.com", "A"), ("example.com", "MX"), ("localhost", "A"),
                                        ("missing.example.com", "A"), ("www.example.com", "ANY")])
def test_edns_only_when_asked(name, kind):
    assert not has_opt(ask(name, kind))
    for payload in (512, 1232, 4096):
        reply = ask(name, kind, edns=0, payload=payload)
        assert reply.edns == 0 and reply.payload == 1232
        assert not reply.ednsflags & dns.flags.DO
    assert ask(name, kind, edns=0, payload=1232, want_dnssec=True).ednsflags & dns.flags.DO


def test_options_are_hop_by_hop(daemon, scripted_resolver):
    """Options of clients are not passed on, nor are those of the local resolver."""
    def answer(asked):
        reply = reply_to(asked.message, "60 IN TXT x")
        reply.use_edns(0, options=[dns.edns.GenericOption(65001, b"from-the-resolver")])
        return reply
    resolver = scripted_resolver(answer)
    daemon(None, {"fallback": {"servers": [resolver.endpoint]}, "listen": {"addresses": ["127.0.0.1:2053"]}}, port=2053)
    options = [dns.edns.GenericOption(10, b"12345678"), dns.edns.ECSOption("203.0.113.0", 24),
               dns.edns.GenericOption(12, bytes(64)), dns.edns.GenericOption(11, b""),
               dns.edns.GenericOption(65002, b"private")]
    reply = ask("example.com", "TXT", port=2053, edns=True, options=options)
    assert reply.answer and not [option for option in reply.options if option.otype in (8, 12, 65001, 65002)]
    assert len(resolver.questions) == 1
    assert resolver.questions[0].message.options == ()


def test_truncation():
    """A reply that does not fit has TC and no partial RRset; over TCP it is whole."""
    for options, limit in (({}, 512), ({"edns": 0, "payload": 1232}, 1232), ({"edns": 0, "payload": 4096}, 4096),
                           ({"edns": 0, "payload": 100}, 512), ({"edns": 0, "payload": 65535}, 4096)):
        message = dns.message.make_query("big.example.com", "TXT", **{
            "use_edns" if key == "edns" else key: value for key, value in options.items()})
        wire = exchange(message.to_wire())
        assert len(wire) <= limit
        reply = dns.message.from_wire(wire)
        assert reply.flags & dns.flags.TC and not reply.answer
        assert has_opt(reply) == bool(options)
    for edns in (False, True):
        whole = ask("big.example.com", "TXT", transport="tcp", edns=edns)
        assert not whole.flags & dns.flags.TC and len(whole.answer[0]) == 30
        assert len(whole.to_wire()) > 4096


def test_an_answer_of_middle_size():
    assert ask("middle.example.com", "TXT").flags & dns.flags.TC
    assert len(ask("middle.example.com", "TXT", edns=True).answer[0]) == 5


def test_many_questions_on_one_connection_out_of_order(slow_service):
    """A slow name does not hold up a fast one behind it."""
    assert addresses(ask("fast.example.com"))
    slow_service.hold()
    slow = dns.message.make_query("slow.example.com", "A")
    fast = [dns.message.make_query("fast.example.com", "A") for _ in range(50)]
    with Stream() as stream:
        stream.send(slow)
        eventually(lambda: "slow.example.com" in slow_service.names, "the slow name is asked for")
        for message in fast:
            stream.send(message)
        assert {stream.receive().id for _ in fast} == {message.id for message in fast}
        slow_service.release()
        reply = stream.receive()
        assert reply.id == slow.id and addresses(reply) == ["203.0.113.62"]


def test_a_message_in_pieces_and_messages_in_one_piece():
    messages = [dns.message.make_query(name, "A") for name in ("www.example.com", "localhost", "fast.example.com")]
    stream_bytes = b"".join(struct.pack("!H", len(wire)) + wire for wire in (message.to_wire() for message in messages))
    with Stream() as stream:
        for octet in stream_bytes:
            stream.socket.sendall(bytes([octet]))
        assert {stream.receive().id for _ in messages} == {message.id for message in messages}
        stream.socket.sendall(stream_bytes)
        assert {stream.receive().id for _ in messages} == {message.id for message in messages}


def test_a_client_that_closes_its_side_gets_its_answers(slow_service):
    slow_service.hold()
    message = dns.message.make_query("n90.example.com", "A")
    with Stream() as stream:
        stream.send(message)
        stream.socket.shutdown(socket.SHUT_WR)
        eventually(lambda: "n90.example.com" in slow_service.names, "the name is asked for")
        slow_service.release()
        assert stream.receive().id == message.id
        assert stream.receive() is None, "and then the connection is closed"


def test_a_client_that_does_not_read_holds_up_nobody(running):
    """A client asks for 8 MB of answers and reads none: other clients are answered, and memory stays bounded."""
    before = running.held_kilobytes()
    message = dns.message.make_query("big.example.com", "TXT").to_wire()
    block = (struct.pack("!H", len(message)) + message) * 100
    with Stream() as stream:
        stream.socket.settimeout(0.2)
        try:
            for _ in range(13):
                stream.socket.sendall(block)
        except OSError:
            pass  # the daemon may stop reading from such a client, or close
        assert addresses(ask("www.example.com"))
        assert addresses(ask("www.example.com", transport="tcp"))
        assert running.held_kilobytes() - before < 6000, "kB kept for a client that does not read"


def test_idle_connections_are_closed(daemon):
    daemon(None, {"listen": {"addresses": ["127.0.0.1:2053"], "tcpIdleSeconds": 1}}, port=2053)
    begun = time.monotonic()
    with Stream(port=2053) as silent, Stream(port=2053) as once, Stream(port=2053) as halfway:
        once.send(dns.message.make_query("localhost", "A"))
        assert once.receive().answer
        halfway.socket.sendall(b"\0\x20\x12")
        for stream in (silent, once, halfway):
            assert stream.socket.recv(1) == b""
    assert 0.8 < time.monotonic() - begun and waited_since(begun) < 8, "in less than the usual time"


def test_idle_connections_are_closed_while_others_come(daemon):
    daemon(None, {"listen": {"addresses": ["127.0.0.1:2053"], "tcpIdleSeconds": 3}}, port=2053)
    begun = time.monotonic()
    with Stream(port=2053) as silent:
        silent.socket.settimeout(0.1)
        others = []
        while waited_since(begun) < 9:
            others.append(Stream(port=2053))
            try:
                assert silent.socket.recv(1) == b""
                break
            except TimeoutError:
                pass
        for other in others:
            other.close()
    assert 2.8 < time.monotonic() - begun and waited_since(begun) < 9, "in less than the usual time"


def test_connections_at_once_are_limited(daemon):
    """At no time are more than four connections held, whether new ones are refused or idle ones closed."""
    small = daemon(None, {"listen": {"addresses": ["127.0.0.1:2053"], "tcpClients": 4}}, port=2053)
    streams = []
    for _ in range(20):
        streams.append(Stream(port=2053))
        try:
            streams[-1].send(dns.message.make_query("localhost", "A"))
        except OSError:
            pass  # the connection is closed at once
        assert small.established_connections() <= 4
    assert addresses(ask("localhost", port=2053))
    eventually(lambda: 1 <= small.established_connections() <= 4, "four connections are held")
    for stream in streams:
        stream.close()
    eventually(lambda: small.established_connections() == 0, "all of them are gone")
    assert addresses(ask("localhost", port=2053, transport="tcp"))


def test_every_listening_address(daemon):
    """IPv4 and IPv6 addresses answer over UDP and TCP, each from the address that was asked."""
    listening = ["127.0.0.1:2053", "127.0.0.7:2054"]
    if HAS_IPV6:
        listening.append("[::1]:2053")
    daemon(None, {"listen": {"addresses": listening}}, port=2053)
    for endpoint in listening:
        server, _, port = endpoint.rpartition(":")
        for transport in ("udp", "tcp"):
            reply = ask("only-local.example.com", server=server.strip("[]"), port=int(port), transport=transport)
            assert addresses(reply) == ["198.51.100.81"]


def test_a_wildcard_listener_answers_from_the_address_asked(daemon):
    daemon(None, {"listen": {"addresses": ["0.0.0.0:2053"]}}, port=2053)
    for server in ("127.0.0.1", "127.0.0.77"):
        assert addresses(ask("localhost", server=server, port=2053)) == ["127.0.0.1"]
