"""How often the upstreams are asked, and how long answers are kept."""

import socket

import dns.message
import dns.rcode
import pytest

from dns_client import addresses, ask, synthetic_soa
from httpdns_service import Fault
from resolvers import reply_to
from waiting import eventually

ONE_WORKER = {"listen": {"addresses": ["127.0.0.1:53"], "workers": 1}}


class Crowd:
    """Sockets that each ask one question and then wait."""

    def __init__(self, questions):
        self.sockets = []
        for name, kind in questions:
            channel = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            channel.settimeout(8)
            channel.connect(("127.0.0.1", 53))
            message = dns.message.make_query(name, kind)
            channel.send(message.to_wire())
            self.sockets.append((channel, message))
        # The one listener reads in order: once this is answered, all those questions have been read.
        ask("localhost")

    def answers(self):
        replies = []
        for channel, message in self.sockets:
            reply = dns.message.from_wire(channel.recv(4096))
            assert reply.id == message.id and reply.question == message.question
            replies.append(reply)
            channel.close()
        return replies


def test_one_request_for_both_families(daemon, service):
    chosen = service("aes")
    daemon(chosen)
    assert addresses(ask("www.example.com"))
    assert addresses(ask("www.example.com", "AAAA"), "AAAA")
    assert addresses(ask("wWw.eXample.com"))
    assert [(request.names, request.kind) for request in chosen.requests] == [(["www.example.com"], "addrs")]


def test_twenty_equal_questions_in_flight_are_one_request(daemon, service):
    chosen = service("https")
    daemon(chosen, ONE_WORKER)
    chosen.hold()
    crowd = Crowd([("www.example.com", "A"), ("WWW.example.com", "AAAA")] * 10)
    eventually(lambda: chosen.requests, "the service is asked")
    chosen.release()
    replies = crowd.answers()
    assert all(addresses(reply) == ["203.0.113.20", "203.0.113.10", "203.0.113.30"] for reply in replies[0::2])
    assert all(addresses(reply, "AAAA") == ["2001:db8:1::20", "2001:db8:1::10"] for reply in replies[1::2])
    assert chosen.names == ["www.example.com"]


def test_twenty_equal_questions_to_the_local_resolver_are_one(daemon, scripted_resolver):
    resolver = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN MX 10 mx.example.com."))
    daemon(None, ONE_WORKER | {"fallback": {"servers": [resolver.endpoint]}})
    resolver.hold()
    crowd = Crowd([("example.com", "MX")] * 20)
    eventually(lambda: resolver.questions, "the resolver is asked")
    resolver.release()
    assert all(reply.answer[0].to_text().endswith("MX 10 mx.example.com.") for reply in crowd.answers())
    assert len(resolver.questions) == 1


def test_twenty_equal_questions_meet_one_failure(daemon, service):
    chosen = service("aes")
    daemon(chosen, ONE_WORKER | {"httpdns": {"httpOnly": True}})
    chosen.fault = Fault("status", 500)
    chosen.hold()
    crowd = Crowd([("www.example.com", "A")] * 20)
    chosen.release()
    assert {reply.rcode() for reply in crowd.answers()} == {dns.rcode.SERVFAIL}


def test_many_names_at_once(daemon, service):
    """Whatever is batched with whatever: each name is asked once and answered."""
    chosen = service("aes")
    daemon(chosen, ONE_WORKER)
    for i, reply in enumerate(Crowd([(f"n{i}.example.com", "A") for i in range(64)]).answers()):
        assert addresses(reply) == [f"203.0.113.{i}"]
    assert sorted(chosen.names) == sorted(f"n{i}.example.com" for i in range(64))


def test_a_batch_that_answers_in_part_is_asked_again_for_the_rest(daemon, service):
    chosen = service("aes")
    chosen.fault = Fault("first-only")
    daemon(chosen, ONE_WORKER | {"httpdns": {"httpOnly": True}})
    chosen.hold()
    crowd = Crowd([(f"n{i}.example.com", "A") for i in range(10)])
    chosen.release()
    for i, reply in enumerate(crowd.answers()):
        assert addresses(reply) == [f"203.0.113.{i}"]


def test_the_time_to_live_counts_down(daemon, service, unbound):
    chosen = service("aes")
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
    chosen = service("aes")
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
    daemon(service("aes"), {"cache": limits})
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
