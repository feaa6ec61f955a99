"""HTTP responses of servers of DNS over HTTPS: statuses, fields and bodies."""

import re
import time

import dns.flags
import dns.rcode
import dns.rrset
import pytest

import daemon as processes
from asking import NEXT_ADDRESS, OURS, PORT, at_once, check_answers, check_failure, fresh
from dns_client import addresses, ask, reasons
from encrypted import MEDIA_TYPE, Response, address_reply
from resolvers import reply_to
from waiting import eventually



# -- status --

@pytest.mark.parametrize("status", [404, 429, 500, 502])
def test_a_status_of_failure(asked_of, encrypted_resolver, next_server, status):
    """A status of failure, even with a valid message, leads to the next server, and the log has the status."""
    server = encrypted_resolver("https", lambda asked, connection: Response(address_reply(asked), status))
    running = asked_of(server, next_server)
    check_answers(at_once(f"n{number}.example.net" for number in range(3)), expected=NEXT_ADDRESS)
    assert len(server.questions) <= 6
    assert running.log_lines(str(status)), running.log()


@pytest.mark.parametrize("status", [301, 307])
def test_redirects_are_not_followed(asked_of, encrypted_resolver, next_server, binary, status):
    """The target of a redirect, whose path may be an account's own, is shown in the log and by `probe`, but not asked."""
    location = next_server.url
    server = encrypted_resolver("https", lambda asked, connection: Response(
        address_reply(asked), status, [("location", location)]))
    running = asked_of(server)
    said = check_failure()
    assert str(status) in said and location not in said and "/dns-query" not in said
    assert running.log_lines(re.escape(location))
    probed = processes.run(binary, "probe", "-c", str(running.directory / "httpdnsd.toml"))
    assert location in probed.stdout + probed.stderr, probed
    assert next_server.connections == 0 and server.connections == 2


def test_clients_do_not_get_the_path_of_a_server_that_says_formerr(asked_of, encrypted_resolver):
    """The path may be an account's own."""
    formerr = dns.rcode.FORMERR
    server = encrypted_resolver("https", lambda asked, connection: reply_to(asked.message, rcode=formerr))
    asked_of(server)
    said = reasons(ask("malformed.example.net", edns=True, port=PORT))
    assert said.startswith(server.url.removesuffix("/dns-query") + " finds the question malformed"), said


def test_the_end_of_a_pause_is_no_storm(asked_of, encrypted_resolver, next_server):
    """After a pause, single questions test whether the server accepts requests; the next server answers meanwhile."""
    server = encrypted_resolver("https", lambda asked, connection: Response(b"", 503, [("retry-after", "1")]))
    asked_of(server, next_server)
    names = fresh()
    check_answers(at_once(next(names) for _ in range(30)), expected=NEXT_ADDRESS)
    before = len(server.questions)
    time.sleep(1.1)
    for _ in range(2):
        check_answers(at_once(next(names) for _ in range(30)), expected=NEXT_ADDRESS)
    assert len(server.questions) - before <= 3, (before, len(server.questions))
    server.script = lambda asked, connection: address_reply(asked)
    eventually(lambda: addresses(ask(next(names), port=PORT)) == OURS, "it is asked again")


# -- fields and bodies --

def test_a_page_is_no_answer(asked_of, encrypted_resolver, next_server):
    bad = encrypted_resolver("https", lambda asked, connection: Response(
        b"<html>Please log in</html>", fields=[("content-type", "text/html")]))
    asked_of(bad, next_server)
    check_answers(at_once(f"n{number}.example.net" for number in range(2)), expected=NEXT_ADDRESS)


def test_the_age_of_an_answer(asked_of, encrypted_resolver):
    """The Age field is subtracted from TTLs (RFC 8484 §5.1)."""
    asked_of(encrypted_resolver("https", lambda asked, connection: Response(
        address_reply(asked, ttl=60), fields=[("content-type", MEDIA_TYPE), ("age", "50")])))
    reply = ask("aged.example.net", port=PORT)
    assert addresses(reply) == OURS and 9 <= reply.answer[0].ttl <= 10, reply


BODIES = {"half a message": lambda wire: wire[:-3], "more than a message can be": lambda wire: wire + bytes(65536)}


@pytest.mark.parametrize("case", BODIES)
def test_a_body_that_is_no_message(asked_of, encrypted_resolver, next_server, case):
    bad = encrypted_resolver("https", lambda asked, connection: Response(BODIES[case](address_reply(asked).to_wire())))
    running = asked_of(bad, next_server)
    check_answers(at_once(f"n{number}.example.net" for number in range(3)), expected=NEXT_ADDRESS)
    assert running.process.poll() is None


def large(asked, octets):
    """A TXT answer of about this many octets."""
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
