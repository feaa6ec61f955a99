"""Local resolvers that are asked by TLS and HTTPS: they answer as they do in the clear, and nothing replaces them."""

import random
import struct
import time

import dns.flags
import dns.rcode
import dns.rdatatype
import pytest

import certificates
import test_comparison as comparison
from dns_client import Stream, addresses, ask, extended_errors, reasons
from networks import PlainDNS
from resolvers import Unbound

PORT = 2053
ADDRESS = "127.0.0.24"
NAME = "dns.example.net"
URLS = {"tls": f"tls://{ADDRESS}", "https": f"https://{ADDRESS}/dns-query", "tcp": f"tcp://{ADDRESS}"}


def listening(servers, authority=None, **fallback):
    trust = {} if authority is None else {"caFile": str(authority.file)}
    return {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "fallback": {"servers": servers} | trust | fallback}


@pytest.fixture(scope="module")
def encrypted_unbound(tmp_path_factory, authority):
    resolver = Unbound(tmp_path_factory.mktemp("unbound"), ADDRESS, authority.server_file(addresses=[ADDRESS],
                                                                                         names=[NAME]))
    yield resolver
    resolver.stop()


@pytest.mark.parametrize("protocol", URLS)
def test_a_real_resolver_is_asked_and_nothing_in_the_clear(daemon, encrypted_unbound, authority, protocol):
    """Each kind of answer: addresses, text, aliases, a large one, no such record, no such name."""
    daemon(None, listening([URLS[protocol]], authority), port=PORT)
    with PlainDNS() as plain:
        assert addresses(ask("www.example.com", port=PORT)) == ["198.51.100.80"]
        assert addresses(ask("www.example.com", "AAAA", port=PORT), "AAAA") == ["2001:db8:2::80"]
        assert ask("example.com", "TXT", port=PORT).answer[0][0].strings == (b"v=spf1 -all", b"second string")
        assert len(ask("example.com", "MX", port=PORT).answer[0]) == 2
        assert [rrset.rdtype for rrset in ask("alias.example.com", port=PORT).answer] == [dns.rdatatype.CNAME] * 3 + [
            dns.rdatatype.A]
        no_data = ask("nodata.example.com", port=PORT)
        assert no_data.rcode() == dns.rcode.NOERROR and not no_data.answer and no_data.authority
        assert ask("nobody.example.com", port=PORT).rcode() == dns.rcode.NXDOMAIN
        cut = ask("big.example.com", "TXT", port=PORT, edns=True)
        assert cut.flags & dns.flags.TC and not cut.answer
        assert len(ask("big.example.com", "TXT", port=PORT, transport="tcp").answer[0]) == 30
        assert bool(plain.packets) == (protocol == "tcp")


def test_a_name_for_the_certificate_of_an_address(daemon, encrypted_unbound, authority):
    daemon(None, listening([f"tls://{ADDRESS}#{NAME}", f"https://{NAME}/dns-query#{ADDRESS}"], authority), port=PORT)
    assert addresses(ask("www.example.com", port=PORT)) == ["198.51.100.80"]


def over_stream(questions, server, port):
    """The answer to each question over one connection, in order."""
    replies = {}
    with Stream(server=server, port=port, timeout=10) as stream:
        for begin in range(0, len(questions), 50):
            batch = range(begin, min(begin + 50, len(questions)))
            for number in batch:
                stream.send(struct.pack("!H", number) + questions[number])
            for _ in batch:
                wire = stream.receive_bytes()
                replies[wire[0] << 8 | wire[1]] = wire
    return [replies[number] for number in range(len(questions))]


@pytest.fixture(scope="module")
def zones(tmp_path_factory, authority):
    """A validating unbound, and questions for some hundred names, signed ones and wrongly signed ones among them."""
    chance = random.Random(7)
    plain, signed, broken = (comparison.Zone(f"{name}.example.") for name in ("compare", "signed", "broken"))
    names = [(name, 2) for name in comparison.fill(plain, 200, chance)]
    names += [(name, 5) for name in comparison.fill(signed, 90, chance)]
    names += [(name, 5) for name in comparison.fill(broken, 20, chance)]
    other = comparison.Zone("broken.example.")
    for zone in (signed, broken, other):
        zone.sign()
    resolver = comparison.Validator(
        tmp_path_factory.mktemp("validator"), [plain, signed, broken],
        [f"{zone.origin} DNSKEY {zone.key.to_text()}" for zone in (signed, other)],
        authority.server_file(addresses=[comparison.ADDRESS]))
    questions = []
    for number, (name, variants) in enumerate(names):
        kinds = comparison.KINDS + (comparison.OTHER_KINDS if number % 4 == 0 else [])
        for kind in kinds:
            flags, edns = comparison.VARIANTS[number % variants if variants == 5 else 0]
            opt = b"" if edns is None else b"\0" + struct.pack("!HHIH", 41, 1232, edns, 0)
            questions.append(struct.pack("!5H", flags, 1, 0, 0, bool(opt)) + name.to_wire()
                             + struct.pack("!HH", dns.rdatatype.from_text(kind), 1) + opt)
    yield questions
    resolver.stop()


