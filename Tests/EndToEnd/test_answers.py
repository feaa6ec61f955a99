"""What a client gets back: the table of answers row by row, over UDP and over TCP."""

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

NEGATIVE_TTL = 17
STRICT = 1053  # the port of the daemon that has httpOnly


@pytest.fixture(scope="module")
def world(module_daemon, service, unbound):
    """Two daemons on one service: one that may ask the local resolver, one that may not."""
    https, other = service("https"), service("https")
    module_daemon(https, {"cache": {"negativeTTL": NEGATIVE_TTL}})
    strict = {"listen": {"addresses": [f"127.0.0.1:{STRICT}"]}, "cache": {"negativeTTL": NEGATIVE_TTL},
              "httpdns": {"httpOnly": True}}
    module_daemon(other, strict, port=STRICT)
    return SimpleNamespace(service=https, strict_service=other, unbound=unbound)


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


def test_no_record_of_one_family_is_an_answer(world, transport):
    """A name the service knows is not asked of anybody else for the family it has no address of."""
    before = len(world.unbound.asked())
    assert addresses(ask("only-v4.example.com", transport=transport)) == ["203.0.113.40"]
    reply = ask("only-v4.example.com", "AAAA", transport=transport)
    assert reply.rcode() == dns.rcode.NOERROR and not reply.answer
    synthetic_soa(reply)
    assert len(world.unbound.asked()) == before


@pytest.mark.parametrize(("label", "fault"), [
    ("empty", Fault("empty-body")), ("empty-text", Fault("text", "")),
    ("zero", Fault("text", "shape-zero.example.com.:0")),
    ("zeros", Fault("text", "shape-zeros.example.com.:0-0|203.0.113.7")),
    ("zero-ttl", Fault("text", "shape-zero-ttl.example.com.:0,60-0,60|203.0.113.7")),
    ("bare", Fault("text", "shape-bare.example.com|203.0.113.7")),
])
def test_every_shape_of_no_record(world, label, fault):
    world.strict_service.fault = fault
    try:
        reply = ask(f"shape-{label}.example.com", port=STRICT)
    finally:
        world.strict_service.fault = None
    assert reply.rcode() == dns.rcode.NOERROR and not reply.answer
    assert synthetic_soa(reply)[1] == NEGATIVE_TTL


def test_no_record_with_http_only(world, transport):
    reply = ask("only-local.example.com", transport=transport, port=STRICT)
    assert reply.rcode() == dns.rcode.NOERROR and not reply.answer
    ttl, minimum = synthetic_soa(reply)
    assert minimum == NEGATIVE_TTL and 0 < ttl <= NEGATIVE_TTL
    assert addresses(ask("only-v4.example.com", transport=transport, port=STRICT)) == ["203.0.113.40"]
    assert synthetic_soa(ask("only-v4.example.com", "AAAA", transport=transport, port=STRICT))[1] == NEGATIVE_TTL


@pytest.mark.parametrize("kind", ["HTTPS", "SVCB"])
def test_service_bindings_of_a_name_that_goes_to_the_service(world, transport, kind):
    before = len(world.unbound.asked())
    for port in (53, STRICT):
        reply = ask("www.example.com", kind, transport=transport, port=port)
        assert reply.rcode() == dns.rcode.NOERROR and not reply.answer
        synthetic_soa(reply)
    assert len(world.unbound.asked()) == before


def test_service_bindings_of_a_name_the_service_does_not_know(world, transport):
    assert ask("only-local.example.com", transport=transport).answer
    reply = ask("only-local.example.com", "HTTPS", transport=transport)
    assert reply.answer and "198.51.100.81" in reply.answer[0].to_text()


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


def test_other_types_with_http_only(world, transport):
    before = len(world.unbound.asked())
    for kind in ("MX", "TXT", "SRV", "PTR", "SOA", "NAPTR", "TYPE65280"):
        reply = ask("example.com", kind, transport=transport, port=STRICT, edns=True)
        assert reply.rcode() == dns.rcode.NOERROR and not reply.answer, kind
        assert synthetic_soa(reply)[1] == NEGATIVE_TTL
        assert extended_errors(reply) == [21]
    assert len(world.unbound.asked()) == before


