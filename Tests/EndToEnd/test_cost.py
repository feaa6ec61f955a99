"""The cost of a cached answer: allocations and system calls."""

import collections
import re
import signal
import struct
import subprocess

import pytest

from httpdns_service import Record
from standard import measures_the_build
from waiting import eventually

pytestmark = measures_the_build
NAMES = 1000
BATCH = 16
SUFFIX = "cost.example.com"


@pytest.fixture
def thousand(service):
    return service("aes", {f"n{i}.{SUFFIX}": Record([f"203.0.113.{i % 250}"], [], 3600) for i in range(NAMES)})


SETTINGS = {"listen": {"addresses": ["127.0.0.1:53"], "workers": 1}, "httpdns": {"httpOnly": True}}


@pytest.mark.parametrize("size", [1, BATCH])
def test_a_hit_allocates_nothing(daemon, thousand, compiled, ask_in_batches, tmp_path, size):
    counter = tmp_path / "count"
    counter.write_bytes(bytes(8))

    def count():
        return struct.unpack("=Q", counter.read_bytes())[0]

    variables = {"LD_PRELOAD": compiled("helpers.c", "-shared", "-fPIC", "-DCOUNT_ALLOCATIONS"),
                 "ALLOCATION_COUNT": str(counter)}
    daemon(thousand, SETTINGS, variables=variables)
    ask_in_batches(NAMES, 1, NAMES, SUFFIX)  # each name enters the cache
    ask_in_batches(NAMES, size, NAMES, SUFFIX)
    assert count() > 1000, "the counter counts"
    # Other work of the daemon, such as dropping an old deadline, may allocate now and then: one quiet round is enough.
    rounds = []
    while len(rounds) < 5 and 0 not in rounds:
        before = count()
        ask_in_batches(10_000, size, NAMES, SUFFIX)
        rounds.append(count() - before)
    assert rounds[-1] == 0, f"allocations in rounds of 10,000 hits: {rounds}"


def test_system_calls_of_a_batch(daemon, thousand, ask_in_batches, tmp_path):
    """One call receives a batch and one sends it. Further calls are wake-ups, which are rare while batches keep coming."""
    running = daemon(thousand, SETTINGS)
    ask_in_batches(NAMES, 1, NAMES, SUFFIX)
    trace = tmp_path / "trace"
    messages = tmp_path / "strace.log"
    with messages.open("w") as log:
        tracer = subprocess.Popen(["strace", "-f", "-p", str(running.pid), "-o", str(trace)], stdin=subprocess.DEVNULL,
                                  stdout=log, stderr=log)
    eventually(lambda: "attached" in messages.read_text(), "strace is attached")
    ask_in_batches(20 * BATCH, BATCH, NAMES, SUFFIX)
    mark = len(trace.read_text().splitlines())
    ask_in_batches(500 * BATCH, BATCH, NAMES, SUFFIX)
    lines = trace.read_text().splitlines()[mark:]
    tracer.send_signal(signal.SIGINT)
    tracer.wait(60)

    calls, batches, received = collections.Counter(), 0, 0
    for line in lines:
        begun = re.match(r"\d+\s+(\w+)\(", line)
        if begun:
            calls[begun.group(1)] += 1
        got = re.match(r"\d+\s+(?:recvmmsg\(|<\.\.\. recvmmsg resumed>).* = (\d+)", line)
        if got and int(got.group(1)) > 0:
            batches += 1
            received += int(got.group(1))
    print(dict(calls), "batches:", batches, "datagrams:", received)
    assert received >= 500 * BATCH * 0.95, "the trace saw the traffic"
    assert calls["recvmmsg"] + calls["sendmmsg"] <= 2 * batches + 20
    assert sum(calls.values()) <= 2 * batches + 50, calls
