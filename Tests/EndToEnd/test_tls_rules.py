"""The keys of `[tls]`: which services each key accepts and refuses. `CryptographyTests` test the rules themselves."""

import re
import types

import dns.rcode
import pytest

import certificates
import daemon as processes
from dns_client import addresses, ask, extended_errors

ADDRESS = "127.0.0.3"
NAME = "dns.example.net"
PASSWORD = "a pässword of its own"
@pytest.fixture(scope="session")
def world(tmp_path_factory, authority, other_authority):
    """Authorities, keys and certificates that the cases choose from."""
    directory = tmp_path_factory.mktemp("tls-rules")
    one = types.SimpleNamespace(directory=directory, ours=authority, other=other_authority, key=certificates.new_key())
    one.pin = certificates.pin(one.key)
    one.stray_pin = certificates.pin(certificates.new_key())
    one.intermediate = certificates.Authority(directory, "intermediate", parent=authority)
    one.own, one.own_file = certificates.self_signed(directory)
    one.password_file = directory / "password"
    one.password_file.write_text(PASSWORD + "\n")
    return one


def direct(w, **options):
    return w.ours.server(addresses=[ADDRESS], **options)


def under(w, **options):
    return w.intermediate.server(addresses=[ADDRESS], **options)


def system(authority):
    """The environment in which the system's store holds one authority."""
    return {"SSL_CERT_FILE": str(authority.file), "SSL_CERT_DIR": "/nonexistent"}


# The service's TLS context; the daemon's keys of `[tls]` beside a `caFile` with the authority `ours`; its environment.
ACCEPTED = {
    "name": (lambda w: w.ours.server(names=[NAME]), lambda w: {"serverName": NAME}, None),
    "address": (direct, lambda w: {}, None),
    "system's store": (direct, lambda w: {"caFile": ""}, lambda w: system(w.ours)),
    "system's store as well": (direct, lambda w: {"caFile": str(w.other.file), "caOnly": False},
                               lambda w: system(w.ours)),
    "backup pin": (lambda w: under(w, key=w.key), lambda w: {"pins": [w.stray_pin, w.pin]}, None),
    "self-signed": (lambda w: w.own, lambda w: {"caFile": str(w.own_file), "validateDomain": False}, None),
}

# The same three values, and a pattern that one line of the log must match.
REFUSED = {
    "another name": (lambda w: w.ours.server(names=["other.example.net"]), lambda w: {"serverName": NAME}, None,
                     "another name .*wanted dns.example.net, it has other.example.net"),
    "expired": (lambda w: direct(w, since=-20, until=-1), lambda w: {}, None, "expired at"),
    "unknown authority": (lambda w: w.other.server(addresses=[ADDRESS]), lambda w: {}, None, "unknown authority"),
    "system's authority under caOnly": (lambda w: w.other.server(addresses=[ADDRESS]), lambda w: {},
                                        lambda w: system(w.other), "unknown authority"),
    "wrong pin": (lambda w: under(w, key=w.key), lambda w: {"pins": [w.stray_pin]}, None, "none of the pinned keys"),
}


def start(daemon, chosen, tls, **options):
    return daemon(chosen, {"httpdns": {"httpOnly": True}, "tls": tls}, **options)


def assert_accepted(chosen):
    assert addresses(ask("www.example.com"))[0] == "203.0.113.20"
    assert chosen.names == ["www.example.com"]


def assert_refused(chosen, one, reason):
    """Clients get SERVFAIL, the service gets no name, and one line of the log has the reason."""
    for name in ("www.example.com", "n1.example.com"):
        reply = ask(name, edns=True)
        assert reply.rcode() == dns.rcode.SERVFAIL
        assert extended_errors(reply) in ([22], [23])
    assert chosen.requests == []
    told = one.log_lines(reason)
    assert len(told) == 1, one.log()
    return told[0]


@pytest.mark.parametrize("case", ACCEPTED)
def test_a_service_that_keeps_the_rule(daemon, service, world, case):
    make, tls, variables = ACCEPTED[case]
    chosen = service("https", tls=make(world))
    start(daemon, chosen, tls(world), variables=variables and variables(world))
    assert_accepted(chosen)


@pytest.mark.parametrize("case", REFUSED)
def test_a_service_that_does_not(daemon, service, world, case):
    make, tls, variables, reason = REFUSED[case]
    chosen = service("https", tls=make(world))
    one = start(daemon, chosen, tls(world), variables=variables and variables(world))
    assert_refused(chosen, one, reason)


def test_the_local_resolver_answers_instead(daemon, service, world):
    """A refused service gets no request, and one line of the log names its certificate."""
    make, tls, _, reason = REFUSED["expired"]
    impostor = service("https", tls=make(world))
    one = daemon(impostor, {"tls": tls(world)})
    assert addresses(ask("www.example.com")) == ["198.51.100.80"]
    assert ask("www.example.com", "MX").rcode() == dns.rcode.NOERROR
    assert addresses(ask("only-local.example.com")) == ["198.51.100.81"]
    assert impostor.requests == []
    told = one.log_lines("certificate")
    assert len(told) == 1 and one.log_lines(reason) == told, one.log()


