"""Local resolvers asked by TLS and HTTPS answer as they do in the clear, and no other server replaces them."""

import struct
import subprocess
import time

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import pytest

import certificates
import daemon as processes
from comparison import ask_all
from control import fetch
from dns_client import addresses, ask, extended_errors, labels, reasons
from networks import PlainDNS
from resolvers import Front, Unbound
from waiting import waited_since

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


def test_a_name_for_the_certificate_of_an_address(daemon, encrypted_unbound, authority):
    daemon(None, listening([f"tls://{ADDRESS}#{NAME}", f"https://{NAME}/dns-query#{ADDRESS}"], authority), port=PORT)
    assert addresses(ask("www.example.com", port=PORT)) == ["198.51.100.80"]


# The fault of the server, and the reason that a client gets.
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
    running = daemon(None, listening([server.url], authority, timeout=20000, **keys), port=PORT)
    with PlainDNS() as plain:
        for name in ("one.example.net", "two.example.net"):
            begun = time.monotonic()
            reply = ask(name, edns=True, port=PORT)
            assert waited_since(begun) < 3, "before its time is over"
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
    daemon(None, listening([server.url], authority, timeout=1000), port=PORT)
    with PlainDNS() as plain:
        begun = time.monotonic()
        reply = ask("one.example.net", edns=True, port=PORT)
        assert waited_since(begun) < 8
        assert reply.rcode() == dns.rcode.SERVFAIL and extended_errors(reply) in ([22], [23])
        assert reasons(reply).startswith("fallback: ") and "127.0.0.6" in reasons(reply), reply
        assert plain.packets == 0


def test_names_that_httpdns_does_not_answer_are_encrypted_too(daemon, service, encrypted_unbound, authority):
    """The local resolver is asked by TLS when HTTPDNS has no record or is away."""
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
    daemon(None, listening([bad.url, good.url], authority, timeout=20000), port=PORT)
    with PlainDNS() as plain:
        for number in range(3):
            begun = time.monotonic()
            assert addresses(ask(f"n{number}.example.net", port=PORT)) == ["192.0.2.7"]
            assert waited_since(begun) < 3
        assert plain.packets == 0


def test_when_all_of_a_strict_list_are_dead(daemon, encrypted_resolver, scripted_resolver, authority, tmp_path):
    """With four dead servers, no packet goes to port 53, though resolv.conf names a server; the EDE has group and reason."""
    plain = scripted_resolver(lambda asked: None, address="127.0.0.30")
    (tmp_path / "resolv.conf").write_text(f"nameserver {plain.address}\n")
    away = encrypted_resolver("tls")
    away.away()
    silent = encrypted_resolver("https", lambda asked, connection: None)
    false = encrypted_resolver("tls", tls=authority.server(names=["other.example.net"]))
    broken = encrypted_resolver("https", lambda asked, connection: connection.close())
    servers = [server.url for server in (away, silent, false, broken)]
    hosts = [url.removesuffix("/dns-query") for url in servers]
    settings = listening(servers, authority, resolvConf=[str(tmp_path / "resolv.conf")], timeout=800)
    settings["upstreams.office"] = {"servers": servers[::-1], "domains": ["corp.example"], "timeout": 800,
                                    "caFile": str(authority.file)}
    daemon(None, settings, port=PORT)
    with PlainDNS() as packets:
        for number in range(2):
            for group, name in (("fallback", "example.net"), ("office", "corp.example")):
                begun = time.monotonic()
                reply = ask(f"n{number}.{name}", edns=True, port=PORT)
                assert waited_since(begun) < 8
                assert reply.rcode() == dns.rcode.SERVFAIL and extended_errors(reply) in ([22], [23]), reply
                assert reasons(reply).startswith(f"{group}: ") and any(host in reasons(reply) for host in hosts), reply
        assert packets.packets == 0
    assert plain.questions == []


# These tests come last, as the programs sometimes send a packet in the clear.

@pytest.fixture(scope="module")
def resolvers(tmp_path_factory, authority, encrypted_unbound, unbound):
    """Resolver programs by name; a forwarder has another unbound behind it."""
    started = {"unbound": encrypted_unbound}
    for program, address in (("dnsdist", "127.0.0.25"), ("kresd", "127.0.0.26")):
        started[program] = Front(tmp_path_factory.mktemp(program), program, address,
                                 authority.server_file(addresses=[address]), unbound.address)
    yield started
    started["dnsdist"].stop()
    started["kresd"].stop()


