"""A host and its resolver: `httpdnsd host` with each keeper of resolv.conf, on a freshly booted Debian with the real programs.

A local resolver and an HTTPDNS service give different answers there, so an answer shows which of them was asked.
"""

import json
import re

import pytest

import documents
from machine import resolver_that_knows
from test_debian_package import newer  # noqa: F401 (a fixture)
from waiting import eventually

KEY = "0123456789abcdef"
LOCAL, HTTPDNS = "192.0.2.80", "203.0.113.20"
ONLY_LOCAL = "192.0.2.81"
LOCAL_RESOLVER = "192.0.2.53"
UNBOUND = resolver_that_knows(
    LOCAL_RESOLVER,
    'local-zone: example.com. static',
    f'local-data: "www.example.com. A {LOCAL}"',
    f'local-data: "only.example.com. A {ONLY_LOCAL}"')


@pytest.fixture
def commands(top):
    """The commands of a part of docs/hosts.md: those that make the change and, if present, those that undo it."""
    return lambda heading: documents.commands(top / "docs/hosts.md", heading)


@pytest.fixture
def host(booted, deb, tmp_path):
    """A host with a network, a local resolver, an account at an HTTPDNS service, and the package."""
    booted.run("ip", "link", "add", "uplink", "type", "veth", "peer", "name", "lan")
    booted.run("ip", "address", "add", f"{LOCAL_RESOLVER}/32", "dev", "lo")
    booted.run("ip", "link", "set", "lan", "up")
    booted.run("ip", "link", "set", "uplink", "up")
    (tmp_path / "unbound.conf").write_text(UNBOUND)
    booted.start_outside("unbound", "-d", "-c", str(tmp_path / "unbound.conf"))
    booted.start_service("--key", KEY, "--record", f"www.example.com={HTTPDNS}")
    booted.path("/root/httpdnsd.deb").write_bytes(deb.read_bytes())
    booted.run("dpkg", "--install", "/root/httpdnsd.deb")
    settings = booted.path("/etc/httpdnsd/httpdnsd.toml")
    settings.write_text(settings.read_text() + f"""
[httpdns]
encryptType = "aes"
dnsId = 12345
dnsKey = "{KEY}"
dnsIp = ["127.0.0.1:8053"]
addressType = "ipv4"
""")
    yield booted
    print(booted.run("journalctl", "--no-pager", "--lines=60").stdout)  # pytest shows this if a test fails
    assert booted.failed_units() == ""


def with_address(host):
    """Gives the host its static address."""
    host.run("ip", "address", "add", "192.0.2.2/24", "dev", "uplink")
    return host


def with_resolved(host):
    """Starts systemd-resolved, which may be started as often as a test wants."""
    with_address(host).run("systemctl", "unmask", "systemd-resolved")
    host.run("mkdir", "-p", "/run/systemd/system/systemd-resolved.service.d")
    host.path("/run/systemd/system/systemd-resolved.service.d/test.conf").write_text("[Unit]\nStartLimitIntervalSec=0\n")
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "start", "systemd-resolved")


def resolved(host, name="www.example.com"):
    return host.run("getent", "ahostsv4", name, check=False).stdout.split(" ")[0]


def resolves_to(host, address, name="www.example.com"):
    eventually(lambda: resolved(host, name) == address, f"{name} resolves to {address}", 10)


STATE = """
cd / && for path in etc/resolv.conf etc/httpdnsd var/lib/httpdnsd etc/systemd etc/NetworkManager etc/resolvconf; do
    find $path \\( -type l -o -type d \\) -printf '%p %l %m\\n' -o -type f -printf '%p %m %u %g ' -exec sha256sum {} ';'
done 2> /dev/null | grep -v ' [0-9a-f]*  etc/resolv.conf$' | LC_ALL=C sort"""


def state(host, *without):
    """All files that may change, except text that programs write into resolv.conf, and paths with one of these prefixes."""
    lines = host.run("bash", "-c", STATE, check=False).stdout.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(without))


