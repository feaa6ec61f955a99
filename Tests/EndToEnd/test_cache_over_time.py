"""Answers as they age are refreshed or given stale. The tests run in real time with small TTLs; scenarios cover the rest."""

import time

import dns.rcode
import pytest

from dns_client import addresses, ask, extended_errors
from httpdns_service import Record, address_of, every_name
from waiting import eventually, waited_since

STRICT = {"httpOnly": True}
UNHURRIED = {"timeout": 30000}  # the daemon must not take a service that is held back for one that fails
STALE_AFTER = 1.5  # seconds; at 1.7 s the daemon gives a client that still waits a stale answer


def living(seconds):
    """A zone that knows every name; each answer has this TTL."""
    return lambda name, request: Record([address_of(name)], [address_of(name, 6)], seconds)


def watched(name, kind="A", **options):
    """A reply, and how long the client waited for it."""
    begun = time.monotonic()
    reply = ask(name, kind, edns=True, **options)
    return reply, waited_since(begun)


def test_an_expired_answer_when_nothing_else_answers(daemon, service):
    """While the service refuses, both families are given stale at once, with EDE 3 and the TTL of `staleTTL`."""
    chosen = service("aes", living(1))
    daemon(chosen, {"httpdns": STRICT, "cache": {"staleTTL": 9}})
    for kind in ("A", "AAAA"):
        assert ask("known.example.com", kind).answer[0].ttl == 1
    chosen.stop()
    for kind, family in (("A", 4), ("AAAA", 6)):
        def stale(kind=kind):
            reply, waited = watched("known.example.com", kind)
            assert addresses(reply, kind) == [address_of("known.example.com", family)]
            return extended_errors(reply) == [3] and waited < STALE_AFTER and reply
        reply = eventually(stale, "it has expired, and is given without a wait")
        assert reply.rcode() == dns.rcode.NOERROR and 0 < reply.answer[0].ttl <= 9
    plain = ask("known.example.com", transport="tcp")
    assert addresses(plain) == [address_of("known.example.com")] and plain.edns == -1
    assert ask("never.example.com", edns=True).rcode() == dns.rcode.SERVFAIL
    chosen.start()
    eventually(lambda: not extended_errors(ask("known.example.com", edns=True)), "it is fresh again")


def test_an_answer_that_is_asked_for_again_is_refreshed_early(daemon, service):
    """A requested answer is refreshed past a tenth of its life, without a client waiting; one that no client requests is not.

    The service holds the refresh back, so an answer given meanwhile has not waited for it. Its TTL shows the age of an
    answer.
    """
    chosen = service("aes", living(20))
    daemon(chosen, {"httpdns": STRICT | UNHURRIED, "cache": {"prefetchAt": 10}})
    for name in ("wanted.example.com", "left.example.com"):
        assert ask(name).answer[0].ttl == 20
    chosen.hold()

    waits = []

    def known():
        reply, waited = watched("wanted.example.com")
        assert addresses(reply) == [address_of("wanted.example.com")] and not extended_errors(reply)
        waits.append(waited)
        return reply.answer[0].ttl

    def refreshed():
        left = known()
        return "wanted.example.com" in chosen.names[2:] and left
    assert 0 < eventually(refreshed, "it is refreshed", 15) <= 18, "past a tenth of its life, and before it has expired"
    waits.clear()
    assert all(known() <= 18 for _ in range(5)) and min(waits) < STALE_AFTER
    chosen.release()
    eventually(lambda: known() > 18, "and lives anew")
    assert chosen.names.count("left.example.com") == 1


@pytest.mark.parametrize("key", ["preResolve", "keepAliveDomains"])
def test_names_are_looked_up_at_start(daemon, service, key):
    """Eight names are looked up in one request at the start, and are then answered from the cache."""
    chosen = service("aes", every_name)
    names = [f"early{number}.example.com" for number in range(8)]
    daemon(chosen, {"httpdns": STRICT, "cache": {key: [name.title() for name in names]}})
    eventually(lambda: chosen.names, "they are looked up")
    for name in names:  # each answer comes from the cache, or from the request that is under way
        assert ask(name).answer
    assert [sorted(request.names) for request in chosen.requests] == [sorted(names)]
    chosen.stop()
    for name in names:
        assert addresses(ask(name)) == [address_of(name)]
        assert addresses(ask(name, "AAAA"), "AAAA") == [address_of(name, 6)]