def test_the_target_of_an_alias_has_aliases_of_its_own(daemon, resolvers, authority):
    """The alias and the target's own aliases are given as one chain, from the server and from the cache."""
    settings = listening([URLS["tls"].replace(ADDRESS, resolvers["unbound"].address)], authority)
    settings["upstreams.mine"] = {"alias": "alias.example.com", "domains": ["mine.example"]}
    daemon(None, settings, port=PORT)
    there = ask("alias.example.com", port=PORT).answer
    assert [rrset.rdtype for rrset in there] == [dns.rdatatype.CNAME] * 3 + [dns.rdatatype.A]
    for name in ("mine.example", "x.mine.example"):
        alias, *chain = ask(name, port=PORT).answer
        assert (alias.name.to_text(), alias[0].target.to_text()) == (f"{name}.", "alias.example.com.")
        assert [(rrset.name, rrset.rdtype, list(rrset)) for rrset in chain] == [
            (rrset.name, rrset.rdtype, list(rrset)) for rrset in there]


@pytest.mark.parametrize(("program", "protocol"), [("unbound", "tcp"), *(
    (program, protocol) for program in ("unbound", "dnsdist", "kresd") for protocol in ("tls", "https"))])
def test_a_real_resolver_is_asked_and_nothing_in_the_clear(daemon, resolvers, authority, program, protocol):
    """Each kind of answer comes through: addresses, text, aliases, a large one, NODATA, NXDOMAIN."""
    daemon(None, listening([URLS[protocol].replace(ADDRESS, resolvers[program].address)], authority), port=PORT)
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
        if program == "unbound":  # the other programs ask their servers in the clear
            assert bool(plain.packets) == (protocol == "tcp")


@pytest.mark.parametrize("program", ["unbound", "dnsdist", "kresd"])
def test_other_clients_get_the_same_of_a_resolver(daemon, resolvers, authority, program):
    """kdig by TLS and HTTPS and curl get the daemon's answer; hundreds of questions at once get the codes that UDP gives."""
    address = resolvers[program].address
    trust = [f"+tls-ca={authority.file}", f"+tls-hostname={address}"]
    query = dns.message.make_query("www.example.com", "A", id=0)
    for port, (protocol, url) in enumerate(URLS.items(), PORT):
        if protocol == "tcp":
            continue
        daemon(None, listening([url.replace(ADDRESS, address)], authority, timeout=3500) | {
            "listen": {"addresses": [f"127.0.0.1:{port}"]}}, port=port)
        ours = addresses(ask("www.example.com", port=port))
        kdig = subprocess.run(["kdig", f"@{address}", f"+{protocol}", *trust, "+short", "www.example.com"],
                              capture_output=True, text=True, timeout=60)
        assert kdig.stdout.split() == ours == ["198.51.100.80"], kdig
        questions = [struct.pack("!5H", 0x100, 1, 0, 0, 0) + labels(f"n{number}.example.com") + b"\0\1\0\1"
                     for number in range(300)]
        direct, through = (ask_all(questions, *where) for where in ((address, 53), ("127.0.0.1", port)))
        assert [reply[3] & 15 for reply in direct] == [reply[3] & 15 for reply in through]
    curl = subprocess.run(
        ["curl", "--silent", "--show-error", "--http2", "--cacert", str(authority.file), "--data-binary", "@-",
         "--header", "content-type: application/dns-message", f"https://{address}/dns-query"],
        input=query.to_wire(), capture_output=True, timeout=60)
    assert addresses(dns.message.from_wire(curl.stdout)) == ours, curl


def test_what_is_no_local_resolver_is_never_called_one(daemon, binary, service, encrypted_resolver, tmp_path):
    """The log, `status`, the page, `explain`, `probe` and `check` never call an encrypted server a local resolver."""
    refused = encrypted_resolver("tls")
    refused.away()
    chosen = service("aes", {})
    settings = listening([refused.url]) | {"httpdns": chosen.settings(), "control": {
        "socket": str(tmp_path / "control.sock"), "metrics": "127.0.0.1:9153"}}
    running = daemon(None, settings, port=PORT)
    for number in range(4):
        ask(f"n{number}.example.net", "MX", port=PORT)
        ask(f"n{number}.example.net", port=PORT)
    file = running.directory / "httpdnsd.toml"
    texts = {"log": running.log(), "page": fetch("/")[2], "metrics": fetch("/metrics")[2]}
    for words in ("status", "status --json", "explain www.example.net MX", "probe", "check", "check --all"):
        ended = processes.run(binary, *words.split(), "-c", str(file),
                              variables={"HTTPDNSD_CONTROL_SOCKET": settings["control"]["socket"]})
        texts[words] = ended.stdout + ended.stderr
    for name, text in texts.items():
        assert "local resolver" not in text.lower(), (name, text)
    server = f"fallback {refused.url} fails: "
    assert server in texts["log"] and "fallback is out of use: " in texts["log"] and server in texts["probe"], texts
    assert "; then fallback; " in texts["status"] and "\nfallback: encrypted; " in texts["status"], texts["status"]
    assert "\nfallback asked 4 times: " in texts["status"] and "that fallback was asked" in texts["page"], texts
    assert "fallback" in texts["explain www.example.net MX"], texts["explain www.example.net MX"]
