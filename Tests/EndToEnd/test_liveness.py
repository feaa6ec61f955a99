"""Connections that die silently, servers that restart, networks that change: clients should not notice."""

import concurrent.futures
import time

import pytest

from clients import Clients
from dns_client import addresses, ask
from httpdns_service import Fault, address_of, every_name
from networks import BlackHole
from resolvers import LOCAL_ADDRESS, answer_locally
from waiting import eventually, waited_since

EVERY = 0.2  # five questions a second
PROMPT = 0.2  # an answer that came within this many seconds was not delayed
BUSY = 1.0  # the delay that a busy machine adds, which is far less than the time-out
# `httpOnly`: no local resolver hides a lost request; nor does a next attempt, with this long time-out.
ALONE = {"httpOnly": True, "timeout": 10000}


def fresh_names():
    """Names that no client has asked for yet."""
    return (f"fresh{number}.example.com" for number in range(1_000_000))


def warm_up(chosen, names, connections, port=53):
    """When this returns, this many connections to the service live, and their round trips are known."""
    clients = Clients(port=port)
    chosen.hold()
    for _ in range(connections):
        requests = len(chosen.requests)
        clients.ask(next(names))
        eventually(lambda before=requests: len(chosen.requests) > before, "the service is asked")
    chosen.release()
    clients.all_answered()
    for _ in range(10):
        assert addresses(ask(next(names), port=port))


def at_once(*scenarios):
    """Runs functions at the same time, as they mostly wait. Every one must pass."""
    with concurrent.futures.ThreadPoolExecutor(len(scenarios)) as pool:
        for running in [pool.submit(scenario) for scenario in scenarios]:
            running.result()


def on_port(port):
    return {"listen": {"addresses": [f"127.0.0.1:{port}"]}}


def check_answers(asked):
    """Every client got the service's own answer."""
    for one in asked:
        assert addresses(one.reply) == [address_of(one.name)], f"{one.name} after {one.waited:.2f} s: {one.reply}"


def check_outage(asked, began):
    """Only answers of about one second were delayed, each by about one second at most."""
    late = [(round(waited_since(began, one.at), 2), round(one.waited, 2)) for one in asked if one.waited > PROMPT + BUSY]
    print("delayed (asked so many seconds after the fault, waited):", late)
    assert all(at < 1.0 + BUSY and waited < 1.2 + BUSY for at, waited in late), late


def test_a_frozen_connection_and_a_restart(daemon, service, relay):
    """Connections freeze, then the service restarts: with five questions a second, none is lost and few are late."""
    def scenario(encryption, connections, port):
        chosen, names = service(encryption, every_name), fresh_names()
        between = relay(chosen)
        daemon(chosen, on_port(port) | {"httpdns": ALONE | {"dnsIp": [between.endpoint]}}, port=port)
        warm_up(chosen, names, connections, port)
        assert between.live == connections
        clients = Clients(port=port)
        clients.ask_steadily([next(names) for _ in range(3)], EVERY)
        between.freeze(new=False)
        frozen = time.monotonic()
        clients.ask_steadily([next(names) for _ in range(10)], EVERY)
        before_restart = clients.all_answered()
        check_answers(before_restart)
        check_outage(before_restart, frozen)
        assert max(one.took for one in before_restart) > PROMPT, "the fault was felt at all"

        chosen.restart()
        restarted = time.monotonic()
        clients.ask_steadily([next(names) for _ in range(6)], EVERY)
        after_restart = clients.all_answered()[len(before_restart):]
        check_answers(after_restart)
        check_outage(after_restart, restarted)
    at_once(lambda: scenario("aes", 1, 2053), lambda: scenario("https", 1, 2054), lambda: scenario("aes", 4, 2055))


def test_packets_that_vanish(daemon, service):
    """Packets vanish, so the daemon's octets are not even acknowledged: no answer is lost, few are late."""
    chosen, names = service("https", every_name), fresh_names()
    daemon(chosen, {"httpdns": ALONE})
    warm_up(chosen, names, 2)
    clients = Clients()
    with BlackHole([chosen.port], chosen.clients):
        began = time.monotonic()
        clients.ask_steadily([next(names) for _ in range(8)], EVERY)
        asked = clients.all_answered()
    check_answers(asked)
    check_outage(asked, began)
    assert max(one.took for one in asked) > PROMPT, "the fault was felt at all"


def test_a_service_that_is_away_for_a_moment(daemon, service, scripted_resolver):
    """While the service refuses for half a second, the local resolver answers; afterwards HTTPDNS is used again."""
    local = scripted_resolver(answer_locally)
    chosen, names = service("aes", every_name), fresh_names()
    daemon(chosen, {"fallback": {"servers": [local.endpoint]}})
    warm_up(chosen, names, 1)
    clients = Clients()
    chosen.stop()
    clients.ask_steadily([next(names) for _ in range(3)], EVERY)
    chosen.start()
    clients.ask_steadily([next(names) for _ in range(3)], EVERY)
    for one in clients.all_answered():
        assert addresses(one.reply) in ([address_of(one.name)], [LOCAL_ADDRESS]), one.reply
        assert one.waited < 2, "before another server would be asked for its silence"
    eventually(lambda: addresses(ask(name := next(names))) == [address_of(name)], "HTTPDNS answers again")


