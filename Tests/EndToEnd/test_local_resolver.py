"""How the daemon asks and finds the local resolver."""

import json
import os
import re
import subprocess
import time

import dns.flags
import dns.message
import dns.rcode
import pytest

from control import Control
from daemon import environment, run, toml
from dns_client import addresses, ask, extended_errors, reasons
from networks import needs_ipv6
from resolvers import ScriptedResolver, reply_to
from waiting import eventually

PORT = 2053


def listening(**fallback):
    return {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "fallback": fallback}


def test_what_it_asks(daemon, scripted_resolver):
    resolver = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.1"))
    daemon(None, listening(servers=[resolver.endpoint]), port=PORT)
    ask("plain.example.net", port=PORT)
    ask("signed.example.net", port=PORT, edns=True, want_dnssec=True)
    plain, signed = (asked.message for asked in resolver.questions)
    assert plain.flags & dns.flags.RD and plain.edns == 0 and plain.payload == 1232
    assert not plain.ednsflags & dns.flags.DO and signed.ednsflags & dns.flags.DO


def test_resolv_conf_is_followed(daemon, scripted_resolver, tmp_path):
    """The daemon follows resolv.conf, written in place or replaced by a rename, as different tools do."""
    for last in (20, 21, 22):
        scripted_resolver(lambda asked, last=last: reply_to(asked.message, f"60 IN A 192.0.2.{last}"),
                          address=f"127.0.0.{last}")
    file = tmp_path / "resolv.conf"
    file.write_text("# a comment\nsearch example.com\nnameserver 127.0.0.20\nnameserver 127.0.0.99\noptions edns0\n")
    daemon(None, listening(servers=[], resolvConf=[str(tmp_path / "not-there"), str(file)]), port=PORT)
    fresh = (f"r{i}.example.net" for i in range(100000))

    def answered_by():
        return addresses(ask(next(fresh), port=PORT))
    assert answered_by() == ["192.0.2.20"]
    file.write_text("nameserver 127.0.0.21\n")
    eventually(lambda: answered_by() == ["192.0.2.21"], "the file written in place is followed")
    (tmp_path / "new").write_text("nameserver 127.0.0.22\n")
    os.rename(tmp_path / "new", file)
    eventually(lambda: answered_by() == ["192.0.2.22"], "the file renamed into place is followed")
    (tmp_path / "not-there").write_text("nameserver 127.0.0.20\n")
    eventually(lambda: answered_by() == ["192.0.2.20"], "the first of the files that names a server counts")

    def stays(last):
        for _ in range(10):
            assert answered_by() == [f"192.0.2.{last}"]
            time.sleep(0.1)
    os.remove(tmp_path / "not-there")
    stays(20)
    (tmp_path / "not-there").write_text("nameserver 127.0.0.21\n")
    eventually(lambda: answered_by() == ["192.0.2.21"], "a file that was gone for a moment is followed")
    (tmp_path / "not-there").write_text("# the first of some steps\n")
    stays(21)
    (tmp_path / "not-there").write_text("# the first of some steps\nnameserver 127.0.0.20\n")
    eventually(lambda: answered_by() == ["192.0.2.20"], "a file that was written by steps is followed")
    os.remove(tmp_path / "not-there")
    stays(20)
    eventually(lambda: answered_by() == ["192.0.2.22"], "and the next when that is gone for good", within=30)


def test_it_never_asks_itself(daemon, tmp_path):
    """resolv.conf names the daemon itself: this is logged once, and clients get SERVFAIL with an EDE."""
    file = tmp_path / "resolv.conf"
    file.write_text("nameserver 127.0.0.1\n")
    running = daemon(None, {"fallback": {"servers": [], "resolvConf": [str(file)]}})
    for i in range(5):
        reply = ask(f"l{i}.example.com", "MX", edns=True)
        assert reply.rcode() == dns.rcode.SERVFAIL and extended_errors(reply)
    assert len(running.log_lines("itself")) == 1, running.log()
    assert len(running.log_lines("fallback has no server")) == 1, running.log()


