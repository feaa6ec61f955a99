"""The rules of `[tls]`: each with a service that keeps it and one that does not."""

import re
import ssl
import types
import warnings

import dns.rcode
import pytest

import certificates
import daemon as processes
from dns_client import addresses, ask, extended_errors

ADDRESS = "127.0.0.3"
NAME = "dns.example.net"
ELSEWHERE = {"addresses": ["127.0.0.99"], "names": ["other.example.net"]}
PASSWORD = "a pässword of its own"
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


@pytest.fixture(scope="session")
def world(tmp_path_factory, authority, other_authority):
    """Authorities, keys and certificates that the cases choose from."""
    directory = tmp_path_factory.mktemp("tls-rules")
    one = types.SimpleNamespace(directory=directory, ours=authority, other=other_authority, key=certificates.new_key())
    one.pin = certificates.pin(one.key)
    one.stray_pin = certificates.pin(certificates.new_key())
    one.intermediate = certificates.Authority(directory, "intermediate", parent=authority)
    one.own, one.own_file = certificates.self_signed(directory)
    one.another_own, _ = certificates.self_signed(directory)
    one.expired_own, one.expired_own_file = certificates.self_signed(directory, until=-1)
    one.both_file = directory / "both.pem"
    one.both_file.write_bytes(other_authority.pem + b"text between certificates\n" + authority.pem)
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


# The service's certificate; the daemon's `[tls]`, over `caFile` = the authority "trusted"; its environment.
ACCEPTED = {
    "name": (lambda w: w.ours.server(names=[NAME]), lambda w: {"serverName": NAME}, None),
    "wildcard": (lambda w: w.ours.server(names=["*.example.net"]), lambda w: {"serverName": NAME}, None),
    "address": (direct, lambda w: {}, None),
    "authority in DER": (direct, lambda w: {"caFile": str(w.ours.der_file)}, None),
    "one of two authorities": (direct, lambda w: {"caFile": str(w.both_file)}, None),
    "chain with intermediate": (under, lambda w: {}, None),
    "intermediate as the authority": (lambda w: under(w, chain=b""), lambda w: {"caFile": str(w.intermediate.file)},
                                      None),
    "system's store": (direct, lambda w: {"caFile": ""}, lambda w: system(w.ours)),
    "system's store as well": (direct, lambda w: {"caFile": str(w.other.file), "caOnly": False},
                               lambda w: system(w.ours)),
    "own file beside the system's store": (direct, lambda w: {"caOnly": False}, lambda w: system(w.other)),
    "pin of the server": (lambda w: under(w, key=w.key), lambda w: {"pins": [w.pin]}, None),
    "pin of the intermediate": (under, lambda w: {"pins": [w.intermediate.pin]}, None),
    "pin of the root": (under, lambda w: {"pins": [w.ours.pin]}, None),
    "backup pin": (lambda w: under(w, key=w.key), lambda w: {"pins": [w.stray_pin, w.pin]}, None),
    "pin with the system's store": (direct, lambda w: {"caFile": "", "pins": [w.ours.pin]}, lambda w: system(w.ours)),
    "self-signed": (lambda w: w.own, lambda w: {"caFile": str(w.own_file), "validateDomain": False}, None),
    "private service of another name": (lambda w: w.ours.server(**ELSEWHERE), lambda w: {"validateDomain": False},
                                        None),
    "another name than is sent": (lambda w: w.ours.server(**ELSEWHERE),
                                  lambda w: {"validateDomain": False, "serverName": NAME}, None),
    "TLS 1.2": (lambda w: direct(w, highest=VERSIONS["1.2"]), lambda w: {}, None),
}

