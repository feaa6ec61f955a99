"""A daemon whose local resolvers a test chooses, and what its clients got: for tests of servers and of connections."""

import itertools
import time

import dns.rcode
import pytest

from clients import Clients
from control import metrics, total
from dns_client import addresses, ask, extended_errors, reasons
from encrypted import address_reply
from waiting import waited_since

PORT = 2053
OURS = ["192.0.2.7"]  # what `address_reply` says
NEXT = "127.0.0.7"
NEXT_ADDRESS = ["192.0.2.8"]
SCHEMES = ["tls", "https"]


@pytest.fixture
def asked_of(daemon, authority):
    """Starts a daemon whose local resolvers these are; it has metrics."""
    def start(*servers, **fallback):
        return daemon(None, {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "control": {"metrics": "127.0.0.1:9153"},
                             "fallback": {"servers": [getattr(one, "url", one) for one in servers], "timeout": 5000,
                                          "caFile": str(authority.file)} | fallback}, port=PORT)
    return start


@pytest.fixture
def next_server(encrypted_resolver):
    """One that works, to be named after the one a test is about."""
    return encrypted_resolver("https", lambda asked, connection: address_reply(asked, NEXT_ADDRESS[0]), address=NEXT)


def fresh():
    return (f"f{number}.example.net" for number in itertools.count())


def at_once(names, **options):
    """Asks all names together and returns what became of them."""
    clients = Clients(port=PORT, **options)
    for name in names:
        clients.ask(name)
    return clients.all_answered()


def failures():
    """Queries that failed, of all that the local resolvers were asked so far."""
    return total(metrics(), "httpdnsd_group_failures_total", group="fallback")


def check_answers(asked, within=3.5, expected=OURS):
    """Long before an attempt has timed out, and before the daemon would say by itself that nobody answers."""
    for one in asked:
        assert addresses(one.reply) == expected, f"{one.name} after {one.waited:.2f} s: {one.reply}"
        assert one.waited < within, f"{one.name} took {one.waited:.2f} s"


def check_failure(name="failing.example.net", within=8.0):
    begun = time.monotonic()
    reply = ask(name, edns=True, port=PORT)
    assert waited_since(begun) < within
    assert reply.rcode() == dns.rcode.SERVFAIL and extended_errors(reply) in ([22], [23]), reply
    return reasons(reply)
