"""What servers of DNS over HTTPS do with HTTP/2: they leave, limit streams, refuse some, say more than the answer."""

import asyncio
import socket
import subprocess
import time

import dns.rcode
import h2.connection
import h2.errors
import pytest

from asking import NEXT_ADDRESS, OURS, PORT, asked_of, at_once, check_answers, check_failure, failures, fresh, \
    next_server
from clients import Clients
from dns_client import addresses, ask
from encrypted import MEDIA_TYPE, Later, address_reply
from waiting import eventually, waited_since

__all__ = ["asked_of", "next_server"]  # fixtures


def answer(asked, connection=None):
    return address_reply(asked)


def goaway(last, code=0):
    return b"\0\0\x08\x07\0" + b"\0" * 4 + last.to_bytes(4) + code.to_bytes(4)


@pytest.mark.parametrize("others", ["next", "nobody"])
@pytest.mark.parametrize("graceful", [False, True])
def test_goaway_with_streams_open(asked_of, encrypted_resolver, next_server, graceful, others):
    """What the server will not look at any more is asked on a new connection; what it will, on the old one.

    In the graceful form it says at first that it will go, and only later where it has stopped (RFC 9113 §6.8). The first
    answer takes its time, so the daemon is used to waiting: nothing here is asked again because it took long.
    """
    held = []

    def script(asked, connection):
        if asked.name.to_text().startswith("first"):
            return Later(0.6, address_reply(asked, "192.0.2.1"))
        if held and connection is not held[0][1]:
            return address_reply(asked, "192.0.2.2")
        if not asked.name.to_text().startswith("n"):
            return address_reply(asked, "192.0.2.1")
        held.append((asked, connection))
        if len(held) == 3 and graceful:
            connection.h2.close_connection(last_stream_id=2 ** 31 - 1)
            connection.flush()
            connection.h2.state_machine.state = h2.connection.ConnectionState.SERVER_OPEN
        elif len(held) == 3:
            leave()

    def leave():
        last, connection = held[0]
        connection.write(goaway(last.stream))
        connection.send(address_reply(last, "192.0.2.1"), last)
    server = encrypted_resolver("https", script)
    asked_of(server, *([next_server] if others == "next" else []), timeout=10000, hedgeAfter=3000)
    assert addresses(ask("first.example.net", port=PORT)) == ["192.0.2.1"]
    before = server.connections
    clients = Clients(port=PORT)
    for number in range(3):
        clients.ask(f"n{number}.example.net")
    eventually(lambda: len(held) == 3, "all are under way")
    begun = time.monotonic()
    if graceful:
        names = fresh()
        eventually(lambda: addresses(ask(next(names), port=PORT)) == ["192.0.2.2"], "another connection is used")
        server.do(leave)
    asked = clients.all_answered()
    assert waited_since(begun) < 2, "not as long as for a server that is silent"
    assert sorted(addresses(one.reply)[0] for one in asked) == ["192.0.2.1", "192.0.2.2", "192.0.2.2"], asked
    assert server.connections <= before + 1 and next_server.questions == [] and failures() == 0


@pytest.mark.parametrize("others", ["next", "nobody"])
def test_goaway_as_the_first_word(asked_of, encrypted_resolver, next_server, others):
    """A server that greets every connection so is dialled twice, and then once a second; the next one answers, or nobody
    does."""
    server = encrypted_resolver("https", answer, greet=lambda connection: (
        connection.write(goaway(0)), connection.close()))
    asked_of(server, *([next_server] if others == "next" else []))
    names, begun = fresh(), time.monotonic()
    while time.monotonic() - begun < 2.2:
        reply = ask(next(names), port=PORT)
        assert addresses(reply) == (NEXT_ADDRESS if others == "next" else []), reply
        time.sleep(0.05)
    assert server.connections <= 4