# The same, and what the log must say.
REFUSED = {
    "another name": (lambda w: w.ours.server(names=["other.example.net"]), lambda w: {"serverName": NAME}, None,
                     "another name .*wanted dns.example.net, it has other.example.net"),
    "address only, name wanted": (direct, lambda w: {"serverName": NAME}, None, "another name"),
    "name only, address dialled": (lambda w: w.ours.server(names=[NAME]), lambda w: {}, None,
                                   f"another name .*wanted {ADDRESS}, it has dns.example.net"),
    "another address": (lambda w: w.ours.server(addresses=["127.0.0.99"]), lambda w: {}, None, "another name"),
    "name that is looked up": (lambda w: w.ours.server(addresses=["127.0.0.99"], names=["www.example.com"]),
                               lambda w: {}, None, "another name"),
    "address as a name": (lambda w: w.ours.server(names=[ADDRESS]), lambda w: {}, None, "another name"),
    "expired": (lambda w: direct(w, since=-20, until=-1), lambda w: {}, None, "expired at"),
    "not yet valid": (lambda w: direct(w, since=2), lambda w: {}, None, "not yet valid"),
    "unknown authority": (lambda w: w.other.server(addresses=[ADDRESS]), lambda w: {}, None, "unknown authority"),
    "system's authority under caOnly": (lambda w: w.other.server(addresses=[ADDRESS]), lambda w: {},
                                        lambda w: system(w.other), "unknown authority"),
    "neither store's authority": (direct, lambda w: {"caFile": str(w.other.file), "caOnly": False},
                                  lambda w: system(w.other), "unknown authority"),
    "chain without intermediate": (lambda w: under(w, chain=b""), lambda w: {}, None, "intermediate certificate"),
    "wrong pin": (lambda w: under(w, key=w.key), lambda w: {"pins": [w.stray_pin]}, None, "none of the pinned keys"),
    "pin of a certificate that is only sent": (
        lambda w: direct(w, chain=w.other.pem + w.intermediate.pem),
        lambda w: {"pins": [w.other.pin, w.intermediate.pin]}, None, "none of the pinned keys"),
    "pin, but another name": (lambda w: w.ours.server(key=w.key, **ELSEWHERE), lambda w: {"pins": [w.pin]}, None,
                              "another name"),
    "another self-signed": (lambda w: w.another_own, lambda w: {"caFile": str(w.own_file), "validateDomain": False},
                            None, "self-signed and not one of the trusted"),
    "self-signed, name validated": (lambda w: w.own, lambda w: {"caFile": str(w.own_file)}, None, "another name"),
    "self-signed and expired": (lambda w: w.expired_own,
                                lambda w: {"caFile": str(w.expired_own_file), "validateDomain": False}, None,
                                "expired"),
    "unknown authority, name not validated": (lambda w: w.other.server(addresses=[ADDRESS]),
                                              lambda w: {"validateDomain": False}, None, "unknown authority"),
}


def start(daemon, chosen, tls, **options):
    return daemon(chosen, {"httpdns": {"httpOnly": True}, "tls": tls}, **options)


def assert_accepted(chosen):
    assert addresses(ask("www.example.com"))[0] == "203.0.113.20"
    assert chosen.names == ["www.example.com"]


def assert_refused(chosen, one, reason):
    """No answer, no name told to the service, and one line in the log with the reason."""
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


@pytest.mark.parametrize("case", ["name that is looked up", "address as a name", "expired", "not yet valid",
                                  "unknown authority"])
def test_the_local_resolver_answers_instead(daemon, service, world, case):
    """Nothing is told to a service that is refused, and its certificate is named once."""
    make, tls, _, reason = REFUSED[case]
    impostor = service("https", tls=make(world))
    one = daemon(impostor, {"tls": tls(world)})
    assert addresses(ask("www.example.com")) == ["198.51.100.80"]
    assert ask("www.example.com", "MX").rcode() == dns.rcode.NOERROR
    assert addresses(ask("only-local.example.com")) == ["198.51.100.81"]
    assert impostor.requests == []
    told = one.log_lines("certificate")
    assert len(told) == 1 and one.log_lines(reason) == told, one.log()


def test_tls_before_1_2_is_refused(daemon, service, world):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old = direct(world, highest=ssl.TLSVersion.TLSv1_1)
    chosen = service("https", tls=old)
    daemon(chosen)
    assert addresses(ask("www.example.com")) == ["198.51.100.80"]
    assert chosen.requests == []


def test_the_pins_in_the_log_can_be_used(daemon, service, world):
    """From the server's key to the authority's; any of them in the configuration opens the way."""
    chosen = service("https", tls=under(world, key=world.key))
    told = assert_refused(chosen, start(daemon, chosen, {"pins": [world.stray_pin]}), "none of the pinned keys")
    shown = re.findall(r"sha256/[A-Za-z0-9+/]{43}=", told)
    assert shown == [world.pin, world.intermediate.pin, world.ours.pin]
    for port, one in enumerate(shown, 2053):
        daemon(chosen, {"httpdns": {"httpOnly": True}, "tls": {"pins": [one]},
                        "listen": {"addresses": [f"127.0.0.1:{port}"]}}, port=port)
        assert addresses(ask("www.example.com", port=port))[0] == "203.0.113.20"


def test_pins_from_the_environment(daemon, service, world):
    chosen = service("https", tls=under(world, key=world.key))
    start(daemon, chosen, {}, variables={"HTTPDNSD_TLS_PINS": f"{world.stray_pin},{world.pin}"})
    assert_accepted(chosen)


@pytest.mark.parametrize("pinned", [False, True])
def test_a_session_is_resumed(daemon, service, world, pinned):
    chosen = service("https", tls=under(world, key=world.key))
    start(daemon, chosen, {"pins": [world.pin]} if pinned else {})
    assert addresses(ask("n1.example.com")) == ["203.0.113.1"]
    chosen.drop_connections()
    assert addresses(ask("n2.example.com")) == ["203.0.113.2"]
    assert chosen.resumed == [False, True]


