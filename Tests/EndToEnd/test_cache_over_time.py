"""What becomes of answers as they age: refreshed, kept alive, stale, gone. In real time, so all TTLs are small."""

import time

import dns.rcode
import pytest

from clients import Clients
from dns_client import addresses, ask, extended_errors
from httpdns_service import Fault, HTTPDNSService, Record, address_of, every_name
from resolvers import LOCAL_ADDRESS, reply_to
from waiting import eventually, waited_since

STRICT = {"httpOnly": True}
UNHURRIED = {"timeout": 30000}  # a service that is held back is not taken for one that fails
STALE_AFTER = 1.5  # seconds; at 1.7 s the daemon gives whoever still waits what there is


def living(seconds):
    """A zone that knows every name, each answer good for so long."""
    return lambda name, request: Record([address_of(name)], [address_of(name, 6)], seconds)


def watched(name, kind="A", **options):
    """A reply, and how long it took."""
    begun = time.monotonic()
    reply = ask(name, kind, edns=True, **options)
    return reply, waited_since(begun)


# --- Stale ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_an_expired_answer_when_nothing_else_answers(daemon, service, transport):
    """Both families, EDE 3, the TTL of `staleTTL`, from a service that refuses: nobody has to wait for it."""
    chosen = service("aes", living(1))
    daemon(chosen, {"httpdns": STRICT, "cache": {"staleTTL": 9}})
    for kind in ("A", "AAAA"):
        assert ask("known.example.com", kind).answer[0].ttl == 1
    chosen.stop()
    for kind, family in (("A", 4), ("AAAA", 6)):
        def stale(kind=kind):
            reply, waited = watched("known.example.com", kind, transport=transport)
            assert addresses(reply, kind) == [address_of("known.example.com", family)] and waited < 1.8
            return extended_errors(reply) == [3] and reply
        reply = eventually(stale, "it has expired")
        assert reply.rcode() == dns.rcode.NOERROR and 0 < reply.answer[0].ttl <= 9
    assert ask("never.example.com", edns=True).rcode() == dns.rcode.SERVFAIL
    chosen.start()
    eventually(lambda: not extended_errors(ask("known.example.com", edns=True)), "it is fresh again")


def test_no_extended_error_without_edns(daemon, service):
    chosen = service("aes", living(1))
    daemon(chosen, {"httpdns": STRICT})
    ask("known.example.com")
    chosen.stop()
    eventually(lambda: extended_errors(ask("known.example.com", edns=True)) == [3], "it has expired")
    plain = ask("known.example.com")
    assert addresses(plain) == [address_of("known.example.com")] and plain.edns == -1


def test_a_fresh_answer_of_the_local_resolver_comes_before_a_stale_one(daemon, service, scripted_resolver):
    local = scripted_resolver(lambda asked: reply_to(asked.message, f"0 IN A {LOCAL_ADDRESS}"))
    chosen = service("aes", living(1))
    daemon(chosen, {"fallback": {"servers": [local.endpoint]}})
    assert addresses(ask("known.example.com")) == [address_of("known.example.com")]
    chosen.stop()
    reply = eventually(lambda: addresses(reply := ask("known.example.com", edns=True)) == [LOCAL_ADDRESS] and reply,
                       "HTTPDNS' answer has expired")
    assert extended_errors(reply) == []


def test_a_stale_answer_of_the_local_resolver(daemon, scripted_resolver):
    """Other types too, and without any HTTPDNS."""
    local = scripted_resolver(lambda asked: reply_to(asked.message, "1 IN MX 10 mx.example.com."))
    daemon(None, {"fallback": {"servers": [local.endpoint], "timeout": 300}, "cache": {"staleTTL": 9}})
    assert ask("example.com", "MX").answer
    local.script = lambda asked: None
    reply = eventually(lambda: extended_errors(reply := ask("example.com", "MX", edns=True)) == [3] and reply,
                       "it has expired")
    assert reply.answer[0][0].to_text() == "10 mx.example.com." and reply.answer[0].ttl <= 9


@pytest.mark.parametrize(("seconds", "gone_after"), [(0, 0), (1, 1)])
def test_how_long_expired_answers_are_kept(daemon, service, seconds, gone_after):
    chosen = service("aes", living(2))
    daemon(chosen, {"httpdns": STRICT, "cache": {"staleSeconds": seconds}})
    begun = time.monotonic()
    assert ask("known.example.com").answer
    chosen.stop()
    seen = []

    def gone():
        reply = ask("known.example.com", edns=True)
        seen.extend(extended_errors(reply))
        return reply.rcode() == dns.rcode.SERVFAIL
    eventually(gone, "it is gone")
    # Ages are counted in whole seconds.
    assert 0.9 + gone_after <= time.monotonic() - begun and waited_since(begun) <= 2.5 + gone_after
    assert (3 in seen) == (seconds > 0)


# --- Refreshed --------------------------------------------------------------------------------------------------------

