"""`httpdnsd host` where /etc/resolv.conf is written by hand; Tests/Packaging/test_hosts.py has the programs that keep it."""

import os
import pathlib
import socket
import subprocess

import pytest

import daemon as processes
from httpdns_service import Record
from resolvers import answer_locally
from standard import LOCAL_RESOLVER
from test_service_manager import handed_over, listening
from waiting import eventually

BEFORE = f"# mine\nsearch example.org\nnameserver {LOCAL_RESOLVER}\noptions timeout:3 attempts:1 trust-ad\n"
AFTER = """# httpdnsd host enable; httpdnsd host disable puts back what was here
nameserver 127.0.0.1
options edns0 timeout:3 attempts:1
search example.org
"""
ELSEWHERE = "search example.net\nnameserver 10.53.53.53\n"
# The system calls that write; for each there is a run in which it is the last call.
WRITING = {"enable": ["write", "fchown", "fchmod", "fsync", "rename", "mkdir", "chmod"],
           "disable": ["write", "fchown", "fchmod", "fsync", "rename", "symlink", "unlink", "rmdir"]}
HTTPDNS = "203.0.113.20"


class Host:
    """A machine with /etc and /var/lib of its own, in which nothing is mounted over resolv.conf."""

    MAKE = """
    set -e
    cp -a /etc "$1/etc"
    umount /etc/resolv.conf /etc/nsswitch.conf /etc/hosts
    mount --bind "$1/etc" /etc
    rm -rf /etc/httpdnsd
    mkdir "$1/lib"
    mount --bind "$1/lib" /var/lib
    mount -t tmpfs none /run
    echo ready
    exec sleep infinity
    """

    def __init__(self, binary, folder):
        self.binary = binary
        # The files that are mounted over files of /etc are copied by content, not as mounts.
        self.holder = subprocess.Popen(["unshare", "--mount", "bash", "-c", self.MAKE, "bash", str(folder)],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "ready\n"
        self.inside = ["nsenter", f"--target={self.holder.pid}", "--mount"]
        self.root = pathlib.Path(f"/proc/{self.holder.pid}/root")
        self.resolv_conf = self.root / "etc/resolv.conf"
        self.resolv_conf.write_text(BEFORE)
        self.resolv_conf.chmod(0o640)

    def run(self, *command, prefix=(), code=0):
        ended = subprocess.run([*self.inside, *prefix, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                               timeout=60, env=processes.environment())
        assert code is None or ended.returncode == code, ended
        return ended

    def __call__(self, *arguments, **options):
        return self.run(str(self.binary), "host", *arguments, **options)

    def resolves(self, name="www.example.com"):
        return self.run("getent", "ahostsv4", name, code=None).stdout.split(" ")[0]

    def state(self):
        """Everything that `host` may change, octet by octet."""
        def seen(path):
            status = path.lstat()
            if path.is_symlink():
                return os.readlink(path)
            return (status.st_mode, status.st_uid, status.st_gid, None if path.is_dir() else path.read_bytes())
        found = {"names": sorted(os.listdir(self.root / "etc"))}
        for folder in ("etc/httpdnsd", "var/lib"):
            for path in (self.root / folder).rglob("*"):
                found[str(path)] = seen(path)
        return found | {"resolv.conf": seen(self.resolv_conf)}

    def close(self):
        self.holder.kill()
        self.holder.communicate()


@pytest.fixture
def machine(binary, tmp_path):
    made = Host(binary, tmp_path)
    yield made
    made.close()


@pytest.fixture
def host(machine, daemon, service, unbound):
    """A host with a daemon that has an account, and takes the local resolver from resolv.conf alone."""
    chosen = service("aes", {"www.example.com": Record([HTTPDNS], [], 5)})
    machine.service = chosen
    machine.daemon = daemon(chosen, {"fallback": {"servers": []}}, prefix=machine.inside)
    return machine


def test_there_and_back(host):
    before = host.state()
    assert host.resolves() != HTTPDNS and host.resolves("only.local.example") == ""
    shown = host().stdout
    assert "/etc/resolv.conf is written by hand and names 127.0.0.2." in shown and "do not ask this daemon" in shown
    assert "  write /etc/httpdnsd/resolv.conf\n  write /etc/resolv.conf\n" in shown
    said = host("enable", "--dry-run").stdout
    assert "    | nameserver 127.0.0.1\n" in said and host("disable", "--dry-run").stdout.startswith("httpdnsd host enable has changed nothing")
    assert host.state() == before, "until now nothing was changed"
    said = host("enable", "--name", "www.example.com").stdout
    assert "www.example.com resolves, and programs ask the daemon at 127.0.0.1." in said
    assert host.resolv_conf.read_text() == AFTER
    eventually(lambda: host.resolves() == HTTPDNS, "programs are answered by HTTPDNS")
    # A name that HTTPDNS does not know goes to the former resolver.
    assert host.daemon.log_lines(r"fallback 127\.0\.0\.2:53") or host.resolves("service.example.com") == "127.0.0.1"
    shown = host().stdout
    assert "Programs ask this daemon at 127.0.0.1." in shown and "  put back /etc/resolv.conf\n" in shown
    # A second `enable` undoes the first, so `disable` restores the state before the first.
    assert "is put back first" in host("enable", "--name", "www.example.com").stdout
    assert host.resolv_conf.read_text() == AFTER
    said = host("disable").stdout
    assert "Everything is as it was. /etc/resolv.conf is written by hand and names 127.0.0.2." in said
    assert host.state() == before
    assert "has changed nothing" in host("disable").stdout and host.state() == before


def test_a_link_is_a_link_again(host):
    (host.root / "etc/static.conf").write_text(BEFORE)
    host.resolv_conf.unlink()
    host.resolv_conf.symlink_to("static.conf")
    before = host.state()
    host("enable", "--name", "www.example.com")
    assert not host.resolv_conf.is_symlink() and host.resolv_conf.read_text() == AFTER
    host("disable")
    assert host.state() == before and os.readlink(host.resolv_conf) == "static.conf"


def test_a_file_system_of_its_own(host):
    """Where the record is kept may be a volume of a container, whose folder stays."""
    kept = host.root / "var/lib/httpdnsd"
    kept.mkdir()
    host.run("mount", "-t", "tmpfs", "-o", "mode=755", "none", "/var/lib/httpdnsd")
    assert "has changed nothing" in host("disable").stdout
    host("enable", "--name", "www.example.com")
    host("disable")
    assert host.resolv_conf.read_text() == BEFORE and not list(kept.iterdir())


def test_what_does_not_work_changes_nothing(host):
    before = host.state()
    ended = host("enable", "--name", "missing.invalid", code=69)
    assert "has no address of missing.invalid" in ended.stderr and host.state() == before
    # The daemon answers but programs do not ask it, as their nsswitch.conf has no `dns`.
    (host.root / "etc/nsswitch.conf").write_text("hosts: files\n")
    with_files = host.state()
    ended = host("enable", "--name", "www.example.com", code=69)
    assert "does not resolve after the change" in ended.stderr and "Everything is as it was." in ended.stdout
    assert host.state() == with_files
    host.daemon.stop()
    ended = host("enable", "--name", "www.example.com", code=69)
    assert "the daemon must answer first" in ended.stderr and host.state() == with_files


def test_a_daemon_that_runs_is_not_to_be_started(machine, daemon):
    """The message names `listen.allow`, or leads to the servers that fail."""
    refusing = daemon(whole={"listen": {"allow": ["10.53.53.0/24"]}, "fallback": {"servers": [LOCAL_RESOLVER]}}, ready=False,
                      prefix=machine.inside)
    said = "127.0.0.1:53 refuses the programs of this machine: add 127.0.0.0/8 to listen.allow"
    eventually(lambda: said in machine().stdout, "it is said")
    ended = machine("enable", "--name", "dead.example.com", code=69)
    assert said in ended.stderr and "systemctl" not in ended.stderr
    refusing.stop()
    daemon(whole={"fallback": {"servers": ["127.0.0.9:9"]}}, prefix=machine.inside)
    ended = machine("enable", "--name", "dead.example.com", code=69)
    assert "the daemon at 127.0.0.1:53 does not resolve dead.example.com: " in ended.stderr
    assert "; httpdnsd status says more" in ended.stderr and "systemctl" not in ended.stderr


def test_another_program_at_the_address(host, scripted_resolver):
    """Its answers are not taken for the daemon's."""
    host.daemon.stop()
    scripted_resolver(answer_locally, address="127.0.0.1")
    said = "another program answers at 127.0.0.1:53; ss -lntup says which"
    for text in ("nameserver 127.0.0.1\n", BEFORE):
        host.resolv_conf.write_text(text)
        before = host.state()
        assert f"Programs do not ask this daemon: {said}." in host().stdout
        assert said in host("enable", "--name", "www.example.com", code=69).stderr
        assert host.state() == before


def test_sockets_that_are_handed_over(binary, machine, unbound, tmp_path):
    """With sockets of systemd, the daemon is found where they are, whatever addresses the settings name."""
    elsewhere, file = "10.53.53.53:53", tmp_path / "httpdnsd.toml"
    file.write_text(processes.toml({"listen": {"addresses": [elsewhere]}, "fallback": {"servers": [LOCAL_RESOLVER]}}))
    handed = [listening(kind, ("127.0.0.1", 53)) for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM)]
    process = handed_over(binary, handed, tmp_path, more={"HTTPDNSD_LISTEN_ADDRESSES": elsewhere})
    try:
        eventually(lambda: "listening on 127.0.0.1:53" in (tmp_path / "log").read_text(), "it listens")
        before = machine.state()
        assert "Programs do not ask this daemon, which is at 127.0.0.1." in machine("-c", str(file)).stdout
        said = machine("enable", "-c", str(file), "--name", "www.example.com").stdout
        assert "www.example.com resolves, and programs ask the daemon at 127.0.0.1." in said
        assert machine.resolv_conf.read_text() == AFTER
        shown = machine("-c", str(file)).stdout
        assert "Programs ask this daemon at 127.0.0.1." in shown and "as well" not in shown
        machine("disable")
        assert machine.state() == before
    finally:
        process.terminate()
        assert process.wait(20) == 0
        for one in handed:
            one.close()
    said = "none of them is port 53 of loopback"
    assert said in machine("-c", str(file)).stdout
    assert said in machine("enable", "-c", str(file), code=78).stderr
    assert machine.state() == before


def test_a_file_of_another_network_stays(host, scripted_resolver):
    """A DHCP client, or a program that was installed since, has written resolv.conf: the former servers may be gone."""
    scripted_resolver(answer_locally, address="10.53.53.53")
    copy, before = host.root / "etc/httpdnsd/resolv.conf", host.state()
    stays = "/etc/resolv.conf was changed since and stays."
    host("enable", "--name", "www.example.com")
    host.resolv_conf.write_text(ELSEWHERE)
    assert "  leave /etc/resolv.conf, which was changed since\n" in host().stdout
    assert "  leave /etc/resolv.conf, which was changed since\n" in host("disable", "--dry-run").stdout
    # A second `enable` learns the servers of the present network.
    assert stays in host("enable", "--name", "www.example.com").stdout
    assert copy.read_text() == ELSEWHERE and "nameserver 127.0.0.1\n" in host.resolv_conf.read_text()
    assert stays not in host("disable").stdout and host.resolv_conf.read_text() == ELSEWHERE
    host("enable", "--name", "www.example.com")
    host.resolv_conf.write_text("nameserver 10.53.53.53\n")
    said = host("disable").stdout
    assert f"{stays}\nEverything else is as it was. /etc/resolv.conf is written by hand and names 10.53.53.53." in said
    assert not copy.exists() and "has changed nothing" in host("disable").stdout
    # The link of a keeper stays as well.
    host("enable", "--name", "www.example.com")
    servers = host.root / "run/systemd/resolve"
    servers.mkdir(parents=True)
    (servers / "stub-resolv.conf").write_text("nameserver 127.0.0.53\n")
    (servers / "resolv.conf").write_text(ELSEWHERE)
    host.resolv_conf.unlink()
    host.resolv_conf.symlink_to("../run/systemd/resolve/stub-resolv.conf")
    assert "Everything else is as it was. /etc/resolv.conf is kept by systemd-resolved" in host("disable").stdout
    assert os.readlink(host.resolv_conf) == "../run/systemd/resolve/stub-resolv.conf" and not copy.exists()
    # A file that still names the daemon would be of no use without it.
    host.resolv_conf.unlink()
    host.resolv_conf.write_text(BEFORE)
    host.resolv_conf.chmod(0o640)
    host("enable", "--name", "www.example.com")
    host.resolv_conf.write_text(AFTER + "search example.net\n")
    assert stays not in host("disable").stdout and host.state() == before


def test_systemd_resolved_that_does_not_take_it(host, tmp_path):
    """Its user may read what was written, whatever root's umask; if it asks others all the same, that is what is said."""
    servers, folder = host.root / "run/systemd/resolve", "/etc/systemd/resolved.conf.d"
    servers.mkdir(parents=True)
    (servers / "stub-resolv.conf").write_text("nameserver 127.0.0.53\n")
    (servers / "resolv.conf").write_text(ELSEWHERE)
    host.resolv_conf.unlink()
    host.resolv_conf.symlink_to("../run/systemd/resolve/stub-resolv.conf")
    (host.root / "etc/hosts").write_text("192.0.2.80 www.example.com\n")
    host.run("rm", "-rf", folder)
    host.run("mkdir", "-p", "/etc/systemd")
    before, systemctl, modes = host.state(), tmp_path / "systemctl", tmp_path / "modes"
    systemctl.write_text(f"#!/bin/sh\nstat -c %a {folder} >> {modes}\nexit 0\n")
    systemctl.chmod(0o755)
    inside = ("sh", "-c", f'umask 077; PATH={tmp_path}:$PATH; exec "$@"', "sh")
    ended = host("enable", "--name", "www.example.com", prefix=inside, code=69)
    said = "programs do not ask the daemon after the change: /etc/resolv.conf is kept by systemd-resolved, which asks 10.53.53.53"
    assert said in " ".join(ended.stderr.split()) and "Everything is as it was." in ended.stdout, ended
    assert modes.read_text().split()[0] == "755" and host.state() == before


def test_who_cannot_be_helped(host):
    host.resolv_conf.write_text("nameserver 127.0.0.1\n")
    assert "already; nothing was changed" in host("enable", "--name", "www.example.com").stdout
    for text, said in (("# Generated by dhcpcd\nnameserver 127.0.0.2\n", "dhcpcd keeps /etc/resolv.conf"),
                       ("# Generated by resolvconf\nnameserver 127.0.0.2\n", "name_servers=127.0.0.1")):
        host.resolv_conf.write_text(text)
        assert said in host().stdout
        assert said in host("enable", "--name", "www.example.com", code=71).stderr
        assert host.resolv_conf.read_text() == text
    host.run("mount", "--bind", "/etc/hosts", "/etc/resolv.conf")
    assert "docker run --dns 127.0.0.1" in host("enable", "--name", "www.example.com", code=71).stderr


@pytest.mark.parametrize(("work", "call"), [(work, call) for work, calls in WRITING.items() for call in calls])
def test_killed_at_each_call_that_writes(host, work, call):
    """After a kill at any such call, the host resolves, its files are whole, and `disable` restores them."""
    if call == "symlink":
        (host.root / "etc/static.conf").write_text(BEFORE)
        host.resolv_conf.unlink()
        host.resolv_conf.symlink_to("static.conf")
    before = host.state()
    arguments = ["enable", "--name", "www.example.com"] if work == "enable" else ["disable"]
    killed = 0
    for number in range(1, 60):
        if work == "disable":
            host("enable", "--name", "www.example.com")
        kill = ["strace", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}"]
        ended = host(*arguments, prefix=kill, code=None)
        if ended.returncode == 0:
            break
        killed += 1
        assert ended.returncode in (137, -9), ended
        assert host.resolv_conf.read_text() in (BEFORE, AFTER), number
        assert host.resolves(), f"after call {number} of {call} nothing resolves"
        host("disable")
        assert host.state() == before, f"{call} {number}"
    else:
        pytest.fail("it never comes to its end")
    host("disable")
    assert host.state() == before
    assert killed


@pytest.mark.parametrize("named", ["/run/httpdnsd/another.sock", ""])
def test_a_socket_of_before_the_restart(machine, daemon, binary, named):
    """Commands find a daemon at the usual socket while the file already names another one, or none."""
    (machine.root / "run/httpdnsd").mkdir()
    daemon(whole={"fallback": {"servers": [LOCAL_RESOLVER]}, "control": {"socket": "/run/httpdnsd/control.sock"}},
           prefix=machine.inside)
    (machine.root / "etc/httpdnsd").mkdir()
    (machine.root / "etc/httpdnsd/httpdnsd.toml").write_text(f'[control]\nsocket = "{named}"\n')
    typed = ["env", "--unset=HTTPDNSD_CONTROL_SOCKET", str(binary)]
    status = machine.run(*typed, "status")
    assert f"  {LOCAL_RESOLVER}" in status.stdout
    assert "no daemon answers at control.socket: the one at /run/httpdnsd/control.sock is asked" in status.stderr
    assert "nothing has changed" in machine.run(*typed, "reload").stdout
