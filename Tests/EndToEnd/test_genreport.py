"""The probes of ISC's genreport, rewritten, and further rules of RFC 6891, 7828, 7830, 7873, 8906 and 9018 on EDNS.

genreport asks a server what BIND's resolver might ask it, with one feature at a time that some servers get wrong, and
reports mistakes in the answer. Here each probe is asked as its recursive mode does (RD set), and without RD.
"""

import dataclasses
import hashlib
import hmac
import socket
import struct
import time

import dns.edns
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdatatype
import pytest

from dns_client import Stream, ask, exchange, extended_errors, labels
from httpdns_service import Record
from standard import ZONE

AA, TC, RD, RA, Z, AD, CD = 0x400, 0x200, 0x100, 0x80, 0x40, 0x20, 0x10
DO = 0x8000
NSID, ECS, EXPIRE = b"\0\3\0\0", b"\0\x08\0\4\0\1\0\0", b"\0\x09\0\0"
CLIENT_COOKIE = bytes(range(1, 9))
COOKIE = b"\0\x0a\0\x08" + CLIENT_COOKIE
UNKNOWN = b"\0\x64\0\0"


@dataclasses.dataclass
class Probe:
    name: str
    flags: int = 0
    opcode: int = 0
    size: int = 0  # of the OPT; 0: no OPT
    version: int = 0
    edns_flags: int = 0
    options: bytes = b""
    kind: str = ""  # "": the route's own kind of answer; "big": an answer over 512 octets
    ignore: bool = False  # TC is checked, but no query follows over TCP
    tcp: bool = False
    signed: bool = False


PROBES = [
    Probe("dns"), Probe("aa", AA), Probe("ad", AD), Probe("cd", CD), Probe("ra", RA), Probe("rd", RD), Probe("tc", TC),
    Probe("zflag", Z), Probe("opcode", opcode=15), Probe("opcodeflg", AA | TC | RD | RA | Z | AD | CD, 15),
    Probe("type666", kind="TYPE666"), Probe("tcp", tcp=True),
    Probe("edns", size=4096), Probe("edns1", size=4096, version=1),
    Probe("edns@512", size=512, edns_flags=DO, kind="big", ignore=True),
    Probe("ednsopt", size=4096, options=UNKNOWN), Probe("edns1opt", size=4096, version=1, options=UNKNOWN),
    Probe("do", size=4096, edns_flags=DO), Probe("docd", CD, size=4096, edns_flags=DO),
    Probe("edns1do", size=4096, version=1, edns_flags=DO), Probe("ednsflags", size=4096, edns_flags=0x80),
    Probe("optlist", size=4096, options=NSID + ECS + EXPIRE + COOKIE),
    Probe("ednsnsid", size=4096, options=NSID), Probe("ednscookie", size=4096, options=COOKIE),
    Probe("ednsexpire", size=4096, options=EXPIRE), Probe("ednssubnet", size=4096, options=ECS),
    Probe("edns1nsid", size=4096, version=1, options=NSID), Probe("edns1cookie", size=4096, version=1, options=COOKIE),
    Probe("edns1expire", size=4096, version=1, options=EXPIRE),
    Probe("edns1subnet", size=4096, version=1, options=ECS),
    Probe("ednstcp", size=512, edns_flags=DO, kind="big", tcp=True),
    Probe("bind11", size=4096, edns_flags=DO, options=COOKIE), Probe("dig11", AD | RD, size=4096, options=COOKIE),
    Probe("signed", signed=True), Probe("ednssigned", size=4096, signed=True),
]

# The questions of a route: the usual one, and one whose answer has over 512 octets.
ROUTES = {
    "httpdns": (("www.example.com", "A"), ("many.example.com", "A")),
    "local resolver": (("example.com", "SOA"), ("big.example.com", "TXT")),
    "local": (("localhost", "A"), ("localhost", "A")),
}


def question(probe, route):
    """The name and type that a probe asks of a route."""
    small, big = ROUTES[route]
    if probe.kind == "big":
        return big
    return small[0], probe.kind or small[1]