def test_the_pins_in_the_log_can_be_used(daemon, service, world):
    """The log lists the pins of the chain from the server to the authority; with any of them as `pins` the service is
    accepted."""
    chosen = service("https", tls=under(world, key=world.key))
    told = assert_refused(chosen, start(daemon, chosen, {"pins": [world.stray_pin]}), "none of the pinned keys")
    shown = re.findall(r"sha256/[A-Za-z0-9+/]{43}=", told)
    assert shown == [world.pin, world.intermediate.pin, world.ours.pin]
    for port, one in enumerate(shown, 2053):
        daemon(chosen, {"httpdns": {"httpOnly": True}, "tls": {"pins": [one]},
                        "listen": {"addresses": [f"127.0.0.1:{port}"]}}, port=port)
        assert addresses(ask("www.example.com", port=port))[0] == "203.0.113.20"


def test_a_session_is_resumed(daemon, service, world):
    chosen = service("https", tls=under(world, key=world.key))
    start(daemon, chosen, {"pins": [world.pin]})
    assert addresses(ask("n1.example.com")) == ["203.0.113.1"]
    chosen.drop_connections()
    assert addresses(ask("n2.example.com")) == ["203.0.113.2"]
    assert chosen.resumed == [False, True]


@pytest.mark.parametrize(("certificate", "tls", "indication", "host"), [
    ({"names": [NAME]}, {"serverName": NAME}, NAME, NAME),
    ({"addresses": [ADDRESS]}, {}, None, ADDRESS),
], ids=["a name", "an address"])
def test_the_name_that_is_sent(daemon, service, world, certificate, tls, indication, host):
    """`serverName` is SNI and Host; for an address there is no SNI (RFC 6066)."""
    context = world.ours.server(**certificate)
    indicated = []
    context.sni_callback = lambda session, name, _: indicated.append(name)
    chosen = service("https", tls=context)
    start(daemon, chosen, tls)
    assert_accepted(chosen)
    assert indicated == [indication]
    assert chosen.hosts == [f"{host}:{chosen.port}"]


# Mutual TLS

def mutual(w, path):
    return {"clientCertificate": str(path), "clientCertificatePasswordFile": str(w.password_file)}


def test_the_service_gets_the_client_certificate(daemon, service, world):
    chosen = service("https", tls=direct(world, clients=world.other))
    one = start(daemon, chosen, mutual(world, world.other.client("resolver 1", PASSWORD)))
    assert_accepted(chosen)
    chosen.drop_connections()
    assert addresses(ask("n2.example.com")) == ["203.0.113.2"]
    assert set(chosen.peers) == {"resolver 1"}
    assert PASSWORD not in one.log()


# Invalid settings: the keys of `[tls]`, the key that the message names, and a part of the message.
WRONG = {
    "password wrong": (lambda w: mutual(w, w.other.client("c", "another")), "clientCertificatePasswordFile",
                       "is wrong"),
    "password missing": (lambda w: {"clientCertificate": str(w.other.client("c", PASSWORD))},
                         "clientCertificatePasswordFile", "needs a password"),
    "no PKCS#12": (lambda w: mutual(w, w.other.file), "clientCertificate", "PKCS#12"),
    "not there": (lambda w: mutual(w, w.directory / "absent.p12"), "clientCertificate", "cannot read"),
    "no key": (lambda w: mutual(w, w.other.client("c", PASSWORD, options=["-nokeys"])), "clientCertificate",
               "lacks the private key"),
    "old encryption": (lambda w: mutual(w, w.other.client("c", PASSWORD, options=["-legacy"])), "clientCertificate",
                       "openssl pkcs12 -legacy -in"),
    "no authorities": (lambda w: {"caFile": str(w.password_file)}, "caFile", "neither PEM nor DER"),
    "no pin": (lambda w: {"pins": ["sha256/AAAA"]}, "pins", "sha256"),
    "name not validated under the system's store": (lambda w: {"caFile": "", "validateDomain": False},
                                                    "validateDomain", "caFile"),
    "name not validated, both stores": (lambda w: {"caOnly": False, "validateDomain": False}, "validateDomain",
                                        "caOnly"),
    "impossible name": (lambda w: {"serverName": "a..b"}, "serverName", "host name"),
}


@pytest.mark.parametrize(("command", "case"), [*(("check", case) for case in WRONG), ("run", "no PKCS#12")])
def test_wrong_settings(binary, world, tmp_path, case, command):
    tls, key, message = WRONG[case]
    section = {"caFile": str(world.ours.file)} | tls(world)
    path = tmp_path / "httpdnsd.toml"
    path.write_text(processes.toml({
        "listen": {"addresses": ["127.0.0.1:2059"]}, "fallback": {"servers": ["127.0.0.2"]},
        "httpdns": {"encryptType": "https", "token": "123456789"}, "tls": section}))
    result = processes.run(binary, command, "-c", str(path))
    assert result.returncode == 78, result.stdout + result.stderr
    line, = result.stderr.splitlines()
    where = re.fullmatch(rf"{re.escape(str(path))}(?::(\d+))?: tls\.(\w+): (.+)", line)
    assert where and where[2] == key, line
    assert message in where[3]
    assert PASSWORD not in result.stdout + result.stderr and "123456789" not in result.stdout + result.stderr


def test_check_shows_no_secret(binary, world, tmp_path):
    path = tmp_path / "httpdnsd.toml"
    path.write_text(processes.toml({
        "fallback": {"servers": ["127.0.0.2"]}, "httpdns": {"encryptType": "https", "token": "123456789"},
        "tls": {"caFile": str(world.ours.file), "pins": [world.pin],
                **mutual(world, world.other.client("c", PASSWORD))}}))
    result = processes.run(binary, "check", "--all", "-c", str(path))
    assert result.returncode == 0, result.stderr
    assert world.pin in result.stdout
    assert PASSWORD not in result.stdout + result.stderr
