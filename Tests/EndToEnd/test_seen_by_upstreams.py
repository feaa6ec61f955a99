"""Parts of a question that the HTTPDNS service and the local resolver, or any server, must not see."""

import itertools
import re
import socket
import struct

import dns.edns
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.update
import pytest

from dns_client import Stream, addresses, ask, exchange
from resolvers import reply_to
from standard import ZONE

PORT = 2053
KINDS = ["A", "AAAA", "HTTPS", "SVCB", "MX", "TXT", "PTR", "SRV", "NS", "SOA", "CNAME", "DS", "ANY", "TYPE65399"]

# Names that the daemon answers itself: no server is asked.
STAYS_HERE = [
    "localhost", "LOCALHOST", "a.b.localhost", "invalid", "www.example.invalid", "onion", "duckduckgogg42xjoc72x.onion",
    "Hidden.ONION", "use-application-dns.net", "www.use-application-dns.net", "_dns.resolver.arpa",
    "x._dns.resolver.arpa", "resolver.arpa", "x.resolver.arpa", "X.Resolver.ARPA",
]
# Names that only a local resolver can know.
STAYS_LOCAL = [
    "printer", "com", "PRINTER", "local", "scanner.local", "_ipp._tcp.local", "test", "unit.test", "home.arpa",
    "nas.home.arpa", "lan", "box.lan", "internal", "db.internal", "ipv4only.arpa",
    "in-addr.arpa.local", "a,b.example.com", "a;b.example.com", "a|b.example.com", "a b.example.com",
    "\\000.example.com", "\\228.example.com", "\\195\\164.example.com", "a\\.b.example.com", "*.example.com",
    "a/b.example.com",
]
PRIVATE = ["0.0.0.1", "10.1.2.3", "127.0.0.1", "169.254.3.4", "172.16.0.1", "172.31.255.255", "192.168.1.1",
           "192.0.2.1", "198.51.100.1", "203.0.113.1", "255.255.255.255", "100.64.0.1", "100.127.255.255",
           "::", "::1", "fd00::1",
           "fc00::1", "fe80::1", "febf::1", "2001:db8::1"]


