"""How often the upstreams are asked, which is what is billed, and how long answers are kept."""

import time

import dns.rcode
import pytest

from clients import Clients, at_the_same_moment
from dns_client import addresses, ask, synthetic_soa
from httpdns_service import Fault, Record, address_of, every_name
from resolvers import LOCAL_ADDRESS, answer_locally, reply_to
from waiting import eventually, waited_since

STRICT = {"httpOnly": True}
ONE_WORKER = {"listen": {"addresses": ["127.0.0.1:53"], "workers": 1}}


def held(running, upstream, questions):
    """The replies to questions that have all been read before the upstream answers one; `running` has one worker."""
    upstream.hold()

    def release():
        ask("localhost")  # the one listener reads in order
        upstream.release()
    return at_the_same_moment(running, questions, sockets=len(questions), meanwhile=release)


def test_one_request_for_both_families(daemon, service):
    chosen = service("aes")
    daemon(chosen)
    assert addresses(ask("www.example.com"))
    assert addresses(ask("www.example.com", "AAAA"), "AAAA")
    assert addresses(ask("wWw.eXample.com"))
    assert [(request.names, request.kind) for request in chosen.requests] == [(["www.example.com"], "addrs")]


@pytest.mark.parametrize("encryption", ["aes", "https"])
def test_twenty_equal_questions_and_their_twins_are_one_request(daemon, service, encryption):
    """However they are spelled, whichever listener reads them."""
    chosen = service(encryption, every_name)
    chosen.fault = Fault("delay", 0.2)
    running = daemon(chosen, {"httpdns": STRICT})
    name = "equal.example.com"
    spelled = ["".join(letter.upper() if number >> place & 1 else letter for place, letter in enumerate(name))
               for number in range(20)]
    for reply in at_the_same_moment(running, [(one, kind) for one in spelled for kind in ("A", "AAAA")], sockets=10):
        four, six = addresses(reply, "A"), addresses(reply, "AAAA")
        assert (four, six) in (([address_of(name)], []), ([], [address_of(name, 6)]))
    assert [(request.names, request.kind) for request in chosen.requests] == [([name], "addrs")]


def test_twenty_equal_questions_to_the_local_resolver_are_one(daemon, scripted_resolver):
    resolver = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN MX 10 mx.example.com."))
    running = daemon(None, ONE_WORKER | {"fallback": {"servers": [resolver.endpoint]}})
    replies = held(running, resolver, [("example.com", "MX")] * 20)
    assert all(reply.answer[0].to_text().endswith("MX 10 mx.example.com.") for reply in replies)
    assert len(resolver.questions) == 1


def test_twenty_equal_questions_meet_one_failure(daemon, service):
    chosen = service("aes")
    running = daemon(chosen, ONE_WORKER | {"httpdns": STRICT})
    chosen.fault = Fault("status", 500)
    replies = held(running, chosen, [("www.example.com", "A")] * 20)
    assert {reply.rcode() for reply in replies} == {dns.rcode.SERVFAIL}


@pytest.mark.parametrize("kinds", [["A"], ["A", "AAAA"]])
@pytest.mark.parametrize("workers", [1, 4])
def test_sixty_four_names_at_once_are_eight_requests(daemon, service, kinds, workers):
    """Beyond those on the wire before all had been read: a listener hands on what it has read in parts, and of each
    part one request at most is not full."""
    chosen = service("aes", every_name)
    running = daemon(chosen, {"httpdns": STRICT, "listen": {"addresses": ["127.0.0.1:53"], "workers": workers}})
    names = [f"many{number}.example.com" for number in range(64)]
    replies = at_the_same_moment(running, [(name, kind) for name in names for kind in kinds], sockets=4 * workers - 3)
    for name, four in zip(names, replies[::len(kinds)], strict=True):
        assert addresses(four) == [address_of(name)]
    assert all(reply.answer for reply in replies)
    assert sorted(chosen.names) == sorted(names)
    assert len(chosen.requests) <= 8 + 4, [len(request.names) for request in chosen.requests]


def test_a_batch_delays_nobody(daemon, service):
    """A name that comes alone goes out alone, at once, whoever is on the wire already."""
    chosen = service("aes", every_name)
    daemon(chosen, {"httpdns": STRICT | {"timeout": 30000}})
    chosen.hold()
    clients = Clients(patience=30)
    for number in range(10):
        clients.ask(name := f"single{number}.example.com")
        eventually(lambda name=name: [name] in [request.names for request in chosen.requests],
                   "it goes out while those before it are on the wire", 1)
    chosen.release()
    clients.all_answered()


