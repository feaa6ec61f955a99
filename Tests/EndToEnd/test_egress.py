"""`from`, `device` and `mark` apply to all sockets of a group: queries, connections, lists and reports."""

import re
import signal
import subprocess

import dns.flags
import dns.rcode
import pytest

from collector import Collector
from daemon import toml
from dns_client import addresses, ask
from encrypted import address_reply
from httpdns_service import HTTPDNSService, address_of, every_name
from resolvers import reply_to
from waiting import eventually

PORT = 2053
FAR = "10.77.0.2"
NAMED = "dns.home.arpa"  # a server's name, which the servers of `resolvConf` resolve
OTHER = "10.77.0.3"  # this machine's second address
# By key: a value, and a rule for packets to the far side that do not leave as the value demands.
WAYS = {"from": (OTHER, f"ip saddr != {OTHER}"), "device": ("other", 'oifname != "other"'), "mark": (77, "meta mark != 77")}


@pytest.fixture
def places(network):
    """This machine and the far side. This machine has a second address and a second link to the far side."""
    machine, far = network(), network()
    machine.link(far, ours=f"10.77.0.1/24 {OTHER}/24", theirs=f"{FAR}/24")
    machine.ip("link add other type veth peer name other netns", far.path)
    for place, last in ((machine, 1), (far, 2)):
        place.ip("link set other up")
        place.ip(f"address add 10.78.0.{last}/24 dev other")
    machine.ip(f"route add {FAR}/32 via 10.78.0.2 dev other metric 100")
    machine.ip(f"route add {FAR}/32 dev cable metric 10")
    return machine, far


class Strays:
    """Counts and drops the packets to the far side that match the rules."""

    def __init__(self, machine, *rules):
        rules = "".join(f"ip daddr {FAR} {rule} counter drop\n" for rule in rules)
        text = f"table inet strays {{\nchain leaving {{\ntype filter hook output priority 0;\n{rules}}}\n}}\n"
        with machine:
            subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)
        self._machine = machine

    @property
    def count(self):
        with self._machine:
            shown = subprocess.run(["nft", "list", "table", "inet", "strays"], capture_output=True, text=True, check=True)
        return sum(int(count) for count in re.findall(r"counter packets (\d+)", shown.stdout))


def plain(asked):
    reply = reply_to(asked.message, f"60 IN A {FAR if asked.name.to_text() == NAMED + '.' else '192.0.2.1'}")
    if asked.name.to_text().startswith("big") and asked.transport == "udp":
        reply.answer.clear()
        reply.flags |= dns.flags.TC
    return reply


@pytest.fixture
def world(places, scripted_resolver, encrypted_resolver, authority, tmp_path):
    """Servers of all kinds on the far side, and a function that returns settings of groups that ask them: `keys` are
    added to each group."""
    machine, far = places
    tls = authority.server(addresses=[FAR], names=[NAMED])
    (tmp_path / "resolv.conf").write_text(f"nameserver {FAR}\n")
    with far:
        resolver = scripted_resolver(plain, address=FAR)
        streams = {kind: encrypted_resolver(kind, lambda asked, connection: address_reply(asked), address=FAR, tls=tls)
                   for kind in ("tls", "https")}
        streams["tcp"] = encrypted_resolver("tcp", lambda asked, connection: address_reply(asked), address=FAR)
        collector = Collector(address=FAR)
        service = HTTPDNSService("https", every_name, address=FAR, port=443, tls=tls, conf=f"log:0|domain:0|ip:{FAR};|ttl:60").start()

    def settings(timeout=3000, **keys):
        whole = {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "tls": {"caFile": str(authority.file)},
                 "httpdns": service.settings() | {"confIp": [FAR], "enableReport": True, "reportUrl": collector.url,
                                                  "thenTry": ["plain"], "thenTryOn": ["failure", "norecord"]} | keys,
                 "fallback": {"servers": [resolver.endpoint], "hosts": "", "timeout": timeout,
                              "resolvConf": [str(tmp_path / "resolv.conf")]} | keys,
                 "upstreams.plain": {"servers": [resolver.endpoint], "domains": ["plain.example"], "timeout": timeout} | keys}
        for kind, server in streams.items():
            whole[f"upstreams.{kind}"] = {"servers": [server.url], "domains": [f"{kind}.example"], "timeout": timeout,
                                          "caFile": str(authority.file)} | keys
        whole["upstreams.named"] = whole["upstreams.tls"] | {
            "servers": [f"tls://{NAMED}:{streams['tls'].port}"], "domains": ["named.example"]}
        return whole
    yield machine, settings, service, collector
    service.stop()
    collector.stop()


