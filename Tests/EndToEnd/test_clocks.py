"""Clocks: a time of day that was never set, which certificates must not depend on, and a machine that was suspended."""

import itertools
import os
import signal
import time

import dns.rcode
import pytest

import daemon as processes
from asking import OURS, PORT
from clients import state
from control import METRICS, metrics
from dns_client import addresses, ask, reasons
from networks import BlackHole
from resolvers import reply_to
from waiting import eventually, waited_since

UNSET = "clock stands before"


def answer_of(name):
    return ask(name, port=PORT, edns=True)


@pytest.mark.parametrize("protocol", ["tls", "https"])
def test_certificates_while_the_clock_was_never_set(daemon, binary, encrypted_resolver, authority, clocks, tmp_path,
                                                    protocol):
    """While the clock shows 1970, dates of certificates are ignored, which is logged once; with the right clock, they count."""
    makes = {"good": {"addresses": ["127.0.0.6"]}, "other": {"names": ["other.example.net"]},
             "expired": {"addresses": ["127.0.0.6"], "since": -20, "until": -1}, "strict": {"addresses": ["127.0.0.6"]}}
    servers = {name: encrypted_resolver(protocol, tls=authority.server(**keys)) for name, keys in makes.items()}
    clocks.set(day=-int(time.time()))
    whole = {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "fallback": {"servers": ["127.0.0.99"], "hosts": ""}}
    for name, server in servers.items():
        whole[f"upstreams.{name}"] = {"servers": [server.url], "domains": [f"{name}.example"], "timeout": 8000,
                                      "caFile": str(authority.file)}
    whole["upstreams.strict"]["whenClockUnset"] = "refuse"
    whole["control"] = {"socket": str(tmp_path / "control.sock")}
    running = daemon(whole=whole, port=PORT, variables=clocks.variables)
    for name in ("good", "expired"):
        assert addresses(answer_of(f"a.{name}.example")) == OURS, name
    for name, reason in (("other", "another name"), ("strict", "is the clock right?")):
        reply = answer_of(f"a.{name}.example")
        assert reply.rcode() == dns.rcode.SERVFAIL and reason in reasons(reply), reply
        assert servers[name].questions == []
    assert len(running.log_lines(UNSET)) == 1

    def status():
        return processes.run(binary, "status", "--socket", str(tmp_path / "control.sock")).stdout
    assert "The clock is wrong" in status()

    clocks.set()
    assert addresses(answer_of("b.good.example")) == OURS
    reply = answer_of("b.expired.example")
    assert reply.rcode() == dns.rcode.SERVFAIL and "expired" in reasons(reply), reply
    fresh = iter(range(1000))
    eventually(lambda: addresses(answer_of(f"n{next(fresh)}.strict.example")) == OURS, "it is trusted now")
    assert "The clock is wrong" not in status() and "strict" in status()


def test_the_times_of_the_start_follow_a_clock_that_is_set(daemon, clocks):
    """A machine without a battery for its clock sets it after the daemon has started."""
    begun = time.time()
    clocks.set(day=-3 * 3600)
    daemon(whole={"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "fallback": {"servers": ["127.0.0.99"], "hosts": ""},
                  "control": {"metrics": "{}:{}".format(*METRICS)}}, port=PORT, variables=clocks.variables)
    clocks.set()
    seen = metrics()
    for name in ("process_start_time_seconds", "httpdnsd_config_last_reload_success_timestamp_seconds"):
        # A correction of less than three seconds does not count.
        assert begun - 4 <= seen[name, ()] <= time.time() + 4, name


@pytest.mark.parametrize("protocol", ["tls", "https"])
def test_a_machine_that_was_suspended(daemon, encrypted_resolver, authority, clocks, protocol):
    """After an hour of sleep, the old connections are dead, and the first clients wait little longer than usual."""
    server = encrypted_resolver(protocol, lambda asked, connection: reply_to(asked.message, "60 IN A 192.0.2.7"))
    running = daemon(whole={
        "listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "cache": {"staleSeconds": 0},
        "fallback": {"servers": [server.url], "caFile": str(authority.file), "hosts": "", "timeout": 20000}}, port=PORT,
        variables=clocks.variables)
    for number in range(5):
        assert addresses(ask(f"n{number}.example.net", port=PORT)) == OURS
    with BlackHole([server.port], server.clients):
        os.kill(running.pid, signal.SIGSTOP)
        eventually(lambda: state(running.pid) == "T", "the daemon stands still")
        clocks.set(boot=3600)
        os.kill(running.pid, signal.SIGCONT)
        for number in range(6):  # the first names are cached, but expired
            begun = time.monotonic()
            assert addresses(ask(f"n{number}.example.net", port=PORT)) == OURS
            assert waited_since(begun) < 2.5
    # On a busy machine a question may be sent twice.
    asked = [name.to_text() for name, _ in itertools.groupby(asked.name for asked in server.questions)]
    assert [name.lower() for name in asked] == [f"n{number}.example.net." for number in (*range(5), *range(6))]
    assert not running.log_lines("fails"), running.log()
