"""An IPv6 network of 200 hosts on a link of the daemon's machine, all in one /64; one host asks for as much as it can get. The
others lose nothing: each address has a share of its own. The counts follow from limits, not from the speed of any machine."""

import contextlib
import select
import socket
import time

import dns.message
import dns.rcode
import pytest

from control import metrics, total
from dns_client import addresses
from malformed import wire
from networks import needs_ipv6
from waiting import eventually
from ways import CONNECTIONS, HTTPS, PORT, TLS

pytestmark = needs_ipv6
TRUE = "192.0.2.1"
HOSTS = 200
UNPROVEN = 64  # clients of one source, without a cookie, for one question
PORTS = {"tcp": PORT, "tls": TLS, "https": HTTPS, "https1": HTTPS}
NETWORKS = {"fe80": "fe80::", "fd00": "fd00:77::", "2001": "2001:db8:77::"}


class Lan:
    """The hosts of a network, each with its address; the first one floods."""

    def __init__(self, machine, hosts, prefix):
        self.machine, self.hosts, self.prefix = machine, hosts, prefix
        self.addresses = [f"{prefix}{number:x}" for number in range(0x100, 0x100 + HOSTS)]
        self.flooder, *self.others = self.addresses
        self.server = f"{prefix}1"

    def begin(self, by="its address"):
        """Adds the prefix to the machine, by its own address or by a router's advertisement."""
        if by == "its address":
            self.machine.ip("address add", self.server + "/64", "dev cable nodad")
        else:
            self.machine.ip("address add", self.server + "/128", "dev cable nodad")
            self.machine.ip("route add", self.prefix + "/64", "dev cable proto ra")
        for address in self.addresses:
            self.hosts.ip("address add", address + "/64", "dev cable nodad")
        return self

    def scope(self):
        with self.hosts:
            return socket.if_nametoindex("cable") if self.prefix.startswith("fe80") else 0

    def datagrams(self, address):
        with self.hosts:
            channel = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        channel.bind((address, 0, 0, self.scope()))
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        channel.connect((self.server, PORT, 0, self.scope()))
        channel.settimeout(8)
        return channel


@pytest.fixture
def lan(network):
    """Makes the network, and its cable to the daemon's machine."""
    machine, hosts = network(), network()
    machine.link(hosts)
    return lambda prefix: Lan(machine, hosts, NETWORKS.get(prefix, prefix))


@pytest.fixture
def served(serving):
    """Starts a daemon that the hosts may ask over every transport; its group for silent.example has a server that never reads."""
    with contextlib.ExitStack() as stack:
        def start(lan, **listen):
            def on(port):
                return [f"127.0.0.1:{port}", f"[::]:{port}"]
            silent = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            silent.bind(("127.0.0.1", 0))
            return serving(None, {
                "addresses": on(PORT), "tls": on(TLS), "https": on(HTTPS),
                "allow": ["127.0.0.0/8", "fe80::/10", "fd00::/8", "2001:db8::/32"]} | listen, **{
                    "fallback": {"timeout": 8000}, "log": {"level": "info"},
                    "upstreams.silent": {"servers": [f"127.0.0.1:{silent.getsockname()[1]}"], "domains": ["silent.example"],
                                         "timeout": 20000}})
        yield start


def asked(resolver, name):
    return any(question.name.to_text() == name + "." for question in list(resolver.questions))


def taken(lan, count):
    """Waits until the daemon has accepted this many questions over IPv6."""
    with lan.machine:
        eventually(lambda: total(metrics(), "httpdnsd_dns_requests_total", family="2") >= count, "all were taken", 20)


def answers_of(channels, count):
    """The response codes of all expected replies, by channel."""
    came = {channel: [] for channel in channels}
    while sum(map(len, came.values())) < count:
        ready, _, _ = select.select(list(channels), [], [], 8)
        assert ready, f"{sum(map(len, came.values()))} of {count}"
        for channel in ready:
            came[channel].append(dns.message.from_wire(channel.recv(4096)).rcode())
    return came


