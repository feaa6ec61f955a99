"""Networks without IPv4: RFC 7050, RFC 6052 and RFC 6147 beside a real translator and a resolver that does no DNS64."""

import http.server
import json
import secrets
import signal
import socket
import subprocess
import threading
import time

import dns.flags
import dns.message
import dns.rcode
import dns.reversename
import pytest

from daemon import environment, run, toml
from dns_client import addresses, ask
from encrypted import address_reply
from httpdns_service import HTTPDNSService, Record
from nat64 import MACHINE, ROUTER, Translator, without_ipv4
from resolvers import reply_to
from store import Store
from waiting import eventually

PREFIX, OTHER_PREFIX = "2001:db8:64::/96", "2001:db8:65::/96"
HTTPS, AES, TLS, DOH, STORE, WEB = (f"198.51.100.{last}" for last in range(1, 7))
WEB_UNDER = {PREFIX: "2001:db8:64::c633:6406", OTHER_PREFIX: "2001:db8:65::c633:6406"}


def zone(name, request):
    """Each name has the web server's IPv4 address, and only one name has an IPv6 address."""
    return Record([WEB], ["2001:db8:1::1"] if name.startswith("six") else [], 60)


class Resolver:
    """The network's resolver, which knows the prefix but does no DNS64."""

    def __init__(self):
        self.prefix = PREFIX
        self.asked_for_prefix = self.asked_slowly = 0

    def __call__(self, asked):
        name, kind = asked.name.to_text(), asked.kind
        if name == "ipv4only.arpa." and kind == "AAAA":
            self.asked_for_prefix += 1
            if self.prefix is None:
                return reply_to(asked.message, "60 IN SOA arpa. nobody.arpa. 1 2 3 4 60", section="authority")
            prefixes = self.prefix if isinstance(self.prefix, list) else [self.prefix.removesuffix("/96") + "c000:aa"]
            return reply_to(asked.message, *(f"60 IN AAAA {address}" for address in prefixes))
        if name == "slow.example.com.":
            self.asked_slowly += 1
            return None
        if kind == "A":
            return reply_to(asked.message, f"60 IN A {WEB}")
        if name.startswith("six") and kind == "AAAA":
            return reply_to(asked.message, "60 IN AAAA 2001:db8:1::1")
        if kind == "PTR":
            return reply_to(asked.message, "60 IN PTR web.example.com.")
        return reply_to(asked.message, "60 IN SOA example.com. nobody.example.com. 1 2 3 4 60", section="authority")


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.client_address[0].encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def world(network, scripted_resolver, encrypted_resolver, authority, tmp_path):
    """A machine without IPv4, whose servers have IPv4 addresses alone, except the network's resolver."""
    machine, far = without_ipv4(network, [HTTPS, AES, TLS, DOH, STORE, WEB])
    says = Resolver()
    (tmp_path / "resolv.conf").write_text(f"nameserver {ROUTER}\n")
    with far:
        translator = Translator(far, tmp_path, PREFIX)
        scripted_resolver(says, address=ROUTER)
        streams = {kind: encrypted_resolver(kind, lambda asked, connection: address_reply(asked, WEB), address=address)
                   for kind, address in (("tls", TLS), ("https", DOH))}
        services = [HTTPDNSService("https", zone, address=HTTPS, tls=authority.server(addresses=[HTTPS])).start(),
                    HTTPDNSService("aes", zone, address=AES).start()]
        store = Store(tmp_path, "--protected-mode", "no", address=STORE).start()
        web = http.server.ThreadingHTTPServer((WEB, 80), Page)
        threading.Thread(target=web.serve_forever, args=(0.02,), daemon=True).start()
    key = tmp_path / "fleet-key"
    key.write_text(secrets.token_hex(32))

    def settings(service=services[0], **sections):
        whole = {"listen": {"addresses": ["127.0.0.1:53"]}, "tls": {"caFile": str(authority.file)},
                 "httpdns": service.settings() | {"timeout": 3000, "thenTryOn": ["failure"]},
                 "fallback": {"hosts": "", "timeout": 3000, "resolvConf": [str(tmp_path / "resolv.conf")]},
                 "control": {"socket": str(tmp_path / "c")}}
        return whole | sections
    yield machine, far, settings, says, translator, services, streams, store, key
    web.shutdown()
    web.server_close()
    for service in services:
        service.stop()
    store.kill()
    translator.stop()


