"""What is measured: which servers run beside each other, and what they are asked."""

import contextlib
import time
from dataclasses import dataclass, field

from measure import figures, finish_load, measure, new_names, run_load, start_load, usage
from processes import Failed, busy

SATURATING = ("--window", "128")
MISSES = ("--window", "256")
RATE = 10_000  # queries a second
WARMING = 0.7  # of its time may go by until the names are cached
SHORTEST_WARMING = 0.5  # seconds: enough for the thousand names


@dataclass(frozen=True)
class Stage:
    """Servers that are up at the same time and measured in turn."""

    daemon: tuple  # its ways upstream
    rivals: tuple  # ways of the rivals
    limit: str | None = None  # its way upstream, "" for one that answers by itself
    delay: int = 0  # of the upstream, in milliseconds
    with_idle: bool = False  # their memory is looked at before


ENCRYPTED = (("aes", "des", "https", "dot", "doh2"), ("doh", "doh2", "dot"))
STAGES = {
    "cached": Stage(("https",), ("plain",), limit="", with_idle=True),
    "local": Stage(("plain",), ("plain",)),
    "near": Stage(*ENCRYPTED, limit="dot", with_idle=True),
    "translated": Stage(("nat64",), ("nat64",)),
    "far-local": Stage(("plain",), ("plain",), delay=20),
    "far": Stage(*ENCRYPTED, delay=20),
}


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    stage: str
    load: tuple = ()
    shown: tuple = ("cpu", "rate")
    names: int = 0  # so many known names, cached before
    new: bool = False  # names that were never asked before
    both: bool = False  # A and AAAA
    priority: int = 0
    weight: float = 1
    with_limit: bool = True  # in a stage that has one
    run: object = field(default=None, compare=False)  # takes the place of `measure`

    def arguments(self, bench, names):
        known = ("--names", bench.names(names)) if names else ()
        return (*known, *(("--new", new_names()) if self.new else ()), *(("--type", "both") if self.both else ()), *self.load)

    def measure(self, bench, process, seconds):
        """Figures of one server, in so many seconds, caching the names included."""
        end = time.monotonic() + seconds
        names = self.warm(bench, process, max(WARMING * seconds, SHORTEST_WARMING))
        seconds = max(end - time.monotonic(), seconds * (1 - WARMING))
        arguments = self.arguments(bench, names)
        if self.run:
            result = self.run(arguments, bench, process, seconds, self.priority)
        else:
            result = measure(bench, process, seconds, arguments, self.priority)
            # A request to an HTTPDNS service is for eight names at most.
            if self.new and not names and result.get("requests", 1) < 0.1:
                raise Failed("it answers what its upstream was not asked for")
        return result | ({"names": names} if names else {})

    def warm(self, bench, process, seconds):
        """Has each name cached, asking in their order; returns how many there was time for."""
        key = (self.names, self.both)
        if self.names and key not in process.warmed:
            types = 2 if self.both else 1
            arguments = ("--names", bench.names(self.names), "--in-order", "--limit", str(self.names * types), "--window", "64",
                         "--type", "both" if self.both else "a")
            seen = run_load(bench, process.port, seconds, arguments)
            if seen["lost"] + seen["wrong"]:
                seen = run_load(bench, process.port, seconds, arguments)
            process.warmed[key] = max(1, seen["answered"] // types)
        return process.warmed.get(key, 0)


def _beside(other):
    """Hits at a fixed rate alone, then while something else goes on."""
    def run(hits, bench, process, seconds, priority):
        alone = run_load(bench, process.port, seconds / 2, hits, priority)
        before = usage(process.popen.pid)
        with other(bench, process, seconds / 2) as seen:
            beside = run_load(bench, process.port, seconds / 2, hits, priority)
        result, quiet = figures(beside, usage(process.popen.pid) - before), alone["known"]
        return result | seen | {"alone p50": quiet["p50"], "alone p99": quiet["p99"],
                                "p99 ratio": result["p99"] / max(quiet["p99"], 1e-9)}
    return run


@contextlib.contextmanager
def _misses(bench, process, seconds):
    """Another load has misses at full speed."""
    load, seen = start_load(bench, process.port, seconds + 0.2, ("--new", new_names(), *MISSES)), {}
    yield seen
    seen["misses/s"] = finish_load(load, 2 * seconds + 30)["rate"]


@contextlib.contextmanager
def _work(bench, process, seconds):
    """Work that gives way to everything keeps the cores busy: what of the above the machine does, and no server."""
    with busy(bench.cores.server | bench.cores.load):
        yield {}


def _awake(run):
    """No core ever halts, so no time goes into waking one, which on a virtual machine is the host's and varies."""
    def awake(arguments, bench, process, seconds, priority):
        with busy(bench.cores.server | bench.cores.load):
            return run(arguments, bench, process, seconds, priority)
    return awake


def _measure(arguments, bench, process, seconds, priority):
    return measure(bench, process, seconds, arguments, priority)


LATENCY = ("cpu", "p50", "p99")
WORKLOADS = [
    Workload("hits-1000", "hits, 1,000 names, saturated", "cached", SATURATING, names=1000),
    Workload("pairs-1000", "hits, A and AAAA of 1,000 names, saturated", "cached", SATURATING, names=1000, both=True),
    Workload("rate-1000", "hits, 1,000 names, 10,000 queries/s", "cached", ("--rate", str(RATE), "--spin"), LATENCY, names=1000,
             weight=1.5),
    Workload("beside-work", "hits, 10,000 queries/s, beside work of the lowest priority", "cached",
             ("--rate", str(RATE)), ("alone p99", "p99", "p99 ratio"), names=1000, priority=1, weight=1.5, run=_beside(_work)),
    Workload("tcp-connections", "hits over TCP, one query a connection", "cached", ("--over", "connections", "--window", "16"),
             names=1000),
    Workload("tcp-pipeline", "hits over TCP, 64 queries under way on one connection", "cached",
             ("--over", "pipeline", "--window", "64"), names=1000),
    Workload("hits-100000", "hits, 100,000 names, saturated", "cached", SATURATING, names=100_000, weight=4),
    Workload("miss-plain", "misses over plain DNS, saturated", "local", MISSES, new=True),
    Workload("miss-plain-one", "misses over plain DNS, one at a time", "local", ("--window", "1"), LATENCY, new=True),
    Workload("miss-plain-one-awake", "misses over plain DNS, one at a time, cores that never halt", "local", ("--window", "1"),
             LATENCY, new=True, run=_awake(_measure)),
    Workload("miss-nat64", "misses of AAAA made of A (NAT64), saturated", "translated", (*MISSES, "--type", "aaaa"), new=True),
    Workload("miss", "misses over an encrypted upstream, saturated", "near", MISSES, new=True),
    Workload("miss-one", "misses over an encrypted upstream, one at a time", "near", ("--window", "1"), LATENCY, new=True),
    Workload("miss-one-awake", "misses over an encrypted upstream, one at a time, cores that never halt", "near",
             ("--window", "1"), LATENCY, new=True, run=_awake(_measure)),
    Workload("mix", "10,000 queries/s, 10,000 names by Zipf's law, 5 % misses", "near",
             ("--rate", str(RATE), "--zipf", "1", "--new-percent", "5"), (*LATENCY, "miss p50", "miss p99"), names=10_000,
             new=True, with_limit=False),
    Workload("beside-misses", "hits, 10,000 queries/s, beside misses at full speed, cores that never halt", "near",
             ("--rate", str(RATE)), ("alone p99", "p99", "p99 ratio", "misses/s"), names=1000, priority=1, weight=2,
             with_limit=False, run=_awake(_beside(_misses))),
    Workload("miss-plain-20ms", "misses over plain DNS, upstream 20 ms away, saturated", "far-local", ("--window", "1000"),
             ("rate", "cpu", "p50"), new=True),
    Workload("miss-20ms", "misses, upstream 20 ms away, saturated", "far", ("--window", "1000"), ("rate", "cpu", "p50"), new=True),
    Workload("miss-one-20ms", "misses, upstream 20 ms away, one at a time", "far", ("--window", "1"), LATENCY, new=True),
]
