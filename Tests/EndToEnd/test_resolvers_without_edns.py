"""Local resolvers from before EDNS (RFC 6891 §7), and local resolvers that report FORMERR for a sound question."""

import itertools

import dns.flags
import dns.message
import dns.rcode
import pytest

from dns_client import addresses, ask, extended_errors, reasons
from resolvers import reply_to

PORT = 2053


def start(daemon, *resolvers, **fallback):
    return daemon(None, {"listen": {"addresses": [f"127.0.0.1:{PORT}"]},
                         "fallback": {"servers": [resolver.endpoint for resolver in resolvers]} | fallback}, port=PORT)


def bare(asked, code, counts=bytes(8)):
    """A reply that is only a header."""
    return asked.wire[:2] + bytes([0x81, 0x80 | code]) + counts


def with_question(asked, code):
    reply = reply_to(asked.message, rcode=code)
    reply.use_edns(False)
    return reply


REFUSALS = {
    "FORMERR": lambda asked: with_question(asked, dns.rcode.FORMERR),
    "FORMERR with an OPT": lambda asked: reply_to(asked.message, rcode=dns.rcode.FORMERR),
    "FORMERR, a header alone": lambda asked: bare(asked, dns.rcode.FORMERR),
    "FORMERR, a header that still counts records": lambda asked: bare(asked, dns.rcode.FORMERR, asked.wire[4:12]),
    "NOTIMP": lambda asked: with_question(asked, dns.rcode.NOTIMP),
    "NOTIMP, a header alone": lambda asked: bare(asked, dns.rcode.NOTIMP),
    "BADVERS": lambda asked: reply_to(asked.message, rcode=dns.rcode.BADVERS),
}


def plain(asked, *records):
    reply = reply_to(asked.message, *records)
    reply.use_edns(False)
    return reply


@pytest.mark.parametrize("refusal", REFUSALS)
def test_it_is_asked_once_more_without_and_that_is_remembered(daemon, scripted_resolver, refusal):
    resolver = scripted_resolver(
        lambda asked: plain(asked, "60 IN A 192.0.2.1") if asked.message.edns < 0 else REFUSALS[refusal](asked))
    start(daemon, resolver)
    for number in range(4):
        reply = ask(f"n{number}.example.net", port=PORT, edns=True, want_dnssec=True)
        assert reply.rcode() == dns.rcode.NOERROR and addresses(reply) == ["192.0.2.1"]
    # On a busy machine a question may be sent twice.
    asked = [key for key, _ in itertools.groupby((asked.name, asked.message.edns) for asked in resolver.questions)]
    assert [edns for _, edns in asked] == [0, -1, -1, -1, -1]
    first, second = resolver.questions[:2]
    assert first.message.id != second.message.id or first.port != second.port


def test_over_tcp_too(daemon, scripted_resolver):
    """A resolver that truncates every reply over UDP is asked over TCP once more, without EDNS."""
    def answer(asked):
        if asked.transport == "udp":
            reply = plain(asked)
            reply.flags |= dns.flags.TC
            return reply
        return plain(asked, "60 IN A 192.0.2.2") if asked.message.edns < 0 else bare(asked, dns.rcode.FORMERR)
    resolver = scripted_resolver(answer)
    start(daemon, resolver)
    assert addresses(ask("t.example.net", port=PORT)) == ["192.0.2.2"]
    assert [(asked.transport, asked.message.edns) for asked in resolver.questions] == [
        ("udp", 0), ("tcp", 0), ("tcp", -1)]


def test_formerr_to_a_sound_question_is_no_verdict_on_a_server(daemon, scripted_resolver):
    """FORMERR may concern this question alone: it counts like a SERVFAIL, so that the next server is asked."""
    broken = scripted_resolver(lambda asked: bare(asked, dns.rcode.FORMERR), address="127.0.0.10")
    good = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.3"), address="127.0.0.11")
    running = start(daemon, broken, good)
    assert addresses(ask("a.example.net", port=PORT)) == ["192.0.2.3"]
    assert [asked.message.edns for asked in broken.questions] == [0, -1]
    good.script = lambda asked: bare(asked, dns.rcode.FORMERR)
    reply = ask("b.example.net", port=PORT, edns=True)
    assert reply.rcode() == dns.rcode.SERVFAIL and extended_errors(reply) == [0]
    assert "finds the question malformed (FORMERR)" in reasons(reply)
    assert [asked.message.edns for asked in broken.questions[2:]] == [0, -1], "nothing was learnt of its EDNS"
    assert not running.log_lines("fails: FORMERR")


def test_what_is_not_about_edns_is_not_asked_again(daemon, scripted_resolver):
    resolver = scripted_resolver(lambda asked: reply_to(asked.message, rcode=dns.rcode.REFUSED))
    start(daemon, resolver)
    assert ask("r.example.net", port=PORT).rcode() == dns.rcode.REFUSED
    assert len(resolver.questions) == 1
