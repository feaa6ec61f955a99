"""Servers of DNS over TCP, TLS and HTTPS that do what they may, or should not: clients get the right answer in time."""

import asyncio
import itertools
import time

import dns.edns
import dns.flags
import dns.message
import dns.rcode
import pytest

from clients import Clients
from dns_client import addresses, ask, extended_errors
from encrypted import MEDIA_TYPE, Later, address_reply
from networks import BlackHole
from resolvers import LOCAL_ADDRESS, answer_locally, reply_to
from waiting import eventually

PORT = 2053
OURS = ["192.0.2.7"]
EVERY = 0.2  # five questions a second
SCHEMES = ["tls", "https"]


@pytest.fixture
def asked_of(daemon, authority):
    """Starts a daemon whose local resolvers these are."""
    def start(*servers, **fallback):
        return daemon(None, {"listen": {"addresses": [f"127.0.0.1:{PORT}"]},
                             "fallback": {"servers": [getattr(one, "url", one) for one in servers], "timeout": 2000,
                                          "caFile": str(authority.file)} | fallback}, port=PORT)
    return start


def fresh():
    return (f"f{number}.example.net" for number in itertools.count())


def at_once(names, **options):
    """Asks all names together and returns what became of them."""
    clients = Clients(port=PORT, **options)
    for name in names:
        clients.ask(name)
    return clients.all_answered()


def check_answers(asked, within=1.5, expected=OURS):
    for one in asked:
        assert addresses(one.reply) == expected, f"{one.name} after {one.waited:.2f} s: {one.reply}"
        assert one.waited < within, f"{one.name} took {one.waited:.2f} s"


def check_failure(name="failing.example.net", within=4.0):
    begun = time.monotonic()
    reply = ask(name, edns=True, port=PORT)
    assert time.monotonic() - begun < within
    assert reply.rcode() == dns.rcode.SERVFAIL and extended_errors(reply) in ([22], [23]), reply
    return " ".join(option.text or "" for option in reply.options if option.otype == dns.edns.EDE)


# -- what is asked --

@pytest.mark.parametrize("protocol", SCHEMES)
def test_every_query_is_padded_and_says_nothing_of_the_client(asked_of, encrypted_resolver, protocol):
    """RFC 8467: 128 octets. Neither cookies nor subnets nor another size go up; ids are not the client's."""
    server = encrypted_resolver(protocol)
    asked_of(server)
    options = [dns.edns.ECSOption("198.51.100.0", 24), dns.edns.GenericOption(10, b"12345678")]
    for length in (1, 20, 40, 60):
        for kind in ("A", "TXT", "MX"):
            ask("x" * length + ".example.net", kind, port=PORT, edns=True, options=options)
    assert len(server.questions) == 12
    for asked in server.questions:
        assert len(asked.wire) % 128 == 0, len(asked.wire)
        assert [option.otype for option in asked.message.options] == [12], asked.message
        assert asked.message.options[0].data.strip(b"\0") == b""
        assert asked.message.flags & ~dns.flags.AD == dns.flags.RD
    if protocol == "https":
        assert {asked.message.id for asked in server.questions} == {0}


@pytest.mark.parametrize("form", ["POST", "GET"])
def test_what_a_request_over_https_holds(asked_of, encrypted_resolver, form):
    server = encrypted_resolver("https")
    asked_of(server.url + ("{?dns}" if form == "GET" else ""))
    assert addresses(ask("one.example.net", port=PORT)) == OURS
    assert addresses(ask("two.example.net", port=PORT)) == OURS
    for headers in server.headers:
        fields = dict(headers)
        assert len(fields) == len(headers) and fields[":method"] == form and fields[":scheme"] == "https"
        assert fields[":authority"] == f"{server.address}:{server.port}" and fields["accept"] == MEDIA_TYPE
        if form == "GET":
            assert fields[":path"].startswith("/dns-query?dns=") and "=" not in fields[":path"][15:]
        else:
            assert fields[":path"] == "/dns-query" and fields["content-type"] == MEDIA_TYPE
        extra = set(fields) - {":method", ":scheme", ":authority", ":path", "accept", "content-type", "content-length"}
        assert not extra, extra
    assert server.connections == 1


