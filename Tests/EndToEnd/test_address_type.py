"""`addressType`: which families are asked for and answered."""

import itertools

import dns.rcode
import pytest

from dns_client import addresses, ask, synthetic_soa
from httpdns_service import address_of, every_name
from networks import needs_ipv6
from waiting import eventually

STRICT = {"httpOnly": True}
KINDS = {"ipv4": "", "ipv6": "aaaa", "dual": "addrs"}


def has(family, name="known.example.com"):
    """Whether the daemon answers for a family; without an answer, the reply must be NOERROR with an SOA."""
    kind, number = {"ipv4": ("A", 4), "ipv6": ("AAAA", 6)}[family]
    reply = ask(name, kind)
    assert reply.rcode() == dns.rcode.NOERROR, reply
    if reply.answer:
        assert addresses(reply, kind) == [address_of(name, number)]
        return True
    synthetic_soa(reply)
    return False


@pytest.mark.parametrize("value", KINDS)
def test_the_families_that_are_set(daemon, service, value):
    """A family that is not set is neither asked for nor answered, not even by the local resolver."""
    chosen = service("aes", every_name)
    daemon(chosen, {"httpdns": {"addressType": value}})
    assert has("ipv4") == (value != "ipv6")
    assert has("ipv6") == (value != "ipv4")
    assert [request.kind for request in chosen.requests] == [KINDS[value]]


NETWORKS = {  # addresses of the link, default routes, families `auto` finds
    "ipv4": ("10.77.0.1/24", ["route add default via 10.77.0.2"], ["ipv4"]),
    "ipv6": ("fd77::1/64", ["-6 route add default via fd77::2"], ["ipv6"]),
    "both": ("10.77.0.1/24 fd77::1/64", ["route add default via 10.77.0.2", "-6 route add default via fd77::2"],
             ["ipv4", "ipv6"]),
}


@needs_ipv6
@pytest.mark.parametrize("kind", NETWORKS)
def test_auto_looks_for_a_route_of_each_family(daemon, service, network, kind):
    ours, routes, families = NETWORKS[kind]
    here, there = network(), network()
    here.link(there, ours=ours, theirs="10.77.0.2/24 fd77::2/64")
    for route in routes:
        here.ip(route)
    with here:
        chosen = service("aes", every_name)
        daemon(chosen, {"httpdns": STRICT})
        assert [family for family in ("ipv4", "ipv6") if has(family)] == families
        assert {request.kind for request in chosen.requests} == {KINDS[families[0] if len(families) == 1 else "dual"]}


@needs_ipv6
def test_auto_follows_the_routes(daemon, service, network):
    """`auto` follows a change of routes, also for a name whose other family was found unusable a moment ago."""
    here, there = network(), network()
    here.link(there, ours="10.77.0.1/24 fd77::1/64", theirs="10.77.0.2/24 fd77::2/64")
    here.ip("route add default via 10.77.0.2")
    with here:
        daemon(service("aes", every_name), {"httpdns": STRICT | {"timeout": 10000}})
        assert has("ipv4") and not has("ipv6")
        here.ip("-6 route add default via fd77::2")
        eventually(lambda: has("ipv6"), "IPv6 has come")
        assert has("ipv4")
        here.ip("route del default")
        # The daemon may be asked before it notices the lost route, and caches its answer for the TTL: each try uses another name.
        names = (f"other{number}.example.com" for number in itertools.count())
        other = eventually(lambda: not has("ipv4", name := next(names)) and name, "IPv4 has gone")
        assert has("ipv6", other)
        here.ip("link set cable down")
        here.ip("link set cable up")
        here.ip("route add default via 10.77.0.2")
        eventually(lambda: has("ipv4", next(names)), "IPv4 is back")
