"""While this machine is short of a resource, no server is blamed and no name goes elsewhere; afterwards all is as before.

By default all kinds of upstream are asked together, for some seconds. HTTPDNSD_SHORTAGE_SECONDS=60 is the full size: each
kind by itself is asked 200 questions a second for a minute of each shortage.
"""

import contextlib
import itertools
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import threading
import time

import dns.edns
import dns.message
import dns.rcode
import pytest

from control import Control
from dns_client import addresses
from encrypted import FramedServer, HTTPServer, address_reply
from groups import PORT
from httpdns_service import address_of, every_name
from networks import HAS_IPV6, needs_ipv6
from standard import TEST_SECONDS
from waiting import eventually

FULL = "HTTPDNSD_SHORTAGE_SECONDS" in os.environ
SECONDS = int(os.environ.get("HTTPDNSD_SHORTAGE_SECONDS", "4"))
FAR, SECOND, FAR6 = "10.77.0.2", "10.77.0.3", "fd77::2"
ELSEWHERE = "192.0.2.9"
NAME = "dns.example.net"  # of the far side
SERVERS = {"plain": "192.0.2.1", "tcp": "192.0.2.2", "tls": "192.0.2.3", "https": "192.0.2.4"} | ({"plain6": "192.0.2.5", "tls6": "192.0.2.6"} if HAS_IPV6 else {})
# Each account has a second server in reserve, which the daemon has no reason to ask.
ACCOUNTS = {"aes": ("tencent", "aes"), "des": ("tencent", "des"), "token": ("tencent", "https"), "alibaba": ("alibaba", "https"),
            "alibabaes": ("alibaba", "aes"), "alibaba1": ("alibaba-v1", "https"), "volcengine": ("volcengine", "https"),
            "baidu": ("baidu", "https")}
KINDS = [*SERVERS, *ACCOUNTS]
# Over TCP, packets that do not leave look like packets lost on the way: the kernel sends them again, and reports no error.
SILENT = {"queue", "firewall"}
DATAGRAMS = {"plain", "plain6"}


class Asking:
    """Asks 200 questions a second for new names of some kinds of upstream, and collects the replies."""

    def __init__(self, label, kinds):
        self._label, self._kinds = label, list(kinds)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._socket.connect(("127.0.0.1", PORT))
        self._socket.settimeout(0.2)
        self._replies = {}
        self._end = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        while not self._end.is_set():
            with contextlib.suppress(TimeoutError, ConnectionRefusedError):
                reply = dns.message.from_wire(self._socket.recv(65_535), ignore_trailing=True)
                self._replies[reply.id] = reply

    def ask(self, seconds=1, number=None):
        """Each name with its reply. One question in twenty is for the fallback."""
        kinds = [self._kinds[one % len(self._kinds)] if one % 20 else "fallback" for one in range(number or 200 * seconds)]
        names = [f"{self._label}{one}.{kind}.example" for one, kind in enumerate(kinds)]
        begun = time.monotonic()
        for number, name in enumerate(names):
            self._socket.send(dns.message.make_query(name, "A", id=number, use_edns=0).to_wire())
            time.sleep(max(0.0, begun + (number + 1) / 200 - time.monotonic()))
        try:
            eventually(lambda: len(self._replies) == len(names), "each question has its reply")
        finally:
            self._end.set()
            self._reader.join()
            self._socket.close()
        return [(name, self._replies[number]) for number, name in enumerate(names)]


def kind_of(name):
    return name.split(".")[1]


def is_right(name, reply):
    return addresses(reply) == [(SERVERS | {"fallback": ELSEWHERE}).get(kind_of(name)) or address_of(name)]


def is_short(reply):
    """Whether the reply is SERVFAIL with "Not Ready"."""
    codes = [option.code for option in reply.options if isinstance(option, dns.edns.EDEOption)]
    return reply.rcode() == dns.rcode.SERVFAIL and codes == [dns.edns.EDECode.NOT_READY]


def is_of_silence(reply):
    """Whether the reply is the next group's answer, or SERVFAIL."""
    return addresses(reply) == [ELSEWHERE] or reply.rcode() == dns.rcode.SERVFAIL


