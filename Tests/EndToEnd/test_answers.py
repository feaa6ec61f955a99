"""What a client gets over UDP and TCP: answers, passed-through replies, refusals, failures. Scenarios, test_explain.py and
test_seen_by_upstreams.py test which server is asked for a name."""

import socket
from types import SimpleNamespace

import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest

from dns_client import Stream, addresses, ask, exchange, extended_errors, has_opt, synthetic_soa
from httpdns_service import Fault


@pytest.fixture(scope="module")
def world(module_daemon, service, unbound):
    https = service("https")
    module_daemon(https)
    return SimpleNamespace(service=https, unbound=unbound)


@pytest.fixture(params=["udp", "tcp"])
def transport(request):
    return request.param


@pytest.mark.parametrize(("kind", "expected"), [
    ("A", ["203.0.113.20", "203.0.113.10", "203.0.113.30"]),
    ("AAAA", ["2001:db8:1::20", "2001:db8:1::10"]),
])
def test_addresses_of_the_service_in_its_order(world, transport, kind, expected):
    before = len(world.unbound.asked())
    reply = ask("www.example.com", kind, transport=transport)
    assert reply.rcode() == dns.rcode.NOERROR
    assert addresses(reply, kind) == expected
    assert 100 < reply.answer[0].ttl <= 120
    assert len(world.unbound.asked()) == before


def test_no_record_asks_the_local_resolver(world, transport):
    assert addresses(ask("only-local.example.com", transport=transport)) == ["198.51.100.81"]
    assert addresses(ask("only-local.example.com", "AAAA", transport=transport), "AAAA") == ["2001:db8:2::81"]
    assert "only-local.example.com" in world.service.names
    missing = ask("missing.example.com", transport=transport)
    assert missing.rcode() == dns.rcode.NXDOMAIN
    assert synthetic_soa(missing)[1] == 90, "the zone's own SOA"
    nodata = ask("nodata.example.com", transport=transport)
    assert nodata.rcode() == dns.rcode.NOERROR and not nodata.answer
    assert synthetic_soa(nodata)[1] == 90


@pytest.mark.parametrize(("name", "kind", "expected"), [
    ("example.com", "MX", ["10 mx1.example.com.", "20 mx2.example.com."]),
    ("example.com", "TXT", ['"v=spf1 -all" "second string"']),
    ("_sip._tcp.example.com", "SRV", ["10 60 5060 sip.example.com."]),
    ("example.com", "NS", ["ns.example.com."]),
    ("example.com", "CAA", ['0 issue "ca.example.net"']),
    ("80.100.51.198.in-addr.arpa", "PTR", ["www.example.com."]),
    ("example.com", "SOA", ["ns.example.com. hostmaster.example.com. 7 3600 600 86400 90"]),
])
def test_other_types_are_passed_through_whole_and_cached(world, transport, name, kind, expected):
    reply = ask(name, kind, transport=transport)
    assert reply.rcode() == dns.rcode.NOERROR
    assert sorted(rdata.to_text() for rdata in reply.answer[0]) == expected
    assert not reply.flags & dns.flags.AA, "the master's AA is not ours to give"
    asked = world.unbound.asked().count((name, kind))
    assert ask(name, kind, transport=transport).answer[0].ttl <= reply.answer[0].ttl
    assert world.unbound.asked().count((name, kind)) == asked
    assert name not in world.service.names


def test_an_alias_chain_of_the_local_resolver_arrives_whole(world, transport):
    reply = ask("alias.example.com", transport=transport)
    assert [rrset.name.to_text().split(".")[0] for rrset in reply.answer] == ["alias", "alias2", "alias3", "target"]
    assert addresses(reply) == ["198.51.100.83"]


def test_odd_labels_reach_the_local_resolver_byte_for_byte(daemon, scripted_resolver, service):
    resolver = scripted_resolver(lambda asked: asked_reply(asked, "192.0.2.1"))
    daemon(service("aes"), {"fallback": {"servers": [resolver.endpoint]}, "listen": {"addresses": ["127.0.0.1:2053"]}},
           port=2053)
    name = dns.name.Name([b"\x00\xff,\x80", b"a.b", b"\\;|", b"example", b"com", b""])
    assert addresses(ask(name, port=2053)) == ["192.0.2.1"]
    assert [asked.name.labels for asked in resolver.questions] == [name.labels]