def test_goaway_before_the_first_answer(asked_of, encrypted_resolver):
    """What a new connection takes no more goes to the next one at once, and so does what one that was at its end took none
    of: the only server is not given up for either."""
    held = []

    def script(asked, connection):
        if connection.number == 3:
            return address_reply(asked, "192.0.2.2")
        if connection.number == 2:
            return connection.write(goaway(0))
        held.append((asked, connection))
        if len(held) < 2:
            return None
        connection.write(goaway(held[0][0].stream))
        return None

    server = encrypted_resolver("https", script)
    asked_of(server, timeout=10000, hedgeAfter=3000)
    clients = Clients(port=PORT)
    for name in ("one.example.net", "two.example.net"):
        clients.ask(name)
    eventually(lambda: server.connections == 3, "the second question is asked anew, twice")
    server.do(lambda: held[0][1].send(address_reply(held[0][0], "192.0.2.1"), held[0][0]))
    asked = clients.all_answered()
    assert sorted(addresses(one.reply)[0] for one in asked) == ["192.0.2.1", "192.0.2.2"], asked
    assert failures() == 0


def test_goaway_when_idle(asked_of, encrypted_resolver):
    server = encrypted_resolver("https", answer)
    running = asked_of(server)
    names = fresh()
    for _ in range(4):
        assert addresses(ask(next(names), port=PORT)) == OURS
        server.do(lambda: [(one.write(goaway(2 * one.count - 1)), one.close()) for one in server.live])
    assert not running.log_lines("fails"), running.log()


@pytest.mark.parametrize("is_known", [False, True])
def test_one_stream_at_a_time(asked_of, encrypted_resolver, is_known):
    """The limit is told with the first answer; what was sent before is refused, and goes out once more."""
    busy, seen = [], []

    def script(asked, connection):
        busy.append(connection.h2.open_inbound_streams)
        return Later(0.005, address_reply(asked))
    server = encrypted_resolver("https", script, streams=1, greet=seen.append)
    asked_of(server)
    names = fresh()
    if is_known:
        assert addresses(ask(next(names), port=PORT)) == OURS
    check_answers(at_once(next(names) for _ in range(50)), within=2)
    assert max(busy) == 1 and len({asked.name for asked in server.questions}) == 50 + is_known
    refused = sum(connection.refused for connection in seen)
    # Two, and up to four more while it takes the slowness of a busy machine for that of dead connections.
    assert server.connections <= 6 and refused < 50 and failures() == 0


def test_no_stream_at_all_is_a_failure(asked_of, encrypted_resolver, next_server):
    server = encrypted_resolver("https", answer, streams=0)
    asked_of(server, next_server)
    check_answers(at_once(f"n{number}.example.net" for number in range(3)), within=2, expected=NEXT_ADDRESS)


def test_a_limit_of_streams_that_falls_to_none_and_is_raised(asked_of, encrypted_resolver):
    """Who asks in between waits for it or is asked for on another connection."""
    def script(asked, connection):
        if asked.name.to_text().startswith("first"):
            connection.limit_streams(0)
            asyncio.get_running_loop().call_later(0.3, connection.limit_streams, 10)
        return address_reply(asked)
    server = encrypted_resolver("https", script)
    asked_of(server)
    assert addresses(ask("first.example.net", port=PORT)) == OURS
    check_answers(at_once(f"n{number}.example.net" for number in range(10)), within=1.5)


@pytest.mark.parametrize("others", ["next", "nobody"])
def test_a_limit_of_streams_that_falls_to_none_for_good(asked_of, encrypted_resolver, next_server, others):
    def script(asked, connection):
        connection.limit_streams(0)
        return address_reply(asked)
    server = encrypted_resolver("https", script)
    asked_of(server, *([next_server] if others == "next" else []))
    assert addresses(ask("first.example.net", port=PORT)) == OURS
    server.streams = 0
    for one in at_once(f"n{number}.example.net" for number in range(5)):
        if others == "next":
            check_answers([one], within=2, expected=NEXT_ADDRESS)
        else:
            assert one.reply.rcode() == dns.rcode.SERVFAIL and one.waited < 4


@pytest.mark.parametrize("others", ["next", "nobody"])
@pytest.mark.parametrize("code", ["REFUSED_STREAM", "CANCEL", "INTERNAL_ERROR", "ENHANCE_YOUR_CALM",
                                  "HTTP_1_1_REQUIRED"])