INTERCEPTED = {
    "nothing set": (lambda w: {"caFile": ""}, None),
    "caOnly = false": (lambda w: {"caOnly": False}, None),
    "caOnly": (lambda w: {}, "unknown authority"),
    "pins": (lambda w: {"caFile": "", "pins": [w.ours.pin]}, "none of the pinned keys"),
    "pins and caOnly = false": (lambda w: {"caOnly": False, "pins": [w.ours.pin]}, "none of the pinned keys"),
    "pins and caOnly": (lambda w: {"pins": [w.ours.pin]}, "unknown authority"),
}


@pytest.mark.parametrize("case", INTERCEPTED)
def test_a_proxy_that_intercepts(daemon, service, world, case):
    """With an authority that the host trusts, and the right name."""
    tls, reason = INTERCEPTED[case]
    proxy = service("https", tls=world.other.server(addresses=[ADDRESS]))
    one = start(daemon, proxy, tls(world), variables=system(world.other))
    if reason is None:
        assert_accepted(proxy)
    else:
        assert_refused(proxy, one, reason)


@pytest.mark.parametrize(("certificate", "tls", "indication", "host"), [
    ({"names": [NAME]}, {"serverName": NAME}, NAME, NAME),
    (ELSEWHERE, {"validateDomain": False, "serverName": NAME}, NAME, NAME),
    ({"addresses": [ADDRESS]}, {}, None, ADDRESS),
], ids=["validated", "not validated", "an address"])
def test_the_name_that_is_sent(daemon, service, world, certificate, tls, indication, host):
    """`serverName` is SNI and Host, whether it is validated or not; for an address there is no SNI (RFC 6066)."""
    context = world.ours.server(**certificate)
    indicated = []
    context.sni_callback = lambda session, name, _: indicated.append(name)
    chosen = service("https", tls=context)
    start(daemon, chosen, tls)
    assert_accepted(chosen)
    assert indicated == [indication]
    assert chosen.hosts == [f"{host}:{chosen.port}"]


# Mutual TLS

def wanting(w, version, clients):
    return direct(w, highest=VERSIONS[version], clients=clients)


def mutual(w, path):
    return {"clientCertificate": str(path), "clientCertificatePasswordFile": str(w.password_file)}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_service_gets_the_client_certificate(daemon, service, world, version):
    chosen = service("https", tls=wanting(world, version, world.other))
    one = start(daemon, chosen, mutual(world, world.other.client("resolver 1", PASSWORD)))
    assert_accepted(chosen)
    chosen.drop_connections()
    assert addresses(ask("n2.example.com")) == ["203.0.113.2"]
    assert set(chosen.peers) == {"resolver 1"}
    assert PASSWORD not in one.log()


def test_the_client_certificates_intermediate_is_sent(daemon, service, world):
    middle = certificates.Authority(world.directory, "clients", parent=world.other)
    chosen = service("https", tls=wanting(world, "1.3", world.other))
    start(daemon, chosen, mutual(world, middle.client("resolver 2", PASSWORD)))
    assert_accepted(chosen)
    assert chosen.peers == ["resolver 2"]


def test_a_client_certificate_without_a_password(daemon, service, world):
    chosen = service("https", tls=wanting(world, "1.3", world.other))
    start(daemon, chosen, {"clientCertificate": str(world.other.client("resolver 3", ""))})
    assert_accepted(chosen)


def test_a_client_certificate_is_not_shown_unasked(daemon, service, world):
    chosen = service("https", tls=direct(world))
    start(daemon, chosen, mutual(world, world.other.client("resolver 4", PASSWORD)))
    assert_accepted(chosen)
    assert chosen.peers == [None]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_certificate_that_is_missing(daemon, service, world, version):
    chosen = service("https", tls=wanting(world, version, world.other))
    assert_refused(chosen, start(daemon, chosen, {}), "wants a client certificate and none is configured")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", {"stranger": "unknown authority", "expired": "certificate expired"}.items())
def test_a_client_certificate_that_the_service_refuses(daemon, service, world, version, case):
    kind, reason = case
    path = (world.ours.client("resolver 5", PASSWORD) if kind == "stranger"
            else world.other.client("resolver 5", PASSWORD, since=-20, until=-1))
    chosen = service("https", tls=wanting(world, version, world.other))
    assert_refused(chosen, start(daemon, chosen, mutual(world, path)), f"refuses the client certificate.*{reason}")


def test_the_service_is_verified_in_mutual_tls_too(daemon, service, world):
    impostor = service("https", tls=world.other.server(addresses=[ADDRESS], clients=world.other))
    one = start(daemon, impostor, mutual(world, world.other.client("resolver 6", PASSWORD)))
    assert_refused(impostor, one, "unknown authority")


# What the configuration cannot be: the `[tls]` section, the key the message names, and what it says.
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
    "impossible name": (lambda w: {"serverName": "a..b"}, "serverName", ""),
}


@pytest.mark.parametrize("command", ["check", "run"])
@pytest.mark.parametrize("case", WRONG)
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
    result = processes.run(binary, "check", "-c", str(path))
    assert result.returncode == 0, result.stderr
    assert world.pin in result.stdout
    assert PASSWORD not in result.stdout + result.stderr