def test_a_part_of_a_batch_that_is_missing_is_asked_again_once(daemon, service):
    """The names left out are asked for once more and no name that was answered is."""
    chosen = service("aes", every_name)
    left_out = {f"part{number}.example.com" for number in (2, 5, 7)}
    chosen.fault = lambda request: Fault("text", "\n".join(
        chosen.line(name, request) for name in request.names if name not in left_out or chosen.names.count(name) > 1))
    running = daemon(chosen, {"httpdns": STRICT, "listen": {"addresses": ["127.0.0.1:53"], "workers": 1}})
    names = [f"part{number}.example.com" for number in range(8)]
    replies = at_the_same_moment(running, [(name, "A") for name in names])
    for name, reply in zip(names, replies, strict=True):
        assert addresses(reply) == [address_of(name)]
    assert all(chosen.names.count(name) == (2 if name in left_out else 1) for name in names)


def test_a_batch_that_answers_in_part_is_asked_again_for_the_rest(daemon, service):
    chosen = service("aes")
    chosen.fault = Fault("first-only")
    running = daemon(chosen, ONE_WORKER | {"httpdns": STRICT})
    for i, reply in enumerate(held(running, chosen, [(f"n{i}.example.com", "A") for i in range(10)])):
        assert addresses(reply) == [f"203.0.113.{i}"]


def test_no_record_is_remembered(daemon, service, scripted_resolver):
    """For `negativeTTL` the local resolver is asked directly, also when its own answer has long expired."""
    local = scripted_resolver(lambda asked: reply_to(asked.message, f"0 IN A {LOCAL_ADDRESS}"))
    chosen = service("aes", {})
    daemon(chosen, {"fallback": {"servers": [local.endpoint]}, "cache": {"negativeTTL": 3}})
    begun = time.monotonic()
    for _ in range(5):
        assert addresses(ask("unknown.example.com")) == [LOCAL_ADDRESS]
    assert ask("unknown.example.com", "AAAA").rcode() == dns.rcode.NOERROR
    assert len(local.questions) == 6, "its answer may not be kept, so it is asked each time"
    assert chosen.names == ["unknown.example.com"]
    eventually(lambda: ask("unknown.example.com") and chosen.names.count("unknown.example.com") == 2,
               "after that HTTPDNS is asked again")
    assert time.monotonic() - begun >= 3


def test_no_record_of_a_name_that_appears(daemon, service, scripted_resolver):
    """It is not forgotten for good that HTTPDNS might know it."""
    local = scripted_resolver(lambda asked: reply_to(asked.message, f"0 IN A {LOCAL_ADDRESS}"))
    chosen = service("aes", {})
    daemon(chosen, {"fallback": {"servers": [local.endpoint]}, "cache": {"negativeTTL": 1}})
    assert addresses(ask("new.example.com")) == [LOCAL_ADDRESS]
    chosen.zone["new.example.com"] = Record(["203.0.113.200"])
    eventually(lambda: addresses(ask("new.example.com")) == ["203.0.113.200"], "HTTPDNS is asked again")


def test_queries_per_second(daemon, service, scripted_resolver):
    """What the plan does not cover goes to the local resolver, at once; the next second there is room again."""
    limit = 5
    local = scripted_resolver(answer_locally)
    chosen = service("aes", every_name)
    daemon(chosen, {"fallback": {"servers": [local.endpoint]}, "httpdns": {"queriesPerSecond": limit}})
    clients = Clients()
    begun = time.monotonic()
    for number in range(30):
        clients.ask(f"plan{number}.example.com")
    asked = clients.all_answered()
    took = time.monotonic() - begun
    by_service = [one for one in asked if addresses(one.reply) == [address_of(one.name)]]
    by_local = [one for one in asked if addresses(one.reply) == [LOCAL_ADDRESS]]
    assert len(by_service) + len(by_local) == 30
    assert 1 <= len(chosen.names) <= limit * (1 + took), f"{len(chosen.names)} names in {took:.2f} s"
    assert max(one.waited for one in by_local) < 0.7, "nobody waits for the next second"
    fresh = (f"later{number}.example.com" for number in range(10_000))
    eventually(lambda: addresses(ask(name := next(fresh))) == [address_of(name)], "there is room again", 3)
    # More than it allows, for longer than a second: the plan is used, and never exceeded.
    before, since = len(chosen.names), time.monotonic()
    while (took := time.monotonic() - since) < 1.3:
        ask(next(fresh))
        time.sleep(0.02)
    assert limit <= len(chosen.names) - before <= limit * (took + 1) + 1