def there_and_back(host, again=lambda: None):
    """`again` repeats the settings that a keeper loses in a restart."""
    host.run("systemctl", "enable", "--now", "httpdnsd")
    resolves_to(host, LOCAL)
    before = state(host)
    print(host.run("httpdnsd", "host").stdout)
    assert "do not ask this daemon" in host.run("httpdnsd", "host").stdout.replace("\n", " ")
    said = host.run("httpdnsd", "host", "enable", "--name", "www.example.com").stdout
    assert "httpdnsd host disable takes it back" in said, said
    again()
    resolves_to(host, HTTPDNS)
    resolves_to(host, ONLY_LOCAL, "only.example.com")  # HTTPDNS does not know this name, so the local resolver was asked
    assert "Programs ask this daemon" in host.run("httpdnsd", "host").stdout
    assert host.failed_units() == ""
    said = host.run("httpdnsd", "host", "disable").stdout
    assert said.startswith("Everything is as it was."), said
    again()
    resolves_to(host, LOCAL)
    assert state(host) == before


def leaves(host, again=lambda: None):
    """After the package is removed, the host resolves as before; an upgrade and a reinstallation undo nothing."""
    package = "/root/httpdnsd.deb"
    # Enabled units belong to the operator, and the folder for secrets to the package.
    its_own = "etc/systemd/system", "etc/httpdnsd/credentials"
    before = state(host, *its_own)
    for way in ("--remove", "--purge"):
        host.run("systemctl", "enable", "--now", "httpdnsd")
        host.run("httpdnsd", "host", "enable", "--name", "www.example.com")
        again()
        resolves_to(host, HTTPDNS)
        host.run("dpkg", "--install", package)
        resolves_to(host, HTTPDNS)
        said = host.run("dpkg", way, "httpdnsd").stdout
        assert "Everything is as it was." in said, said
        again()
        resolves_to(host, LOCAL)
        if way == "--remove":
            assert state(host, *its_own) == before
            host.run("dpkg", "--install", package)
    left = host.run("find", "/etc", "/run", "/usr", "/var", "-xdev", "-name", "*httpdnsd*", "!", "-path", "/var/log/*",
                    "!", "-path", "/var/lib/dpkg/*").stdout
    assert left == ""


def killed_at_each_step(host, again=lambda: None):
    """After a kill at any call that changes something, the host resolves, and `disable` restores everything."""
    before = state(host)
    for call in ("rename", "symlink", "mkdir", "vfork,clone,clone3"):
        for number in range(1, 30):
            ended = host.run_until_killed(call, number, "httpdnsd", "host", "enable", "--name", "www.example.com")
            again()
            eventually(lambda: resolved(host) in (LOCAL, HTTPDNS), f"it resolves after call {number} of {call}", 10)
            host.run("httpdnsd", "host", "disable")
            again()
            resolves_to(host, LOCAL)
            assert state(host) == before, (call, number)
            if ended.returncode == 0:
                break


def test_a_resolv_conf_written_by_hand(host):
    with_address(host).write("/etc/resolv.conf", f"search example.org\nnameserver {LOCAL_RESOLVER}\n")
    before = host.path("/etc/resolv.conf").read_text()
    there_and_back(host)
    assert host.path("/etc/resolv.conf").read_text() == before
    leaves(host)
    assert host.path("/etc/resolv.conf").read_text() == before


def test_systemd_resolved(host):
    with_resolved(host)
    host.run("ln", "-sf", "/run/systemd/resolve/stub-resolv.conf", "/etc/resolv.conf")

    def again():
        """Repeats the servers of DHCP, which a restart of resolved forgets."""
        host.run("resolvectl", "dns", "uplink", LOCAL_RESOLVER)
        host.run("resolvectl", "dnsovertls", "uplink", "no")
    again()
    there_and_back(host, again)
    # The daemon takes no TLS at 127.0.0.1, although the operator has it for the servers of before.
    strict = host.path("/etc/systemd/resolved.conf.d/mine.conf")
    strict.parent.mkdir(exist_ok=True)
    strict.write_text("[Resolve]\nDNSOverTLS=yes\n")
    host.run("systemctl", "restart", "systemd-resolved")
    again()
    assert "also holds for servers of links" in host.run("httpdnsd", "host").stdout.replace("\n", " ")
    there_and_back(host, again)
    strict.unlink()
    # A file that sorts after the daemon's would add a server that is asked instead of the daemon.
    late = host.path("/etc/systemd/resolved.conf.d/zzz.conf")
    late.parent.mkdir(exist_ok=True)
    late.write_text(f"[Resolve]\nDNS={LOCAL_RESOLVER}\n")
    ended = host.run("httpdnsd", "host", "enable", "--name", "www.example.com", check=False)
    assert ended.returncode == 71 and f"systemd-resolved asks {LOCAL_RESOLVER} as well" in ended.stdout.replace("\n", " "), ended
    late.rename(late.with_name("lan.conf"))
    again()
    host.run("httpdnsd", "host", "enable", "--name", "www.example.com")
    again()
    assert "as well" not in host.run("httpdnsd", "host").stdout
    late.write_text(f"[Resolve]\nDNS={LOCAL_RESOLVER}\n")
    host.run("systemctl", "restart", "systemd-resolved")
    again()
    assert f"systemd-resolved asks {LOCAL_RESOLVER} as well" in host.run("httpdnsd", "host").stdout.replace("\n", " ")
    host.run("httpdnsd", "host", "disable")
    for file in (late, late.with_name("lan.conf")):
        file.unlink()
    late.parent.rmdir()
    host.run("systemctl", "restart", "systemd-resolved")
    again()
    killed_at_each_step(host, again)
    leaves(host, again)