def asked_reply(asked, address):
    reply = dns.message.make_response(asked.message)
    reply.answer.append(dns.rrset.from_text(asked.name, 60, "IN", "A", address))
    return reply


def test_what_is_not_forwarded(world, transport):
    before = len(world.unbound.asked())
    for message, expected in (
            (dns.message.make_query("version.bind", "TXT", "CH"), dns.rcode.REFUSED),
            (dns.message.make_query("www.example.com", "A", "ANY"), dns.rcode.REFUSED),
            (dns.message.make_query("example.com", "IXFR"), dns.rcode.REFUSED),
            (dns.message.make_query("example.com", "AXFR"), dns.rcode.REFUSED)):
        assert header_rcode(raw(message.to_wire(), transport)) == expected, message
    for opcode in (dns.opcode.STATUS, dns.opcode.NOTIFY, dns.opcode.UPDATE, dns.opcode.IQUERY, 6, 15):
        wire = bytearray(dns.message.make_query("example.com", "SOA").to_wire())
        wire[2] = (wire[2] & 0x87) | opcode << 3
        assert header_rcode(raw(bytes(wire), transport)) == dns.rcode.NOTIMP, opcode
    assert len(world.unbound.asked()) == before


def raw(wire, transport):
    """The octets that the daemon sends in reply to these octets."""
    if transport == "udp":
        return exchange(wire)
    with Stream() as stream:
        stream.send(wire)
        return stream.receive_bytes()


def header_rcode(answer):
    return answer[3] & 15


QUESTION = "03777777 07657861 6d706c65 03636f6d 00 0001 0001"


@pytest.mark.parametrize(("what", "wire"), [
    ("no question", "1234 0100 0000 0000 0000 0000"),
    ("two questions", "1234 0100 0002 0000 0000 0000" + QUESTION * 2),
    ("an answer in the query", "1234 0100 0001 0001 0000 0000" + QUESTION + "c00c 0001 0001 00000000 0004 01020304"),
    ("name cut short", "1234 0100 0001 0000 0000 0000 03777777 07657861"),
    ("question cut short", "1234 0100 0001 0000 0000 0000" + QUESTION[:-4]),
    ("pointer to itself", "1234 0100 0001 0000 0000 0000 c00c 0001 0001"),
    ("reserved label type", "1234 0100 0001 0000 0000 0000 80 00 0001 0001"),
    ("name of 256 octets", "1234 0100 0001 0000 0000 0000" + ("3f" + "61" * 63) * 4 + "00 0001 0001"),
    ("bytes after the question", "1234 0100 0001 0000 0000 0000" + QUESTION + "ff"),
    ("two OPT", "1234 0100 0001 0000 0000 0002" + QUESTION + "00 0029 04d0 00000000 0000" * 2),
    ("OPT with a name", "1234 0100 0001 0000 0000 0001" + QUESTION + "016100 0029 04d0 00000000 0000"),
    ("OPT option runs over", "1234 0100 0001 0000 0000 0001" + QUESTION + "00 0029 04d0 00000000 0004 000a 0008"),
])
def test_a_question_that_cannot_be_read_gets_formerr(world, transport, what, wire):
    wire = bytes.fromhex(wire.replace(" ", ""))
    answer = raw(wire, transport)
    assert answer is not None, what
    assert answer[:2] == wire[:2] and answer[2] & 0x80 and answer[3] & 15 == dns.rcode.FORMERR