def signature(message, identity):
    """A TSIG by the well-known key, which no server has to know, and which must not confuse a server."""
    now, fudge, algorithm = int(time.time()), 300, labels("hmac-sha256")
    stamp = struct.pack("!HIH", now >> 32, now & 0xFFFFFFFF, fudge)
    digest = hmac.new(bytes(32), message + b"\0" + struct.pack("!HI", 255, 0) + algorithm + stamp + bytes(4),
                      hashlib.sha256).digest()
    data = algorithm + stamp + struct.pack("!H", len(digest)) + digest + struct.pack("!3H", identity, 0, 0)
    return b"\0" + struct.pack("!HHIH", 250, 255, 0, len(data)) + data


def query(probe, route, recursive, identity):
    flags = probe.flags | probe.opcode << 11 | (RD if recursive and not probe.opcode else 0)
    if probe.opcode:
        return struct.pack("!6H", identity, flags, 0, 0, 0, 0)
    name, kind = question(probe, route)
    records = []
    if probe.size:
        records.append(b"\0" + struct.pack("!HHBBHH", 41, probe.size, 0, probe.version, probe.edns_flags,
                                           len(probe.options)) + probe.options)
    body = labels(name) + struct.pack("!HH", dns.rdatatype.from_text(kind), 1)
    message = struct.pack("!6H", identity, flags, 1, 0, 0, len(records)) + body + b"".join(records)
    if probe.signed:
        tsig = signature(message, identity)
        message = message[:10] + struct.pack("!H", len(records) + 1) + message[12:] + tsig
    return message


def over_tcp(message, port):
    with Stream(port=port) as stream:
        stream.send(message)
        return stream.receive_bytes()


def verdict(probe, route, is_refused, wire, sent, over):
    """The mistakes that genreport would report; an empty list is "ok". `is_refused`: the question has no RD but needs a lookup,
    so it must be refused."""
    wrong = []

    def unless(condition, tag):
        if not condition:
            wrong.append(tag)

    flags = struct.unpack("!H", wire[2:4])[0]
    unless(wire[:2] == sent[:2], "id")
    unless(flags & 0x8000, "not a response")
    unless(flags >> 11 & 15 == probe.opcode, "opcode")
    unless(not flags & AA, "aa")
    unless(not flags & Z, "z")
    if probe.opcode:
        unless(flags & 15 == dns.rcode.NOTIMP, dns.rcode.to_text(flags & 15))
        unless(not flags & (RA | AD | CD | RD | TC), "flags of QUERY")
        unless(wire[4:] == bytes(8), "records")
        return wrong
    try:
        reply = dns.message.from_wire(wire)  # the whole message, without a further octet
    except Exception as failure:  # noqa: BLE001 (whatever dnspython finds wrong with it)
        return [f"malformed: {failure!r}"]
    code = reply.rcode()
    asked_flags = struct.unpack("!H", sent[2:4])[0]
    name, kind = question(probe, route)
    unless(len(reply.question) == 1 and reply.question[0].name == dns.name.from_text(name), "question")
    unless(flags & RA, "ra")
    unless(bool(flags & RD) == bool(asked_flags & RD), "rd")
    unless(bool(flags & CD) == bool(asked_flags & CD), "cd")
    unless(not flags & AD or asked_flags & AD or probe.edns_flags & DO, "ad")
    expected = dns.rcode.BADVERS if probe.version else dns.rcode.REFUSED if is_refused else dns.rcode.NOERROR
    unless(code == expected, dns.rcode.to_text(code))
    found = any(rrset.name == dns.name.from_text(name) and rrset.rdtype == dns.rdatatype.from_text(kind)
                for rrset in reply.answer)
    if code != dns.rcode.NOERROR:
        unless(not reply.answer and not reply.authority, "records with a refusal")
    elif flags & TC:
        unless(over == "udp" and probe.kind == "big" and not found, "tc")
    elif not probe.kind == "TYPE666":
        unless(found, "no" + kind)
    unless((reply.edns >= 0) == (probe.size > 0), "opt" if reply.edns >= 0 else "noopt")
    if reply.edns >= 0:
        unless(reply.edns == 0, "version-not-zero")
        unless(reply.ednsflags & 0xFFFF == probe.edns_flags & DO, "mbz")
        options = {int(option.otype): option.to_wire() for option in reply.options}
        unless(set(options) <= ({10, 15} if is_refused else {10}), f"options {sorted(options)}")
        wants_cookie = COOKIE in probe.options and not probe.version
        unless((10 in options) == wants_cookie, "cookie")
        unless(not wants_cookie or options[10].startswith(CLIENT_COOKIE) and len(options[10]) == 24, "cookie-mismatch")
    if over == "udp":
        unless(len(wire) <= max(probe.size, 512), "toobig")
    return wrong