def test_one_of_several_streams_is_reset(asked_of, encrypted_resolver, next_server, code, others):
    """The others are answered as ever; that one by a further attempt or the next server."""
    held = []

    def script(asked, connection):
        if asked.name.to_text()[0] != "n" or len(held) == 5:
            return address_reply(asked)
        held.append(asked)
        if len(held) < 5:
            return None
        connection.h2.reset_stream(held[1].stream, h2.errors.ErrorCodes[code])
        for one in held[:1] + held[2:]:
            connection.send(address_reply(one), one)
    server = encrypted_resolver("https", script)
    asked_of(server, *([next_server] if others == "next" else []))
    assert addresses(ask("first.example.net", port=PORT)) == OURS
    asked = at_once(f"n{number}.example.net" for number in range(5))
    reset = held[1].name.to_text(omit_final_dot=True)
    for one in asked:
        assert addresses(one.reply) == OURS or others == "next" and one.name == reset and (
            addresses(one.reply) == NEXT_ADDRESS), one
        assert one.waited < 1
    assert addresses(ask("after.example.net", port=PORT))


def test_a_ping_is_answered(asked_of, encrypted_resolver):
    server = encrypted_resolver("https", answer)
    asked_of(server)
    assert addresses(ask("first.example.net", port=PORT)) == OURS

    def ping():
        connection = server.live[0]
        acknowledged = []
        heed = connection._heed
        connection._heed = lambda event: (acknowledged.append(event), heed(event))
        connection.h2.ping(b"12345678")
        connection.flush()
        return acknowledged
    events = server.do(ping)
    eventually(lambda: any(type(event).__name__ == "PingAckReceived" for event in events), "the PING is answered")


def test_fields_and_frames_around_an_answer(asked_of, encrypted_resolver):
    """103 before it, empty and padded DATA in it, trailers after it."""
    def script(asked, connection):
        body = address_reply(asked).to_wire()
        speak = connection.h2
        speak.send_headers(asked.stream, [(":status", "103"), ("link", "</x>; rel=preload")])
        speak.send_headers(asked.stream, [(":status", "200"), ("content-type", MEDIA_TYPE)])
        speak.send_data(asked.stream, b"")
        for octet in body[:10]:
            speak.send_data(asked.stream, bytes([octet]), pad_length=7)
        speak.send_data(asked.stream, body[10:])
        speak.send_data(asked.stream, b"")
        speak.send_headers(asked.stream, [("x-checksum", "1")], end_stream=True)
        connection.flush()
    asked_of(encrypted_resolver("https", script))
    check_answers(at_once(f"n{number}.example.net" for number in range(5)))


@pytest.mark.parametrize("offer", [None, "http/1.1"])
def test_a_server_without_http_2(asked_of, encrypted_resolver, authority, next_server, offer):
    server = encrypted_resolver("tls", address="127.0.0.6")
    if offer:
        server._context.set_alpn_protocols([offer])
    asked_of(f"https://{server.address}:{server.port}/dns-query")
    assert "h2" in check_failure()


@pytest.mark.parametrize("scheme", ["tls", "https"])
def test_a_server_that_refuses_by_an_alert(asked_of, authority, scheme):
    """no_application_protocol, of one that knows `http/1.1` alone: said for HTTPS; DNS over TLS is tried without."""
    file = authority.server_file(addresses=["127.0.0.6"])
    command = ["openssl", "s_server", "-accept", "127.0.0.6:8853", "-cert", str(file), "-key", str(file), "-alpn",
               "http/1.1", "-quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        try:
            eventually(lambda: listens("127.0.0.6", 8853), "it listens")
            asked_of(f"{scheme}://127.0.0.6:8853" + ("/dns-query" if scheme == "https" else ""), timeout=300)
            said = check_failure()
            assert ("HTTP/2 (ALPN h2)" if scheme == "https" else "no answer") in said, said
            if scheme == "tls":
                assert server.stdout.read(2) == b"\0\x80", "a query came over the connection without ALPN"
        finally:
            server.terminate()


def listens(address, port):
    with socket.socket() as channel:
        return channel.connect_ex((address, port)) == 0


@pytest.mark.parametrize("offer", [None, "h2", "dot"])
def test_what_a_server_of_dns_over_tls_offers(asked_of, encrypted_resolver, offer):
    """It need not know `dot`; one that refuses it is asked again without."""
    server = encrypted_resolver("tls")
    if offer:
        server._context.set_alpn_protocols([offer])
    asked_of(server)
    check_answers(at_once(f"n{number}.example.net" for number in range(3)))
