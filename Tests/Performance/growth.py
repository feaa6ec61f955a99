"""How cost grows: one daemon after the other with more and more of one thing, and beside it hits of a million names."""

import contextlib

from backends import Backends
from measure import measure, memory, new_names
from servers import DAEMON, LIMIT
from workloads import MISSES, SATURATING, Workload

MILLION = 1_000_000
FEW = 1000  # names that are cached where something else grows
CACHED = (FEW, 10_000, 100_000, MILLION)
ROUTED = (0, 1000, 200_000)
CLIENTS = (1, 16, 256)
UPSTREAMS = (1, 4, 16)
LARGE = {"cache_megabytes": 320, "cache_entries": MILLION * 5 // 4}
RIVALS = ("dnsdist", "unbound")  # the cheapest at 100,000 names
SHOWN = ("hit", "miss", "resident")


def _label(count, what):
    return f"{DAEMON}, {count:,} {what}{'' if count == 1 else 's'}"


def _cost(bench, process, seconds, names, over=()):
    """What a hit and a miss cost, in microseconds of the processor, and the memory before the misses. So many names are
    cached; `over` says how the load asks, else it fills a window of datagrams."""
    hits = Workload("", "", "", over or SATURATING, names=names)
    known = hits.warm(bench, process, seconds * (0.7 if names > FEW else 0.2))
    hit = measure(bench, process, seconds * 0.15, hits.arguments(bench, known))
    resident = memory(process.popen.pid)["resident"]
    # No more of them than change what they are measured beside.
    miss = measure(bench, process, seconds * 0.15,
                   ("--new", new_names(), *(over or MISSES), "--limit", str(max(known, 10 * FEW))))
    return {"hit": hit["cpu"], "miss": miss["cpu"], "resident": resident, "names": known,
            "bad": max(hit["bad"], miss["bad"])}


def names(bench, seconds):
    """The same daemon with more and more names cached, A and AAAA of each."""
    with contextlib.ExitStack() as running:
        process = bench.start(running, Backends(bench, running), DAEMON, "aes", **LARGE)
        for count in CACHED:
            # Filling takes as long as there are names, but for the last some are cached already.
            share = max(0.1, 0.7 * count / MILLION)
            cost = _cost(bench, process, seconds * share, count)
            yield _label(cost["names"], "cached name"), cost


def routes(bench, seconds):
    """Names that have a way of their own, in a file; none of those that are looked up is among them."""
    for count in ROUTED:
        with contextlib.ExitStack() as running:
            backends = Backends(bench, running)
            group = {"servers": [f"127.0.0.1:{backends.port('plain')}"], "domainsFile": bench.names(count)}
            more = {"upstreams.routed": group} if count else {}
            process = bench.start(running, backends, DAEMON, "plain", more=more)
            yield _label(count, "routed name"), _cost(bench, process, seconds / len(ROUTED), FEW)


def clients(bench, seconds):
    """Connections over TCP, one query under way on each."""
    for count in CLIENTS:
        with contextlib.ExitStack() as running:
            process = bench.start(running, Backends(bench, running), DAEMON, "plain",
                                  more={"listen": {"tcpClients": 2 * CLIENTS[-1]}})
            yield _label(count, "TCP client"), _cost(bench, process, seconds / len(CLIENTS), FEW,
                                                     ("--over", "clients", "--window", str(count)))


def upstreams(bench, seconds):
    """Servers of the group that is asked."""
    for count in UPSTREAMS:
        with contextlib.ExitStack() as running:
            backends = Backends(bench, running)
            found = [f"127.0.0.1:{backends.port('plain', number)}" for number in range(count)]
            process = bench.start(running, backends, DAEMON, "plain", more={"fallback": {"servers": found}})
            yield _label(count, "upstream server"), _cost(bench, process, seconds / len(UPSTREAMS), FEW)


def million(bench, seconds):
    """Hits of a million names, beside the limit and the two rivals that are cheapest with many names."""
    rivals = [one for one in bench.rivals("plain") if one.name in RIVALS]
    hits = Workload("", "", "", SATURATING, names=MILLION)
    for server in (LIMIT, DAEMON, *rivals):
        with contextlib.ExitStack() as running:
            way = {LIMIT: "", DAEMON: "https"}.get(server, "plain")
            process = bench.start(running, Backends(bench, running), server, way, **LARGE)
            yield process.name.split()[0], hits.measure(bench, process, seconds / (2 + len(rivals)))


GROWTH = {
    "hits-1000000": ("hits, 1,000,000 names, saturated", million, ("cpu", "rate", "names"), 40),
    "growth-names": ("what grows with the names that are cached", names, SHOWN, 30),
    "growth-routes": ("what grows with the names that have a way of their own", routes, SHOWN, 3),
    "growth-clients": ("what grows with the clients over TCP", clients, SHOWN, 3),
    "growth-servers": ("what grows with the servers that may be asked", upstreams, SHOWN, 3),
}
# Filling takes long and differs little.
ONCE = {"filled", "hits-1000000", "growth-names"}