def status(binary, tmp_path, *arguments):
    ended = run(binary, "status", *arguments, "--socket", str(tmp_path / "c"))
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def prefix(binary, tmp_path):
    return json.loads(status(binary, tmp_path, "--json"))["nat64"]["prefix"]


def test_programs_reach_servers_of_ipv4_by_name(daemon, world, binary, tmp_path):
    """getent, curl and Python connect to the server of an account's name without an IPv6 address."""
    machine, _, settings, *_ = world
    with machine:
        running = daemon(whole=settings())
        eventually(lambda: prefix(binary, tmp_path) == PREFIX, "the prefix is found")
        found = subprocess.run(["getent", "ahosts", "www.example.com"], capture_output=True, text=True)
        assert WEB_UNDER[PREFIX] in found.stdout
        fetched = subprocess.run(["curl", "-sS", "--max-time", "30", "http://www.example.com/"], capture_output=True,
                                 text=True, env=environment())
        assert fetched.stdout.startswith("192.168.255."), fetched.stderr
        with socket.create_connection(("www.example.com", 80), timeout=30) as connection:
            assert connection.family == socket.AF_INET6
        assert addresses(ask("six.example.com", "AAAA"), "AAAA") == ["2001:db8:1::1"]
        text = status(binary, tmp_path)
        assert "this network has no ipv4" in text.lower() and PREFIX in text
    assert running.log_lines(f"no IPv4.*{PREFIX}.*AAAA records made of A records")


@pytest.mark.parametrize("place", [0, 1], ids=["https", "aes"])
def test_accounts_are_asked_by_way_of_the_translator(daemon, world, binary, tmp_path, place):
    machine, _, settings, _, _, services, *_ = world
    with machine:
        daemon(whole=settings(services[place]))
        eventually(lambda: prefix(binary, tmp_path) == PREFIX, "the prefix is found")
        reply = ask("a.example.com", "AAAA")
        assert addresses(reply, "AAAA") == [WEB_UNDER[PREFIX]]
        assert addresses(ask("a.example.com")) == [WEB]
    assert services[place].names.count("a.example.com") == 1


def test_other_servers_are_asked_by_way_of_it_too(daemon, world, binary, tmp_path):
    machine, _, settings, _, _, services, streams, store, key = world
    groups = {f"upstreams.{kind}": {"servers": [server.url], "domains": [f"{kind}.example"], "share": True,
                                    "caFile": settings()["tls"]["caFile"]}
              for kind, server in streams.items()}
    shared = {"sharedCache": {"server": f"redis://{STORE}:6379", "keyFile": str(key)}}
    with machine:
        daemon(whole=settings(**groups, **shared))
        eventually(lambda: prefix(binary, tmp_path) == PREFIX, "the prefix is found")
        eventually(lambda: json.loads(status(binary, tmp_path, "--json"))["sharedCache"]["inUse"], "the store is reached")
        for kind in streams:
            assert addresses(ask(f"www.{kind}.example", "A")) == [WEB], kind
        eventually(lambda: store.keys(), "the store holds what was said")


def test_the_prefix_goes_comes_back_and_becomes_another(daemon, world, binary, tmp_path):
    machine, far, settings, says, translator, *_ = world
    nat64 = {"cache": {"minTTL": 0}}
    with far:
        second = Translator(far, tmp_path, OTHER_PREFIX, number=2)
    number = iter(range(2, 100))

    def changed(to):
        says.prefix = to
        machine.ip(f"address add 2001:db8:1::1{next(number)}/64 dev cable nodad")
        eventually(lambda: prefix(binary, tmp_path) == to, f"the prefix is {to}")
    try:
        with machine:
            daemon(whole=settings(**nat64))
            eventually(lambda: prefix(binary, tmp_path) == PREFIX, "the prefix is found")
            assert addresses(ask("www.example.com", "AAAA"), "AAAA") == [WEB_UNDER[PREFIX]]
            changed(None)
            assert addresses(ask("six.example.com", "AAAA"), "AAAA") == ["2001:db8:1::1"]
            changed(OTHER_PREFIX)
            assert addresses(ask("www.example.com", "AAAA"), "AAAA") == [WEB_UNDER[OTHER_PREFIX]]
            changed(PREFIX)
            assert addresses(ask("www.example.com", "AAAA"), "AAAA") == [WEB_UNDER[PREFIX]]
    finally:
        second.stop()