def test_an_alias_chain_of_the_local_resolver_arrives_whole(world, transport):
    reply = ask("alias.example.com", transport=transport)
    assert [rrset.name.to_text().split(".")[0] for rrset in reply.answer] == ["alias", "alias2", "alias3", "target"]
    assert addresses(reply) == ["198.51.100.83"]


@pytest.mark.parametrize("port", [53, STRICT])
def test_special_names_are_answered_here(world, transport, port):
    for name in ("localhost", "LocalHost", "some.localhost"):
        assert addresses(ask(name, transport=transport, port=port)) == ["127.0.0.1"]
        assert addresses(ask(name, "AAAA", transport=transport, port=port), "AAAA") == ["::1"]
    for name in ("invalid", "bad.invalid", "hidden.onion", "onion", "use-application-dns.net"):
        assert ask(name, transport=transport, port=port).rcode() == dns.rcode.NXDOMAIN, name
    for name, kind in (("_dns.resolver.arpa", "SVCB"), ("_dns.resolver.arpa", "A"), ("x._dns.resolver.arpa", "SVCB")):
        reply = ask(name, kind, transport=transport, port=port)
        assert reply.rcode() == dns.rcode.NOERROR and not reply.answer, name


@pytest.mark.parametrize(("name", "kind", "expected"), [
    ("printer", "A", "198.51.100.90"), ("scanner.local", "A", "198.51.100.91"), ("unit.test", "A", "198.51.100.92"),
    ("nas.home.arpa", "A", "198.51.100.93"), ("box.lan", "A", "198.51.100.94"), ("db.internal", "A", "198.51.100.95"),
    ("ipv4only.arpa", "A", "192.0.0.170"), ("1.2.168.192.in-addr.arpa", "PTR", "box.lan."),
])
def test_private_names_go_to_the_local_resolver_only(world, transport, name, kind, expected):
    reply = ask(name, kind, transport=transport)
    assert [rdata.to_text() for rdata in reply.answer[0]] == [expected]
    assert name not in world.service.names


def test_the_address_of_a_reverse_name_is_not_asked_of_the_service(world, transport):
    ask("9.2.168.192.in-addr.arpa", "A", transport=transport)
    ask("1.0.0.127.in-addr.arpa", "AAAA", transport=transport)
    assert not [name for name in world.service.names if name.endswith("in-addr.arpa")]


@pytest.mark.parametrize(("name", "expected"), [
    ("a\\,b.example.com", "198.51.100.84"), ("a\\;b.example.com", "198.51.100.85"),
    ("a|b.example.com", "198.51.100.86"), ("a\\032b.example.com", "198.51.100.87"),
])
def test_labels_that_would_forge_a_request_go_to_the_local_resolver(world, transport, name, expected):
    assert addresses(ask(name, transport=transport)) == [expected]
    assert not [asked for asked in world.service.names if set(asked) & set(",;| ")]
    strict = ask(name, transport=transport, port=STRICT)
    assert strict.rcode() != dns.rcode.NXDOMAIN
    assert not [asked for asked in world.strict_service.names if set(asked) & set(",;| ")]


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


def test_any_gets_one_hinfo(world, transport):
    reply = ask("www.example.com", "ANY", transport=transport)
    assert reply.rcode() == dns.rcode.NOERROR
    assert [(rrset.rdtype, len(rrset)) for rrset in reply.answer] == [(dns.rdatatype.HINFO, 1)]
    assert reply.answer[0][0].cpu == b"RFC8482"


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
    """The bytes that answer these bytes."""
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
    """Silence is shown by asking something else on the same socket: the first answer is to that."""
    sane = dns.message.make_query("localhost", "A")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.settimeout(5)
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
    daemon(settings={"listen": {"addresses": ["127.0.0.1:2053"], "allow": ["127.0.0.1/32", "127.0.0.8/30"]}}, port=2053)
    for transport in ("udp", "tcp"):
        for source, expected in (("127.0.0.5", dns.rcode.REFUSED), ("127.0.0.12", dns.rcode.REFUSED),
                                 ("127.0.0.1", dns.rcode.NOERROR), ("127.0.0.11", dns.rcode.NOERROR)):
            reply = ask("only-local.example.com", transport=transport, source=source, port=2053)
            assert reply.rcode() == expected, (transport, source)
            assert bool(reply.answer) == (expected == dns.rcode.NOERROR)


