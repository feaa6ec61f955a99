"""Live encrypted connections when the network, the server's certificate or the settings change."""

import os
import signal
import time

import dns.rcode
import pytest

from clients import Clients
from daemon import toml
from dns_client import addresses, ask
from encrypted import FramedServer, HTTPServer, Later, address_reply
from networks import needs_ipv6
from waiting import eventually, waited_since

PORT = 2053
OURS = ["192.0.2.7"]
SCHEMES = ["tls", "https"]


def settings(authority, *servers, **fallback):
    return {"listen": {"addresses": [f"127.0.0.1:{PORT}"]},
            "fallback": {"servers": [server.url for server in servers], "caFile": str(authority.file), "hosts": "",
                         "timeout": 5000} | fallback}


@pytest.mark.parametrize("protocol", SCHEMES)
def test_a_change_of_the_network_renews_connections(daemon, network, authority, protocol):
    """A change of the network closes old connections at once. test_liveness.py has the other kinds of change."""
    here, there = network(), network()
    here.link(there, ours="10.77.0.1/24 10.77.0.6/24")
    here.ip("route add default via 10.77.0.2")
    with there:
        kind = FramedServer if protocol == "tls" else HTTPServer
        server = kind(lambda asked, connection: address_reply(asked), authority.server(addresses=["10.77.0.2"]),
                      address="10.77.0.2")
    try:
        with here:
            daemon(whole=settings(authority, server), port=PORT)
            assert addresses(ask("one.example.net", port=PORT)) == OURS
            before = set(server.clients)
            for command in ("link set cable down", "link set cable name wire", "link set wire up"):
                here.ip(command)
            eventually(lambda: not before & set(server.clients), "the old connection is closed")
            assert addresses(ask("two.example.net", port=PORT)) == OURS
    finally:
        server.stop()


@pytest.mark.parametrize("timeout", [100, 300])
@pytest.mark.parametrize("protocol", [*SCHEMES, "tcp"])
def test_a_connection_that_has_become_silent_is_left(daemon, relay, encrypted_resolver, authority, protocol, timeout):
    """The daemon leaves a silent connection as soon as an attempt has timed out, however short the time-out is."""
    server = encrypted_resolver(protocol)
    between = relay(server)
    url = server.url.replace(f":{server.port}", f":{between.port}")
    daemon(whole=settings(authority, servers=[url], timeout=timeout), port=PORT)
    names = (f"n{number}.example.net" for number in range(1000))
    eventually(lambda: addresses(ask(next(names), port=PORT)) == OURS, "the connection is made")
    between.freeze(new=False)
    eventually(lambda: addresses(ask(next(names), port=PORT)) == OURS, "another one is made")


@needs_ipv6
@pytest.mark.parametrize("protocol", SCHEMES)
def test_an_ipv6_route_that_is_withdrawn(daemon, network, authority, protocol):
    """The server also has an IPv4 address, which is dialled long before an attempt times out: every question is answered."""
    here, there = network(), network()
    here.link(there, ours="10.77.0.1/24 fd77::1/64", theirs="10.77.0.2/24 fd77::2/64")
    there.ip("address add fd99::2/128 dev lo nodad")
    here.ip("-6 route add fd99::/64 via fd77::2")
    kind, tls = (FramedServer if protocol == "tls" else HTTPServer), authority.server(names=["dns.example.net"])
    with there:
        servers = [kind(lambda asked, connection: address_reply(asked), tls, address="fd99::2")]
    try:
        with here:
            path = "/dns-query" if protocol == "https" else ""
            running = daemon(whole={
                "listen": {"addresses": [f"127.0.0.1:{PORT}"]},
                "fallback": {"servers": [f"{protocol}://dns.example.net:{servers[0].port}{path}#fd99::2+10.77.0.2"],
                             "caFile": str(authority.file), "hosts": "", "timeout": 20000}}, port=PORT)
            for number in range(3):
                assert addresses(ask(f"n{number}.example.net", port=PORT)) == OURS
            # The second server starts only now: at a slow start it could win the first race.
            with there:
                servers.append(kind(
                    lambda asked, connection: address_reply(asked), tls, address="10.77.0.2", port=servers[0].port))
            here.ip("-6 route del fd99::/64")
            for number in range(3):
                begun = time.monotonic()
                assert addresses(ask(f"m{number}.example.net", port=PORT)) == OURS
                assert waited_since(begun) < 3
            assert len({asked.name for asked in servers[1].questions}) == 3 and not running.log_lines("fails"), running.log()
    finally:
        for server in servers:
            server.stop()