def test_without_any_route_the_prefix_stays(daemon, world, binary, tmp_path):
    """A cable that is out for a while takes no AAAA record from the cache, and the log claims no IPv4."""
    machine, _, settings, *_ = world
    whole = settings(cache={"minTTL": 600})
    del whole["httpdns"]

    def made():
        return addresses(ask("www.example.com", "AAAA"), "AAAA") == [WEB_UNDER[PREFIX]]
    with machine:
        running = daemon(whole=whole)
        eventually(lambda: prefix(binary, tmp_path) == PREFIX, "the prefix is found")
        assert made()
        machine.ip("link set cable down")
        eventually(lambda: running.log_lines("no route leads out of this machine"), "the network is gone")
        for _ in range(10):
            assert made() and prefix(binary, tmp_path) == PREFIX
            time.sleep(0.1)
        machine.ip("link set cable up")
        machine.ip(f"address replace {MACHINE}/64 dev cable nodad")
        machine.ip(f"-6 route replace default via {ROUTER}")
        eventually(lambda: running.log_lines("the network is back"), "the network is back")
        eventually(made, "the resolver answers")
    assert not running.log_lines("IPv4 is reached without a translator")


def test_when_the_prefix_goes_a_query_is_repeated_once(daemon, world, binary, tmp_path):
    """A route to IPv4 comes, and the prefix goes with it: that is one change of the network."""
    machine, far, settings, says, *_ = world
    far.ip("address add 10.77.0.1/24 dev cable")
    machine.ip("address add 10.77.0.2/24 dev cable")
    whole = settings()
    del whole["httpdns"]
    whole["fallback"]["timeout"] = 60000
    with machine:
        tentative = ["ip", "-6", "address", "show", "dev", "cable", "tentative"]
        eventually(lambda: not subprocess.run(tentative, capture_output=True, check=True).stdout, "the addresses stay as they are")
        daemon(whole=whole)
        eventually(lambda: prefix(binary, tmp_path) == PREFIX, "the prefix is found")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(dns.message.make_query("slow.example.com", "TXT").to_wire(), ("127.0.0.1", 53))
            eventually(lambda: says.asked_slowly == 2, "the silent resolver is asked once more")
            machine.ip("route add default via 10.77.0.1")
            eventually(lambda: says.asked_slowly > 2, "the query is repeated in the present network")
            assert prefix(binary, tmp_path) is None
            time.sleep(0.5)
    assert says.asked_slowly == 3


def test_resolvers_of_a_reload_are_asked_at_once(daemon, world, binary, tmp_path):
    """After "no translator" the next question is ten minutes away, unless a reload names other resolvers."""
    machine, _, settings, says, *_ = world
    says.prefix = None
    whole = settings()
    with machine:
        running = daemon(whole=whole)
        eventually(lambda: running.log_lines("no translator to it is known"), "the resolver has answered")
        says.prefix = PREFIX
        (tmp_path / "other.conf").write_text(f"nameserver {ROUTER}\nnameserver 2001:db8:1::99\n")
        whole["fallback"]["resolvConf"] = [str(tmp_path / "other.conf")]
        (running.directory / "httpdnsd.toml").write_text(toml(whole))
        running.process.send_signal(signal.SIGHUP)
        eventually(lambda: prefix(binary, tmp_path) == PREFIX, "the prefix is found")


@pytest.mark.parametrize("forged", [
    ["::ffff:192.0.0.170"], ["::1"], ["fe80::c000:aa"], ["ff02::c000:aa"], ["2001:db8::1"], []],
    ids=["mapped", "loopback", "link-local", "multicast", "another", "none"])
