"""What servers of DNS over HTTPS do with HTTP and HTTP/2: limits, refusals, endings, bodies, fields."""

import asyncio

import dns.flags
import dns.rcode
import dns.rrset
import h2.connection
import h2.errors
import pytest

from dns_client import addresses, ask
from encrypted import MEDIA_TYPE, Later, Response, address_reply
from test_encrypted_faults import OURS, PORT, at_once, asked_of, check_answers, check_failure, fresh
from waiting import eventually

__all__ = ["asked_of"]  # a fixture
NEXT = "127.0.0.7"
NEXT_ADDRESS = ["192.0.2.8"]


def answer(asked, connection=None):
    return address_reply(asked)


@pytest.fixture
def next_server(encrypted_resolver):
    """One that works, to be named after the one a test is about."""
    return encrypted_resolver("https", lambda asked, connection: address_reply(asked, NEXT_ADDRESS[0]), address=NEXT)


# -- GOAWAY and streams --

@pytest.mark.parametrize("graceful", [False, True])
def test_goaway_with_streams_open(asked_of, encrypted_resolver, graceful):
    """What the server will not look at any more is asked on a new connection; what it will, on the old one."""
    held = []

    def script(asked, connection):
        if connection.number > 1 or asked.name.to_text().startswith("first"):
            return address_reply(asked, f"192.0.2.{connection.number}")
        held.append(asked)
        if len(held) < 3:
            return None
        last = held[0].stream
        if graceful:
            connection.h2.close_connection(last_stream_id=2 ** 31 - 1)
            connection.flush()
        connection.write(goaway(last))
        connection.h2.state_machine.state = h2.connection.ConnectionState.SERVER_OPEN
        return connection.send(address_reply(held[0], "192.0.2.1"), held[0])
    server = encrypted_resolver("https", script)
    asked_of(server)
    assert addresses(ask("first.example.net", port=PORT)) == ["192.0.2.1"]
    asked = at_once(f"n{number}.example.net" for number in range(3))
    assert sorted(addresses(one.reply)[0] for one in asked) == ["192.0.2.1", "192.0.2.2", "192.0.2.2"], asked
    assert all(one.waited < 1 for one in asked)
    assert server.connections == 2


def goaway(last, code=0):
    return b"\0\0\x08\x07\0" + b"\0" * 4 + last.to_bytes(4) + code.to_bytes(4)


def test_goaway_when_idle(asked_of, encrypted_resolver):
    server = encrypted_resolver("https", answer)
    running = asked_of(server)
    names = fresh()
    for _ in range(4):
        assert addresses(ask(next(names), port=PORT)) == OURS
        server.do(lambda: [(one.write(goaway(2 * one.count - 1)), one.close()) for one in server.live])
    assert not running.log_lines("fails"), running.log()


def test_one_stream_at_a_time(asked_of, encrypted_resolver):
    busy = []

    def script(asked, connection):
        busy.append(connection.h2.open_inbound_streams)
        return Later(0.005, address_reply(asked))
    server = encrypted_resolver("https", script, streams=1)
    asked_of(server)
    assert addresses(ask("first.example.net", port=PORT)) == OURS
    names = fresh()
    check_answers(at_once(next(names) for _ in range(50)), within=2)
    assert max(busy) == 1 and len(server.questions) == 51
    assert server.connections <= 3


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


@pytest.mark.parametrize("code", ["REFUSED_STREAM", "CANCEL", "INTERNAL_ERROR", "ENHANCE_YOUR_CALM",
                                  "HTTP_1_1_REQUIRED"])
def test_one_of_several_streams_is_reset(asked_of, encrypted_resolver, next_server, code):
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
    asked_of(server, next_server)
    assert addresses(ask("first.example.net", port=PORT)) == OURS
    asked = at_once(f"n{number}.example.net" for number in range(5))
    reset = held[1].name.to_text(omit_final_dot=True)
    for one in asked:
        assert addresses(one.reply) == OURS or one.name == reset and addresses(one.reply) == NEXT_ADDRESS, one
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


# -- status --

@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 413, 415, 421, 425, 429, 500, 502, 503, 504])
def test_a_status_of_failure(asked_of, encrypted_resolver, next_server, status):
    """Even with a valid message in the body: the next server is asked; the log says the status."""
    server = encrypted_resolver("https", lambda asked, connection: Response(address_reply(asked), status))
    running = asked_of(server, next_server)
    check_answers(at_once(f"n{number}.example.net" for number in range(3)), expected=NEXT_ADDRESS)
    assert len(server.questions) <= 6
    assert running.log_lines(str(status)), running.log()


@pytest.mark.parametrize("status", [404, 429, 503])
def test_a_status_of_failure_and_nobody_else(asked_of, encrypted_resolver, status):
    server = encrypted_resolver("https", lambda asked, connection: Response(b"no", status, [
        ("content-type", "text/plain"), ("retry-after", "1")]))
    asked_of(server)
    said = check_failure()
    assert str(status) in said and server.url in said


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(asked_of, encrypted_resolver, next_server, status):
    server = encrypted_resolver("https", lambda asked, connection: Response(b"", status, [
        ("location", next_server.url)]))
    asked_of(server)
    assert str(status) in check_failure()
    assert next_server.connections == 0