@pytest.mark.parametrize(("what", "wire"), [
    ("empty", ""), ("one byte", "12"), ("eleven bytes", "1234 0100 0001 0000 0000 00"),
    ("an answer", "1234 8180 0001 0000 0000 0000" + QUESTION),
])
def test_what_is_no_question_at_all_gets_no_answer(world, what, wire):
    """A valid question follows on the same socket: the first reply must be its reply."""
    sane = dns.message.make_query("localhost", "A")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.settimeout(20)
        channel.connect(("127.0.0.1", 53))
        channel.send(bytes.fromhex(wire.replace(" ", "")))
        channel.send(sane.to_wire())
        assert dns.message.from_wire(channel.recv(4096)).id == sane.id


def test_edns_version(world, transport):
    message = dns.message.make_query("www.example.com", "A", use_edns=0, payload=1232)
    message.ednsflags |= 1 << 16
    assert message.edns == 1
    reply = ask(None, transport=transport, message=message)
    assert reply.rcode() == dns.rcode.BADVERS
    assert reply.edns == 0 and not reply.answer


def test_who_may_not_ask_is_refused(daemon):
    """A client that may not ask gets REFUSED over UDP; over TCP its connection is closed before a question is read."""
    daemon(settings={"listen": {"addresses": ["127.0.0.1:2053"], "allow": ["127.0.0.1/32", "127.0.0.8/30"]}}, port=2053)
    for source in ("127.0.0.5", "127.0.0.12"):
        refused = ask("only-local.example.com", source=source, port=2053)
        assert refused.rcode() == dns.rcode.REFUSED and not refused.answer, source
        with pytest.raises((ConnectionError, EOFError)):
            ask("only-local.example.com", transport="tcp", source=source, port=2053)
    for transport in ("udp", "tcp"):
        for source in ("127.0.0.1", "127.0.0.11"):
            assert ask("only-local.example.com", transport=transport, source=source, port=2053).answer, (transport, source)


FAILURES = [
    Fault("status", 500), Fault("status", 429), Fault("status", 401), Fault("status", 302), Fault("silence"),
    Fault("close-mid-body"), Fault("garbage"), Fault("wrong-name"), Fault("endless"), Fault("reset"),
]


@pytest.mark.parametrize(("encryption", "fault"), [
    pytest.param(encryption, fault, id=f"{encryption}-{fault.kind}{fault.value or ''}")
    for encryption in ("aes", "https") for fault in FAILURES
    if encryption == "aes" or fault.kind in ("silence", "reset", "close-mid-body")  # only faults in which TLS plays a part
])
def test_a_service_that_fails(daemon, service, encryption, fault):
    """The local resolver answers; where it is not allowed or absent, the client gets SERVFAIL with the reason as an EDE."""
    failing = service(encryption)
    failing.fault = fault
    timeout = {"httpdns": {"timeout": 150}}
    daemon(failing, timeout | {"listen": {"addresses": ["127.0.0.1:2053"]}}, port=2053)
    daemon(failing, {"httpdns": {"timeout": 150, "httpOnly": True}, "listen": {"addresses": ["127.0.0.1:2054"]}},
           port=2054)
    daemon(failing, timeout | {"listen": {"addresses": ["127.0.0.1:2055"]},
                               "fallback": {"servers": ["127.0.0.9"], "timeout": 150}}, port=2055)
    assert addresses(ask("www.example.com", port=2053)) == ["198.51.100.80"]
    for port in (2054, 2055):
        reply = ask("www.example.com", port=port, edns=True)
        assert reply.rcode() == dns.rcode.SERVFAIL and not reply.answer
        assert extended_errors(reply) in ([22], [23]), port
        plain = ask("www.example.com", "AAAA", port=port)
        assert plain.rcode() == dns.rcode.SERVFAIL and not has_opt(plain)


@pytest.mark.parametrize("kind", ["chunked", "until-close", "byte-by-byte", "connection-close"])
def test_every_way_to_frame_an_answer(daemon, service, kind):
    framing = service("aes")
    framing.fault = Fault(kind)
    daemon(framing, {"httpdns": {"httpOnly": True}, "listen": {"addresses": ["127.0.0.1:2053"]}}, port=2053)
    for i in range(3):
        assert addresses(ask(f"n{i}.example.com", port=2053)) == [f"203.0.113.{i}"]