def test_a_forged_answer_makes_nothing_worse(daemon, world, binary, tmp_path, forged):
    """Forged prefixes are ignored, and names with IPv6 addresses resolve as without NAT64."""
    machine, _, settings, says, _, services, *_ = world
    says.prefix = forged
    with machine:
        daemon(whole=settings(httpdns=services[0].settings() | {"timeout": 300}))
        eventually(lambda: says.asked_for_prefix, "the resolver is asked")
        assert addresses(ask("six.example.com", "AAAA"), "AAAA") == ["2001:db8:1::1"]
        assert addresses(ask("www.example.com", "AAAA"), "AAAA") == []
        assert prefix(binary, tmp_path) is None
        assert "no translator to it is known" in status(binary, tmp_path)


def test_clients_that_validate_and_reverse_names(daemon, world, binary, tmp_path):
    """Validating clients (RFC 6147 §5.5) and reverse names (§5.3.1) get correct answers beside the network's resolver."""
    machine, _, settings, *_ = world
    whole = settings()
    del whole["httpdns"]
    with machine:
        daemon(whole=whole)
        eventually(lambda: prefix(binary, tmp_path) == PREFIX, "the prefix is found")
        assert addresses(ask("www.example.com", "AAAA"), "AAAA") == [WEB_UNDER[PREFIX]]
        reply = ask("www.example.com", "AAAA", want_dnssec=True)
        assert addresses(reply, "AAAA") == [WEB_UNDER[PREFIX]]
        reply = ask("www.example.com", "AAAA", want_dnssec=True, flags=dns.flags.RD | dns.flags.CD)
        assert addresses(reply, "AAAA") == [] and reply.rcode() == dns.rcode.NOERROR
        reverse = dns.reversename.from_address(WEB_UNDER[PREFIX]).to_text()
        reply = ask(reverse, "PTR")
        assert [rrset.to_text().split(" ", 1)[0] for rrset in reply.answer] == [reverse, "6.100.51.198.in-addr.arpa."]
        assert "PTR web.example.com." in reply.to_text()
        named = subprocess.run(["getent", "hosts", WEB_UNDER[PREFIX]], capture_output=True, text=True)
        assert "web.example.com" in named.stdout


def test_with_a_given_prefix_no_resolver_is_asked(daemon, world, binary, tmp_path):
    machine, _, settings, says, *_ = world
    with machine:
        daemon(whole=settings(nat64={"prefix": PREFIX}))
        assert addresses(ask("www.example.com", "AAAA"), "AAAA") == [WEB_UNDER[PREFIX]]
    assert says.asked_for_prefix == 0


def test_never_and_off(daemon, world, binary, tmp_path):
    """With `synthesize = "never"`, servers are reached and clients get real records; `prefix = ""` switches translation off."""
    machine, _, settings, says, *_ = world
    with machine:
        running = daemon(whole=settings(nat64={"synthesize": "never"}))
        eventually(lambda: prefix(binary, tmp_path) == PREFIX, "the prefix is found")
        assert addresses(ask("www.example.com")) == [WEB]
        assert addresses(ask("www.example.com", "AAAA"), "AAAA") == []
        running.stop()
        asked = says.asked_for_prefix
        daemon(whole=settings(nat64={"prefix": ""}))
        assert addresses(ask("www.example.com", "AAAA"), "AAAA") == []
        assert prefix(binary, tmp_path) is None
    assert says.asked_for_prefix == asked


def test_probe_and_query_go_by_way_of_it(world, binary, tmp_path):
    machine, _, settings, *_ = world
    file = tmp_path / "httpdnsd.toml"
    file.write_text(toml(settings()))
    with machine:
        probed = run(binary, "probe", "-c", str(file))
        assert probed.returncode == 0, probed.stdout + probed.stderr
        assert "this network has no IPv4" in probed.stdout
        asked = run(binary, "query", "www.example.com", "-c", str(file), "--format", "pair")
        assert asked.stdout.split() == ["www.example.com", WEB, "0"], asked.stderr
