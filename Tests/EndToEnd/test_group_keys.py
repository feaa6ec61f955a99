"""The keys of a group: its trust, its queries, its time-outs, and the forms of its servers."""

import base64
import itertools
import socket
import struct
import time

import dns.edns
import dns.flags
import dns.rcode
import pytest

from dns_client import addresses, ask, extended_errors, reasons
from encrypted import FramedServer, address_reply
from resolvers import reply_to
from waiting import eventually, waited_since

PORT = 2053
OURS = ["192.0.2.7"]
NAME = "dns.example.net"


@pytest.fixture
def group(daemon, authority):
    """A daemon with the group `office`, which takes corp.example; further groups are given by name."""
    def start(*servers, variables=None, others=None, **keys):
        office = {"servers": [getattr(one, "url", one) for one in servers], "domains": ["corp.example"],
                  "caFile": str(authority.file), "timeout": 20000} | keys
        whole = {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "fallback": {"servers": ["127.0.0.99"], "hosts": ""},
                 "upstreams.office": office} | (others or {})
        return daemon(whole=whole, port=PORT, variables=variables)
    return start


def check_refused(name="a.corp.example"):
    reply = ask(name, port=PORT, edns=True)
    assert reply.rcode() == dns.rcode.SERVFAIL and extended_errors(reply) in ([22], [23]), reply
    return reasons(reply)


# -- trust --

def test_two_groups_with_one_server_and_trust_of_their_own(group, encrypted_resolver, other_authority):
    """Groups with the same server but other authorities share neither a connection nor a TLS session."""
    server = encrypted_resolver("tls")
    group(server, others={"upstreams.strict": {"servers": [server.url], "domains": ["strict.example"],
                                               "caFile": str(other_authority.file)}})
    for number in range(3):
        assert addresses(ask(f"n{number}.corp.example", port=PORT)) == OURS
        assert "unknown authority" in check_refused(f"n{number}.strict.example")
    assert {asked.name.to_text()[3:] for asked in server.questions} == {"corp.example."}


def test_a_pin_of_the_authority(group, encrypted_resolver, authority):
    group(encrypted_resolver("tls"), pins=[authority.pin])
    assert addresses(ask("a.corp.example", port=PORT)) == OURS


def test_the_systems_store_without_a_file(group, encrypted_resolver, authority):
    server = encrypted_resolver("https")
    group(server, caFile="", variables={"SSL_CERT_FILE": str(authority.file), "SSL_CERT_DIR": "/nonexistent"})
    assert addresses(ask("a.corp.example", port=PORT)) == OURS


def test_a_system_store_that_comes_later(group, encrypted_resolver, authority, tmp_path):
    """A system store that appears later, as when its package is replaced, is used without a restart."""
    file = tmp_path / "authorities.pem"
    group(encrypted_resolver("tls"), caFile="", variables={"SSL_CERT_FILE": str(file), "SSL_CERT_DIR": "/nonexistent"})
    assert "unknown authority" in check_refused("n0.corp.example")
    file.write_bytes(authority.file.read_bytes())
    names = (f"n{number}.corp.example" for number in itertools.count(1))
    eventually(lambda: addresses(ask(next(names), port=PORT)) == OURS, "the authority is trusted")


def test_the_trust_of_httpdns_is_no_groups(group, encrypted_resolver, authority):
    """`[tls]` applies to HTTPDNS alone."""
    server = encrypted_resolver("tls")
    nothing = {"SSL_CERT_FILE": "/nonexistent", "SSL_CERT_DIR": "/nonexistent"}
    group(server, caFile="", others={"tls": {"caFile": str(authority.file)}}, variables=nothing)
    assert "unknown authority" in check_refused()


def test_a_certificate_of_the_clients_own(group, encrypted_resolver, authority, tmp_path):
    tls = authority.server(addresses=["127.0.0.6"], clients=authority)
    server = encrypted_resolver("tls", tls=tls)
    (tmp_path / "password").write_text("secret\n")
    group(server, clientCertificate=str(authority.client("laptop", "secret")),
          clientCertificatePasswordFile=str(tmp_path / "password"))
    assert addresses(ask("a.corp.example", port=PORT)) == OURS


def test_an_address_in_the_certificate_is_no_name(group, encrypted_resolver, authority):
    """A certificate with an address alone serves a group that dials the address, but not a group that expects a name."""
    server = encrypted_resolver("tls", tls=authority.server(addresses=["127.0.0.6"]))
    group(f"{server.url}#{NAME}", others={"upstreams.bare": {
        "servers": [server.url], "domains": ["bare.example"], "caFile": str(authority.file)}})
    assert "another name" in check_refused() and server.questions == []
    assert addresses(ask("a.bare.example", port=PORT)) == OURS