@pytest.mark.parametrize("protocol", SCHEMES)
@pytest.mark.parametrize("options", [[dns.edns.GenericOption(12, b"\1" * 50)],
                                     [dns.edns.GenericOption(12, b""), dns.edns.GenericOption(12, b"\0" * 300)]])
def test_padding_of_replies_stays_behind(asked_of, encrypted_resolver, protocol, options):
    def script(asked, connection):
        reply = address_reply(asked)
        reply.use_edns(0, 0, 1232, options=[*options, dns.edns.EDEOption(3, "of old")])
        return reply
    asked_of(encrypted_resolver(protocol, script))
    reply = ask("padded.example.net", port=PORT, edns=True)
    assert addresses(reply) == OURS and extended_errors(reply) == [3]
    assert not [option for option in reply.options if option.otype == 12]


# -- connections --

@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
def test_many_questions_share_a_connection(asked_of, encrypted_resolver, protocol):
    server = encrypted_resolver(protocol, lambda asked, connection: Later(0.05, address_reply(asked)))
    asked_of(server)
    names = fresh()
    check_answers(at_once(next(names) for _ in range(30)))
    check_answers(at_once(next(names) for _ in range(30)))
    assert server.connections <= 2 and len(server.questions) == 60


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
@pytest.mark.parametrize("count", [1, 2, 100])
def test_a_server_that_closes_after_some_answers(asked_of, encrypted_resolver, protocol, count):
    def script(asked, connection):
        connection.send(address_reply(asked), asked)
        if connection.count == count:
            connection.close()
    server = encrypted_resolver(protocol, script)
    running = asked_of(server)
    names = fresh()
    for _ in range(5):
        assert addresses(ask(next(names), port=PORT)) == OURS
    check_answers(at_once(next(names) for _ in range(40)))
    check_answers(at_once(next(names) for _ in range(40)))
    assert not running.log_lines("fails"), running.log()


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("after", [0, 0.02, 0.5])
def test_a_connection_that_ends_under_queries(asked_of, encrypted_resolver, protocol, end, after):
    """They go out once more on a fresh connection, at once, and nobody hears of it."""
    def script(asked, connection):
        if connection.number > 1 or connection.count == 1:
            return address_reply(asked)
        if connection.count == 2:
            asyncio.get_running_loop().call_later(after, getattr(connection, end))
        return None
    server = encrypted_resolver(protocol, script)
    running = asked_of(server)
    assert addresses(ask("first.example.net", port=PORT)) == OURS
    check_answers(at_once(f"n{number}.example.net" for number in range(5)), within=after + 0.5)
    assert not running.log_lines("fails"), running.log()