def wait_for_one_question(lan, resolver, name):
    """Each host asks the same question by UDP, the flooder 200 times, while the resolver holds the answer.

    Returns how many of the flooder's and of the others' questions fail."""
    resolver.hold()
    with contextlib.ExitStack() as stack:
        flooder, *others = [stack.enter_context(lan.datagrams(address)) for address in lan.addresses]
        for number in range(HOSTS):
            flooder.send(wire(name, number=number))
        early = answers_of([flooder], HOSTS - UNPROVEN)[flooder]
        eventually(lambda: asked(resolver, name), "it is looked up")
        for channel in others:
            channel.send(wire(name))
        taken(lan, 2 * HOSTS - 1)
        resolver.release()
        came = answers_of([flooder, *others], HOSTS - 1 + UNPROVEN)
    assert set(early) == {dns.rcode.SERVFAIL} and set(came[flooder]) == {dns.rcode.NOERROR}
    return [len(early), sum(codes != [dns.rcode.NOERROR] for channel, codes in came.items() if channel is not flooder)]


@pytest.mark.parametrize("prefix", NETWORKS)
def test_clients_that_wait_for_one_question(lan, served, prefix):
    lan = lan(prefix).begin()
    with lan.machine:
        resolver = served(lan).resolver
    assert wait_for_one_question(lan, resolver, "held.example.net") == [HOSTS - UNPROVEN, 0]


@pytest.mark.parametrize("by", ["its address", "a router"])
def test_a_network_that_the_machine_joins_later(lan, served, by):
    lan = lan("2001")
    with lan.machine:
        running = served(lan)
    lan.begin(by)
    eventually(lambda: running.log_lines("addresses or routes have changed"), "the daemon has noticed")
    assert wait_for_one_question(lan, running.resolver, "held.example.net") == [HOSTS - UNPROVEN, 0]


@pytest.mark.parametrize("way", CONNECTIONS)
def test_connections(lan, served, connect, way):
    """The flooder has a quarter of the connections and is refused more; a hundred other hosts all get connections."""
    lan, most, count = lan("2001").begin(), 160, 100
    with lan.machine:
        served(lan, tcpClients=most)

    def connected(address, name):
        with lan.hosts:
            connection = stack.enter_context(connect(way, server=lan.server, source=address))
        connection.send(wire(name))
        return connection
    def refused():
        with lan.machine:
            return total(metrics(), "httpdnsd_refused_total", limit="tcp_clients_of_source")
    with contextlib.ExitStack() as stack:
        flood = [connected(lan.flooder, "www.silent.example") for _ in range(most // 4)]
        taken(lan, len(flood))
        with lan.hosts:
            stack.enter_context(socket.create_connection((lan.server, PORTS[way]), 8, (lan.flooder, 0)))
        eventually(lambda: refused() == 1, "it is refused more")
        others = [connected(address, "fast.example.net") for address in lan.others[:count]]
        taken(lan, len(flood) + count)
        replies = [dns.message.from_wire(connection.receive_bytes()) for connection in others]
        assert refused() == 1
    assert all(addresses(reply) == [TRUE] for reply in replies)


@pytest.mark.parametrize("way", ["udp", "tcp", "tls", "https"])
def test_names_that_are_held(lan, served, connect, way):
    """The flooder asks for names of silent servers until it is refused; every name of the other hosts is looked up."""
    lan = lan("2001").begin()
    with lan.machine:
        served(lan)
    with contextlib.ExitStack() as stack:
        def connected():
            if way == "udp":
                return stack.enter_context(lan.datagrams(lan.flooder))
            with lan.hosts:
                return stack.enter_context(connect(way, server=lan.server, source=lan.flooder))

        def refused():
            with lan.machine:
                return sum(total(metrics(), "httpdnsd_refused_total", limit=limit) for limit in ("lookups", "waiting"))
        flood = [connected() for _ in range({"udp": 1, "https": 16}.get(way, 11))]
        for number in range(1408):
            flood[number % len(flood)].send(wire(f"name{number}.silent.example", number=number))
            if number % 64 == 63:
                time.sleep(0.01)
        eventually(lambda: refused() > 0, "it is refused more")
        others = [stack.enter_context(lan.datagrams(address)) for address in lan.others]
        for number, channel in enumerate(others):
            channel.send(wire(f"name{number}.example.net"))
        came = answers_of(others, len(others))
        assert all(codes == [dns.rcode.NOERROR] for codes in came.values())