def test_a_name_that_is_not_validated(group, encrypted_resolver, authority):
    server = encrypted_resolver("tls", tls=authority.server(names=["other.example.net"]))
    group(server, validateDomain=False)
    assert addresses(ask("a.corp.example", port=PORT)) == OURS


# -- what is sent, what is believed --

@pytest.mark.parametrize(("route", "expected"), [("203.0.113.77", ("203.0.113.0", 24)),
                                                 ("2001:db8:1:2345::7", ("2001:db8:1:2300::", 56)), ("", None)])
@pytest.mark.parametrize("protocol", ["tls", "https"])
def test_whose_answers_are_wanted(group, encrypted_resolver, protocol, route, expected):
    """ECS of /24 and /56 (RFC 7871) has the address of `routeIp` alone; a client's own subnet is not sent."""
    server = encrypted_resolver(protocol)
    group(server, routeIp=route)
    ask("a.corp.example", port=PORT, edns=True, options=[dns.edns.ECSOption("198.51.100.1", 32)])
    (asked,) = server.questions
    found = [(option.address, option.srclen) for option in asked.message.options if option.otype == dns.edns.ECS]
    assert found == ([expected] if expected else [])
    assert len(asked.wire) % 128 == 0


@pytest.mark.parametrize("trusted", [False, True])
def test_whether_an_answer_was_validated(daemon, network, authority, trusted):
    """The AD bit of a server beyond loopback is believed only with `trustAD`."""
    here, there = network(), network()
    here.link(there)

    def validated(asked, connection):
        reply = address_reply(asked)
        reply.flags |= dns.flags.AD
        return reply
    with there:
        server = FramedServer(validated, authority.server(addresses=["10.77.0.2"]), address="10.77.0.2")
    try:
        with here:
            daemon(whole={"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "upstreams.office": {
                "servers": [server.url], "domains": ["."], "caFile": str(authority.file), "trustAD": trusted},
                "fallback": {"servers": ["127.0.0.99"], "hosts": ""}}, port=PORT)
            reply = ask("a.corp.example", port=PORT, edns=True, want_dnssec=True)
        assert addresses(reply) == OURS and bool(reply.flags & dns.flags.AD) == trusted
    finally:
        server.stop()


# -- time --

def test_the_one_good_address_of_four(group, encrypted_resolver, authority):
    """Of the addresses in `#ADDRESS+ADDRESS`, three are silent, have the wrong certificate, or refuse; the fourth answers."""
    good = encrypted_resolver("tls", tls=authority.server(names=[NAME]), address="127.0.0.7")
    bad = encrypted_resolver("tls", tls=authority.server(names=["other.example.net"]), address="127.0.0.8",
                             port=good.port)
    with socket.create_server(("127.0.0.9", good.port)):  # the kernel accepts the connection, and no program answers
        group(f"tls://{NAME}:{good.port}#127.0.0.9+{bad.address}+127.0.0.98+{good.address}")
        begun = time.monotonic()
        assert addresses(ask("a.corp.example", port=PORT)) == OURS
        assert waited_since(begun) < 3, "they are dialled beside each other"
    assert bad.questions == []


# -- how servers are written --

def lengths(*parts):
    return b"".join(bytes([len(part)]) + part for part in parts)


def stamp(kind, *parts):
    octets = bytes([kind]) + struct.pack("<Q", 0) + lengths(*parts)
    return "sdns://" + base64.urlsafe_b64encode(octets).decode().rstrip("=")


@pytest.mark.parametrize("protocol", ["plain", "https", "tls"])
def test_a_server_as_a_stamp(group, encrypted_resolver, scripted_resolver, authority, protocol):
    if protocol == "plain":
        chosen = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.7"))
        text = stamp(0, chosen.endpoint.encode())
    else:
        chosen = encrypted_resolver(protocol, tls=authority.server(names=[NAME]))
        host = f"{NAME}:{chosen.port}".encode()
        parts = [f"{chosen.address}:{chosen.port}".encode(), b"", host]
        text = stamp(2, *parts, b"/dns-query") if protocol == "https" else stamp(3, *parts)
    group(text)
    assert addresses(ask("a.corp.example", port=PORT)) == OURS
    assert chosen.questions


def test_a_group_from_the_environment_alone(daemon, encrypted_resolver, authority):
    server = encrypted_resolver("tls")
    daemon(whole={"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "fallback": {"servers": ["127.0.0.99"], "hosts": ""}},
           port=PORT, variables={"HTTPDNSD_UPSTREAMS_OFFICE_SERVERS": f"{server.url},tls://127.0.0.99",
                                 "HTTPDNSD_UPSTREAMS_OFFICE_DOMAINS": "corp.example,-",
                                 "HTTPDNSD_UPSTREAMS_OFFICE_CAFILE": str(authority.file)})
    assert addresses(ask("a.corp.example", port=PORT)) == OURS
    assert addresses(ask("printer", port=PORT)) == OURS
