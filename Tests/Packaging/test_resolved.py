"""systemd-resolved as a client over TLS, set up as docs/clients.md and docs/systemd.md say, on a freshly booted Debian: it
loses no question while the certificate changes and the settings are read again."""

import re
import subprocess
import time

import pytest

import certificates
import documents
from machine import resolver_that_knows
from waiting import eventually

NAME, ADDRESS, RESOLVER, FOUND = "dns.example.com", "192.168.1.2", "192.0.2.53", "192.0.2.80"
UNBOUND = resolver_that_knows(
    RESOLVER,
    'local-zone: example.com. redirect',
    f'local-data: "example.com. A {FOUND}"')
SETTINGS = f"""
[listen]
addresses       = ["{ADDRESS}:53"]
tls             = ["0.0.0.0:853"]
certificateFile = "server.pem"
keyFile         = "server.key"
allow           = ["127.0.0.0/8", "192.168.1.0/24"]
tcpIdleSeconds  = 1
[control]
metrics = "127.0.0.1:9153"
[fallback]
servers = ["{RESOLVER}:53"]
"""
# Prints the number of names asked, and the names without an answer.
ASK = f"""
lost=""
for number in $(seq $2); do
  resolvectl --cache=no query "$1$number.example.com" 2> /dev/null | grep -q '{FOUND}' || lost="$lost $1$number"
  sleep 0.02
done
echo "$2 asked, lost:$lost"
"""


@pytest.fixture
def served(booted, deb, top, tmp_path):
    """A daemon that serves TLS on a socket of systemd, with a certificate that can be changed."""
    authority = certificates.Authority(tmp_path, "authority")
    booted.run("bash", "-ec", f"""
        ip address add {RESOLVER}/32 dev lo
        ip link add uplink type veth peer name lan
        ip address add {ADDRESS}/24 dev uplink
        ip link set lan up
        ip link set uplink up""")
    (tmp_path / "unbound.conf").write_text(UNBOUND)
    booted.start_outside("unbound", "-d", "-c", str(tmp_path / "unbound.conf"))
    booted.path("/root/httpdnsd.deb").write_bytes(deb.read_bytes())
    booted.run("dpkg", "--install", "/root/httpdnsd.deb")

    def show(**alternatives):
        """Installs a new certificate for new connections, as a renewal program does."""
        pem = authority.server_file(**alternatives).read_text()
        booted.write("/root/server.pem", pem)
        booted.run("bash", "-ec", "install -m 640 -g httpdnsd /root/server.pem /etc/httpdnsd/server.key; "
                                  "install -m 644 /root/server.pem /etc/httpdnsd/server.pem")
    show(names=[NAME], addresses=[ADDRESS])
    booted.path("/root/authority.pem").write_text(authority.file.read_text())
    booted.path("/etc/httpdnsd/httpdnsd.toml").write_text(SETTINGS)
    booted.run("bash", "-ec", f"""
        drop_ins=/etc/systemd/system/httpdnsd.socket.d
        mkdir -p $drop_ins
        printf '[Socket]\nListenDatagram={ADDRESS}:53\nListenStream={ADDRESS}:53\n' > $drop_ins/more.conf
        systemctl daemon-reload
        systemctl enable --now httpdnsd-dot.socket httpdnsd.socket httpdnsd""")
    booted.show = show
    yield booted
    print(booted.run("journalctl", "--no-pager", "--lines=60").stdout)  # pytest shows this if a test fails
    assert booted.failed_units() == ""


def counted(served, proto):
    """The numbers of questions and of accepted connections of one transport."""
    text, _ = served.start_outside("curl", "-s", "http://127.0.0.1:9153/metrics").communicate(timeout=10)

    def total(name):
        return sum(float(value) for labels, value in re.findall(rf"^{name}{{(.*)}} (\S+)$", text, re.M)
                   if f'proto="{proto}"' in labels)
    return total("httpdnsd_dns_requests_total"), total("httpdnsd_tcp_accepted_total")


def set_up(served, top, mode):
    """Types the commands of the document."""
    served.run("systemctl", "unmask", "systemd-resolved")
    commands, = documents.commands(top / "docs/clients.md", "systemd-resolved")
    said = served.run("bash", "-euc", "cd /root\n" + commands.replace("DNSOverTLS=yes", f"DNSOverTLS={mode}")).stdout
    assert FOUND in said and "local or encrypted transport: yes" in said, said


def ask_while_all_changes(served):
    """Asks for names in bursts, with pauses in which connections close, while certificate and settings change."""
    for burst in range(3):
        asking = served.start("bash", "-c", ASK, "bash", f"n{burst}-", "30", stdout=subprocess.PIPE)
        for _ in range(3):
            served.show(names=[NAME], addresses=[ADDRESS])
            served.run("systemctl", "reload", "httpdnsd")
        assert asking.communicate(timeout=30)[0] == "30 asked, lost:\n"
        time.sleep(1.6)


@pytest.mark.parametrize("mode", ["yes", "opportunistic"])
def test_systemd_resolved_loses_nothing(served, top, mode):
    set_up(served, top, mode)
    (asked, connections), (plain, _) = counted(served, "tls"), counted(served, "udp")
    ask_while_all_changes(served)
    now = counted(served, "tls")
    assert now[0] - asked >= 90 and now[1] - connections >= 2 and counted(served, "udp")[0] == plain
    # A certificate for another name is accepted only in opportunistic mode.
    served.show(names=["other.example.com"])
    served.run("systemctl", "reload", "httpdnsd")
    served.run("systemctl", "restart", "systemd-resolved")
    answered = served.run("resolvectl", "query", "last.example.com", check=False).returncode == 0
    assert answered == (mode == "opportunistic") and counted(served, "udp")[0] == plain
    served.show(names=[NAME], addresses=[ADDRESS])
    served.run("systemctl", "reload", "httpdnsd")
    eventually(lambda: served.run("resolvectl", "query", "again.example.com", check=False).returncode == 0, "it resolves", 20)
