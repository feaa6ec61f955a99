"""A daemon with local resolvers that a test chooses, and the results of its clients: for tests of servers and connections."""

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
OURS = ["192.0.2.7"]  # the address of `address_reply`
NEXT = "127.0.0.7"
NEXT_ADDRESS = ["192.0.2.8"]
SCHEMES = ["tls", "https"]


@pytest.fixture
def asked_of(daemon, authority):
    """Starts a daemon with these local resolvers and with metrics."""
    def start(*servers, **fallback):
        return daemon(None, {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "control": {"metrics": "127.0.0.1:9153"},
                             "fallback": {"servers": [getattr(one, "url", one) for one in servers], "timeout": 5000,
                                          "caFile": str(authority.file)} | fallback}, port=PORT)
    return start


@pytest.fixture
def next_server(encrypted_resolver):
    """A working server, for the position after the server under test."""
    return encrypted_resolver("https", lambda asked, connection: address_reply(asked, NEXT_ADDRESS[0]), address=NEXT)


def fresh():
    return (f"f{number}.example.net" for number in itertools.count())


def at_once(names, **options):
    """Asks all names together and returns the results."""
    clients = Clients(port=PORT, **options)
    for name in names:
        clients.ask(name)
    return clients.all_answered()


def failures():
    """The number of failed queries to the local resolvers so far."""
    return total(metrics(), "httpdnsd_group_failures_total", group="fallback")


def check_answers(asked, within=3.5, expected=OURS):
    """Answers come long before an attempt would time out, and before the daemon would report silent servers."""
    for one in asked:
        assert addresses(one.reply) == expected, f"{one.name} after {one.waited:.2f} s: {one.reply}"
        assert one.waited < within, f"{one.name} took {one.waited:.2f} s"


def check_failure(name="failing.example.net", within=8.0):
    begun = time.monotonic()
    reply = ask(name, edns=True, port=PORT)
    assert waited_since(begun) < within
    assert reply.rcode() == dns.rcode.SERVFAIL and extended_errors(reply) in ([22], [23]), reply
    return reasons(reply)
