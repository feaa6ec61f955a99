"""What the daemon is to reach, and where a result stands to it."""

from dataclasses import dataclass

from servers import DAEMON

LIMIT, BEST = "limit", "best rival"


@dataclass(frozen=True)
class Target:
    """A figure of one server in one workload, by itself or as a ratio to another's in the same round."""

    workload: str
    server: str
    figure: str
    bound: float
    against: str = ""
    at_least: bool = False
    note: str = ""

    def value(self, summary):
        """The mean and its interval; both None where it was not measured."""
        found = summary.get(self.workload, {}).get(self.server, {}).get(self.figure, {})
        what = {"": "all", LIMIT: "to limit", BEST: "to best"}[self.against]
        return found.get(what), found.get(f"{what}, interval")

    def is_met(self, value):
        # The best rival has to be beaten, not equalled.
        if self.against == BEST:
            return value > self.bound if self.at_least else value < self.bound
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self):
        against = f", {self.against} = 1" if self.against else ""
        return f"{self.workload}: {self.server} {self.figure}{against}"


def _limit(workload, **bounds):
    return [Target(workload, DAEMON, figure, bound, LIMIT) for figure, bound in bounds.items()]


def _beats(workload, server, *names):
    return [Target(workload, server, figure, 1, BEST, at_least=figure == "rate") for figure in names]


AES, HTTPS, DOT, DOH = (f"{DAEMON} {way}" for way in ("aes", "https", "dot", "doh"))
TARGETS = [
    *_limit("hits-1000", cpu=1.05), *_beats("hits-1000", DAEMON, "cpu"),
    *_limit("hits-100000", cpu=1.05), Target("hits-100000", DAEMON, "cpu", 0.85, BEST),
    *_limit("hits-1000000", cpu=1.05), Target("hits-1000000", DAEMON, "cpu", 0.85, BEST),
    *_limit("rate-1000", cpu=1.1, p50=1.1, p99=1.1),
    Target("listeners", f"{DAEMON}, 2", "scale", 1.8, at_least=True, note="needs four cores"),
    Target("miss", AES, "cpu", 12), Target("miss", AES, "rate", 60_000, at_least=True), *_beats("miss", AES, "cpu", "rate"),
    Target("miss", HTTPS, "cpu", 15), Target("miss", HTTPS, "rate", 60_000, at_least=True),
    *_beats("miss", HTTPS, "cpu", "rate"),
    Target("miss-one", HTTPS, "cpu", 60), Target("miss-one", HTTPS, "p50", 125),
    Target("miss-20ms", HTTPS, "rate", 30_000, at_least=True), *_beats("miss-20ms", HTTPS, "rate"),
    Target("miss", DOT, "cpu", 0.55, BEST), Target("miss", DOH, "cpu", 0.55, BEST), *_beats("miss-nat64", DAEMON, "cpu", "rate"),
    Target("miss-plain", DAEMON, "cpu", 0.9, BEST),
    *(Target(workload, server, figure, 0.95, BEST) for workload in ("miss-one", "miss-one-awake")
      for server in (AES, HTTPS, DOT, DOH) for figure in ("cpu", "p50")),
    *(Target(workload, DAEMON, figure, 0.95, BEST) for workload in ("miss-plain-one", "miss-plain-one-awake")
      for figure in ("cpu", "p50")),
    *(target for server in (AES, HTTPS, DOT, DOH) for target in _beats("miss-one-20ms", server, "cpu")),
    *(target for server in (DOT, DOH) for target in _beats("miss-20ms", server, "rate")),
    *_beats("miss-plain-20ms", DAEMON, "rate"),
    Target("beside-misses", HTTPS, "p99 ratio", 1.5), Target("beside-misses", AES, "p99 ratio", 1.5),
    Target("beside-handshakes", DAEMON, "p99 ratio", 2),
    Target("watched", DAEMON, "rate ratio", 0.9, at_least=True), Target("watched", DAEMON, "p99 ratio", 1.5),
    *(Target(door, DAEMON, "cpu", 0.6, BEST) for door in ("doors-dot", "doors-doh")),
    *(Target(door, DAEMON, "handshake", 1.1, LIMIT) for door in ("doors-dot", "doors-doh")),
    *(Target(door, DAEMON, "connection", 60) for door in ("doors-dot", "doors-doh")),
    Target("idle", DOH, "resident", 15), Target("idle", DAEMON, "resident", 14), Target("idle", DAEMON, "anonymous", 4),
    Target("filled", DAEMON, "bytes a pair", 200), Target("filled", DAEMON, "resident", 220),
    Target("start", DAEMON, "first answer", 5), Target("start", DAEMON, "first answer, file", 5),
    Target("start", DAEMON, "first lookup", 7), Target("start", DAEMON, "reading the file", 50),
]
