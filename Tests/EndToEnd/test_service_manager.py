"""Notifications to a service manager, its sockets, and its log. (Tests/Systemd has the real one.)"""

import contextlib
import json
import os
import re
import socket
import subprocess
import tempfile
import time

import pytest

from control import metrics, total
from daemon import environment, run
from dns_client import addresses, ask
from networks import needs_ipv6
from waiting import eventually

ANY = {"fallback": {"servers": ["127.0.0.2"]}}


class Manager:
    """Receives the daemon's notifications through NOTIFY_SOCKET."""

    def __init__(self, directory, watchdog=None):
        self.path = str(directory / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.heard = []
        self.variables = {"NOTIFY_SOCKET": self.path}
        if watchdog:
            self.variables["WATCHDOG_USEC"] = str(int(watchdog * 1e6))

    def count(self, word):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.heard += self.socket.recv(4096, socket.MSG_DONTWAIT).decode().split("\n")
        return len([line for line in self.heard if line.startswith(word)])


@pytest.fixture
def manager(tmp_path):
    made = []

    def make(**options):
        made.append(Manager(tmp_path, **options))
        return made[-1]

    yield make
    for one in made:
        one.socket.close()


@pytest.mark.parametrize("listen", [
    {"addresses": ["127.0.0.1:53"]},
    {"addresses": ["0.0.0.0:5399", "[::]:5399"], "allow": ["192.0.2.0/24"]},
    {"addresses": ["10.53.53.53:53"], "allow": ["127.0.0.0/8"], "workers": 3},
], ids=["loopback", "wildcard", "not allowed to itself"])
def test_it_says_that_it_is_ready_how_it_is_and_that_it_lives(daemon, manager, listen):
    manager, began = manager(watchdog=2), time.monotonic()
    running = daemon(None, ANY | {"listen": listen}, variables=manager.variables, ready=False)
    eventually(lambda: manager.count("READY=1"), "READY=1")
    eventually(lambda: manager.count("WATCHDOG=1") >= 3, "it says again and again that it lives")
    assert 1 <= manager.count("STATUS=serving; ") <= 1 + (time.monotonic() - began) // 10, "once in ten seconds at most"
    running.stop()
    assert manager.count("STOPPING=1") == 1
    assert "watchdog" not in running.log() and "not told" not in running.log(), running.log()


def test_the_watchdog_of_another_process_is_not_fed(daemon, manager):
    manager = manager(watchdog=0.2)
    daemon(None, ANY, variables=manager.variables | {"WATCHDOG_PID": "1"})
    eventually(lambda: manager.count("READY=1"), "READY=1")
    time.sleep(0.5)
    assert not manager.count("WATCHDOG=1")


def test_the_daemon_asks_itself_nothing(binary, daemon, manager):
    """The daemon's checks for the watchdog are not counted as questions."""
    manager = manager(watchdog=0.2)
    with tempfile.TemporaryDirectory(prefix="m-", dir="/tmp") as folder:
        socket = {"control": {"socket": f"{folder}/s"}}
        daemon(None, ANY | socket, variables=manager.variables, ready=False)
        eventually(lambda: manager.count("WATCHDOG=1") >= 3, "it says again and again that it lives")
        status = run(binary, "status", "--json", "--socket", f"{folder}/s")
    assert json.loads(status.stdout)["questions"]["asked"] == 0


def handed_over(binary, sockets, directory, names=None, more=None):
    """A daemon with these sockets as descriptors 3 and up, as by sd_listen_fds(3)."""
    count = len(sockets)

    def arrange():  # in the child; first to unused numbers, then to the right ones
        moved = [os.dup2(one.fileno(), 100 + i) for i, one in enumerate(sockets)]
        for i, descriptor in enumerate(moved):
            os.dup2(descriptor, 3 + i)
    script = f'export LISTEN_PID=$$ LISTEN_FDS={count}; exec "$0" run'
    variables = {"HTTPDNSD_FALLBACK_SERVERS": "127.0.0.2", "HTTPDNSD_LISTEN_ADDRESSES": "127.0.0.9:53"} | (more or {})
    if names:
        variables["LISTEN_FDNAMES"] = ":".join(names)
    with (directory / "log").open("w") as log:
        return subprocess.Popen(["sh", "-c", script, binary], preexec_fn=arrange, close_fds=False, stdout=log,
                                stderr=log, stdin=subprocess.DEVNULL, env=environment(variables))


def listening(kind, address):
    made = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, kind)
    if ":" in address[0]:
        # As in systemd without BindIPv6Only=: for both families.
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    if kind == socket.SOCK_STREAM:
        # As in systemd: connections of an earlier test may still be closing.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(address)
    if kind == socket.SOCK_STREAM:
        made.listen()
    return made


def test_sockets_of_several_addresses_replace_those_of_the_configuration(binary, tmp_path):
    handed = [listening(socket.SOCK_DGRAM, ("127.0.0.1", 53)), listening(socket.SOCK_STREAM, ("127.0.0.1", 53)),
              listening(socket.SOCK_DGRAM, ("0.0.0.0", 5353)), listening(socket.SOCK_STREAM, ("127.0.0.4", 5354))]
    process = handed_over(binary, handed, tmp_path, names=["udp", "tcp", "a b", "unknown"])
    try:
        for port, transport, server in [(53, "udp", "127.0.0.1"), (53, "tcp", "127.0.0.1"), (5353, "udp", "127.0.0.7"),
                                        (5354, "tcp", "127.0.0.4")]:
            assert addresses(ask("localhost", port=port, transport=transport, server=server)) == ["127.0.0.1"]
        with pytest.raises(ConnectionRefusedError):
            ask("localhost", server="127.0.0.9", transport="tcp")
    finally:
        process.terminate()
        assert process.wait(20) == 0
        for one in handed:
            one.close()