class World:
    """A daemon here, and an upstream of each kind behind a cable. The fallback is here, has another answer, and stays connected,
    so that it can be asked during any shortage."""

    def __init__(self, here, there, authority):
        self.here, self.there, self.authority = here, there, authority
        self.elsewhere = []  # the names that the fallback was asked for
        self.servers, self.accounts, self.second = {}, {}, {}
        self.streams = []  # the servers with connections; the fallback is the last

    def fallback(self, asked, connection=None):
        self.elsewhere.append(asked.name.to_text(omit_final_dot=True))
        return address_reply(asked, ELSEWHERE)

    def begin(self, kinds, scripted_resolver, service, account):
        def says(kind):
            def script(asked, connection=None):
                return address_reply(asked, FAR if asked.name.to_text(omit_final_dot=True) == NAME else SERVERS[kind])
            return script

        certificate = self.authority.server(addresses=[FAR, FAR6], names=[NAME])
        make = {
            "plain": lambda: scripted_resolver(says("plain"), address=FAR), "tcp": lambda: FramedServer(says("tcp"), address=FAR),
            "tls": lambda: FramedServer(says("tls"), certificate, address=FAR),
            "https": lambda: HTTPServer(says("https"), certificate, address=FAR),
            "plain6": lambda: scripted_resolver(says("plain6"), address=FAR6),
            "tls6": lambda: FramedServer(says("tls6"), certificate, address=FAR6)}

        def one(kind, address):
            provider, way = ACCOUNTS[kind]
            if provider != "tencent":
                return account(provider, way, every_name, address=address)
            certificate = {"tls": self.authority.server(addresses=[address])} if way == "https" else {}
            return service(way, every_name, address=address, **certificate)

        with self.there:
            for kind in kinds:
                if kind in make:
                    self.servers[kind] = make[kind]()
                    self.streams += [] if kind in DATAGRAMS else [self.servers[kind]]
                else:
                    self.accounts[kind], self.second[kind] = one(kind, FAR), one(kind, SECOND)

    def groups(self, timeout):
        """A group for each kind."""
        trust = {"caFile": str(self.authority.file)}
        sections = {}
        for kind, server in self.servers.items():
            address = server.endpoint if kind in DATAGRAMS else server.url
            sections[kind] = {"servers": [address.replace(FAR6, f"[{FAR6}]")], "concurrency": 1000} | (
                trust if kind in ("tls", "https", "tls6") else {})
        for kind, first in self.accounts.items():
            provider, way = ACCOUNTS[kind]
            sections[kind] = {"provider": provider} | first.settings() | (trust if way == "https" else {})
            sections[kind]["dnsIp"] = [first.endpoint, self.second[kind].endpoint]
        common = {"timeout": timeout, "thenTry": ["fallback"]}
        return {f"upstreams.{kind}": keys | common | {"domains": [f"{kind}.example"]} for kind, keys in sections.items()}

    def close_connections(self):
        """Closes all connections but the fallback's, so that each question needs a new one."""
        for server in self.streams[:-1]:
            server.do(lambda server=server: [one.close() for one in list(server.live)])
        for one in self.accounts.values():
            one.drop_connections()

    def blames_nobody(self, kinds):
        """Checks that no server is blamed in the log and no name of these kinds went elsewhere; returns the log."""
        assert [name for name in self.elsewhere if kind_of(name) in kinds] == []
        log = self.running.log()
        for kind in kinds:
            assert kind not in self.second or self.second[kind].names == []
            for word in ("fails: ", "is given up:", "is out of use", "answers again"):
                assert not re.search(rf"{kind} .*{word}", log), log
        return log

    def ports(self, first, last):
        with self.here:
            pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").write_text(f"{first} {last}")

    @contextlib.contextmanager
    def descriptors(self):
        """No further descriptor can be opened."""
        pid = self.running.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
        yield
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)

    @contextlib.contextmanager
    def local_ports(self):
        """The only port in the range is taken."""
        family, every = (socket.AF_INET6, "::") if HAS_IPV6 else (socket.AF_INET, "0.0.0.0")
        with self.here, socket.create_server((every, 61_000), family=family, dualstack_ipv6=HAS_IPV6), \
                socket.socket(family, socket.SOCK_DGRAM) as taken:
            taken.bind((every, 61_000))
            self.ports(61_000, 61_000)
            yield
            self.ports(32_768, 60_999)

    @contextlib.contextmanager
    def queue(self):
        """Only a few packets a second leave."""
        self.here.run("tc", *"qdisc add dev cable root tbf rate 8kbit burst 1600 limit 400".split())
        yield
        self.here.run("tc", *"qdisc del dev cable root".split())

    @contextlib.contextmanager
    def firewall(self):
        """All packets to the far side are dropped."""
        text = ("table inet wall {\nchain leaving {\ntype filter hook output priority 0;\n"
                f"ip daddr {{ {FAR}, {SECOND} }} drop\nip6 daddr {FAR6} drop\n}}\n}}\n")
        with self.here:
            subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)
            yield
            subprocess.run(["nft", "delete", "table", "inet", "wall"], check=True)