@pytest.mark.parametrize(("resolved_asks", "is_loop"), [("127.0.0.1", True), ("192.0.2.1", False)])
def test_it_does_not_ask_who_asks_it_in_turn(daemon, binary, scripted_resolver, tmp_path, resolved_asks, is_loop):
    """systemd-resolved answers at 127.0.0.53 and lists its servers in a file; if these name the daemon, it is not asked."""
    file = "/run/systemd/resolve/resolv.conf"
    script = f"mount -t tmpfs none /run && mkdir -p {file[:-12]} && echo nameserver {resolved_asks} > {file} && exec \"$@\""
    inside = ("unshare", "--mount", "sh", "-c", script, "sh")
    resolver = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.53"), address="127.0.0.53")
    chosen = {"listen": {"addresses": ["127.0.0.1:53"]}, "fallback": {"servers": [resolver.endpoint], "hosts": ""}}
    running = daemon(whole=chosen, prefix=inside)
    reply = ask("w.example.net", edns=True)
    said = "127.0.0.53:53, which is this daemon itself or asks it"
    assert bool(running.log_lines(said)) == is_loop == (not resolver.questions)
    assert reply.rcode() == (dns.rcode.SERVFAIL if is_loop else dns.rcode.NOERROR)
    (tmp_path / "chosen.toml").write_text(toml(chosen))
    checked = subprocess.run([*inside, binary, "check", "--all", "-c", tmp_path / "chosen.toml"], capture_output=True, text=True,
                             env=environment(), check=True)
    assert (said in checked.stderr) == is_loop


@pytest.mark.parametrize(("vpn", "router"), [
    ("10.1.0.53", "10.77.0.1"), pytest.param("fe80::53%tunnel", "fe80::53%cable", marks=needs_ipv6)], ids=["IPv4", "link-local"])
def test_a_vpns_resolver_is_not_for_all_names(daemon, network, binary, vpn, router):
    """systemd-resolved lists a VPN's resolver beside the router; if it cannot be asked for domains, routes decide."""
    here, there, more = network(), network(), " fe80::53/64" if ":" in router else ""
    here.link(there, ours="10.77.0.2/24", theirs="10.77.0.1/24" + more)
    there.ip("address add 10.1.0.53/32 dev lo")
    here.ip("link add tunnel type veth peer name far")
    here.ip("link set far up")
    here.ip("link set tunnel up")
    here.ip("address add 10.1.0.2/24 dev tunnel")
    with there:
        resolver = ScriptedResolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.53"), address=router)
    vpns, routers = (f"[{address}]:53" if more else f"{address}:53" for address in (vpn, router))
    file = "/run/systemd/resolve/resolv.conf"
    script = (f"mount -t tmpfs none /run && mkdir -p {file[:-12]} && "
              f"echo 'nameserver {vpn}\nnameserver {router}' > {file} && exec \"$@\"")
    try:
        with here:
            running = daemon(
                whole={"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "fallback": {"hosts": ""},
                       "control": {"socket": "control.sock"}}, port=PORT,
                prefix=("unshare", "--mount", "sh", "-c", script, "sh"))

            def servers():
                group, = (group for group in Control(binary, running).json()["groups"] if group["name"] == "fallback")
                return ([server["address"] for server in group["servers"]],
                        [server["address"] for server in group["leftOut"]])
            # No network has a default route yet, so either may serve all names.
            assert servers() == ([vpns, routers], [])
            here.ip("route add default via 10.77.0.1")
            eventually(lambda: servers() == ([routers], [vpns]), "the tunnel's resolver is left out")
            # A link-local address of one's own can be used when no other machine has claimed it for a second.
            eventually(lambda: addresses(ask("www.example.net", port=PORT)) == ["192.0.2.53"], "the router's resolver answers")
            assert running.log_lines(re.escape(vpns) + " of tunnel, which is not for all names"), running.log()
            # A tunnel for all packets, as wg-quick(8) makes it: in a table of its own.
            here.ip("route add default dev tunnel table 51820")
            eventually(lambda: servers() == ([vpns, routers], []), "the tunnel is for all names")
    finally:
        resolver.stop()


@pytest.mark.parametrize("while_gone", [["nameserver 10.77.0.2\n"] * 2, ["# no network\n"] * 2,
                                        ["nameserver 10.77.0.2\n", "nameserver 127.0.0.53\n"]], ids=["stays", "emptied", "stub"])