def test_systemd_resolved_without_its_stub(host):
    with_resolved(host)
    host.run("resolvectl", "dns", "uplink", LOCAL_RESOLVER)
    host.run("ln", "-sf", "../run/systemd/resolve/resolv.conf", "/etc/resolv.conf")
    there_and_back(host, lambda: host.run("resolvectl", "dns", "uplink", LOCAL_RESOLVER))


def test_a_vpn_beside_systemd_resolved(host):
    """The VPN's name server gets only questions that it is for, also after the tunnel goes and comes back."""
    with_resolved(host)
    host.run("ln", "-sf", "/run/systemd/resolve/stub-resolv.conf", "/etc/resolv.conf")
    host.run("resolvectl", "dns", "uplink", LOCAL_RESOLVER)
    host.run("systemctl", "enable", "--now", "httpdnsd")

    def servers():
        group, = (group for group in json.loads(host.run("httpdnsd", "status", "--json").stdout)["groups"]
                  if group["name"] == "fallback")
        return ({server["address"] for server in group["servers"]}, {server["address"] for server in group["leftOut"]})

    def are_asked(*asked, leaving=()):
        expected = ({f"{address}:53" for address in asked}, {f"{address}:53" for address in leaving})
        eventually(lambda: servers() == expected, f"asked and left out are {expected}", 10)
    vpn = "10.9.0.53"
    are_asked(LOCAL_RESOLVER)
    host.run("httpdnsd", "host", "enable", "--name", "www.example.com")  # restarts systemd-resolved
    host.run("resolvectl", "dns", "uplink", LOCAL_RESOLVER)
    are_asked(LOCAL_RESOLVER)
    for _ in range(2):
        host.run("ip", "link", "add", "tunnel", "type", "veth", "peer", "name", "far")
        host.run("ip", "link", "set", "far", "up")
        host.run("ip", "link", "set", "tunnel", "up")
        host.run("ip", "address", "add", "10.9.0.2/24", "dev", "tunnel")
        host.run("resolvectl", "dns", "tunnel", vpn)
        are_asked(LOCAL_RESOLVER, vpn)  # systemd-resolved asks both servers, too
        host.run("resolvectl", "domain", "tunnel", "~corp.example")
        are_asked(LOCAL_RESOLVER)  # this version of systemd-resolved does not list the tunnel's server
        host.run("resolvectl", "domain", "tunnel", "~.")
        are_asked(vpn, leaving=[LOCAL_RESOLVER])
        said = " ".join(host.run("httpdnsd", "explain", "only.example.com").stdout.split())
        assert f"{LOCAL_RESOLVER}:53 is left out: it is of uplink, which is not for all names" in said, said
        host.run("ip", "link", "delete", "tunnel")
        are_asked(LOCAL_RESOLVER)