FAILURES = [
    Fault("status", 500), Fault("status", 429), Fault("status", 401), Fault("status", 302), Fault("silence"),
    Fault("close-mid-body"), Fault("garbage"), Fault("wrong-name"), Fault("endless"), Fault("reset"),
]


@pytest.mark.parametrize(("encryption", "fault"), [
    pytest.param(encryption, fault, id=f"{encryption}-{fault.kind}{fault.value or ''}")
    for encryption in ("aes", "des", "https") for fault in FAILURES
    if (encryption, fault.kind) != ("https", "garbage")  # plain text that is no address may as well be "no record"
])
def test_a_service_that_fails(daemon, service, encryption, fault):
    """The local resolver answers; where it may not be asked, or is not there, SERVFAIL says why in an EDE."""
    failing = service(encryption)
    failing.fault = fault
    timeout = {"httpdns": {"timeout": 150}}
    daemon(failing, timeout | {"listen": {"addresses": ["127.0.0.1:2053"]}}, port=2053)
    daemon(failing, {"httpdns": {"timeout": 150, "httpOnly": True}, "listen": {"addresses": ["127.0.0.1:2054"]}},
           port=2054)
    daemon(failing, timeout | {"listen": {"addresses": ["127.0.0.1:2055"]},
                               "fallback": {"servers": ["127.0.0.9"], "timeout": 150}}, port=2055)
    assert addresses(ask("www.example.com", port=2053, timeout=4)) == ["198.51.100.80"]
    for port in (2054, 2055):
        reply = ask("www.example.com", port=port, edns=True, timeout=4)
        assert reply.rcode() == dns.rcode.SERVFAIL and not reply.answer
        assert extended_errors(reply) in ([22], [23]), port
        plain = ask("www.example.com", "AAAA", port=port, timeout=4)
        assert plain.rcode() == dns.rcode.SERVFAIL and not has_opt(plain)


def test_a_failure_is_not_remembered(daemon, service):
    recovering = service("aes")
    recovering.fault = Fault("status", 500)
    daemon(recovering, {"httpdns": {"httpOnly": True}, "listen": {"addresses": ["127.0.0.1:2053"]}}, port=2053)
    assert ask("www.example.com", port=2053).rcode() == dns.rcode.SERVFAIL
    recovering.fault = None
    assert addresses(ask("www.example.com", port=2053))[0] == "203.0.113.20"


@pytest.mark.parametrize("kind", ["chunked", "until-close", "byte-by-byte", "connection-close"])
@pytest.mark.parametrize("encryption", ["aes", "https"])
def test_every_way_to_frame_an_answer(daemon, service, encryption, kind):
    framing = service(encryption)
    framing.fault = Fault(kind)
    daemon(framing, {"httpdns": {"httpOnly": True}, "listen": {"addresses": ["127.0.0.1:2053"]}}, port=2053)
    for i in range(3):
        assert addresses(ask(f"n{i}.example.com", port=2053)) == [f"203.0.113.{i}"]


def test_the_domains_that_go_to_the_service(daemon, service):
    chosen = service("aes")
    settings = {"domains": {"intercept": ["example.com", "example.net"], "bypass": ["www.example.com", "lan"]},
                "listen": {"addresses": ["127.0.0.1:2053"]}}
    daemon(chosen, settings, port=2053)
    assert addresses(ask("www.example.com", port=2053)) == ["198.51.100.80"]
    assert addresses(ask("n1.example.com", port=2053)) == ["203.0.113.1"]
    ask("notexample.com", port=2053)
    ask("a.www.example.com", port=2053)
    ask("deep.under.example.net", port=2053)
    assert set(chosen.names) == {"n1.example.com", "deep.under.example.net"}
    assert "198.51.100.80" in ask("www.example.com", "HTTPS", port=2053).answer[0].to_text()


def test_without_a_service_the_local_resolver_answers(daemon):
    daemon(None, {"listen": {"addresses": ["127.0.0.1:2053"]}}, port=2053)
    assert addresses(ask("www.example.com", port=2053)) == ["198.51.100.80"]
    assert ask("missing.example.com", port=2053).rcode() == dns.rcode.NXDOMAIN