def test_without_any_route_cached_answers_stay(daemon, network, tmp_path, while_gone):
    """A cable that is out for a while takes no answer of the network's resolver from the cache."""
    here, there = network(), network()
    here.link(there)
    here.ip("route add default via 10.77.0.2")
    file = tmp_path / "resolv.conf"
    file.write_text("nameserver 10.77.0.2\n")
    with there:
        resolver = ScriptedResolver(lambda asked: reply_to(asked.message, "600 IN A 192.0.2.53"), address="10.77.0.2")

    def stays():
        for _ in range(10):
            assert addresses(ask("www.example.net", port=PORT)) == ["192.0.2.53"]
            time.sleep(0.1)
    try:
        with here:
            running = daemon(None, listening(servers=[], resolvConf=[str(file)]), port=PORT)
            stays()
            file.write_text(while_gone[0])
            here.ip("link set cable down")
            eventually(lambda: running.log_lines("no route leads out of this machine"), "the network is gone")
            file.write_text(while_gone[1])
            stays()
            file.write_text("nameserver 10.77.0.2\n")
            here.ip("link set cable up")
            here.ip("route add default via 10.77.0.2")
            eventually(lambda: running.log_lines("the network is back"), "the network is back")
            stays()
    finally:
        resolver.stop()
    assert [asked.name.to_text() for asked in resolver.questions].count("www.example.net.") == 1


def test_without_any_route_answers_of_a_routers_own_resolver_stay(daemon, network, tmp_path):
    """A router's resolver at the router's own address is on this machine, as one on loopback is."""
    here, there = network(), network()
    here.link(there)
    here.ip("link add house type veth peer name room")
    here.ip("link set room up")
    here.ip("link set house up")
    here.ip("address add 10.78.0.1/24 dev house")
    here.ip("route add default via 10.77.0.2")
    file = tmp_path / "resolv.conf"
    file.write_text("nameserver 10.78.0.1\n")
    with here:
        resolver = ScriptedResolver(lambda asked: reply_to(asked.message, "600 IN A 192.0.2.53"), address="10.78.0.1")
        try:
            running = daemon(None, listening(servers=[], resolvConf=[str(file)]), port=PORT)
            assert addresses(ask("www.example.net", port=PORT)) == ["192.0.2.53"]
            here.ip("route delete default")
            eventually(lambda: running.log_lines("no route leads out of this machine"), "the network is gone")
            for _ in range(10):
                assert addresses(ask("www.example.net", port=PORT)) == ["192.0.2.53"]
                time.sleep(0.1)
        finally:
            resolver.stop()
    assert [asked.name.to_text() for asked in resolver.questions].count("www.example.net.") == 1


def test_a_tunnel_to_which_a_rule_leads(daemon, network, tmp_path):
    """wg-quick(8) adds a route to a table of its own, and then the rule that leads there: that is another network."""
    here, outside, inside = network(), network(), network()
    here.link(outside)
    here.ip("route add default via 10.77.0.2")
    here.ip("link add tunnel type veth peer name cable netns", inside.path)
    for network, link, address in ((here, "tunnel", "10.1.0.2/24"), (inside, "cable", "10.1.0.1/24")):
        network.ip("link set", link, "up")
        network.ip("address add", address, "dev", link)
    file = tmp_path / "resolv.conf"
    file.write_text("nameserver 203.0.113.53\n")
    resolvers = []
    try:
        for network, own in ((outside, "192.0.2.1"), (inside, "192.0.2.2")):
            network.ip("address add 203.0.113.53/32 dev lo")
            with network:
                resolvers.append(ScriptedResolver(
                    lambda asked, own=own: reply_to(asked.message, f"600 IN A {own}"), address="203.0.113.53"))
        with here:
            running = daemon(None, listening(servers=[], resolvConf=[str(file)]), port=PORT)

            def answer():
                return addresses(ask("www.example.net", port=PORT))
            assert answer() == ["192.0.2.1"]
            here.ip("route add default via 10.1.0.1 table 51820")
            eventually(lambda: running.log_lines("routes have changed"), "the route is noticed")
            here.ip("rule add not fwmark 51820 table 51820")
            eventually(lambda: answer() == ["192.0.2.2"], "the resolver inside is asked")
            here.ip("rule delete not fwmark 51820 table 51820")
            eventually(lambda: answer() == ["192.0.2.1"], "the resolver outside is asked")
    finally:
        for resolver in resolvers:
            resolver.stop()


