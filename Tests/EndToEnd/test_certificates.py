"""Whom the daemon believes to be its HTTPS service."""

import ssl
import warnings

import dns.rcode
import pytest

from dns_client import addresses, ask, extended_errors

ADDRESS = "127.0.0.3"
BAD = {
    "another-name": (lambda ours, other: ours.server(addresses=["127.0.0.99"], names=["www.example.com"]),
                     "another name"),
    "name-only": (lambda ours, other: ours.server(names=["127.0.0.3"]), "another name"),
    "expired": (lambda ours, other: ours.server(addresses=[ADDRESS], since=-20, until=-1), "expired"),
    "not-yet-valid": (lambda ours, other: ours.server(addresses=[ADDRESS], since=2), "not yet valid"),
    "unknown-authority": (lambda ours, other: other.server(addresses=[ADDRESS]), "authority|unknown|issuer"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_certificate_is_refused(daemon, service, authority, other_authority, case):
    make, reason = BAD[case]
    impostor = service("https", tls=make(authority, other_authority))
    lenient = daemon(impostor)
    assert addresses(ask("www.example.com")) == ["198.51.100.80"]
    assert ask("www.example.com", "MX").rcode() == dns.rcode.NOERROR
    assert addresses(ask("only-local.example.com")) == ["198.51.100.81"]
    strict = daemon(impostor, {"httpdns": {"httpOnly": True}, "listen": {"addresses": ["127.0.0.1:2053"]}}, port=2053)
    for name in ("www.example.com", "n1.example.com", "n2.example.com"):
        reply = ask(name, port=2053, edns=True)
        assert reply.rcode() == dns.rcode.SERVFAIL
        assert extended_errors(reply) in ([22], [23])
    assert impostor.requests == [], "not one name was told to the impostor"
    for one in (lenient, strict):
        told = one.log_lines("certificate")
        assert len(told) == 1, one.log()
        assert one.log_lines(reason) == told, told


def test_an_authority_of_the_system_is_not_enough_with_a_file_of_our_own(daemon, service, authority, other_authority):
    """`caOnly`: the system's store (here SSL_CERT_FILE) is believed only when it is false."""
    impostor = service("https", tls=other_authority.server(addresses=[ADDRESS]))
    trusted = {"SSL_CERT_FILE": str(other_authority.file)}
    daemon(impostor, {"httpdns": {"httpOnly": True}}, variables=trusted)
    assert ask("www.example.com").rcode() == dns.rcode.SERVFAIL
    both = {"httpdns": {"httpOnly": True}, "listen": {"addresses": ["127.0.0.1:2053"]}, "tls": {"caOnly": False}}
    daemon(impostor, both, variables=trusted, port=2053)
    assert addresses(ask("www.example.com", port=2053))[0] == "203.0.113.20"
    alone = {"httpdns": {"httpOnly": True}, "listen": {"addresses": ["127.0.0.1:2054"]}, "tls": {"caFile": ""}}
    daemon(impostor, alone, variables=trusted, port=2054)
    assert addresses(ask("www.example.com", port=2054))[0] == "203.0.113.20"


def test_the_authority_file_may_be_der(daemon, service, authority):
    daemon(service("https"), {"tls": {"caFile": str(authority.der_file)}, "httpdns": {"httpOnly": True}})
    assert addresses(ask("www.example.com"))[0] == "203.0.113.20"


def test_server_name(daemon, service, authority):
    """With `serverName` that name must be in the certificate; the address need not be. It is SNI and Host as well."""
    context = authority.server(names=["dns.example.net"])
    indicated = []
    context.sni_callback = lambda session, name, _: indicated.append(name)
    named = service("https", tls=context)
    only = {"httpOnly": True}
    daemon(named, {"httpdns": only, "tls": {"serverName": "dns.example.net"}})
    assert addresses(ask("www.example.com"))[0] == "203.0.113.20"
    assert indicated == ["dns.example.net"]
    assert named.hosts == [f"dns.example.net:{named.port}"]
    daemon(named, {"httpdns": only, "tls": {"serverName": "other.example.net"},
                   "listen": {"addresses": ["127.0.0.1:2053"]}}, port=2053)
    assert ask("www.example.com", port=2053).rcode() == dns.rcode.SERVFAIL


def test_no_server_name_indication_for_an_address(daemon, service, authority):
    context = authority.server(addresses=[ADDRESS])
    indicated = []
    context.sni_callback = lambda session, name, _: indicated.append(name)
    daemon(service("https", tls=context), {"httpdns": {"httpOnly": True}})
    assert addresses(ask("www.example.com"))[0] == "203.0.113.20"
    assert indicated == [None]


def test_sessions_are_resumed(daemon, service):
    chosen = service("https")
    daemon(chosen, {"httpdns": {"httpOnly": True}})
    assert addresses(ask("n1.example.com")) == ["203.0.113.1"]
    chosen.drop_connections()
    assert addresses(ask("n2.example.com")) == ["203.0.113.2"]
    assert chosen.resumed[0] is False and chosen.resumed[-1] is True and len(chosen.resumed) == 2


def test_tls_before_1_2_is_refused(daemon, service, authority):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old = authority.server(addresses=[ADDRESS], highest=ssl.TLSVersion.TLSv1_1)
    daemon(service("https", tls=old))
    assert addresses(ask("www.example.com")) == ["198.51.100.80"]


def test_tls_1_2_is_enough(daemon, service, authority):
    older = authority.server(addresses=[ADDRESS], highest=ssl.TLSVersion.TLSv1_2)
    daemon(service("https", tls=older), {"httpdns": {"httpOnly": True}})
    assert addresses(ask("www.example.com"))[0] == "203.0.113.20"
