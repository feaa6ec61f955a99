"""The units as they are shipped, under a real systemd. The tests run in this order, on one boot."""

import grp
import os
import pathlib
import re
import signal
import socket
import ssl
import struct
import subprocess
import time

import dns.message
import pytest

from dns_client import addresses, ask
from httpdns_service import HTTPDNSService, address_of, every_name
from machine import SOCKET, UNIT, DropIn, journal, journal_text, main_pid, run, show, status_field, systemctl
from waiting import eventually

CONFIGURATION = pathlib.Path("/etc/httpdnsd/httpdnsd.toml")
KEY = "Swift-HTTPDNS-16"
CAP_NET_BIND_SERVICE = f"{1 << 10:016x}"
CAP_NET_ADMIN = f"{1 << 12:016x}"
NO_CAPABILITY = "0" * 16
STARTED = "73024f1f10564ae29f91ac376dead138"
STOPPING = "1941cb897bd340ac85270b73ea64f816"
RELOAD_FAILED = "bbdc6c7a3d1d44f090f42de151cd17b6"
SERVICE_FAILS = "1fc9829532b049748cd9641621c187ff"
# A short watchdog, so that a hang is found while a test waits; the rest is as shipped.
TEST_SETTINGS = "[Service]\nWatchdogSec=2s\n"
OWN_SOCKETS = """[Service]
PrivateUsers=no
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
"""
MARKS = OWN_SOCKETS.replace("CAP_NET_BIND_SERVICE", "CAP_NET_ADMIN")
MARKED = """
[upstreams.marked]
servers = ["127.0.0.77"]
domains = ["marked.example"]
mark = 7
"""


def configure(service, more=""):
    CONFIGURATION.write_text(f"""
[httpdns]
encryptType = "aes"
dnsId = {service.dns_id}
dnsKeyFile = "dnsKey"
dnsIp = ["{service.endpoint}"]
httpOnly = true
addressType = "dual"

[cache]
file = "/var/cache/httpdnsd/cache"
{more}
""")


@pytest.fixture(scope="module", autouse=True)
def service():
    """An HTTPDNS service beside the daemon, and the daemon's configuration; only root can read the key's file."""
    chosen = HTTPDNSService("aes", every_name, key=KEY).start()
    folder = CONFIGURATION.parent / "credentials"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    (folder / "dnsKey").write_text(KEY + "\n")
    (folder / "dnsKey").chmod(0o600)
    configure(chosen)
    with DropIn("test", TEST_SETTINGS):
        yield chosen
    chosen.stop()
    assert chosen.violations == []


@pytest.fixture(autouse=True)
def told_when_it_fails():
    yield
    print(journal_text())


def test_the_units_are_right_and_expose_little(capfd):
    assert run("systemd-analyze", "verify", "--man=no", UNIT, SOCKET, "httpdnsd-dot.socket", "httpdnsd-doh.socket").stderr == ""
    said = run("systemd-analyze", "security", "--no-pager", "--threshold=12", UNIT, check=False)
    with capfd.disabled():
        print(said.stdout.strip().splitlines()[-1])
    assert said.returncode == 0, said.stdout


def test_start_returns_when_questions_are_answered_and_not_before():
    go = CONFIGURATION.with_name("go")
    wait = f"until [ -e {go} ]; do sleep 0.05; done; exec /usr/sbin/httpdnsd run"
    slow = f"[Service]\nExecStart=\nExecStart=/bin/sh -c '{wait}'\n"
    with DropIn("slow", slow), subprocess.Popen(["systemctl", "start", UNIT]) as starting:
        eventually(lambda: show("ActiveState") == "activating", "it is started")
        time.sleep(0.3)
        assert show("ActiveState") == "activating" and starting.poll() is None
        go.touch()
        assert starting.wait(30) == 0
        assert show("ActiveState") == "active"
        assert addresses(ask("localhost", timeout=5)) == ["127.0.0.1"]
    systemctl("restart", UNIT)


def test_it_has_no_rights():
    assert status_field("CapEff") == status_field("CapPrm") == status_field("CapBnd") == NO_CAPABILITY
    assert 61184 <= int(status_field("Uid")) <= 65519, "a user of its own, while it runs"
    assert status_field("NoNewPrivs") == "1" and status_field("Seccomp") == "2"
    for path in ("/usr", "/etc", "/home", "/srv"):
        inside = ["nsenter", f"--target={main_pid()}", "--mount", "touch", f"{path}/x"]
        assert run(*inside, check=False).returncode != 0, f"{path} is writable"
    folder = pathlib.Path("/run/httpdnsd").stat()
    assert folder.st_mode & 0o777 == 0o750 and folder.st_gid == int(status_field("Gid"))