@pytest.mark.parametrize("cut", [1, 2, 3, 20])
def test_a_connection_that_ends_inside_a_message(asked_of, encrypted_resolver, cut):
    def script(asked, connection):
        if connection.number == 1 and connection.count > 1:
            connection.write(connection.framed(address_reply(asked))[:cut])
            return connection.close()
        return address_reply(asked)
    server = encrypted_resolver("tls", script)
    asked_of(server)
    check_answers(at_once(["first.example.net"]))
    check_answers(at_once([f"n{number}.example.net" for number in range(3)]))


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
def test_a_server_that_always_closes_without_an_answer_is_not_besieged(asked_of, encrypted_resolver, protocol):
    server = encrypted_resolver(protocol, lambda asked, connection: connection.close())
    asked_of(server)
    check_failure()
    assert server.connections <= 6, server.connections


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
def test_one_slow_name_does_not_delay_the_others(asked_of, encrypted_resolver, protocol):
    def script(asked, connection):
        slow = asked.name.to_text().startswith("slow")
        return Later(1.2, address_reply(asked)) if slow else address_reply(asked)
    server = encrypted_resolver(protocol, script)
    asked_of(server)
    names = fresh()
    clients = Clients(port=PORT)
    check_answers(at_once(next(names) for _ in range(3)))
    clients.ask("slow.example.net")
    clients.ask_steadily([next(names) for _ in range(10)], 0.1)
    asked = clients.all_answered()
    check_answers(asked[1:], within=0.3)
    check_answers(asked[:1], within=2)


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
def test_packets_that_vanish(asked_of, encrypted_resolver, protocol):
    """A live connection dies without a word: a second's answers are late at most, and none is lost."""
    server = encrypted_resolver(protocol)
    asked_of(server, timeout=5000)
    names = fresh()
    for _ in range(10):
        assert addresses(ask(next(names), port=PORT)) == OURS
    clients = Clients(port=PORT)
    with BlackHole([server.port], server.clients):
        began = time.monotonic()
        clients.ask_steadily([next(names) for _ in range(10)], EVERY)
        asked = clients.all_answered()
    for one in asked:
        assert addresses(one.reply) == OURS
    late = [(round(one.at - began, 2), round(one.waited, 2)) for one in asked if one.waited > EVERY]
    print("delayed (asked so many seconds after the fault, waited):", late)
    assert late and all(at < 1.0 and waited < 1.2 for at, waited in late), late


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
def test_a_server_that_restarts(asked_of, encrypted_resolver, protocol):
    server = encrypted_resolver(protocol)
    asked_of(server)
    names = fresh()
    assert addresses(ask(next(names), port=PORT)) == OURS
    for _ in range(3):
        server.away()
        server.start()
        check_answers(at_once(next(names) for _ in range(5)), within=0.5)


@pytest.mark.parametrize("protocol", SCHEMES)
def test_a_server_that_comes_back_is_used_again(asked_of, encrypted_resolver, scripted_resolver, protocol):
    """A plain server that the operator named stands in meanwhile."""
    other = scripted_resolver(answer_locally)
    server = encrypted_resolver(protocol)
    asked_of(server, other.endpoint)
    names = fresh()
    assert addresses(ask(next(names), port=PORT)) == OURS
    server.away()
    for _ in range(3):
        assert addresses(ask(next(names), port=PORT)) == [LOCAL_ADDRESS]
    server.start()
    eventually(lambda: addresses(ask(next(names), port=PORT)) == OURS, "the first server is asked again", 40)


@pytest.mark.parametrize("banner", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"220 mail.example.net ESMTP\r\n", b"\0" * 20])
@pytest.mark.parametrize("protocol", SCHEMES)
def test_no_tls_at_the_port(asked_of, encrypted_resolver, banner, protocol):
    server = encrypted_resolver("tcp")
    server.kind = type("Talking", (server.kind,), {"serve": lambda self: talk(self)})

    async def talk(connection):
        connection.write(banner)
        await connection.reader.read(10000)
    asked_of(f"{protocol}://{server.address}:{server.port}" + ("/dns-query" if protocol == "https" else ""))
    begun = time.monotonic()
    assert "127.0.0.6" in check_failure()
    assert time.monotonic() - begun < 1


# -- DNS over TLS --

def test_answers_in_any_order_and_any_pieces(asked_of, encrypted_resolver):
    waiting = []

    def script(asked, connection):
        waiting.append(connection.framed(address_reply(asked, f"192.0.2.{len(waiting) + 1}")))
        if len(waiting) == 10:
            octets = b"".join(reversed(waiting))
            for place in range(0, 100):
                connection.write(octets[place:place + 1])  # a TLS record each
            connection.write(octets[100:])
    server = encrypted_resolver("tls", script)
    asked_of(server)
    asked = at_once(f"n{number}.example.net" for number in range(10))
    found = {one.name: addresses(one.reply)[0] for one in asked}
    assert len(set(found.values())) == 10
    order = [question.name.to_text(omit_final_dot=True) for question in server.questions]
    assert [found[name] for name in order] == [f"192.0.2.{number + 1}" for number in range(10)]


def other_name(asked, connection):
    return reply_to(dns.message.make_query("other.example.net", "A", id=asked.message.id), "60 IN A 192.0.2.66")


