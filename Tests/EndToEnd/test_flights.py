"""How often the upstreams are asked, which is billed, and how long answers are cached: with sockets, one case of each."""

import statistics
import time

from clients import Clients, at_the_same_moment
from dns_client import addresses, ask
from httpdns_service import Fault, address_of, every_name
from resolvers import LOCAL_ADDRESS, answer_locally, reply_to
from waiting import eventually

STRICT = {"httpOnly": True}


def test_twenty_equal_questions_and_their_twins_are_one_request(daemon, service):
    """Equal questions are one request, whatever their spelling and whichever listener reads them."""
    chosen = service("https", every_name)
    chosen.fault = Fault("delay", 0.2)
    running = daemon(chosen, {"httpdns": STRICT})
    name = "equal.example.com"
    spelled = ["".join(letter.upper() if number >> place & 1 else letter for place, letter in enumerate(name))
               for number in range(20)]
    for reply in at_the_same_moment(running, [(one, kind) for one in spelled for kind in ("A", "AAAA")], sockets=10):
        four, six = addresses(reply, "A"), addresses(reply, "AAAA")
        assert (four, six) in (([address_of(name)], []), ([], [address_of(name, 6)]))
    assert [(request.names, request.kind) for request in chosen.requests] == [([name], "addrs")]


def test_sixty_four_names_at_once_are_eight_requests(daemon, service):
    """Names are batched by eight. Some requests may be smaller, since a listener passes on what it has read in parts, and one
    request of each part may not be full."""
    chosen = service("aes", every_name)
    running = daemon(chosen, {"httpdns": STRICT, "listen": {"addresses": ["127.0.0.1:53"], "workers": 4}})
    names = [f"many{number}.example.com" for number in range(64)]
    replies = at_the_same_moment(running, [(name, kind) for name in names for kind in ("A", "AAAA")], sockets=13)
    for name, four in zip(names, replies[::2], strict=True):
        assert addresses(four) == [address_of(name)]
    assert all(reply.answer for reply in replies)
    assert sorted(chosen.names) == sorted(names)
    assert len(chosen.requests) <= 8 + 4, [len(request.names) for request in chosen.requests]


def test_a_batch_that_answers_in_part_is_asked_again_for_the_rest(daemon, service):
    chosen = service("aes")
    chosen.fault = Fault("first-only")
    running = daemon(chosen, {"httpdns": STRICT, "listen": {"addresses": ["127.0.0.1:53"], "workers": 1}})
    chosen.hold()

    def release():
        ask("localhost")  # the single listener reads in order, so it has read all questions
        chosen.release()
    names = [(f"n{i}.example.com", "A") for i in range(10)]
    for i, reply in enumerate(at_the_same_moment(running, names, sockets=len(names), meanwhile=release)):
        assert addresses(reply) == [f"203.0.113.{i}"]
    assert max(len(request.names) for request in chosen.requests) > 1


def test_queries_per_second(daemon, service, scripted_resolver):
    """Names beyond the plan go to the local resolver at once; the next second HTTPDNS is asked again."""
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
    assert statistics.median(one.waited for one in by_local) < 0.7, "nobody waits for the next second"
    fresh = (f"later{number}.example.com" for number in range(10_000))
    eventually(lambda: addresses(ask(name := next(fresh))) == [address_of(name)], "there is room again")


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


def test_the_cache_is_bounded(daemon, scripted_resolver):
    """5,000 answers of about 1 kB pass a cache of 1 MB: the latest stay, the first are dropped, memory stays bounded."""
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
    # On a busy machine a question may be sent twice.
    assert {question.name.to_text().lower() for question in resolver.questions[asked:]} == {"b0.example.com."}