def test_an_answer_of_servfail_is_the_resolvers_word(asked_of, encrypted_resolver):
    def script(asked, connection):
        reply = address_reply(asked)
        reply.answer = []
        reply.set_rcode(dns.rcode.SERVFAIL)
        return reply
    server = encrypted_resolver("https", script)
    asked_of(server)
    assert ask("failing.example.net", port=PORT).rcode() == dns.rcode.SERVFAIL
    assert addresses(ask("failing.example.net", port=PORT)) == []


# -- fields --

TYPES = {"upper case": [("content-type", "Application/DNS-Message")],
         "with a parameter": [("content-type", "application/dns-message; charset=utf-8")]}
OTHER_TYPES = {"text/html": [("content-type", "text/html")], "json": [("content-type", "application/dns-json")]}


@pytest.mark.parametrize("case", TYPES)
def test_media_types_that_are_meant(asked_of, encrypted_resolver, case):
    asked_of(encrypted_resolver("https", lambda asked, connection: Response(address_reply(asked), fields=TYPES[case])))
    check_answers(at_once(f"n{number}.example.net" for number in range(2)))


@pytest.mark.parametrize("case", OTHER_TYPES)
def test_media_types_that_are_not(asked_of, encrypted_resolver, next_server, case):
    bad = encrypted_resolver("https", lambda asked, connection: Response(
        b"<html>Please log in</html>", fields=OTHER_TYPES[case]))
    asked_of(bad, next_server)
    check_answers(at_once(f"n{number}.example.net" for number in range(2)), expected=NEXT_ADDRESS)


AGES = {"none": ([], 60), "0": ([("age", "0")], 60), "50": ([("age", "50")], 10), "as old as its TTL": (
    [("age", "60")], 0), "older": ([("age", "5000")], 0), "no number": ([("age", "x")], 60),
    "negative": ([("age", "-5")], 60), "no-store": ([("cache-control", "no-store")], 60),
    "max-age above the TTL": ([("cache-control", "max-age=86400")], 60)}


@pytest.mark.parametrize("case", AGES)
def test_the_age_of_an_answer(asked_of, encrypted_resolver, case):
    """TTLs are less by it (RFC 8484 §5.1)."""
    fields, ttl = AGES[case]
    asked_of(encrypted_resolver("https", lambda asked, connection: Response(
        address_reply(asked, ttl=60), fields=[("content-type", MEDIA_TYPE), *fields])))
    reply = ask("aged.example.net", port=PORT)
    assert addresses(reply) == OURS
    assert ttl - 1 <= reply.answer[0].ttl <= max(ttl, 1), reply


# -- bodies --

BODIES = {"nothing": lambda wire: b"", "a header that is cut": lambda wire: wire[:11],
          "half a message": lambda wire: wire[:-3], "text": lambda wire: b"<html></html>",
          "more than a message can be": lambda wire: wire + bytes(65536), "a megabyte": lambda wire: bytes(1 << 20)}


@pytest.mark.parametrize("case", BODIES)
def test_a_body_that_is_no_message(asked_of, encrypted_resolver, next_server, case):
    bad = encrypted_resolver("https", lambda asked, connection: Response(BODIES[case](address_reply(asked).to_wire())))
    running = asked_of(bad, next_server)
    check_answers(at_once(f"n{number}.example.net" for number in range(3)), expected=NEXT_ADDRESS)
    assert running.process.poll() is None


def large(asked, octets):
    """A TXT answer of about so many octets."""
    reply = address_reply(asked)
    texts = [f'"{number:05}{"x" * 245}"' for number in range(octets // 264)]
    reply.answer = [dns.rrset.from_text_list(asked.message.question[0].name, 60, "IN", "TXT", texts)]
    return reply


@pytest.mark.parametrize("protocol", ["tls", "https"])
@pytest.mark.parametrize("octets", [4400, 17000, 64000])
def test_large_answers(asked_of, encrypted_resolver, protocol, octets):
    server = encrypted_resolver(protocol, lambda asked, connection: large(asked, octets))
    asked_of(server)
    for number in range(3):
        cut = ask(f"large{number}.example.net", "TXT", port=PORT, edns=True)
        assert cut.flags & dns.flags.TC
        whole = ask(f"large{number}.example.net", "TXT", port=PORT, transport="tcp")
        assert len(whole.answer[0]) == octets // 264


def test_a_length_that_is_not_true(asked_of, encrypted_resolver, next_server):
    """h2 of the daemon's side must notice: it is malformed (RFC 9113 §8.1.1)."""
    bad = encrypted_resolver("https", lambda asked, connection: Response(
        address_reply(asked), fields=[("content-type", MEDIA_TYPE), ("content-length", "500")]))
    asked_of(bad, next_server)
    check_answers(at_once(f"n{number}.example.net" for number in range(3)), expected=NEXT_ADDRESS)


def test_a_body_that_never_ends(asked_of, encrypted_resolver, next_server):
    def script(asked, connection):
        connection.h2.send_headers(asked.stream, [(":status", "200"), ("content-type", MEDIA_TYPE)])
        connection.flush()
    bad = encrypted_resolver("https", script)
    asked_of(bad, next_server, timeout=500)
    check_answers(at_once(f"n{number}.example.net" for number in range(3)), expected=NEXT_ADDRESS)


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


@pytest.mark.parametrize("offer", [None, "h2", "dot"])
def test_what_a_server_of_dns_over_tls_offers(asked_of, encrypted_resolver, offer):
    """It need not know `dot`; one that refuses it is asked again without."""
    server = encrypted_resolver("tls")
    if offer:
        server._context.set_alpn_protocols([offer])
    asked_of(server)
    check_answers(at_once(f"n{number}.example.net" for number in range(3)))
