"""Commands ask a running daemon while its settings file is being edited: each finds the daemon and reports what is wrong."""

import contextlib
import os
import pathlib
import socket
import subprocess

import pytest

import daemon as processes
from dns_client import addresses, ask

BROKEN = {
    "unknown key": lambda text: text + "\n[log]\ncolour = 1\n",
    "unknown section": lambda text: text + "\n[logs]\n",
    "wrong value": lambda text: text + "\n[cache]\nmegabytes = 0\n",
    "two mistakes": lambda text: text + "\n[cache]\nmegabytes = 0\nmaxTTL = -1\n",
    "secret that is not there": lambda text: text + '\n[upstreams.other]\nprovider = "tencent"\ntokenFile = "nowhere"\n',
    "not TOML at the beginning": lambda text: "not TOML\n" + text,
    "not TOML at the end": lambda text: text + "\n[cache]\nmegabytes = \n",
    "half a section": lambda text: text + "\n[cache",
    "text without an end": lambda text: text + '\n[cache]\nfile = "/var\n',
    "not UTF-8": lambda text: text.encode() + b"\n[cache]\nfile = '\xff\xfe'\n\x00",
}
COMMANDS = {
    "status": ["status"], "json": ["status", "--json"], "alive": ["status", "--alive"], "ready": ["status", "--ready"],
    "explain": ["explain", "www.example.com"], "flush": ["flush", "www.example.com"], "flush all": ["flush", "--all"],
}


def typed(binary, *arguments, timeout=20, **variables):
    """Runs a command as a person types it, without a variable that names a socket."""
    variables = {key: value for key, value in processes.environment(variables).items()
                 if key != "HTTPDNSD_CONTROL_SOCKET" or value}
    try:
        return subprocess.run([binary, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout, env=variables)
    except subprocess.TimeoutExpired as late:
        return late


@pytest.fixture
def running(daemon, service, place):
    """A daemon whose socket is named by its settings alone."""
    return daemon(service("https"), {"control": {"socket": str(place / "control.sock")}})


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_hides_no_daemon(running, binary, kind):
    file = running.directory / "httpdnsd.toml"
    right = file.read_text()
    broken = BROKEN[kind](right)
    file.write_bytes(broken if isinstance(broken, bytes) else broken.encode())
    for name, command in COMMANDS.items():
        ended = typed(binary, *command, "-c", str(file))
        assert ended.returncode == 0, (name, ended)
        # Only the daemon reads the files of secrets, so commands do not report a missing one.
        lines = [] if kind == "secret that is not there" else [f"{file}:"]
        assert [line[:len(str(file)) + 1] for line in ended.stderr.splitlines()] == lines, (name, ended)
    watched = typed(binary, "watch", "-c", str(file), timeout=1)
    assert isinstance(watched, subprocess.TimeoutExpired), watched
    ended = typed(binary, "reload", "-c", str(file))
    assert ended.returncode == 78 and len(ended.stderr.splitlines()) == 1, ended
    assert "the configuration stays as it was: " in ended.stderr, "the daemon says so, and counts it"
    assert addresses(ask("www.example.com"))
    file.write_text(right)
    ended = typed(binary, "reload", "-c", str(file))
    assert (ended.returncode, ended.stderr) == (0, ""), ended


def test_a_file_that_is_gone_or_cannot_be_read(running, binary, place):
    """The command finds the socket by a variable or by --socket when the file cannot be read."""
    file = running.directory / "httpdnsd.toml"
    for break_it in (file.unlink, file.mkdir):
        break_it()
        for name, command in COMMANDS.items():
            ended = typed(binary, *command, "-c", str(file), HTTPDNSD_CONTROL_SOCKET=str(place / "control.sock"))
            assert ended.returncode == 0 and len(ended.stderr.splitlines()) == 1 and str(file) in ended.stderr, (name, ended)
            ended = typed(binary, *command, "--socket", str(place / "control.sock"), "-c", str(file))
            assert (ended.returncode, ended.stderr) == (0, ""), (name, ended)
        assert typed(binary, "reload", "-c", str(file), HTTPDNSD_CONTROL_SOCKET=str(place / "control.sock")).returncode == 78


def test_without_a_daemon_the_file_is_what_is_wrong(binary, tmp_path):
    file = tmp_path / "httpdnsd.toml"
    file.write_text(f'[control]\nsocket = "{tmp_path}/none"\nsockets = 1\n')
    for name, code in (("status", 69), ("alive", 69), ("ready", 69), ("flush", 69), ("explain", 78)):
        ended = typed(binary, *COMMANDS[name], "-c", str(file))
        lines = ended.stderr.splitlines()
        assert ended.returncode == code and lines[0].startswith(f"{file}:3: control.sockets: "), (name, ended)
        assert len(lines) == (1 if code == 78 else 2), (name, ended)
    ended = typed(binary, "reload", "-c", str(file))
    assert ended.returncode == 78 and len(ended.stderr.splitlines()) == 1, ended


def stale(path):
    """Leaves a socket at the path, as a killed process does."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))


@pytest.mark.parametrize("dead", ["none", "the usual one", "a demo", "both"])
def test_a_socket_that_was_left_hides_no_demo(binary, daemon, place, dead):
    folders = [place / "httpdnsd-demo", place / "httpdnsd-demo-2"]
    usual = pathlib.Path("/run/httpdnsd/control.sock")
    if os.path.lexists(usual):
        pytest.skip("there is a daemon")
    own = folders[1 if dead in ("a demo", "both") else 0] / "control.sock"
    with contextlib.ExitStack() as after:
        if dead in ("the usual one", "both"):
            stale(usual)
            after.callback(usual.parent.rmdir)
            after.callback(usual.unlink)
        if own.parent != folders[0]:
            stale(folders[0] / "control.sock")
        own.parent.mkdir(mode=0o700)
        daemon(None, {"control": {"socket": str(own)}})
        for name, command in COMMANDS.items():
            ended = typed(binary, *command, XDG_RUNTIME_DIR=str(place))
            assert ended.returncode == 0, (name, ended)