def other_kind(asked, connection):
    return reply_to(dns.message.make_query(asked.name, "TXT", id=asked.message.id), "60 IN TXT no")


def other_id(asked, connection):
    reply = address_reply(asked, "192.0.2.66")
    reply.id ^= 0x5555
    return reply


def no_question(asked, connection):
    reply = address_reply(asked, "192.0.2.66")
    reply.question = []
    return reply


def a_query(asked, connection):
    return dns.message.make_query(asked.name, "A", id=asked.message.id)


def other_opcode(asked, connection):
    wire = bytearray(address_reply(asked, "192.0.2.66").to_wire())
    wire[2] |= 0x10
    return bytes(wire)


def two_questions(asked, connection):
    reply = address_reply(asked, "192.0.2.66")
    reply.question = reply.question * 2
    return reply


def truncated(asked, connection):
    reply = address_reply(asked)
    reply.answer = []
    reply.flags |= dns.flags.TC
    return reply


NOT_ANSWERS = {"another name": other_name, "another type": other_kind, "another id": other_id,
               "no question": no_question, "a query": a_query, "another opcode": other_opcode,
               "two questions": two_questions,
               "garbage": lambda asked, connection: asked.wire[:2] + b"\x81\x80" + b"\xff" * 30,
               "empty": lambda asked, connection: b"", "short": lambda asked, connection: b"\0" * 11}


# Over HTTPS the stream says what is answered.
@pytest.mark.parametrize(("case", "protocol"), [(case, protocol) for case in NOT_ANSWERS for protocol in SCHEMES
                                                if (case, protocol) != ("another id", "https")])
def test_what_is_no_answer_is_not_believed(asked_of, encrypted_resolver, protocol, case):
    """Alone it is a failure of the server; the next one is asked."""
    bad = encrypted_resolver(protocol, NOT_ANSWERS[case])
    good = encrypted_resolver(protocol, address="127.0.0.7")
    asked_of(bad, good, timeout=1000)
    for number in range(3):
        begun = time.monotonic()
        reply = ask(f"n{number}.example.net", port=PORT)
        assert addresses(reply) == OURS, reply
        assert time.monotonic() - begun < 2


def test_what_is_no_answer_before_the_true_one(asked_of, encrypted_resolver):
    def script(asked, connection):
        return [other_id(asked, connection), address_reply(asked), address_reply(asked, "192.0.2.66")]
    asked_of(encrypted_resolver("tls", script))
    for number in range(5):
        assert addresses(ask(f"n{number}.example.net", port=PORT)) == OURS


def test_a_late_answer_is_nobody_elses(asked_of, encrypted_resolver):
    """What comes after the time-out is passed over, and the connection serves on."""
    def script(asked, connection):
        late = asked.name.to_text().startswith("late")
        return Later(1.0, address_reply(asked, "192.0.2.66")) if late else address_reply(asked)
    server = encrypted_resolver("tls", script)
    asked_of(server, timeout=300)
    names = fresh()
    clients = Clients(port=PORT)
    clients.ask("late.example.net")
    clients.ask_steadily([next(names) for _ in range(15)], 0.1)
    check_answers(clients.all_answered()[1:], within=0.5)


@pytest.mark.parametrize("protocol", SCHEMES)
@pytest.mark.parametrize("code", [dns.rcode.SERVFAIL, dns.rcode.REFUSED])
def test_the_next_server_when_one_says_no(asked_of, encrypted_resolver, protocol, code):
    no = encrypted_resolver(protocol, lambda asked, connection: reply_to(asked.message, rcode=code))
    good = encrypted_resolver(protocol, address="127.0.0.7")
    asked_of(no, good)
    check_answers(at_once(f"n{number}.example.net" for number in range(3)))


def test_truncated_answers_are_not_cached_as_whole_ones(asked_of, encrypted_resolver):
    bad = encrypted_resolver("https", truncated)
    good = encrypted_resolver("https", address="127.0.0.7")
    asked_of(bad, good)
    assert addresses(ask("cut.example.net", port=PORT)) == OURS
