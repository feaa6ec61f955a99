"""A command shows its progress on a terminal after a second, and nowhere else."""

import os
import pty
import re
import subprocess
import time

import pytest

import daemon as processes
from httpdns_service import Fault, every_name

LINE = re.compile(r"\r\x1b\[K([^\r\n]*)")


@pytest.fixture
def on_a_terminal(binary, tmp_path):
    """Runs a command with standard error on a terminal; returns its exit code, its standard output, and the terminal's input."""
    def run(*arguments, settings, variables=None):
        file = tmp_path / "httpdnsd.toml"
        file.write_text(processes.toml(settings))
        terminal, other_end = pty.openpty()
        process = subprocess.Popen(
            [binary, *arguments, "-c", str(file)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=other_end,
            env=processes.environment({"TERM": "xterm"} | (variables or {})))
        os.close(other_end)
        sent = b""
        while True:
            try:
                octets = os.read(terminal, 4096)
            except OSError:  # the other end is closed
                break
            if not octets:
                break
            sent += octets
        os.close(terminal)
        with process.stdout:
            output = process.stdout.read().decode()
        return process.wait(60), output, sent.decode()
    return run


def silent(service, **keys):
    chosen = service("aes", every_name)
    chosen.fault = Fault("silence")
    return {"httpdns": chosen.settings() | {"timeout": 4500} | keys, "fallback": {"servers": ["127.0.0.9"], "timeout": 300}}


def test_it_is_said_and_erased(on_a_terminal, service):
    settings = silent(service)
    code, output, sent = on_a_terminal("probe", settings=settings)
    server = settings["httpdns"]["dnsIp"][0]
    said = LINE.findall(sent)
    seconds = [int(one) for line in said for one in re.findall(rf"^asking HTTPDNS {re.escape(server)} \(1 of 2\), (\d+) s$", line)]
    assert code == 69 and len(seconds) > 1 and seconds == sorted(set(seconds)), said
    # In the end, the terminal has the command's last line alone.
    assert re.sub(r"[^\r\n]*\r\x1b\[K", "", sent) == sent.rpartition("\x1b[K")[2], sent
    assert sent.rpartition("\x1b[K")[2].startswith("HTTPDNS does not work, so clients would get SERVFAIL"), sent
    assert "\x1b" not in output and output.splitlines()


def test_query_says_how_far_it_is(on_a_terminal, service):
    settings = silent(service)
    code, output, sent = on_a_terminal("query", "a.example.com", "b.example.com", settings=settings)
    server = settings["httpdns"]["dnsIp"][0]
    line = re.compile(rf"asking HTTPDNS {re.escape(server)}; 0 of 2 names are known, \d s")
    assert code == 69 and output == "" and any(map(line.fullmatch, LINE.findall(sent))), sent


@pytest.mark.parametrize("variables", [None, {"TERM": "dumb"}], ids=["in a second", "on a dumb terminal"])
def test_nothing_is_said(on_a_terminal, service, variables):
    settings = silent(service) if variables else {"httpdns": service("aes", every_name).settings()}
    began = time.monotonic()
    code, _, sent = on_a_terminal("query", "a.example.com", settings=settings, variables=variables)
    is_quick = time.monotonic() - began < 1
    assert code == (69 if variables else 0) and ("\x1b" not in sent or not variables and not is_quick), sent


def test_nothing_is_said_to_a_pipe(command, service):
    settings = silent(service)["httpdns"]
    began = time.monotonic()
    ended = command("probe", settings=settings)
    assert time.monotonic() - began > 2 and ended.returncode == 69
    assert "asking" not in ended.stdout + ended.stderr and "\x1b" not in ended.stdout + ended.stderr
