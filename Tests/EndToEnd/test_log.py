"""The log with a slow reader, or without one."""

import fcntl
import json
import os
import re
import signal
import subprocess

import dns.message
import pytest

import daemon as processes
from control import metrics, total
from dns_client import addresses, ask, exchange
from httpdns_service import every_name
from waiting import eventually

PIPE = 4096  # octets: the minimum size of a pipe
LOOKUPS = 300


@pytest.fixture
def unread(binary, tmp_path, service):
    """A daemon that logs each lookup into a small pipe, and the pipe's other end, which is not read yet."""
    out, into = os.pipe()
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, PIPE)
    settings = service("aes", every_name).settings() | {"debug": True}
    file = tmp_path / "httpdnsd.toml"
    file.write_text(processes.toml({
        "listen": {"addresses": ["127.0.0.1:53"]}, "httpdns": settings,
        "control": {"metrics": "127.0.0.1:9153"}, "log": {"level": "debug"}}))
    process = subprocess.Popen([binary, "run", "-c", str(file)], stdin=subprocess.DEVNULL, stdout=into, stderr=into,
                               env=processes.environment())
    os.close(into)

    def answers():
        try:
            return exchange(dns.message.make_query("localhost", "A").to_wire(), timeout=0.2) is not None
        except OSError:
            return False
    eventually(answers, "it answers")
    yield process, out
    process.kill()
    process.wait()
    os.close(out)


def ask_away():
    """Causes more lines than the pipe holds."""
    for number in range(LOOKUPS):
        assert addresses(ask(f"n{number}.example.com")), number


def test_a_log_that_nobody_reads_stops_no_lookup(unread):
    process, out = unread
    ask_away()
    assert total(metrics(), "httpdnsd_log_lines_lost_total") == 0
    # Once the pipe is read, all lines come in order.
    process.send_signal(signal.SIGTERM)
    with open(out, closefd=False, errors="replace") as log:
        lines = log.read().splitlines()
    assert process.wait(20) == 0
    asked = [int(number) for line in lines for number in re.findall(r" n(\d+)\.example\.com", line)]
    assert asked == sorted(asked) and set(asked) == set(range(LOOKUPS))
    assert not [line for line in lines if " were lost" in line]


def test_a_log_that_nobody_reads_stops_no_end(unread):
    process, _ = unread
    ask_away()
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


def test_the_last_words_of_a_start_that_fails(binary, tmp_path):
    """The message of a failed start follows the log's own lines, in any format of the log."""
    file = tmp_path / "httpdnsd.toml"
    file.write_text('[listen]\naddresses = ["192.0.2.1:53"]\n[log]\nformat = "json"\n')
    ended = processes.run(binary, "run", "-c", str(file))
    assert ended.returncode == 71 and "192.0.2.1:53" in ended.stderr.splitlines()[-1]
    for line in ended.stderr.splitlines()[:-1]:
        json.loads(line)