NAMES = ["a.plain.example", "big.plain.example", "a.tcp.example", "a.tls.example", "a.https.example", "a.named.example",
         "printer", "www.example.com"]


def answered(name):
    return bool(addresses(ask(name, port=PORT)))


@pytest.mark.parametrize("key", WAYS)
def test_every_socket_of_a_group(daemon, world, key):
    """The sockets of plain UDP and TCP, of connections, of the account, of `confIp` and of reports."""
    machine, settings, service, collector = world
    value, stray = WAYS[key]
    strays = Strays(machine, stray)
    with machine:
        daemon(whole=settings(**{key: value}), port=PORT)
        for name in NAMES:
            assert answered(name), name
        assert addresses(ask("b.example.com", port=PORT)) == [address_of("b.example.com")]
        eventually(lambda: service.conf_requests, "the list is asked for")
        service.stop()
        ask("c.example.com", port=PORT)
        eventually(lambda: collector.reports, "what failed is reported, with what else comes within 5 s")
    assert strays.count == 0


@pytest.mark.parametrize("key", WAYS)
def test_without_the_key_they_leave_otherwise(daemon, world, key):
    machine, settings, _, _ = world
    strays = Strays(machine, WAYS[key][1])
    with machine:
        daemon(whole=settings(timeout=500), port=PORT)
        assert not any(answered(name) for name in NAMES[:4])
    assert strays.count > 0


def test_a_mark_without_the_right_is_said(world, daemon, binary, tmp_path):
    """No packet leaves without the mark, which may be the only barrier between names and another network."""
    machine, settings, _, _ = world
    strays = Strays(machine, "ip protocol { udp, tcp }")
    with machine:
        running = daemon(whole=settings(mark=77), port=PORT, prefix=["setpriv", "--bounding-set=-net_admin,-net_raw"])
        for name in NAMES[:3] * 2:
            assert ask(name, port=PORT).rcode() == dns.rcode.SERVFAIL
        said = running.log_lines("CAP_NET_ADMIN")
    assert strays.count == 0
    assert len([line for line in said if "upstreams.plain" in line]) == 1, said
    assert any("SO_MARK" in line for line in said)


def test_a_device_and_an_address_that_come_later(daemon, places, scripted_resolver):
    machine, far = places
    with far:
        scripted_resolver(plain, address=FAR)
    with machine:
        running = daemon(whole={
            "listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "fallback": {"servers": [FAR], "hosts": "", "device": "late"},
            "upstreams.a": {"servers": [FAR], "domains": ["a.example"], "from": "10.79.0.1"}}, port=PORT)
        for name in ("printer", "www.a.example"):
            assert ask(name, port=PORT).rcode() == dns.rcode.SERVFAIL
        assert running.log_lines("late: No such device") and running.log_lines("10.79.0.1: Cannot assign")
        machine.ip("link add late type veth peer name late netns", far.path)
        for place, last in ((machine, 1), (far, 2)):
            place.ip("link set late up")
            place.ip(f"address add 10.79.0.{last}/24 dev late")
        machine.ip(f"route add {FAR}/32 via 10.79.0.2 dev late metric 200")
        for name in ("printer", "www.a.example"):
            eventually(lambda name=name: answered(name), "it is asked when there is one")


def test_a_reload_changes_it(daemon, world):
    machine, settings, _, _ = world
    with machine:
        running = daemon(whole=settings(), port=PORT)
        assert all(answered(name) for name in NAMES)
        # The former connections still send packets to close, so only queries and new connections are counted.
        strays = Strays(machine, f"{WAYS['from'][1]} udp dport 53", f"{WAYS['from'][1]} tcp flags syn")
        (running.directory / "httpdnsd.toml").write_text(toml(settings(**{"from": OTHER})))
        running.process.send_signal(signal.SIGHUP)
        eventually(lambda: running.log_lines("upstreams.https.from"), "the new settings hold")
        for name in NAMES:
            assert answered(f"{name[:-1]}f" if "." not in name else f"big.{name}"), name
    assert strays.count == 0


def test_check_says_what_a_mark_needs(command):
    ended = command("check", "--all", whole={"httpdns": {"token": "t", "mark": 7}})
    assert ended.returncode == 0 and "httpdns.mark" in ended.stderr and "CAP_NET_ADMIN" in ended.stderr, ended