def test_who_may_ask_is_judged_by_the_sockets_that_are_handed_over(binary, tmp_path):
    handed = [listening(socket.SOCK_DGRAM, ("0.0.0.0", 5399)), listening(socket.SOCK_STREAM, ("0.0.0.0", 5399))]
    process = handed_over(binary, handed, tmp_path, more={"HTTPDNSD_LISTEN_ALLOW": "0.0.0.0/0"})
    try:
        eventually(lambda: "listening on 0.0.0.0:5399" in (tmp_path / "log").read_text(), "it listens")
        said = "warning listen.allow has 0.0.0.0/0, and 0.0.0.0:5399 is not loopback: everyone who reaches it is answered"
        assert said in (tmp_path / "log").read_text()
    finally:
        process.terminate()
        assert process.wait(20) == 0
        for one in handed:
            one.close()


@needs_ipv6
def test_sockets_of_both_families_are_sockets_of_ipv4_too(binary, tmp_path):
    """No address of IPv4 counts as missing, the daemon is no server of its own, and clients over IPv4 count as such."""
    handed = [listening(socket.SOCK_DGRAM, ("::", 5399)), listening(socket.SOCK_STREAM, ("::", 5399))]
    process = handed_over(binary, handed, tmp_path, more={
        "HTTPDNSD_LISTEN_ADDRESSES": "127.0.0.1:5399", "HTTPDNSD_LISTEN_ALLOW": "127.0.0.0/8",
        "HTTPDNSD_FALLBACK_SERVERS": "127.0.0.1:5399", "HTTPDNSD_CONTROL_METRICS": "127.0.0.1:9153"})

    def said():
        return (tmp_path / "log").read_text()
    try:
        eventually(lambda: "metrics and status page on" in said(), "it listens")
        assert "listening on [::]:5399, 0.0.0.0:5399" in said()
        assert "fallback.servers names 127.0.0.1:5399, which is this daemon itself" in said()
        assert "no question is answered there" not in said()
        for transport in ("udp", "tcp"):
            assert addresses(ask("localhost", port=5399, transport=transport)) == ["127.0.0.1"]
        asked = metrics()
        assert [total(asked, "httpdnsd_dns_requests_total", proto=proto, family="1") for proto in ("udp", "tcp")] == [1, 1]
        assert total(asked, "httpdnsd_dns_requests_total", family="2") == 0
    finally:
        process.terminate()
        assert process.wait(20) == 0
        for one in handed:
            one.close()


@pytest.mark.parametrize("leftover", ["unix", "file", "unbound", "not listening"])
def test_what_is_nothing_to_listen_on_is_named(binary, tmp_path, leftover):
    made = {"unix": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
            "file": lambda: tempfile.TemporaryFile(),
            "unbound": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
            "not listening": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)}[leftover]()
    good = listening(socket.SOCK_DGRAM, ("127.0.0.1", 53))
    if leftover == "not listening":
        made.bind(("127.0.0.1", 5355))
    with good, made:
        process = handed_over(binary, [good, made], tmp_path)
        assert process.wait(20) == 71
    said = (tmp_path / "log").read_text()
    assert len(said.splitlines()) == 1 and ("descriptor 4" in said or "ENOTSOCK" in said or "socket" in said), said


def run_with_log(binary, path, variables, address="127.0.0.1:53"):
    with path.open("w") as log:
        status = os.fstat(log.fileno())
        variables = {key: value.format(stream=f"{status.st_dev}:{status.st_ino}") for key, value in variables.items()}
        process = subprocess.Popen([binary, "run", "--listen", address], stderr=log, stdin=subprocess.DEVNULL,
                                   env=environment({"HTTPDNSD_FALLBACK_SERVERS": "127.0.0.2"} | variables))
    eventually(lambda: "listening on" in path.read_text(), "it listens")
    process.terminate()
    assert process.wait(20) == 0
    return path.read_text().splitlines()


def test_the_log_for_a_stream_that_the_journal_reads(binary, tmp_path):
    lines = run_with_log(binary, tmp_path / "log", {"JOURNAL_STREAM": "{stream}", "HTTPDNSD_LOG_FORMAT": "text"})
    assert "<5>listening on 127.0.0.1:53" in lines and all(re.match("<[3-6]>[^<]", line) for line in lines), lines


def test_the_log_for_people(binary, tmp_path):
    """The log has times when its stream is not the journal's, even with an inherited JOURNAL_STREAM."""
    lines = run_with_log(binary, tmp_path / "log", {"JOURNAL_STREAM": "8:12345"})
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (notice|warning) ", line) for line in lines), lines


def test_the_log_for_programs(binary, tmp_path):
    entries = [json.loads(line) for line in run_with_log(binary, tmp_path / "log", {"HTTPDNSD_LOG_FORMAT": "json"})]
    started = next(entry for entry in entries if entry.get("event") == "started")
    assert started["level"] == "notice" and started["message"] == "listening on 127.0.0.1:53"
    assert started["addresses"] == "127.0.0.1:53"
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["time"]) for entry in entries)
