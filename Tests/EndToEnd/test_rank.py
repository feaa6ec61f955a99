"""`cache.rank`: addresses are sorted by the time that a connection takes, and no answer waits for that."""

import json
import socket

import dns.flags
import dns.rrset
import pytest

import daemon as processes
from control import metrics, total
from dns_client import addresses, ask
from httpdns_service import Record
from networks import needs_ipv6
from resolvers import reply_to
from standard import ZONE
from waiting import eventually

REFUSES, SILENT, ANSWERS, STRANGER = "127.0.0.71", "127.0.0.72", "127.0.0.73", "127.0.0.74"
METRICS = {"metrics": "127.0.0.1:9153"}


class Silent:
    """A listener with a full queue: the kernel answers no packet to it."""

    def __init__(self, address, port):
        self._listener = socket.create_server((address, port), backlog=0)
        self._queue = []
        for _ in range(3):
            self._queue.append(socket.socket())
            self._queue[-1].setblocking(False)
            self._queue[-1].connect_ex((address, port))

    def close(self):
        for one in (self._listener, *self._queue):
            one.close()


@pytest.fixture
def port():
    """The port of listeners at ANSWERS and STRANGER that accept nothing, and of SILENT, which is silent."""
    with socket.create_server((ANSWERS, 0)) as answering:
        number = answering.getsockname()[1]
        silent = Silent(SILENT, number)
        with socket.create_server((STRANGER, number)) as stranger:
            yield number
            stranger.setblocking(False)
            with pytest.raises(BlockingIOError):
                stranger.accept()
        silent.close()


def zone(ttl=600, **names):
    return ZONE | {f"{name}.example.com": Record(those, [], ttl) for name, those in names.items()}


def leads(address, name="www.example.com", **options):
    eventually(lambda: addresses(ask(name, **options))[:1] == [address], f"{address} is first")


def test_the_next_answer_leads_with_the_address_that_answers(daemon, service, port):
    """The next answer begins with the address that answers, before one that refuses and one that is silent."""
    chosen = service("aes", zone(**{"www": [REFUSES, SILENT, ANSWERS], "sub.www": [SILENT, ANSWERS],
                                    "other": [STRANGER, REFUSES]}))
    daemon(chosen, {"cache": {"rank": [f"www.example.com:{port}"]}, "control": METRICS})
    assert addresses(ask("www.example.com")) == [REFUSES, SILENT, ANSWERS]
    assert addresses(ask("other.example.com")) == [STRANGER, REFUSES]
    leads(ANSWERS)
    for transport in ("udp", "tcp"):
        reply = ask("www.example.com", transport=transport)
        assert addresses(reply) == [ANSWERS, REFUSES, SILENT] and 0 < reply.answer[0].ttl <= 600
    assert addresses(ask("sub.www.example.com")) == [SILENT, ANSWERS]
    leads(ANSWERS, "sub.www.example.com")
    assert addresses(ask("other.example.com")) == [STRANGER, REFUSES]

    def results():
        samples = metrics()
        return [total(samples, "httpdnsd_rank_connections_total", result=result) for result in ("answered", "failed")]
    eventually(lambda: sum(results()) == 5, "all have ended")
    assert results() == [2, 3]
    assert len(chosen.requests) == 3, "each name was looked up once"


def test_what_a_resolver_says(daemon, scripted_resolver, port):
    """An answer with an alias and signatures is sorted for each kind of client; the AD bit and all else stay."""
    def behind_an_alias(asked):
        reply = reply_to(asked.message, "60 IN CNAME cdn.example.net.", flags=dns.flags.RA | dns.flags.AD)
        reply.answer += [dns.rrset.from_text("cdn.example.net.", 60, "IN", "A", REFUSES, ANSWERS), dns.rrset.from_text(
            "cdn.example.net.", 60, "IN", "RRSIG", "A 8 3 60 20300101000000 20200101000000 1 example.net. AAAA")]
        return reply
    local = scripted_resolver(behind_an_alias, address="127.0.0.10")
    daemon(None, {"fallback": {"servers": [local.endpoint]}, "cache": {"rank": [f"example.com:{port}"]}})
    for signed in (False, True):
        assert set(addresses(ask("www.example.com", edns=True, want_dnssec=signed))) == {REFUSES, ANSWERS}
        leads(ANSWERS, edns=True, want_dnssec=signed)
    reply = ask("www.example.com", edns=True, want_dnssec=True)
    assert addresses(reply) == [ANSWERS, REFUSES] and reply.flags & dns.flags.AD
    assert [len(records) for records in reply.answer] == [1, 2, 1]
    assert [records.name.to_text() for records in reply.answer] == [
        "www.example.com.", "cdn.example.net.", "cdn.example.net."]


@needs_ipv6
def test_an_address_without_a_route_is_last(daemon, service):
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
        chosen = service("aes", ZONE | {"www.example.com": Record([], ["2001:db8::1", "::1"], 600)})
        daemon(chosen, {"httpdns": {"addressType": "dual"},
                        "cache": {"rank": [f"www.example.com:{listener.getsockname()[1]}"]}})
        assert addresses(ask("www.example.com", "AAAA"), "AAAA") == ["2001:db8::1", "::1"]
        eventually(lambda: addresses(ask("www.example.com", "AAAA"), "AAAA") == ["::1", "2001:db8::1"], "::1 is first")


def test_explain_says_by_what_they_are_ordered(daemon, service, port, binary, tmp_path):
    place = tmp_path / "s"
    daemon(service("aes", zone(www=[REFUSES, ANSWERS])),
           {"cache": {"rank": [f"www.example.com:{port}"]}, "control": {"socket": str(place)}})

    def explained(name, *options):
        ended = processes.run(binary, "explain", name, "--socket", str(place), *options)
        assert ended.returncode == 0, ended
        return ended.stdout
    words = f"Several addresses are given in the order in which they answer at port {port} (cache.rank)"
    assert f"{words}, which is not known yet." in explained("www.example.com")
    assert words not in explained("example.com")
    leads(ANSWERS)
    assert f"{words}.\n" in explained("www.example.com")
    assert json.loads(explained("www.example.com", "--json"))["ranking"] == {"port": port, "known": True}
    assert json.loads(explained("example.com", "--json"))["ranking"] is None