@pytest.fixture(scope="module")
def httpdns(service):
    return service("aes", ZONE | {"many.example.com": Record([f"203.0.113.{i}" for i in range(32)], [], 600)})


@pytest.fixture(scope="module", autouse=True)
def servers(module_daemon, httpdns):
    """Ports of a daemon with a cache and of one without."""
    # A question with DO is not asked of HTTPDNS.
    shared = {"httpdns": {"signed": "addresses"}}
    module_daemon(httpdns, shared | {"listen": {
        "addresses": ["127.0.0.1:2053", "127.0.0.8:2053"], "allow": ["127.0.0.1/32"], "tcpIdleSeconds": 7}}, port=2053)
    module_daemon(httpdns, shared | {"listen": {"addresses": ["127.0.0.1:2054"]}, "cache": {"maxTTL": 0}}, port=2054)
    return {"cached": 2053, "asked anew": 2054}


@pytest.mark.parametrize("recursive", [True, False])
@pytest.mark.parametrize("transport", ["udp", "tcp"])
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("cache", ["cached", "asked anew"])
def test_genreport(servers, httpdns, unbound, cache, route, transport, recursive):
    port = servers[cache]
    before = len(httpdns.names) if route == "httpdns" else len(unbound.asked())
    report = {}
    for number, probe in enumerate(PROBES):
        if cache == "cached" and not probe.opcode and not probe.version:
            over_tcp(query(probe, route, True, 0x4C00 + number), port)
        sent = query(probe, route, recursive, 0x4D00 + number)
        over = "tcp" if probe.tcp else transport
        wire = over_tcp(sent, port) if over == "tcp" else exchange(sent, port=port)
        if over == "udp" and wire and wire[2] & 2 and not probe.ignore:
            over, wire = "tcp", over_tcp(sent, port)
        # Without RD no server is asked, so an uncached name is refused; `rd` and `dig11` set RD themselves.
        is_refused = cache == "asked anew" and route != "local" and not sent[2] & 1
        report[probe.name] = verdict(probe, route, is_refused, wire, sent, over) if wire else ["timeout"]
    wrong = {name: tags for name, tags in report.items() if tags}
    print(f"{len(report) - len(wrong)} of {len(report)} ok: {cache}, {route}, {transport}, RD {int(recursive)}")
    assert len(report) >= 32 and not wrong
    asked = (len(httpdns.names) if route == "httpdns" else len(unbound.asked())) - before
    if route != "local" and cache == "asked anew":
        assert asked >= 20 if recursive else asked < 5, "the answers did come from there"


# --- Cookies (RFC 7873, RFC 9018) ---

def with_options(name, kind, *options, **more):
    return dns.message.make_query(name, kind, use_edns=0, payload=1232, options=list(options), **more)


def cookie_option(data):
    return dns.edns.GenericOption(10, data)


def cookies(reply):
    return [option.to_wire() for option in reply.options if option.otype == 10]


@pytest.mark.parametrize("transport", ["udp", "tcp"])
@pytest.mark.parametrize("port", [2053, 2054])
@pytest.mark.parametrize(("name", "kind", "rcode"), [
    ("www.example.com", "A", "NOERROR"), ("example.com", "MX", "NOERROR"), ("localhost", "A", "NOERROR"),
    ("missing.example.com", "MX", "NXDOMAIN"), ("bad.invalid", "A", "NXDOMAIN"), ("www.example.com", "ANY", "NOERROR"),
    ("example.com", "AXFR", "REFUSED"), ("big.example.com", "TXT", "NOERROR")])