def test_the_key_was_read_and_names_are_looked_up_with_it(service):
    assert addresses(ask("www.example.com")) == [address_of("www.example.com")]
    assert "www.example.com" in service.names
    assert KEY not in journal_text()


def test_all_sockets_were_handed_over():
    for server in ("127.0.0.1", "::1"):
        for transport in ("udp", "tcp"):
            assert addresses(ask("localhost", server=server, transport=transport, timeout=2)) == ["127.0.0.1"]


def test_an_address_that_was_not_handed_over_is_said(service):
    """The journal, `status` and `check` report an address that the socket unit does not have."""
    configure(service, '[listen]\naddresses = ["127.0.0.1:53", "192.0.2.2:53"]\n')
    try:
        systemctl("restart", UNIT)
        said = "listen.addresses names 192.0.2.2:53, which httpdnsd.socket does not"
        eventually(lambda: said in journal_text(), "it is in the journal")
        assert said in run("/usr/sbin/httpdnsd", "status").stdout.replace("\n", " ")
        assert said in run("/usr/sbin/httpdnsd", "check").stderr
    finally:
        configure(service)
        systemctl("restart", UNIT)


def over_tls(stream, query):
    stream.sendall(struct.pack("!H", len(query)) + query)
    assert stream.recv(2)
    return stream.recv(4096)


def over_https(stream, query):
    stream.sendall(b"POST /dns-query HTTP/1.1\r\nHost: dns.example\r\nConnection: close\r\nContent-Type: application/dns-message\r\n"
                   b"Content-Length: %d\r\n\r\n" % len(query) + query)
    return b"".join(iter(lambda: stream.recv(4096), b"")).partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("key, name, port, over", [("tls", "dot", 853, over_tls), ("https", "doh", 443, over_https)])
def test_sockets_for_tls_are_of_a_unit_of_their_own(service, key, name, port, over):
    """A disabled socket unit is reported by the daemon and by `check`; an enabled one opens and closes with the service."""
    folder = CONFIGURATION.parent
    unit = f"httpdnsd-{name}.socket"
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=dns.example",
        "-addext", "subjectAltName=DNS:dns.example", "-keyout", str(folder / "server.key"), "-out", str(folder / "server.pem"))
    (folder / "server.key").chmod(0o644)
    served = f'[listen]\n{key} = ["127.0.0.1:{port}"]\ncertificateFile = "server.pem"\nkeyFile = "server.key"\n'
    configure(service, served)
    said = f"listen.{key} names 127.0.0.1:{port}, which no socket of systemd is for"
    mend = f"type systemctl enable {unit} && systemctl restart httpdnsd"

    def is_answered():
        context = ssl.create_default_context(cafile=folder / "server.pem")
        with context.wrap_socket(socket.create_connection(("127.0.0.1", port), 5), server_hostname="dns.example") as stream:
            reply = over(stream, dns.message.make_query("localhost", "A").to_wire())
            return addresses(dns.message.from_wire(reply)) == ["127.0.0.1"]
    try:
        systemctl("restart", UNIT)
        eventually(lambda: said in journal_text(), "it is in the journal")
        for words in (run("/usr/sbin/httpdnsd", "check").stderr, run("/usr/sbin/httpdnsd", "status").stdout):
            assert said in " ".join(words.split()) and mend in " ".join(words.split()), words
        run("sh", "-ec", mend.removeprefix("type "))
        assert is_answered() and addresses(ask("localhost", transport="tcp")) == ["127.0.0.1"]
        assert said not in run("/usr/sbin/httpdnsd", "check").stderr
        assert status_field("CapEff") == NO_CAPABILITY
        # A wrong file closes all sockets, so that clients do not start the daemon repeatedly.
        configure(service, served + "surplus = 1\n")
        assert systemctl("restart", UNIT, check=False).returncode != 0
        for socket_unit in (SOCKET, unit):
            eventually(lambda: show("ActiveState", socket_unit) == "inactive", f"{socket_unit} is closed")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 5)
        assert (show("NRestarts"), show("ExecMainStatus")) == ("0", "78")
        configure(service, served)
        systemctl("restart", UNIT)
        assert is_answered() and addresses(ask("localhost")) == ["127.0.0.1"]
        # With these sockets and without a certificate it would not start again.
        configure(service)
        leave = "systemctl disable --now httpdnsd-dot.socket httpdnsd-doh.socket && systemctl restart httpdnsd"
        for command in ("check", "reload"):
            ended = run("/usr/sbin/httpdnsd", command, check=False)
            assert ended.returncode == 78 and f"give certificateFile and keyFile, or type {leave}" in ended.stderr, ended
        assert is_answered()
        run("sh", "-ec", leave)
        assert addresses(ask("localhost")) == ["127.0.0.1"]
        configure(service, served)
        run("sh", "-ec", mend.removeprefix("type "))
        assert is_answered()
        # Another program has the port.
        systemctl("stop", unit, SOCKET, UNIT)
        with socket.create_server(("127.0.0.1", port)):
            systemctl("start", UNIT)
            assert show("ActiveState", unit) == "failed"
            assert f"{unit} has failed: systemctl status {unit} says why" in run("/usr/sbin/httpdnsd", "check").stderr
    finally:
        systemctl("disable", "--now", unit, check=False)
        systemctl("stop", SOCKET, UNIT, check=False)
        systemctl("reset-failed", check=False)
        configure(service)
        systemctl("start", SOCKET, UNIT)
    assert not list(pathlib.Path("/etc/systemd/system").rglob(unit))