def test_no_limit_is_the_default(daemon, service):
    chosen = service("aes", every_name)
    daemon(chosen)
    for number in range(100):
        assert addresses(ask(name := f"free{number}.example.com")) == [address_of(name)]


def test_the_time_to_live_counts_down(daemon, service, unbound):
    chosen = service("https")
    daemon(chosen)
    assert ask("www.example.com").answer[0].ttl == 120
    first = ask("alias.example.com")
    assert [rrset.ttl for rrset in first.answer] == [200, 100, 400, 400]
    eventually(lambda: ask("www.example.com").answer[0].ttl < 120, "the TTL counts down")
    eventually(lambda: ask("alias.example.com").answer[0].ttl < 200, "the local resolver's TTL does so too")
    later = ask("alias.example.com", transport="tcp")
    assert len({before.ttl - after.ttl for before, after in zip(first.answer, later.answer, strict=True)}) == 1
    assert chosen.names.count("www.example.com") == 1


def test_an_expired_answer_is_asked_for_again(daemon, service):
    chosen = service("aes")
    daemon(chosen, {"cache": {"maxTTL": 1}})
    assert ask("www.example.com").answer[0].ttl == 1
    eventually(lambda: ask("www.example.com") and chosen.names.count("www.example.com") == 2, "it is asked for again")


def test_negative_answers_count_down_and_are_kept(daemon, service):
    chosen = service("https")
    daemon(chosen, {"httpdns": {"httpOnly": True}, "cache": {"negativeTTL": 50}})
    assert synthetic_soa(ask("only-local.example.com")) == (50, 50)
    eventually(lambda: synthetic_soa(ask("only-local.example.com"))[0] < 50, "the SOA's TTL counts down")
    assert chosen.names == ["only-local.example.com"]


def test_a_name_error_of_the_local_resolver_is_kept(daemon, scripted_resolver):
    soa = "300 IN SOA ns.example.com. h.example.com. 1 2 3 4 40"
    resolver = scripted_resolver(
        lambda asked: reply_to(asked.message, soa, rcode=dns.rcode.NXDOMAIN, section="authority"))
    daemon(None, {"fallback": {"servers": [resolver.endpoint]}})
    for _ in range(3):
        reply = ask("missing.example.net")
        assert reply.rcode() == dns.rcode.NXDOMAIN
        assert reply.authority[0][0].minimum == 40
    assert len(resolver.questions) == 1


@pytest.mark.parametrize("name, limits, expected", [
    ("brief.example.com", {"minTTL": 30}, 30), ("eternal.example.com", {}, 86400),
    ("eternal.example.com", {"maxTTL": 99}, 99), ("www.example.com", {"minTTL": 5, "maxTTL": 300}, 120),
])
def test_limits_of_the_time_to_live(daemon, service, name, limits, expected):
    daemon(service("https"), {"cache": limits})
    assert ask(name).answer[0].ttl == expected


def test_limits_hold_for_the_local_resolver_too(daemon):
    daemon(None, {"cache": {"maxTTL": 60}})
    assert ask("only-local.example.com").answer[0].ttl == 60


def test_the_cache_is_bounded(daemon, scripted_resolver):
    """5,000 answers of about 1 kB through a cache of 1 MB: the latest are kept, the first are not, memory stays."""
    text = " ".join(f'"{"z" * 240}"' for _ in range(4))
    resolver = scripted_resolver(lambda asked: reply_to(asked.message, f"600 IN TXT {text}"))
    running = daemon(None, {"fallback": {"servers": [resolver.endpoint]}, "cache": {"megabytes": 1}})
    for i in range(500):
        ask(f"warm{i}.example.com", "TXT", edns=True)
    before = running.held_kilobytes()
    for i in range(5000):
        ask(f"b{i}.example.com", "TXT", edns=True)
    assert running.held_kilobytes() - before < 3000, "kB more than before 5 MB of answers"
    asked = len(resolver.questions)
    ask("b4999.example.com", "TXT", edns=True)
    assert len(resolver.questions) == asked
    ask("b0.example.com", "TXT", edns=True)
    assert len(resolver.questions) == asked + 1