def test_every_reply_has_a_cookie_for_who_sends_one(transport, port, name, kind, rcode):
    for _ in range(2):
        message = with_options(name, kind, cookie_option(CLIENT_COOKIE))
        reply = ask(None, message=message, transport=transport, port=port)
        assert dns.rcode.to_text(reply.rcode()) == rcode
        cookie, = cookies(reply)
        assert cookie.startswith(CLIENT_COOKIE + b"\1\0\0\0") and len(cookie) == 24
        assert abs(struct.unpack("!I", cookie[12:16])[0] - time.time()) < 30
        # The same server cookie comes back, also over the other transport.
        for over in ("udp", "tcp"):
            again = ask(None, message=with_options(name, kind, cookie_option(cookie)), transport=over, port=port)
            assert cookies(again) == [cookie] and again.rcode() == reply.rcode()
    for plain in (ask(name, kind, port=port, transport=transport, edns=True),
                  ask(name, kind, port=port, transport=transport)):
        assert not plain.options


def test_a_client_that_may_not_ask_gets_one_too():
    message = with_options("localhost", "A", cookie_option(CLIENT_COOKIE))
    reply = ask(None, message=message, port=2053, server="127.0.0.8", source="127.0.0.9")
    assert reply.rcode() == dns.rcode.REFUSED and extended_errors(reply) == [18]
    assert len(cookies(reply)) == 1


def test_a_bad_server_cookie_is_no_reason_to_refuse(chance):
    for data in (CLIENT_COOKIE + chance.randbytes(8), CLIENT_COOKIE + chance.randbytes(16),
                 CLIENT_COOKIE + chance.randbytes(32), CLIENT_COOKIE + b"\1\0\0\0" + struct.pack("!I", 1) + bytes(8)):
        reply = ask(None, message=with_options("www.example.com", "A", cookie_option(data)), port=2053)
        fresh, = cookies(reply)
        assert reply.rcode() == 0 and reply.answer
        assert fresh.startswith(CLIENT_COOKIE) and fresh != data and len(fresh) == 24


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_malformed_cookies(transport):
    for length in [*range(8), *range(9, 16), 41, 64]:
        message = with_options("www.example.com", "A", cookie_option(bytes(length)))
        reply = ask(None, message=message, transport=transport, port=2053)
        assert reply.rcode() == dns.rcode.FORMERR and reply.edns == 0 and not reply.options, length


def test_a_cookie_is_for_one_address():
    sent = with_options("localhost", "A", cookie_option(CLIENT_COOKIE))
    first, second = (cookies(ask(None, message=sent, port=2053, source=source, server="127.0.0.1"))[0]
                     for source in ("127.0.0.1", "127.0.0.5"))
    assert first[:8] == second[:8] and first[16:] != second[16:]


def cookie_query(data):
    """A QUERY without a question (RFC 7873 §5.4)."""
    option = struct.pack("!HH", 10, len(data)) + data
    return (b"\x12\x34\1\0\0\0\0\0\0\0\0\1" + b"\0" + struct.pack("!HHIH", 41, 1232, 0, len(option)) + option)


def test_cookie_queries():
    def answer(data):
        reply = dns.message.from_wire(exchange(cookie_query(data), port=2053))
        assert reply.id == 0x1234 and not reply.question and not reply.answer
        return reply.rcode(), cookies(reply)[0]
    code, cookie = answer(CLIENT_COOKIE)
    assert code == dns.rcode.NOERROR and cookie.startswith(CLIENT_COOKIE) and len(cookie) == 24
    assert answer(cookie) == (dns.rcode.NOERROR, cookie)
    forged = cookie[:-1] + bytes([cookie[-1] ^ 1])
    assert answer(forged) == (dns.rcode.BADCOOKIE, cookie)


# --- Keepalive (RFC 7828), padding (RFC 7830, RFC 8467) ---

def test_keepalive_is_answered_over_tcp_to_who_asks():
    keepalive = dns.edns.GenericOption(11, b"")
    for name, kind in (("www.example.com", "A"), ("example.com", "MX"), ("localhost", "A"), ("example.com", "AXFR")):
        for port, tenths in ((2053, 70), (2054, 100)):
            options = {"message": with_options(name, kind, keepalive, cookie_option(CLIENT_COOKIE)), "port": port}
            told = [(option.otype, option.to_wire()) for option in ask(None, transport="tcp", **options).options]
            assert (11, struct.pack("!H", tenths)) in told and len(told) == 2
            assert [option.otype for option in ask(None, transport="udp", **options).options] == [10]
            assert not ask(name, kind, transport="tcp", port=port, edns=True).options
    # A time-out sent by a client is invalid, but the message is still answered.
    odd = with_options("localhost", "A", dns.edns.GenericOption(11, b"\0\x64"))
    assert not ask(None, message=odd, transport="tcp", port=2053).options