@pytest.mark.parametrize("fault", ["reset", "closed"])
def test_a_connection_the_server_had_just_closed_is_no_failure(daemon, service, relay, fault):
    """A connection that ends while idle, or after a request was sent: the request goes out again, and clients do not notice."""
    chosen, names = service("https", every_name), fresh_names()
    between = relay(chosen)
    running = daemon(chosen, {"httpdns": ALONE | {"dnsIp": [between.endpoint]}})
    warm_up(chosen, names, 2)
    for _ in range(5):
        between.reset() if fault == "reset" else chosen.drop_connections()
        assert addresses(ask(name := next(names))) == [address_of(name)]
    # The request is on the wire already, and one connection is left.
    chosen.hold()
    clients = Clients()
    requests = len(chosen.requests)
    clients.ask(next(names))
    eventually(lambda: len(chosen.requests) > requests, "the service is asked")
    between.reset() if fault == "reset" else chosen.drop_connections()
    chosen.release()
    check_answers(clients.all_answered())
    assert not running.log_lines("fails"), running.log()


def test_a_service_that_is_always_slow_is_not_doubted(daemon, service, relay):
    """The daemon learns round trips of 400 ms: no name is asked twice."""
    def scenario(encryption, port):
        chosen, names = service(encryption, every_name), fresh_names()
        between = relay(chosen)
        between.delay = 0.2
        daemon(chosen, on_port(port) | {"httpdns": ALONE | {"dnsIp": [between.endpoint]}}, port=port)
        clients = Clients(port=port)
        clients.ask_steadily([next(names) for _ in range(12)], EVERY)
        check_answers(clients.all_answered())
        assert len(chosen.names) == len(set(chosen.names)) == 12
    at_once(lambda: scenario("aes", 2053), lambda: scenario("https", 2054))


def test_a_doubted_request_that_is_answered_after_all(daemon, service):
    """After a single slow answer, the request goes out again, the first answer wins, and the old connection is closed."""
    chosen, names = service("aes", every_name), fresh_names()
    daemon(chosen, {"httpdns": ALONE})
    warm_up(chosen, names, 1)
    slow = next(names)

    def once(request):
        return Fault("delay", 5) if slow in request.names and chosen.names.count(slow) == 1 else None
    chosen.fault = once
    begun = time.monotonic()
    assert addresses(ask(slow)) == [address_of(slow)]
    assert 0.2 <= time.monotonic() - begun and waited_since(begun) < 3
    assert chosen.names.count(slow) == 2
    # The daemon gives the other connection up as soon as it has the answer. The service notices after its delay.
    eventually(lambda: len(chosen.clients) == 1, "one connection is left")


CHANGES = {
    "an address appears": "address add 10.77.0.7/24 dev cable",
    "an address goes": "address del 10.77.0.6/24 dev cable",
    "the default route changes": "route replace default via 10.77.0.3",
    "the link goes down and up": "link set cable down",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_network_retires_every_connection(daemon, service, network, change):
    """After a change, the old connections are closed at once, and the next question opens a new one."""
    here, there = network(), network()
    here.link(there, ours="10.77.0.1/24 10.77.0.6/24")
    here.ip("route add default via 10.77.0.2")
    with there:
        chosen = service("aes", every_name, address="10.77.0.2")
    names = fresh_names()
    with here:
        daemon(chosen, {"httpdns": ALONE})
        warm_up(chosen, names, 3)
        assert len(chosen.clients) == 3
        here.ip(CHANGES[change])
        if "down" in change:
            here.ip("link set cable up")
        eventually(lambda: not chosen.clients, "no old connection is left")

        def connections_of_a_question():
            before, name = chosen.connections, next(names)
            assert addresses(ask(name)) == [address_of(name)]
            return chosen.connections - before
        assert connections_of_a_question() > 0
        # The kernel reports a link that comes up in several parts, the last after a second: each closes connections.
        eventually(lambda: connections_of_a_question() == 0, "a connection is kept")


def test_another_network(daemon, service, network):
    """After a laptop's address is replaced, packets to the old one are lost; the new one is used within a second."""
    here, there = network(), network()
    here.link(there)
    with there:
        chosen = service("aes", every_name, address="10.77.0.2")
    names = fresh_names()
    with here:
        daemon(chosen, {"httpdns": ALONE})
        warm_up(chosen, names, 2)
        clients = Clients()
        began = time.monotonic()
        here.ip("address del 10.77.0.1/24 dev cable")
        here.ip("address add 10.77.0.9/24 dev cable")
        clients.ask_steadily([next(names) for _ in range(7)], EVERY)
        asked = clients.all_answered()
    check_answers(asked)
    check_outage(asked, began)