def test_an_answer_that_is_asked_for_again_is_refreshed_early(daemon, service):
    """Past a tenth of its life here. No client waits for it, and an answer that nobody asks for is left alone.

    The service holds the refresh back, so what is answered meanwhile has not waited for it. How old an answer is says
    the daemon, by its TTL.
    """
    chosen = service("aes", living(20))
    daemon(chosen, {"httpdns": STRICT | UNHURRIED, "cache": {"prefetchAt": 10}})
    for name in ("wanted.example.com", "left.example.com"):
        assert ask(name).answer[0].ttl == 20
    chosen.hold()

    def known():
        reply, waited = watched("wanted.example.com")
        assert addresses(reply) == [address_of("wanted.example.com")] and not extended_errors(reply)
        assert waited < STALE_AFTER
        return reply.answer[0].ttl

    def refreshed():
        left = known()
        return "wanted.example.com" in chosen.names[2:] and left
    assert 0 < eventually(refreshed, "it is refreshed", 15) <= 18, "past a tenth of its life, and before it has expired"
    assert known() <= 18
    chosen.release()
    eventually(lambda: known() > 18, "and lives anew")
    assert chosen.names.count("left.example.com") == 1


def test_a_refresh_that_hangs_delays_nobody(daemon, service):
    """And is asked for once, however many ask meanwhile."""
    chosen = service("aes", living(20))
    daemon(chosen, {"httpdns": STRICT | UNHURRIED, "cache": {"prefetchAt": 5}})
    assert ask("wanted.example.com").answer
    chosen.hold()

    def asked_for():
        assert ask("wanted.example.com").answer
        return chosen.names.count("wanted.example.com") > 1
    eventually(asked_for, "it is refreshed")
    clients = Clients()
    for _ in range(20):
        clients.ask("wanted.example.com")
    for one in clients.all_answered():  # while the refresh is held
        assert one.reply.answer and one.waited < STALE_AFTER and not extended_errors(one.reply)
    assert chosen.names.count("wanted.example.com") <= 3, "once, and once more when its connection was doubted"
    chosen.release()


def test_prefetch_can_be_off(daemon, service):
    chosen = service("aes", living(3))
    daemon(chosen, {"httpdns": STRICT, "cache": {"prefetchAt": 0}})
    begun = time.monotonic()
    ask("wanted.example.com")
    while time.monotonic() - begun < 1.9:
        assert ask("wanted.example.com").answer[0].ttl > 0 and len(chosen.names) == 1
        time.sleep(0.02)


@pytest.mark.parametrize("key", ["preResolve", "keepAliveDomains"])
def test_names_are_looked_up_at_start(daemon, service, key):
    """Eight names are one request; what is then asked for is there."""
    chosen = service("aes", every_name)
    names = [f"early{number}.example.com" for number in range(8)]
    daemon(chosen, {"httpdns": STRICT, "cache": {key: [name.title() for name in names]}})
    eventually(lambda: chosen.names, "they are looked up")
    for name in names:  # from the cache, or from the request that is under way
        assert ask(name).answer
    assert [sorted(request.names) for request in chosen.requests] == [sorted(names)]
    chosen.stop()
    for name in names:
        assert addresses(ask(name)) == [address_of(name)]
        assert addresses(ask(name, "AAAA"), "AAAA") == [address_of(name, 6)]


def test_a_refresh_that_fails_keeps_what_is_there(daemon, service):
    """The old answer is given until it has expired, and stale after that."""
    chosen = service("aes", living(2))
    daemon(chosen, {"httpdns": STRICT, "cache": {"prefetchAt": 40}})
    assert ask("wanted.example.com").answer
    chosen.fault = Fault("status", 500)
    codes = set()

    def expired():
        reply = ask("wanted.example.com", edns=True)
        assert addresses(reply) == [address_of("wanted.example.com")]
        codes.update(extended_errors(reply))
        return codes == {3}
    eventually(expired, "it has expired")
    assert chosen.names.count("wanted.example.com") >= 2


# --- By the clock -----------------------------------------------------------------------------------------------------

def kept_alive(daemon):
    """Two names that nobody asks for. Returns when the daemon was started, the requests, and an answer at the end."""
    chosen = HTTPDNSService("aes", living(70)).start()
    begun = time.monotonic()
    daemon(chosen, {"httpdns": STRICT, "cache": {"keepAliveDomains": ["kept1.example.com", "kept2.example.com"]}})
    time.sleep(65)
    chosen.stop()
    return begun, chosen.requests, ask("kept1.example.com")


@pytest.mark.real_time(scenario=kept_alive)
def test_keep_alive_domains_are_refreshed_without_being_asked_for(real_time):
    """Past three quarters of their life, though not more often than once a minute, as the SDK does it."""
    begun, requests, reply = real_time(kept_alive)
    assert [sorted(request.names) for request in requests] == [["kept1.example.com", "kept2.example.com"]] * 2
    assert requests[0].at - begun < 2 and 50 <= requests[1].at - requests[0].at <= 65
    assert addresses(reply) == [address_of("kept1.example.com")] and 60 <= reply.answer[0].ttl <= 70