def test_a_secret_that_has_changed_is_said(service):
    """systemd passes the secret when the daemon starts, so a reload does not take a new one, and says so."""
    key = CONFIGURATION.parent / "credentials/dnsKey"
    said = f"{key} is newer than what the daemon has"
    assert said not in run("/usr/sbin/httpdnsd", "reload").stderr
    other = CONFIGURATION.with_name("other.toml")
    other.write_text(CONFIGURATION.read_text())
    key.write_text("Swift-HTTPDNS-17\n")
    try:
        for command in ("reload", "status"):
            ended = run("/usr/sbin/httpdnsd", command)
            assert said in ended.stderr and "systemctl restart httpdnsd" in ended.stderr, ended
            # A file elsewhere is that of another daemon, which has other copies or none.
            assert run("/usr/sbin/httpdnsd", command, "-c", str(other)).stderr == ""
        systemctl("reload", UNIT)
        eventually(lambda: said in journal_text(), "it is in the journal")
        assert run("/usr/sbin/httpdnsd", "status", "--alive").stderr == ""
    finally:
        key.write_text(KEY + "\n")
        other.unlink()
    assert run("/usr/sbin/httpdnsd", "status").stderr == ""


def test_the_journal_has_fields():
    started = journal(MESSAGE_ID=STARTED)[-1]
    assert started["MESSAGE"].startswith("listening on 127.0.0.1:53, ")
    assert started["PRIORITY"] == "5" and started["SYSLOG_IDENTIFIER"] == "httpdnsd"
    assert started["_SYSTEMD_UNIT"] == UNIT and started["_TRANSPORT"] == "journal"
    assert started["HTTPDNSD_EVENT"] == "started"


def test_a_failure_is_found_by_its_message_id(service):
    service.stop()
    try:
        assert ask("failing.example.com").rcode() == 2
        entry = eventually(lambda: journal(MESSAGE_ID=SERVICE_FAILS), "it is in the journal")[-1]
        assert entry["PRIORITY"] == "4" and entry["HTTPDNSD_SERVER"] == service.endpoint
        assert "refused" in entry["HTTPDNSD_REASON"]
    finally:
        service.start()
    eventually(lambda: addresses(ask("again.example.com")), "it answers again")


def test_it_is_left_alone_as_long_as_it_is_well():
    pid = main_pid()
    time.sleep(4)
    assert main_pid() == pid and show("NRestarts") == "0"