@pytest.fixture
def world(daemon, network, authority, scripted_resolver, service, account, binary):
    here, there = network(), network()
    here.link(there, ours="10.77.0.1/24" + " fd77::1/64" * HAS_IPV6, theirs=f"{FAR}/24 {SECOND}/24" + f" {FAR6}/64" * HAS_IPV6)
    # The hardware's addresses are fixed, as the full queue has no room for the kernel's questions for them.
    for this, other, theirs in ((here, there, [FAR, SECOND, FAR6]), (there, here, ["10.77.0.1", "fd77::1"])):
        for address in theirs if HAS_IPV6 else [one for one in theirs if ":" not in one]:
            this.ip("neighbour replace", address, "lladdr", other.hardware, "dev cable nud permanent")
    world = World(here, there, authority)

    def start(kinds, timeout, named=()):
        world.begin(kinds, scripted_resolver, service, account)
        local = FramedServer(world.fallback, address="127.0.0.40")
        world.streams.append(local)
        settings = {
            "listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "control": {"socket": "control.sock"},
            "fallback": {"servers": [local.url], "timeout": 5000, "hedgeAfter": timeout}} | world.groups(timeout)
        for kind in named:
            settings[f"upstreams.{kind}"]["servers"] = [world.servers[kind].url.replace(FAR, NAME)]
            settings["upstreams.plain"]["domains"] = [NAME]
        world.running = daemon(whole=settings, port=PORT)
        world.control = Control(binary, world.running)
        return world

    with here:
        yield start
    for server in world.streams:
        server.stop()


@pytest.mark.parametrize("kinds", [[kind] for kind in KINDS] if FULL else [KINDS], ids=KINDS if FULL else ["all"])
@pytest.mark.parametrize("shortage", ["descriptors", "local_ports", "queue", "firewall"])
def test_a_shortage_is_no_failure_of_servers(world, shortage, kinds):
    signal.alarm(TEST_SECONDS + 2 * SECONDS)
    silent = [kind for kind in kinds if shortage in SILENT and kind not in DATAGRAMS]
    loud = [kind for kind in kinds if kind not in silent]
    world = world(kinds, 2000 if shortage in SILENT else 3000)
    for name, reply in Asking("before", kinds).ask(1):
        assert is_right(name, reply), reply
    during = Asking("during", kinds)
    with getattr(world, shortage)():
        world.close_connections()
        replies = during.ask(SECONDS)
        status = world.control("status") if shortage != "descriptors" else ""
    print(shortage, {kind: [sum(test(name, reply) for name, reply in replies if kind_of(name) == kind)
                            for test in (is_right, lambda _, reply: is_short(reply), lambda _, reply: is_of_silence(reply))]
                     for kind in kinds})
    # The fallback's own names may fail as well.
    allowed = {"fallback": lambda reply: reply.rcode() == dns.rcode.SERVFAIL} | dict.fromkeys(loud, is_short) | dict.fromkeys(silent, is_of_silence)
    wrong = [(name, reply.to_text()) for name, reply in replies if not is_right(name, reply) and not allowed[kind_of(name)](reply)]
    assert not wrong, (len(wrong), wrong[:3])
    for kind in loud:
        assert any(is_short(reply) for name, reply in replies if kind_of(name) == kind), kind

    number = itertools.count()

    def are_as_before(kinds):
        return all(is_right(name, reply) for name, reply in Asking(f"again{next(number)}-", kinds).ask(number=2 * len(kinds)))

    assert are_as_before(loud) if loud else True
    eventually(lambda: are_as_before(kinds), "all is as before")
    for name, reply in Asking("after", kinds).ask(1):
        assert is_right(name, reply), reply

    log = world.blames_nobody(loud)
    if loud:
        assert log.count("this machine is short of what questions need") == 1
        if status:
            assert "This machine was short of what questions need" in status


@needs_ipv6
def test_without_an_address_to_leave_from_the_next_server_is_asked(daemon, network, scripted_resolver):
    """Connect fails with the same errno as when all ports are in use, but it is no shortage, since it will not end."""
    here, there = network(), network()
    here.ip("link add cable type veth peer name cable netns", there.path)
    here.ip("link set cable addrgenmode none")
    here.ip("link set cable up")
    here.ip("-6 address del ::1/128 dev lo")
    here.ip("-6 route add fd77::/64 dev cable")
    with here:
        second = scripted_resolver(lambda asked: address_reply(asked, ELSEWHERE), address="127.0.0.41")
        running = daemon(whole={
            "listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "fallback": {"servers": [f"tcp://[{FAR6}]", second.endpoint]}}, port=PORT)
        [(name, reply)] = Asking("none", []).ask(number=1)
    assert is_right(name, reply), reply
    log = running.log()
    assert f"tcp://[{FAR6}] fails: connect [{FAR6}]:53: Cannot assign requested address" in log, log


def test_a_server_whose_name_cannot_be_looked_up_is_not_to_blame(world):
    world = world(["plain", "tls"], 3000, named=["tls"])
    Asking("before", ["fallback"]).ask(number=1)
    during = Asking("during", ["tls"])
    with world.local_ports():
        replies = during.ask(2)
    for name, reply in replies:
        assert kind_of(name) == "fallback" or is_short(reply), reply.to_text()
    number = itertools.count()
    eventually(lambda: all(is_right(*one) for one in Asking(f"again{next(number)}-", ["tls"]).ask(number=2)), "it is found")
    assert "no address of" not in world.blames_nobody(["tls"])