def test_a_resolver_of_this_machine_in_another_network(daemon, network, tmp_path):
    """A resolver on loopback, such as dnsmasq, asks those of the present network; its answers are of that network."""
    here, there = network(), network()
    here.link(there)
    here.ip("route add default via 10.77.0.2")
    file = tmp_path / "resolv.conf"
    file.write_text("nameserver 127.0.0.9\n")
    own = ["192.168.1.7"]
    with here:
        resolver = ScriptedResolver(lambda asked: reply_to(asked.message, f"600 IN A {own[0]}"), address="127.0.0.9")
    try:
        with here:
            daemon(None, listening(servers=[], resolvConf=[str(file)]), port=PORT)

            def answer():
                return addresses(ask("printer.lan", port=PORT))
            assert answer() == ["192.168.1.7"]
            own[0] = "10.0.0.7"
            here.ip("link set cable down")
            here.ip("address delete 10.77.0.1/24 dev cable")
            for _ in range(10):
                assert answer() == ["192.168.1.7"], "no other network has begun"
                time.sleep(0.1)
            here.ip("link set cable up")
            here.ip("address add 10.77.0.9/24 dev cable")
            here.ip("route add default via 10.77.0.2")
            eventually(lambda: answer() == ["10.0.0.7"], "the resolver is asked in the other network")
    finally:
        resolver.stop()


def test_an_address_that_moves_between_two_hosts(daemon, network):
    """A server's address is asked while another host has it, and left out while it is this host's, without a reload."""
    here, there = network(), network()
    here.link(there)
    here.ip("address add 10.77.0.7/24 dev cable")
    fresh = (f"r{i}.example.net" for i in range(100000))

    def is_left_out():
        return "no server" in reasons(ask(next(fresh), port=PORT, edns=True))
    with here:
        running = daemon(whole={"listen": {"addresses": [f"0.0.0.0:{PORT}"]},
                                "fallback": {"hosts": "", "servers": [f"10.77.0.7:{PORT}"]},
                                "private": {"servers": []}}, port=PORT)
        assert is_left_out(), running.log()
        here.ip("address delete 10.77.0.7/24 dev cable")
        there.ip("address add 10.77.0.7/24 dev cable")
        with there:
            resolver = ScriptedResolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.53"), address="10.77.0.7", port=PORT)
        try:
            eventually(lambda: addresses(ask(next(fresh), port=PORT)) == ["192.0.2.53"], "the other host is asked")
        finally:
            resolver.stop()
        there.ip("address delete 10.77.0.7/24 dev cable")
        here.ip("address add 10.77.0.7/24 dev cable")
        eventually(is_left_out, "the daemon does not ask itself")


def test_a_route_that_comes_while_the_daemon_starts(daemon, network, binary):
    """A start takes a while, and the network of a machine that boots comes in the middle of it."""
    machine, far = network(), network()
    machine.link(far)
    # The folder of the control socket is locked when routes were read, and before the daemon answers.
    slowly = ("strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=flock", "-e", "inject=flock:delay_enter=2000000:when=1")
    with machine:
        running = daemon(
            whole={"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "fallback": {"hosts": ""},
                   "control": {"socket": "control.sock"}}, port=PORT, prefix=slowly, ready=False)
        time.sleep(1)
        machine.ip("route add default via 10.77.0.2")
        running.wait_until_ready()
        eventually(lambda: Control(binary, running).json()["nat64"]["ipv4"], "the route is noticed")


def test_the_next_file_when_one_names_only_the_daemon(daemon, scripted_resolver, tmp_path):
    resolver = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.30"), address="127.0.0.30")
    (tmp_path / "self").write_text("nameserver 127.0.0.1\n")
    (tmp_path / "other").write_text(f"nameserver {resolver.address}\nnameserver 127.0.0.1\n")
    daemon(None, {"fallback": {"servers": [], "resolvConf": [str(tmp_path / "self"), str(tmp_path / "other")]}})
    assert addresses(ask("s.example.com")) == ["192.0.2.30"]


def test_the_hosts_file_comes_first(daemon, service, tmp_path, unbound):
    hosts = tmp_path / "hosts"
    hosts.write_text("# comment\n192.0.2.50  www.example.com Printer  # and more\n2001:db8::50 www.example.com\n"
                     "192.0.2.51 www.example.com\nnonsense line\n192.0.2.52 only-four.example.com\n")
    chosen = service("aes")
    daemon(chosen, listening(hosts=str(hosts)), port=PORT)
    before = len(unbound.asked())
    assert addresses(ask("WWW.example.com", port=PORT)) == ["192.0.2.50", "192.0.2.51"]
    assert addresses(ask("www.example.com", "AAAA", port=PORT), "AAAA") == ["2001:db8::50"]
    assert addresses(ask("printer", port=PORT)) == ["192.0.2.50"]
    assert chosen.names == [] and len(unbound.asked()) == before
    hosts.write_text("192.0.2.60 www.example.com\n")
    eventually(lambda: addresses(ask("www.example.com", port=PORT)) == ["192.0.2.60"], "the hosts file is followed")


