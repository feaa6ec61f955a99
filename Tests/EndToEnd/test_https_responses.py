"""What servers of DNS over HTTPS say in HTTP: statuses, fields and bodies."""

import re
import time

import dns.flags
import dns.rcode
import dns.rrset
import pytest

import daemon as processes
from asking import NEXT_ADDRESS, OURS, PORT, asked_of, at_once, check_answers, check_failure, fresh, next_server
from dns_client import addresses, ask
from encrypted import MEDIA_TYPE, Response, address_reply
from waiting import eventually

__all__ = ["asked_of", "next_server"]  # fixtures


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


@pytest.mark.parametrize(("status", "scheme"), [(301, "https"), (302, "http"), (303, "https"), (307, "https"),
                                                (308, "http")])
def test_redirects_are_not_followed(asked_of, encrypted_resolver, next_server, binary, status, scheme):
    """Where to is said to clients, in the log and by `probe`."""
    location = next_server.url.replace("https", scheme)
    server = encrypted_resolver("https", lambda asked, connection: Response(
        address_reply(asked), status, [("location", location)]))
    running = asked_of(server)
    said = check_failure()
    assert str(status) in said and location in said
    assert running.log_lines(re.escape(location))
    probed = processes.run(binary, "probe", "-c", str(running.directory / "httpdnsd.toml"))
    assert location in probed.stdout + probed.stderr, probed
    assert next_server.connections == 0 and server.connections == 2


@pytest.mark.parametrize("status", [429, 503])
def test_the_end_of_a_pause_is_no_storm(asked_of, encrypted_resolver, next_server, status):
    """What waited asks one by one whether the server takes requests again, and the next one answers meanwhile."""
    server = encrypted_resolver("https", lambda asked, connection: Response(b"", status, [("retry-after", "1")]))
    asked_of(server, next_server)
    names = fresh()
    check_answers(at_once(next(names) for _ in range(30)), expected=NEXT_ADDRESS)
    before = len(server.questions)
    time.sleep(1.1)
    for _ in range(2):
        check_answers(at_once(next(names) for _ in range(30)), within=1, expected=NEXT_ADDRESS)
    assert len(server.questions) - before <= 3, (before, len(server.questions))
    server.script = lambda asked, connection: address_reply(asked)
    eventually(lambda: addresses(ask(next(names), port=PORT)) == OURS, "it is asked again", 15)


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

TYPES = {"none": [], "the same twice": [("content-type", MEDIA_TYPE)] * 2,
         "upper case": [("content-type", "Application/DNS-Message")],
         "with a parameter": [("content-type", "application/dns-message; charset=utf-8")]}
OTHER_TYPES = {"text/html": [("content-type", "text/html")], "two": [
    ("content-type", MEDIA_TYPE), ("content-type", "text/html")], "json": [("content-type", "application/dns-json")]}


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
    "two": ([("age", "50"), ("age", "20")], 10), "negative": ([("age", "-5")], 60),
    "no-store": ([("cache-control", "no-store")], 60),
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