def test_padding_changes_nothing():
    for transport in ("udp", "tcp"):
        for size in (0, 1, 400):
            padded = with_options("localhost", "A", dns.edns.GenericOption(12, bytes(size)))
            reply = ask(None, message=padded, transport=transport, port=2053)
            assert reply.answer and not reply.options
    whole = dns.message.make_query("localhost", "A", use_edns=0, payload=1232, pad=128)
    assert len(exchange(whole.to_wire(), port=2053)) < 64


# --- Other mistakes in a message ---

@pytest.mark.parametrize(("what", "counts", "rest", "has_opt"), [
    ("no question", (0, 0, 0, 0), b"", False),
    ("two questions", (2, 0, 0, 0), labels("localhost") + b"\0\1\0\1" + labels("localhost") + b"\0\1\0\1", False),
    ("an answer", (1, 1, 0, 0), labels("localhost") + b"\0\1\0\1\xc0\x0c\0\1\0\1\0\0\0\0\0\4\1\2\3\4", False),
    ("OPT twice", (1, 0, 0, 2), labels("localhost") + b"\0\1\0\1" + 2 * b"\0\0\x29\4\xd0\0\0\0\0\0\0", True),
    ("OPT in the authority section", (1, 0, 1, 0), labels("localhost") + b"\0\1\0\1\0\0\x29\4\xd0\0\0\0\0\0\0", False),
    ("OPT below the root", (1, 0, 0, 1), labels("localhost") + b"\0\1\0\1\1a\0\0\x29\4\xd0\0\0\0\0\0\0", False),
    ("half an option", (1, 0, 0, 1), labels("localhost") + b"\0\1\0\1\0\0\x29\4\xd0\0\0\0\0\0\3\0\x0a\0", True),
    ("an option beyond its OPT", (1, 0, 0, 1), labels("localhost") + b"\0\1\0\1\0\0\x29\4\xd0\0\0\0\0\0\4\0\x0a\0\x08",
     True),
    ("octets behind the end", (1, 0, 0, 0), labels("localhost") + b"\0\1\0\1\0", False),
    ("compression", (1, 0, 0, 0), b"\1a\xc0\x0c\0\1\0\1", False),
    ("an OPT without a question", (0, 0, 0, 1), b"\0\0\x29\4\xd0\0\0\0\0\0\0", True),
])
def test_malformed_messages(what, counts, rest, has_opt):
    sent = b"\x12\x34\1\0" + struct.pack("!4H", *counts) + rest
    for wire in (exchange(sent, port=2053), over_tcp(sent, 2053)):
        reply = dns.message.from_wire(wire)
        assert reply.id == 0x1234 and reply.rcode() == dns.rcode.FORMERR and not reply.answer
        assert (reply.edns == 0) == has_opt


def test_other_opcodes_classes_and_transfers():
    for opcode in [*range(1, 16)]:
        message = dns.message.make_query("localhost", "SOA")
        message.set_opcode(opcode)
        wire = exchange(message.to_wire(), port=2053)
        assert wire[2] == 0x80 | opcode << 3 and wire[3] == dns.rcode.NOTIMP and len(wire) == 12
    for rdclass in (3, 4, 254, 255, 4711):
        for edns in (False, True):
            assert ask("localhost", "TXT", rdclass=rdclass, edns=edns, port=2053).rcode() == dns.rcode.REFUSED
    for kind in ("AXFR", "IXFR"):
        sent = dns.message.make_query("localhost", kind)
        for wire in (exchange(sent.to_wire(), port=2053), over_tcp(sent.to_wire(), 2053)):
            assert dns.message.from_wire(wire).rcode() == dns.rcode.REFUSED


def test_a_response_is_never_answered():
    """A response gets no reply: two servers that answered each other's responses would never end."""
    message = dns.message.make_query("localhost", "A")
    message.flags |= dns.flags.QR
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.connect(("127.0.0.1", 2053))
        channel.send(message.to_wire())
        channel.send(dns.message.make_query("localhost", "A", id=7).to_wire())
        channel.settimeout(20)
        assert channel.recv(512)[:2] == b"\0\7"