@pytest.mark.parametrize("protocol", SCHEMES)
def test_a_certificate_that_is_wrong_from_now_on(daemon, encrypted_resolver, authority, protocol):
    """A TLS session does not skip the check: the new certificate is verified."""
    server = encrypted_resolver(protocol)
    daemon(whole=settings(authority, server), port=PORT)
    assert addresses(ask("one.example.net", port=PORT)) == OURS
    for good in (False, True):
        server.away()
        names = {"addresses": ["127.0.0.6"]} if good else {"names": ["other.example.net"]}
        server.renew(authority.server(**names))
        server.start()
        questions = len(server.questions)
        if not good:
            assert ask("two.example.net", port=PORT).rcode() == dns.rcode.SERVFAIL
            assert len(server.questions) == questions
    fresh = iter(range(1000))
    eventually(lambda: addresses(ask(f"n{next(fresh)}.example.net", port=PORT)) == OURS, "it is trusted again", 40)


@pytest.mark.parametrize("protocol", SCHEMES)
def test_a_reload_that_trusts_somebody_else(daemon, encrypted_resolver, authority, other_authority, protocol):
    """Connections and sessions that were verified by the former rules are not used after the reload."""
    server = encrypted_resolver(protocol)
    running = daemon(whole=settings(authority, server), port=PORT)
    assert addresses(ask("one.example.net", port=PORT)) == OURS
    file = running.directory / "httpdnsd.toml"

    def read(text, times):
        file.with_suffix(".new").write_text(text)
        os.rename(file.with_suffix(".new"), file)
        running.process.send_signal(signal.SIGHUP)
        eventually(lambda: len(running.log_lines("read again: fallback.caFile")) == times, "it is read again")
    read(toml(settings(other_authority, server)), 1)
    questions = len(server.questions)
    assert ask("two.example.net", port=PORT).rcode() == dns.rcode.SERVFAIL
    assert len(server.questions) == questions
    eventually(lambda: not server.clients, "the connection of before is closed")
    read(toml(settings(authority, server)), 2)
    assert addresses(ask("three.example.net", port=PORT)) == OURS


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
def test_a_server_that_closes_idle_connections_is_no_failing_server(daemon, encrypted_resolver, authority, protocol):
    """A question after the server has closed its connection is answered without a delay."""
    server = encrypted_resolver(protocol)
    running = daemon(whole=settings(authority, server), port=PORT)
    for number in range(5):
        begun = time.monotonic()
        assert addresses(ask(f"n{number}.example.net", port=PORT)) == OURS
        assert waited_since(begun) < 2.5, "half of its time"
        server.do(lambda: [one.close() for one in server.live])
        eventually(lambda: not server.live, "it is closed")
    assert not running.log_lines("fails"), running.log()


@pytest.mark.parametrize("protocol", SCHEMES)
def test_a_stop_in_order_answers_what_is_under_way(daemon, encrypted_resolver, authority, protocol):
    server = encrypted_resolver(protocol, lambda asked, connection: Later(0.5, address_reply(asked)))
    running = daemon(whole=settings(authority, server), port=PORT)
    clients = Clients(port=PORT)
    for number in range(5):
        clients.ask(f"n{number}.example.net")
    eventually(lambda: len(server.questions) == 5, "all are under way")
    running.process.send_signal(signal.SIGTERM)
    assert [addresses(one.reply) for one in clients.all_answered()] == [OURS] * 5
    running.stop()