def reverse(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    octets = socket.inet_pton(family, address)
    if family == socket.AF_INET:
        return ".".join(str(octet) for octet in reversed(octets)) + ".in-addr.arpa"
    return ".".join(reversed(octets.hex())) + ".ip6.arpa"


@pytest.fixture
def world(daemon, service, scripted_resolver):
    """A daemon between a recording service and a recording local resolver."""
    def start(**httpdns):
        chosen = service("aes", ZONE)
        resolver = scripted_resolver(lambda asked: reply_to(asked.message, rcode=dns.rcode.NXDOMAIN))
        daemon(chosen, {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "httpdns": httpdns,
                        "fallback": {"servers": [resolver.endpoint]}}, port=PORT)
        resolver.questions.clear()
        return chosen, resolver
    return start


def name_of(text):
    return dns.name.from_text(text.replace(" ", "\\032").replace(";", "\\;"))


def seen_by(resolver):
    return {asked.name.canonicalize() for asked in resolver.questions}


def ask_everything(names, kinds=KINDS):
    for name in names:
        for kind in kinds:
            for transport in ("udp", "tcp"):
                ask(name_of(name), kind, transport=transport, port=PORT, edns=True, want_dnssec=transport == "tcp")


def control(chosen, resolver, names_before=()):
    """Checks that both servers record questions: the service must have exactly these names."""
    assert addresses(ask("n1.example.com", port=PORT)) == ["203.0.113.1"]
    assert chosen.names == [*names_before, "n1.example.com"]
    ask("n1.example.com", "MX", port=PORT)
    last = resolver.questions[-1]
    assert last.kind == "MX" and last.name.canonicalize() == name_of("n1.example.com")


@pytest.mark.parametrize("http_only", [False, True])
def test_what_stays_on_the_host_is_seen_by_nobody(world, http_only):
    chosen, resolver = world(httpOnly=http_only)
    ask_everything(STAYS_HERE)
    assert chosen.names == [] and chosen.connections == 0
    assert resolver.questions == []
    if not http_only:
        control(chosen, resolver)


def test_local_names_are_seen_by_the_local_resolver_alone(world):
    chosen, resolver = world()
    names = STAYS_LOCAL + [reverse(address) for address in PRIVATE]
    names += [f"x.{reverse(address)}" for address in PRIVATE]
    ask_everything(names, ["A", "AAAA", "HTTPS", "PTR", "TXT"])
    assert chosen.names == [] and chosen.connections == 0
    assert seen_by(resolver) == {name_of(name).canonicalize() for name in names}
    control(chosen, resolver)


def test_local_names_are_seen_by_nobody_when_the_local_resolver_may_not_be_asked(world):
    chosen, resolver = world(httpOnly=True)
    ask_everything(STAYS_LOCAL + [reverse(address) for address in PRIVATE], ["A", "AAAA", "HTTPS", "PTR"])
    assert chosen.names == [] and chosen.connections == 0
    assert resolver.questions == []
    assert addresses(ask("n1.example.com", port=PORT)) and chosen.names == ["n1.example.com"]


def test_other_operations_are_seen_by_nobody(world):
    """No server sees transfers, NOTIFY, UPDATE, other opcodes and classes, answers, or noise."""
    chosen, resolver = world()
    messages = []
    for kind in ("AXFR", "IXFR"):
        messages.append(dns.message.make_query("www.example.com", kind))
    notify = dns.message.make_query("www.example.com", "SOA")
    notify.set_opcode(dns.opcode.NOTIFY)
    update = dns.update.UpdateMessage("example.com")
    update.add("www", 300, "A", "192.0.2.66")
    messages += [notify, update]
    for rdclass in ("CH", "HS", "ANY"):
        messages.append(dns.message.make_query("www.example.com", "A", rdclass=rdclass))
    answer = dns.message.make_query("www.example.com", "A")
    answer.flags |= dns.flags.QR
    wires = [message.to_wire() for message in [*messages, answer]]
    plain = bytearray(dns.message.make_query("www.example.com", "A").to_wire())
    for opcode in range(1, 16):
        plain[2] = opcode << 3 | 1
        wires.append(bytes(plain))
    plain[2] = 1
    wires += [bytes(plain[:length]) for length in range(len(plain))] + [bytes(plain) + b"\0"]
    with Stream(port=PORT) as stream, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.connect(("127.0.0.1", PORT))
        for wire in wires:
            channel.send(wire)
            stream.send(wire)
        # All messages have been read once the question after them is answered.
        stream.send(dns.message.make_query("localhost", "A", id=1))
        while stream.receive_bytes()[:2] != b"\0\1":
            pass
    assert exchange(dns.message.make_query("localhost", "A").to_wire(), port=PORT)
    assert chosen.names == [] and chosen.connections == 0
    assert resolver.questions == []
    control(chosen, resolver)


def test_what_a_client_adds_is_seen_by_nobody(world):
    """No server sees a client's cookie, subnet, padding, keepalive, NSID, unknown options, size or flags."""
    chosen, resolver = world()
    marks = {8: dns.edns.ECSOption("198.18.77.0", 24), 10: dns.edns.GenericOption(10, b"COOKIE-8"),
             12: dns.edns.GenericOption(12, b"PADDING!" * 8), 3: dns.edns.GenericOption(3, b"NSID-NSID"),
             11: dns.edns.GenericOption(11, b""), 65001: dns.edns.GenericOption(65001, b"UNKNOWN-OPTION")}
    marked = [b"COOKIE-8", b"PADDING!", b"NSID-NSID", b"UNKNOWN-OPTION", struct.pack("!4B", 198, 18, 77, 0)[:3]]
    resolver.script = lambda asked: reply_to(asked.message, '60 IN TXT "local"')
    number = itertools.count()
    for name, kind in (("n{}.example.com", "A"), ("n{}.example.com", "TXT"), ("box{}.lan", "TXT")):
        for transport in ("udp", "tcp"):
            for codes in ([], list(marks), *([code] for code in marks)):
                message = dns.message.make_query(name.format(next(number)), kind, use_edns=0, payload=4000,
                                                 options=[marks[code] for code in codes])
                message.ednsflags |= 0x40  # an unknown flag
                assert ask(None, message=message, transport=transport, port=PORT).answer
    assert len(set(chosen.names)) == 16 and len(seen_by(resolver)) == 32
    for target in chosen.targets:
        assert not any(mark in target.encode() or mark.hex() in target for mark in marked)
        assert not re.search(r"[?&]ip=", target) and "198.18" not in target
    for asked in resolver.questions:
        assert not any(mark in asked.wire for mark in marked)
        assert asked.message.options == () and asked.message.payload == 1232 and asked.message.ednsflags == 0
        assert len(asked.message.additional) == 0


def test_the_letters_of_a_client_are_not_passed_on(world):
    """The spelling of a client's name could identify the client, so it is not passed on."""
    chosen, resolver = world()
    spelled = "wWw.ExAmPlE.cOm"
    seen = set()
    for _ in range(12):
        ask(spelled, "MX", port=PORT)
        ask(f"x{len(resolver.questions)}.{spelled}", "MX", port=PORT)
        seen.add(resolver.questions[-1].message.question[0].name.to_text().split(".", 1)[1])
    ask(spelled, port=PORT)
    assert chosen.names == ["www.example.com"]
    assert len(seen) > 6, "each question is spelled by chance"