def test_a_hosts_file_that_is_gone_for_a_moment(daemon, scripted_resolver, tmp_path):
    """No resolver is asked for a name of the hosts file while it is saved, but soon once it is gone for good."""
    resolver = scripted_resolver(lambda asked: reply_to(asked.message, "1 IN A 192.0.2.1"))
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.40 www.example.com\n")
    daemon(None, listening(servers=[resolver.endpoint], hosts=str(hosts)), port=PORT)

    def asked(name="www"):
        return addresses(ask(f"{name}.example.com", port=PORT))
    # A file that cannot be read, by root neither.
    hosts.unlink()
    hosts.mkdir()
    for _ in range(10):
        assert asked() == ["192.0.2.40"]
        time.sleep(0.1)
    hosts.rmdir()
    hosts.write_text("192.0.2.50 www.example.com\n")
    eventually(lambda: asked() == ["192.0.2.50"], "the hosts file is there again")
    for change in (lambda: hosts.rename(tmp_path / "hosts~"), lambda: hosts.write_text(""),
                   lambda: hosts.write_text("192.0.2.1 the-first-of-some-lines\n")):
        change()
        for _ in range(10):
            assert asked() == ["192.0.2.50"]
            time.sleep(0.1)
    hosts.write_text("192.0.2.70 new.example.com\n")
    eventually(lambda: asked("new") == ["192.0.2.70"], "a name that is written first is there at once", within=3)
    assert asked() == ["192.0.2.50"]
    hosts.write_text("192.0.2.60 www.example.com\n")
    eventually(lambda: asked() == ["192.0.2.60"], "the hosts file is followed")
    hosts.unlink()
    eventually(lambda: asked() == ["192.0.2.1"], "the hosts file is gone", within=30)


def test_status_says_what_is_odd_in_the_hosts_files(daemon, binary, scripted_resolver, tmp_path):
    """`status` says it as `check` does, until the files are right."""
    resolver = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.1"))
    hosts, missing = tmp_path / "hosts", tmp_path / "missing"
    hosts.write_text("192.0.2.50 www.example.com a..b\n")
    control = {"socket": str(tmp_path / "s")}
    daemon(None, listening(servers=[resolver.endpoint], hosts=[str(hosts), str(missing)]) | {"control": control}, port=PORT)

    def said():
        remarks = json.loads(run(binary, "status", "--json", "--socket", control["socket"]).stdout)["remarks"]
        return [next(word for word in ("line 1: a word that is no name", f"{missing} cannot be read", remark) if word in remark)
                for remark in remarks]
    assert said() == [f"{missing} cannot be read", "line 1: a word that is no name"]
    missing.write_text("192.0.2.51 two.example.com\n")
    hosts.write_text("192.0.2.50 www.example.com\n")
    eventually(lambda: said() == [], "the files are right", within=30)


def test_a_pipe_in_the_place_of_a_file_holds_nothing_up(daemon, scripted_resolver, tmp_path):
    """A pipe instead of a file does not block the daemon: any file type may appear at a path that others write."""
    resolver = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.1"))
    hosts, resolv_conf = tmp_path / "hosts", tmp_path / "resolv.conf"
    hosts.write_text("192.0.2.50 www.example.com\n")
    resolv_conf.write_text(f"nameserver {resolver.address}\n")
    running = daemon(None, listening(servers=[], hosts=str(hosts), resolvConf=[str(resolv_conf)]), port=PORT)
    assert addresses(ask("www.example.com", port=PORT)) == ["192.0.2.50"]
    fresh = (f"r{i}.example.net" for i in range(100000))
    for path in (hosts, resolv_conf):
        os.mkfifo(tmp_path / "pipe")
        os.rename(tmp_path / "pipe", path)
        assert ask(next(fresh), port=PORT) is not None
    eventually(lambda: running.log_lines("hosts cannot be read, so nothing is answered from it: open .*: Not a regular file"),
               "the log says why", within=30)
    assert addresses(ask("www.example.com", port=PORT)) != ["192.0.2.50"]
    hosts.unlink()
    hosts.write_text("192.0.2.60 www.example.com\n")
    eventually(lambda: addresses(ask("www.example.com", port=PORT)) == ["192.0.2.60"], "a file again, it is followed")