def test_networkmanager(host):
    host.run("dpkg", "--purge", "systemd-resolved")
    host.write("/etc/resolv.conf", "")
    host.run("systemctl", "unmask", "NetworkManager")
    host.run("systemctl", "start", "NetworkManager")
    host.run("nmcli", "device", "set", "uplink", "managed", "yes")
    host.run("nmcli", "connection", "add", "type", "ethernet", "ifname", "uplink", "con-name", "uplink", "ipv4.method",
             "manual", "ipv4.addresses", "192.0.2.2/24", "ipv4.dns", LOCAL_RESOLVER, "ipv6.method", "disabled")
    host.run("nmcli", "connection", "up", "uplink")
    there_and_back(host)
    assert "NetworkManager" in host.path("/etc/resolv.conf").read_text()
    killed_at_each_step(host)
    leaves(host)


def with_resolvconf(host):
    with_address(host)
    host.run("dpkg", "--purge", "systemd-resolved")
    package = host.run("bash", "-c", "ls /var/cache/apt/archives/resolvconf_*.deb").stdout.strip()
    host.run("dpkg", "--install", package)
    host.run("bash", "-c", f"echo nameserver {LOCAL_RESOLVER} | resolvconf -a uplink")


def test_resolvconf(host):
    with_resolvconf(host)
    there_and_back(host)
    # resolvconf's entry goes and comes with the daemon.
    host.run("httpdnsd", "host", "enable", "--name", "www.example.com")
    host.run("systemctl", "stop", "httpdnsd.service", "httpdnsd.socket")
    resolves_to(host, LOCAL)
    host.run("systemctl", "start", "httpdnsd")
    resolves_to(host, HTTPDNS)
    host.run("httpdnsd", "host", "disable")
    killed_at_each_step(host)
    leaves(host)


def test_resolvconf_that_is_removed(host):
    """Debian's resolvconf leaves a file that names the daemon: it goes on answering, and its package stays while it is asked."""
    with_resolvconf(host)
    host.run("systemctl", "enable", "--now", "httpdnsd")
    host.run("httpdnsd", "host", "enable", "--name", "www.example.com")
    host.run("dpkg", "--purge", "resolvconf")
    host.run("systemctl", "restart", "httpdnsd")
    resolves_to(host, HTTPDNS)
    ended = host.run("httpdnsd", "host", "enable", "--name", "www.example.com", check=False)
    assert ended.returncode == 71 and "programs still ask this daemon at 127.0.0.1" in ended.stdout, ended
    for _ in range(2):
        ended = host.run("dpkg", "--remove", "httpdnsd", check=False)
        assert ended.returncode == 1 and "programs still ask this daemon at 127.0.0.1" in ended.stdout, ended
    resolves_to(host, HTTPDNS)
    host.write("/etc/resolv.conf", f"nameserver {LOCAL_RESOLVER}\n")
    host.run("dpkg", "--remove", "httpdnsd")
    resolves_to(host, LOCAL)


def test_a_docker_host(top, host, commands):
    # As in the README, the file has nothing but the account.
    settings = host.path("/etc/httpdnsd/httpdnsd.toml")
    allowing = documents.blocks(top / "docs/hosts.md", "A Docker host", "toml")[0]
    settings.write_text("[httpdns]\n" + settings.read_text().rpartition("\n[httpdns]\n")[2] + allowing)
    with_address(host).write("/etc/resolv.conf", f"nameserver {LOCAL_RESOLVER}\n")
    host.run("systemctl", "enable", "--now", "httpdnsd")
    # Docker's parts: its bridge, a container behind it with the resolv.conf that daemon.json asks for, and its service.
    host.write("/etc/systemd/system/docker.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=true\n")
    host.run("bash", "-ec", """
        ip netns add container
        ip link add docker0 type veth peer name eth0 netns container
        ip address add 172.17.0.1/16 dev docker0
        ip link set docker0 up
        ip -netns container address add 172.17.0.2/16 dev eth0
        ip -netns container link set eth0 up
        ip -netns container route add default via 172.17.0.1""")
    doing, undoing = commands("A Docker host")
    host.run("bash", "-euo", "pipefail", "-c", doing)
    server, = json.loads(host.path("/etc/docker/daemon.json").read_text())["dns"]
    host.run("bash", "-ec", f"mkdir -p /etc/netns/container; echo nameserver {server} > /etc/netns/container/resolv.conf")
    inside = ["ip", "netns", "exec", "container", "getent", "ahostsv4", "www.example.com"]
    eventually(lambda: host.run(*inside, check=False).stdout.startswith(HTTPDNS + " "), "a container resolves", 10)
    host.run("bash", "-euo", "pipefail", "-c", undoing)
    assert not host.path("/etc/docker/daemon.json").exists()
    assert host.run(*inside, check=False).stdout == ""


