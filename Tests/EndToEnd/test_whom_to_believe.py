"""Answers of upstreams that the daemon does not pass on."""

import re

import dns.flags
import dns.message
import dns.rcode
import pytest

import daemon as processes
from control import metrics, total
from dns_client import addresses, ask, extended_errors, synthetic_soa
from httpdns_service import Fault, Record, address_of
from resolvers import reply_to
from standard import ZONE
from waiting import eventually

METRICS = {"control": {"metrics": "127.0.0.1:9153"}}
PRIVATE = ZONE | {"rebind.example.com": Record(["10.0.0.1", "127.0.0.1"], ["fd00::1"], 600),
                  "mixed.example.com": Record(["192.168.1.1", "192.0.2.1"], ["2001:db8::1", "fe80::1"], 600),
                  "nas.office.example.com": Record(["192.168.1.7"], [], 600)}


def test_private_addresses_are_taken_out(daemon, service, scripted_resolver):
    """Private addresses of any server, also in hints, are removed, with an extended error, a line in the log and a metric."""
    local = scripted_resolver(lambda asked: reply_to(
        asked.message, '60 IN HTTPS 1 . ipv4hint="10.0.0.1"' if asked.kind == "HTTPS" else "60 IN A 169.254.169.254",
        "60 IN RRSIG A 8 3 60 20300101000000 20200101000000 1 example.com. AAAA", flags=dns.flags.RA | dns.flags.AD))
    running = daemon(service("aes", PRIVATE), METRICS | {
        "domains": {"privateAddresses": "refuse", "privateAllowed": ["office.example.com"]},
        "httpdns": {"signed": "addresses"}, "fallback": {"servers": [local.endpoint]}})

    def asked(name, kind="A"):
        return ask(name, kind, edns=True, want_dnssec=True)
    for kind in ("A", "AAAA", "A"):
        reply = asked("rebind.example.com", kind)
        assert reply.rcode() == dns.rcode.NOERROR and not reply.answer
        assert extended_errors(reply) == [15] and synthetic_soa(reply)[1] == 600
    assert local.questions == [], "no way round"
    assert addresses(asked("mixed.example.com")) == ["192.0.2.1"]
    assert addresses(asked("mixed.example.com", "AAAA"), "AAAA") == ["2001:db8::1"]
    assert addresses(asked("nas.office.example.com")) == ["192.168.1.7"]
    for kind in ("A", "HTTPS"):
        reply = asked("missing.example.net", kind)
        assert not reply.answer and extended_errors(reply) == [15] and not reply.flags & dns.flags.AD
    assert addresses(asked("nas.lan")) == ["169.254.169.254"], "bypassed names may have them"
    assert len(running.log_lines("private addresses are taken out of answers")) == 1
    eventually(lambda: total(metrics(), "httpdnsd_private_addresses_refused_total") == 6, "each is counted")


def test_a_local_resolver_only_stands_in(daemon, service, scripted_resolver, tmp_path):
    """While HTTPDNS fails, the local resolver's answers are given for a minute at most; they neither replace HTTPDNS answers in
    the cache nor survive a restart."""
    local = scripted_resolver(lambda asked: reply_to(asked.message, "86400 IN A 198.51.100.66"))
    chosen = service("https", lambda name, request: Record([address_of(name)], [], 1))
    settings = {"fallback": {"servers": [local.endpoint]}, "cache": {"file": str(tmp_path / "cache")}}
    running = daemon(chosen, settings)
    assert addresses(ask("known.example.com")) == [address_of("known.example.com")]
    chosen.fault = Fault("status", 500)
    for name in ("known.example.com", "new.example.com"):
        def stands_in(name=name):
            reply = ask(name)
            return addresses(reply) == ["198.51.100.66"] and reply.answer[0].ttl <= 60
        eventually(stands_in, "the local resolver answers")
    chosen.fault = None
    assert addresses(ask("known.example.com")) == [address_of("known.example.com")], "HTTPDNS is asked again"
    running.stop()
    daemon(chosen, settings)
    assert addresses(ask("new.example.com")) == [address_of("new.example.com")]


@pytest.mark.parametrize(("encryption", "limits"), [
    ("https", 0), ("aes", 1), ("des", 1),
])
def test_what_the_modes_do_not_prove_is_said(daemon, service, binary, encryption, limits):
    running = daemon(service(encryption))
    said = f'encryptType "{encryption}" hides names .*proves nothing: .* can repeat old answers'
    eventually(lambda: len(running.log_lines(said)) == limits, "the log says it once")
    checked = processes.run(binary, "check", "--all", "-c", str(running.directory / "httpdnsd.toml"))
    assert checked.returncode == 0 and len(re.findall(said, checked.stderr)) == limits, checked
