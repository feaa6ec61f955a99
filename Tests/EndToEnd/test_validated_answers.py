"""The AD bit of a server over plain UDP is believed only if no attacker can be on the path."""

import dns.flags
import pytest

from dns_client import ask
from resolvers import reply_to

PORT = 2053
BEYOND = "192.0.2.53"  # an address that is not loopback


@pytest.fixture
def beside(network):
    """A network with an address for a resolver beyond loopback."""
    made = network()
    made.ip(f"address add {BEYOND}/32 dev lo")
    return made


def signed(asked):
    return reply_to(asked.message, "600 IN A 192.0.2.1", flags=dns.flags.AD | dns.flags.RA)


def is_authentic(name, **options):
    """The AD bit of two answers, of which the second comes from the cache."""
    seen = {bool(ask(name, port=PORT, **options).flags & dns.flags.AD) for _ in range(2)}
    assert len(seen) == 1
    return seen.pop()


WAYS = [{"flags": dns.flags.RD | dns.flags.AD}, {"edns": True, "want_dnssec": True},
        {"flags": dns.flags.RD | dns.flags.AD | dns.flags.CD}]


@pytest.mark.parametrize(("address", "trusted", "expected"), [
    ("127.0.0.4", None, True), ("127.0.0.4", False, True), (BEYOND, None, False), (BEYOND, False, False),
    (BEYOND, True, True)])
def test_ad_is_believed_from_loopback_or_by_word(daemon, scripted_resolver, beside, address, trusted, expected):
    with beside:
        scripted_resolver(signed, address=address)
        fallback = {"servers": [address]} | ({} if trusted is None else {"trustAD": trusted})
        daemon(None, {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "fallback": fallback}, port=PORT)
        for number, way in enumerate(WAYS):
            assert is_authentic(f"n{number}.example.net", **way) == expected, way