def test_the_package_on_a_running_host(host, newer):  # noqa: F811
    host.write("/etc/resolv.conf", f"nameserver {LOCAL_RESOLVER}\n")
    with_address(host)

    def state():
        return host.run("systemctl", "is-active", "httpdnsd", check=False).stdout.strip()

    def enabled():
        return host.run("systemctl", "is-enabled", "httpdnsd.service", "httpdnsd.socket", check=False).stdout.split()

    def process():
        return host.run("systemctl", "show", "--property=MainPID", "--value", "httpdnsd").stdout.strip()
    assert (state(), enabled()) == ("inactive", ["disabled", "disabled"])
    host.run("systemctl", "enable", "--now", "httpdnsd")
    host.write("/etc/resolv.conf", "nameserver 127.0.0.1\n")
    resolves_to(host, HTTPDNS)
    first, settings = process(), host.path("/etc/httpdnsd/httpdnsd.toml").read_text()

    host.path("/root/newer.deb").write_bytes(newer.read_bytes())
    host.run("dpkg", "--install", "--force-confold", "/root/newer.deb")
    resolves_to(host, HTTPDNS)
    assert process() not in (first, "0")
    sockets = host.run("journalctl", "--unit=httpdnsd.socket", "--output=cat").stdout
    assert sockets.count("Listening on") == 1, "the sockets were closed for a while"
    assert (state(), enabled()[0]) == ("active", "enabled")
    assert host.path("/etc/httpdnsd/httpdnsd.toml").read_text() == settings

    host.run("dpkg", "--purge", "httpdnsd")
    assert host.run("systemctl", "list-units", "--all", "--plain", "--no-legend", "httpdnsd*").stdout == ""
    left = host.run("find", "/etc", "/run", "/usr", "/var", "-xdev", "-name", "*httpdnsd*", "!", "-path", "/var/log/*",
                    "!", "-path", "/var/lib/dpkg/*").stdout
    assert left == ""
    assert host.run("getent", "group", "httpdnsd", check=False).returncode == 2
    assert host.run("getent", "passwd", "_httpdnsd", check=False).returncode == 2


def test_the_package_stays_while_the_host_needs_it(host):
    """A record of changes with a wrong owner is not trusted, so the package is not removed until a person corrects that."""
    with_address(host).write("/etc/resolv.conf", f"nameserver {LOCAL_RESOLVER}\n")
    host.run("systemctl", "enable", "--now", "httpdnsd")
    resolves_to(host, LOCAL)
    host.run("httpdnsd", "host", "enable", "--name", "www.example.com")
    host.run("chown", "nobody", "/var/lib/httpdnsd/host")
    ended = host.run("dpkg", "--remove", "httpdnsd", check=False)
    assert ended.returncode != 0 and "is not believed" in ended.stdout and "remove the package again" in ended.stdout, ended
    resolves_to(host, HTTPDNS)
    host.run("chown", "root", "/var/lib/httpdnsd/host")
    host.run("dpkg", "--remove", "httpdnsd")
    resolves_to(host, LOCAL)


def test_behind_a_filter(host, commands):
    """The daemon listens at a port of its own, and the filter has port 53."""
    with_address(host).write("/etc/resolv.conf", f"nameserver {LOCAL_RESOLVER}\n")
    host.run("systemctl", "enable", "--now", "httpdnsd")
    host.run("sed", "-i", r's|^#addresses = .*|addresses = ["127.0.0.1:5300"]|', "/etc/httpdnsd/httpdnsd.toml")
    doing, = commands("Pi-hole, AdGuard Home, dnsmasq")
    host.run("bash", "-euo", "pipefail", "-c", doing)

    def listening():
        return set(re.findall(r"(127\.0\.0\.1:(?:53|5300)|\[::1\]:53) ", host.run("ss", "-Hlntu").stdout))
    eventually(lambda: listening() == {"127.0.0.1:5300"}, "it listens at its own port alone", 10)
    assert host.run("httpdnsd", "status", "--ready").returncode == 0