def test_a_hang_is_found():
    pid = main_pid()
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: main_pid() not in (0, pid) and show("ActiveState") == "active", "another runs", 10)
    assert "Watchdog timeout" in journal_text()
    assert addresses(ask("localhost")) == ["127.0.0.1"]


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL], ids=["fault", "kill -9"])
def test_after_a_crash_questions_wait_for_the_next_start(number):
    """A question that the daemon was reading is lost. All later ones wait in the socket, and systemd waits a tenth of a second."""
    assert show("RestartUSec") == "100ms"
    pid = main_pid()
    os.kill(pid, number)
    eventually(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "it has ended")
    assert addresses(ask("localhost", timeout=20)) == ["127.0.0.1"]
    eventually(lambda: main_pid() not in (0, pid) and show("ActiveState") == "active", "another runs")


def test_reloading_under_load_loses_no_question(service, tmp_path):
    pid = main_pid()
    questions = tmp_path / "questions"
    questions.write_text("".join(f"n{i}.example.com A\n" for i in range(500)))
    load = ["dnsperf", "-s", "127.0.0.1", "-d", str(questions), "-Q", "5000", "-l", "3", "-t", "2"]
    with subprocess.Popen(load, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as dnsperf:
        for minimum in range(4):
            time.sleep(0.5)
            configure(service, f"minTTL = {minimum}")
            if minimum % 2:
                os.kill(pid, signal.SIGHUP)
            else:
                systemctl("reload", UNIT)
        said = dnsperf.communicate(timeout=30)[0]
    configure(service)
    assert re.search(r"Queries lost: +0 ", said), said
    assert int(re.search(r"Queries completed: +(\d+)", said).group(1)) > 10_000, said
    assert main_pid() == pid and show("ActiveState") == "active"


def test_a_wrong_configuration_changes_nothing(service):
    pid = main_pid()
    configure(service, "megabytes = 0")
    try:
        assert systemctl("reload", UNIT, check=False).returncode != 0, "whoever asks for it sees that it failed"
        assert "the configuration stays as it was" in journal_text()
        entry = eventually(lambda: journal(MESSAGE_ID=RELOAD_FAILED), "it says so")[-1]
        assert entry["PRIORITY"] == "3" and "cache.megabytes" in entry["MESSAGE"], entry
    finally:
        configure(service)
    assert show("ActiveState") == "active" and main_pid() == pid
    assert addresses(ask("localhost")) == ["127.0.0.1"]


def test_status_says_how_things_stand():
    wanted = r"serving; HTTPDNS [0-9.:]+ [0-9.]+ ms; cache [\d,]+ answers, \d+ % hits"
    eventually(lambda: re.fullmatch(wanted, show("StatusText")), "STATUS is kept current", 15)


def test_it_stops_in_order(service):
    service.hold()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.connect(("127.0.0.1", 53))
        client.send(dns.message.make_query("held.example.com", "A").to_wire())
        eventually(lambda: "held.example.com" in service.names, "it is asked for")
        systemctl("stop", "--no-block", SOCKET, UNIT)
        eventually(lambda: journal(MESSAGE_ID=STOPPING), "it stops")
        service.release()
        assert addresses(dns.message.from_wire(client.recv(4096))) == [address_of("held.example.com")]
    eventually(lambda: show("ActiveState") == "inactive", "it has stopped")
    assert show("Result") == "success" and show("ExecMainStatus") == "0"
    assert pathlib.Path("/var/cache/httpdnsd/cache").stat().st_size > 0


def test_the_first_question_starts_it():
    for transport in ("udp", "tcp"):
        systemctl("stop", SOCKET, UNIT)
        systemctl("start", SOCKET)
        assert show("ActiveState") == "inactive"
        assert addresses(ask("localhost", transport=transport, timeout=5)) == ["127.0.0.1"]
        # The daemon notifies systemd as soon as it answers; systemd reads the notification a moment later.
        eventually(lambda: show("ActiveState") == "active", "the unit is active")
        assert status_field("CapEff") == NO_CAPABILITY


def test_a_group_that_the_machine_has_is_the_daemons():
    """The daemon gets an existing group, so that members may use its socket, and the settings need not be readable by all."""
    run("groupadd", "--force", "--system", "httpdnsd")
    group = grp.getgrnam("httpdnsd").gr_gid
    os.chown(CONFIGURATION, 0, group)
    CONFIGURATION.chmod(0o640)
    try:
        systemctl("restart", UNIT)
        assert int(status_field("Gid")) == group == pathlib.Path("/run/httpdnsd").stat().st_gid
        assert 61184 <= int(status_field("Uid")) <= 65519
    finally:
        CONFIGURATION.chmod(0o644)
    assert addresses(ask("localhost")) == ["127.0.0.1"]


def test_with_its_own_sockets_it_has_one_capability():
    systemctl("stop", SOCKET, UNIT)
    systemctl("mask", "--runtime", SOCKET)
    try:
        with DropIn("own-sockets", OWN_SOCKETS):
            systemctl("start", UNIT)
            assert status_field("CapEff") == status_field("CapBnd") == CAP_NET_BIND_SERVICE
            assert addresses(ask("localhost")) == ["127.0.0.1"]
            pid = main_pid()
            os.kill(pid, signal.SIGSTOP)
            eventually(lambda: main_pid() not in (0, pid) and show("ActiveState") == "active", "another runs", 10)
            systemctl("stop", UNIT)
        # Without the capability, the daemon has no port below 1024.
        assert systemctl("start", UNIT, check=False).returncode != 0
        assert "bind 127.0.0.1:53: Permission denied" in journal_text()
        systemctl("stop", UNIT)
        systemctl("reset-failed", UNIT, check=False)
    finally:
        systemctl("unmask", "--runtime", SOCKET)


def test_a_mark_is_set_with_the_right_for_it_alone(service):
    """The server's port is closed; with CAP_NET_ADMIN, and only then, a marked question reaches it."""
    configure(service, MARKED)
    try:
        systemctl("restart", UNIT)
        assert ask("a.marked.example").rcode() == 2
        refused = "127.0.0.77:53 fails: setsockopt SO_MARK: Operation not permitted, it needs CAP_NET_ADMIN"
        eventually(lambda: refused in journal_text(), "it is in the journal")
        with DropIn("marks", MARKS):
            systemctl("restart", UNIT)
            assert status_field("CapEff") == status_field("CapBnd") == CAP_NET_ADMIN
            assert ask("a.marked.example").rcode() == 2
            eventually(lambda: "127.0.0.77:53 fails: recv: Connection refused" in journal_text(), "it is in the journal")
    finally:
        configure(service)
        systemctl("stop", SOCKET, UNIT)


def test_a_wrong_configuration_is_said_once_and_not_tried_again(service):
    """The sockets are closed, so that a program's question is refused at once, and the program asks the next server."""
    configure(service, "megabytes = 0")
    try:
        assert systemctl("start", UNIT, check=False).returncode != 0
        assert show("ActiveState") == "failed" and show("NRestarts") == "0" and show("ExecMainStatus") == "78"
        eventually(lambda: show("ActiveState", SOCKET) == "inactive", "the sockets are closed")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client, pytest.raises(ConnectionRefusedError):
            client.settimeout(5)
            client.connect(("127.0.0.1", 53))
            client.send(dns.message.make_query("localhost", "A").to_wire())
            client.recv(512)
    finally:
        configure(service)
    systemctl("start", UNIT)
    assert show("ActiveState", SOCKET) == "active"
    assert addresses(ask("localhost")) == ["127.0.0.1"]


def test_settings_that_cannot_be_read_are_wrong(service):
    """Unreadable settings are reported with the remedy, and the daemon is not started again."""
    CONFIGURATION.chmod(0o600)
    try:
        assert systemctl("restart", UNIT, check=False).returncode != 0
        assert (show("NRestarts"), show("ExecMainStatus")) == ("0", "78")
        assert f"Permission denied; let the daemon's group read it: chgrp httpdnsd {CONFIGURATION} && chmod 640" in journal_text()
        eventually(lambda: show("ActiveState", SOCKET) == "inactive", "the sockets are closed")
    finally:
        CONFIGURATION.chmod(0o644)
    systemctl("start", UNIT)


def test_a_port_that_another_program_has_is_said():
    systemctl("stop", SOCKET, UNIT)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 53))
        try:
            assert systemctl("start", UNIT, check=False).returncode != 0
            said = eventually(lambda: "systemctl status httpdnsd.socket says why" in journal_text() and journal_text(), "it says so")
            assert "bind 127.0.0.1:53: " in said and "another program has it" in said
        finally:
            systemctl("stop", SOCKET, UNIT, check=False)
    systemctl("reset-failed")
    systemctl("start", UNIT)
    assert addresses(ask("localhost")) == ["127.0.0.1"]


def test_nothing_has_failed_in_the_end():
    assert systemctl("--failed", "--no-legend", "--plain", "list-units", "httpdnsd*").stdout == ""
