"""This machine is short of something: no server is blamed, no name goes elsewhere, and afterwards all is as before."""

import contextlib
import pathlib
import resource
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
from waiting import eventually

FAR = "10.77.0.2"
KINDS = {"plain": "192.0.2.1", "tls": "192.0.2.2", "https": "192.0.2.3", "httpdns": None}
SECONDS = 4


class Asking:
    """200 questions a second for new names of some kinds of upstream, and what comes back."""

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

    def ask(self, seconds):
        """Each name with its reply."""
        names = [f"{self._label}{number}.{self._kinds[number % len(self._kinds)]}.example" for number in range(200 * seconds)]
        begun = time.monotonic()
        for number, name in enumerate(names):
            self._socket.send(dns.message.make_query(name, "A", id=number, use_edns=0).to_wire())
            time.sleep(max(0.0, begun + (number + 1) / 200 - time.monotonic()))
        try:
            eventually(lambda: len(self._replies) == len(names), "each question has its reply", 8)
        finally:
            self._end.set()
            self._reader.join()
            self._socket.close()
        return [(name, self._replies[number]) for number, name in enumerate(names)]


def is_right(name, reply):
    return addresses(reply) == [KINDS[name.split(".")[1]] or address_of(name)]


def is_short(reply):
    """SERVFAIL with "Not Ready"."""
    codes = [option.code for option in reply.options if isinstance(option, dns.edns.EDEOption)]
    return reply.rcode() == dns.rcode.SERVFAIL and codes == [dns.edns.EDECode.NOT_READY]


class World:
    def __init__(self, here, running, control, seen):
        self.here, self.running, self.control, self.seen = here, running, control, seen

    def ports(self, first, last):
        with self.here:
            pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").write_text(f"{first} {last}")

    @contextlib.contextmanager
    def without_descriptors(self):
        """Those that are open stay open."""
        before = resource.prlimit(self.running.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.running.pid, resource.RLIMIT_NOFILE, (3, before[1]))
        yield
        resource.prlimit(self.running.pid, resource.RLIMIT_NOFILE, before)

    @contextlib.contextmanager
    def without_ports(self):
        """The only one that is left to choose from is taken."""
        with self.here, socket.create_server(("0.0.0.0", 61_000)), \
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("0.0.0.0", 61_000))
            self.ports(61_000, 61_000)
            yield
            self.ports(32_768, 60_999)

    @contextlib.contextmanager
    def with_full_queue(self):
        """Of the packets that leave, a few a second do."""
        self.here.run("tc", *"qdisc add dev cable root tbf rate 8kbit burst 1600 limit 400".split())
        yield
        self.here.run("tc", *"qdisc del dev cable root".split())

    @contextlib.contextmanager
    def with_firewall(self):
        """It refuses datagrams to the far side."""
        text = ("table inet wall {\nchain leaving {\ntype filter hook output priority 0;\n"
                f"ip daddr {FAR} meta l4proto udp drop\n}}\n}}\n")
        with self.here:
            subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)
            yield
            subprocess.run(["nft", "delete", "table", "inet", "wall"], check=True)


@pytest.fixture
def world(daemon, network, authority, scripted_resolver, service, binary):
    """A daemon here; there, behind a cable, an upstream of each kind; the fallback, here, has another answer."""
    here, there = network(), network()
    here.link(there, theirs=f"{FAR}/24")
    seen = set()

    def fallback(asked, connection=None):
        seen.add(asked.name.to_text(omit_final_dot=True))
        return address_reply(asked, "192.0.2.9")

    certificate = authority.server(addresses=[FAR])
    with there:
        plain = scripted_resolver(lambda asked: address_reply(asked, KINDS["plain"]), address=FAR)
        tls = FramedServer(lambda asked, _: address_reply(asked, KINDS["tls"]), certificate, address=FAR)
        https = HTTPServer(lambda asked, _: address_reply(asked, KINDS["https"]), certificate, address=FAR)
        account = service("aes", every_name, address=FAR)
    servers = {"plain": plain.endpoint, "tls": tls.url, "https": https.url}
    with here:
        local = scripted_resolver(fallback, address="127.0.0.40")
        running = daemon(account, {
            "listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "control": {"socket": "control.sock"},
            "httpdns": {"timeout": 1000},
            "fallback": {"servers": [local.endpoint], "timeout": 1000}, **{
                f"upstreams.{kind}": {"servers": [server], "domains": [f"{kind}.example"], "timeout": 1000,
                                      "concurrency": 1000, "thenTry": ["fallback"]} | ({} if kind == "plain" else {"caFile": str(authority.file)})
                for kind, server in servers.items()}}, port=PORT)
        yield World(here, running, Control(binary, running), seen)
    for server in (tls, https):
        server.stop()


@pytest.mark.parametrize("shortage, kinds", [
    ("without_descriptors", KINDS), ("without_ports", KINDS), ("with_full_queue", ["plain"]), ("with_firewall", ["plain"]),
], ids=["descriptors", "ports", "queue", "firewall"])
def test_a_shortage_is_no_failure_of_servers(world, shortage, kinds):
    before = Asking("before", kinds)
    for name, reply in before.ask(1):
        assert is_right(name, reply), reply
    during, after = Asking("during", kinds), Asking("after", kinds)
    with getattr(world, shortage)():
        replies = during.ask(SECONDS)
        status = world.control("status") if shortage != "without_descriptors" else ""
    assert any(is_short(reply) for _, reply in replies)
    for name, reply in replies:
        assert is_right(name, reply) or is_short(reply), reply.to_text()
    for name, reply in after.ask(1):
        assert is_right(name, reply), reply
    assert not {name for name in world.seen if name.startswith(("before", "during", "after"))}
    log = world.running.log()
    assert log.count("this machine is short of what questions need") == 1
    for word in (" fails: ", "is given up:", "out of use"):
        assert word not in log, log
    if status:
        assert "This machine was short of what questions need" in status