@pytest.mark.parametrize("protocol", ["tls", "https"])
def test_no_answer_is_different(daemon, zones, authority, protocol):
    """What the resolver says directly and what it says through the daemon: the same but for TTLs and spelling."""
    url = URLS[protocol].replace(ADDRESS, comparison.ADDRESS)
    daemon(None, listening([url], authority, timeout=5000), port=PORT)
    over_stream(zones, comparison.ADDRESS, 53)  # so that unbound has made up its mind
    direct = over_stream(zones, comparison.ADDRESS, 53)
    for _ in ("asked anew", "cached"):
        through = over_stream(zones, "127.0.0.1", PORT)
        different, again = [], 0
        for question, one, other in zip(zones, direct, through, strict=True):
            if not comparison.same(one, other):  # unbound gives one reason for a SERVFAIL today and another tomorrow
                again += 1
                one, other = (comparison.over_tcp(question, *where)
                              for where in ((comparison.ADDRESS, 53), ("127.0.0.1", PORT)))
                if not comparison.same(one, other):
                    different.append((question, one, other))
        assert not different, f"{len(different)} of {len(zones)} differ:\n{comparison.shown(different)}"
        assert again < 20 and len(zones) > 3000


# What is wrong with the server, and what a client is told of it.
BAD = {
    "another name": (lambda w: w.server(names=["other.example.net"]), {}, "another name"),
    "expired": (lambda w: w.server(addresses=["127.0.0.6"], since=-20, until=-1), {}, "expired"),
    "wrong pin": (lambda w: w.server(addresses=["127.0.0.6"]), {"pins": [certificates.pin(certificates.new_key())]},
                  "pin"),
    "self-signed": (None, {}, "self-signed|unknown authority"),
}


@pytest.mark.parametrize("protocol", ["tls", "https"])
@pytest.mark.parametrize("case", BAD)
def test_a_server_that_is_not_the_right_one_is_never_replaced_in_the_clear(
        daemon, encrypted_resolver, authority, tmp_path, protocol, case):
    make, keys, reason = BAD[case]
    tls = make(authority) if make else certificates.self_signed(tmp_path, addresses=["127.0.0.6"])[0]
    server = encrypted_resolver(protocol, tls=tls)
    running = daemon(None, listening([server.url], authority, **keys), port=PORT)
    with PlainDNS() as plain:
        for name in ("one.example.net", "two.example.net"):
            begun = time.monotonic()
            reply = ask(name, edns=True, port=PORT)
            assert time.monotonic() - begun < 4
            assert reply.rcode() == dns.rcode.SERVFAIL and extended_errors(reply) in ([22], [23])
            assert reasons(reply).startswith("fallback: ") and "127.0.0.6" in reasons(reply), reply
            assert any(word in reasons(reply) for word in reason.split("|")), reply
        assert plain.packets == 0
    assert server.questions == []
    assert running.log_lines(reason)


@pytest.mark.parametrize("protocol", ["tls", "https", "tcp"])
@pytest.mark.parametrize("fault", ["refused", "silent"])
def test_a_dead_server_is_never_replaced_in_the_clear(daemon, encrypted_resolver, authority, protocol, fault):
    server = encrypted_resolver(protocol, lambda asked, connection: None)
    if fault == "refused":
        server.away()
    daemon(None, listening([server.url], authority), port=PORT)
    with PlainDNS() as plain:
        begun = time.monotonic()
        reply = ask("one.example.net", edns=True, port=PORT)
        assert time.monotonic() - begun < 4
        assert reply.rcode() == dns.rcode.SERVFAIL and extended_errors(reply) in ([22], [23])
        assert reasons(reply).startswith("fallback: ") and "127.0.0.6" in reasons(reply), reply
        assert plain.packets == 0


def test_names_that_httpdns_does_not_answer_are_encrypted_too(daemon, service, encrypted_unbound, authority):
    """HTTPDNS has no record, or is away: the local resolver is asked by TLS."""
    chosen = service("aes")
    daemon(chosen, listening([URLS["tls"]], authority), port=PORT)
    with PlainDNS() as plain:
        assert addresses(ask("www.example.com", port=PORT))[0] == "203.0.113.20"
        assert addresses(ask("only-local.example.com", port=PORT)) == ["198.51.100.81"]
        assert len(ask("example.com", "MX", port=PORT).answer[0]) == 2
        chosen.stop()
        assert addresses(ask("alias.example.com", port=PORT)) == ["198.51.100.83"]
        assert plain.packets == 0


@pytest.mark.parametrize("protocol", ["tls", "https"])
def test_the_next_server_when_one_fails(daemon, encrypted_resolver, authority, protocol):
    bad = encrypted_resolver(protocol, tls=authority.server(names=["other.example.net"]))
    good = encrypted_resolver(protocol, address="127.0.0.7")
    daemon(None, listening([bad.url, good.url], authority), port=PORT)
    with PlainDNS() as plain:
        for number in range(3):
            begun = time.monotonic()
            assert addresses(ask(f"n{number}.example.net", port=PORT)) == ["192.0.2.7"]
            assert time.monotonic() - begun < 1
        assert plain.packets == 0
