"""What needs servers of its own: two listeners, memory, start."""

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import time

import servers
from backends import Backends
from measure import measure, memory, new_names, run_load
from processes import Failed, busy, environment, free_port, is_good, pinned, query
from servers import DAEMON, LIMIT
from workloads import Workload

MILLION = 1_000_000
FILED = 100_000
_STARTS = 5
_FILE_HEADER, _BLOCK_HEADER = 52, 16  # octets in a cache file
_hits = Workload("", "", "", ("--window", "512", "--threads", "8"), names=1000)
_many_hits = Workload("", "", "", ("--rate", "100000"), names=1000)


def listeners(bench, seconds):
    """One listener and two. Where the machine has four cores the two have a core each; else both share one, and what can be
    seen is that the second costs nothing."""
    wide = bench.cores.pair
    for name in (LIMIT, DAEMON):
        rates = {}
        for count in (1, 2):
            with contextlib.ExitStack() as running:
                backends = Backends(bench, running)
                cores = wide[0] if wide and count == 2 else bench.cores.server
                process = bench.start(running, backends, name, "https" if name == DAEMON else "", cores=cores,
                                      listeners=count)
                names = _hits.warm(bench, process, seconds)
                result = measure(bench, process, seconds / 4, _hits.arguments(bench, names), cores=wide[1] if wide else None)
                rates[count] = result["rate"]
                if wide and count == 2:
                    result["scale"] = rates[2] / rates[1]
                yield f"{name}, {count}", result


def watched(bench, seconds):
    """Many hits while nobody watches, and while `watch` tells of each; in turn, since the machine changes meanwhile."""
    socket_path = os.path.join(bench.directory, "watched")
    with contextlib.ExitStack() as running:
        running.enter_context(busy(bench.cores.server | bench.cores.load))
        process = bench.start(running, Backends(bench, running), DAEMON, "https", control=socket_path)
        names = _many_hits.warm(bench, process, seconds / 4)
        arguments = _many_hits.arguments(bench, names)
        alone = measure(bench, process, seconds / 3, arguments)
        with open(os.devnull, "wb") as nowhere:
            watch = subprocess.Popen([bench.binary, "watch", "--json", "--socket", socket_path], stdin=subprocess.DEVNULL,
                                     stdout=nowhere, preexec_fn=pinned(bench.cores.load))
        running.callback(watch.wait)
        running.callback(watch.terminate)
        time.sleep(0.2)
        beside = measure(bench, process, seconds / 3, arguments)
        if watch.poll() is not None:
            raise Failed(f"watch ended with {watch.returncode}")
        yield f"{DAEMON}, unwatched", alone
        yield DAEMON, beside | {"rate ratio": beside["rate"] / alone["rate"], "p99 ratio": beside["p99"] / max(alone["p99"], 1e-9)}


def filled(bench, seconds):
    """Memory with many names; when time is short with fewer, and what a million would need is worked out."""
    with contextlib.ExitStack() as running:
        process = bench.start(running, Backends(bench, running), DAEMON, "aes", cache_megabytes=320)

        def fill(seconds, limit):
            seen = run_load(bench, process.port, seconds, ("--new", new_names(), "--window", "256", "--limit", str(limit)))
            return seen["answered"], memory(process.popen.pid)["resident"]
        # What the first few thousand need beside their own bytes, connections and buffers, is not counted as theirs.
        first, before = fill(seconds / 10, 5000)
        then, after = fill(seconds, MILLION - 5000)
        pair = (after - before) / max(then, 1)
        yield DAEMON, {"names": first + then, "bytes a pair": pair * 2**20,
                       "resident": after + pair * (MILLION - first - then)}


def start(bench, seconds):
    """From exec to the first answer, in milliseconds: of a name that is looked up, of one that the daemon knows by itself, and
    the latter with a cache file; and until a name of that file is answered."""
    with contextlib.ExitStack() as running:
        backends = Backends(bench, running)
        for one in bench.rivals("plain"):
            with contextlib.suppress(Failed):
                yield one.name, {"first lookup": _median(lambda: _time_start(bench, *_rival(bench, backends, one)))}
        https = backends.port("https")
        found = {"first lookup": _median(lambda: _time_start(bench, *_daemon(bench, https), "ready.bench")),
                 "first answer": _median(lambda: _time_start(bench, *_daemon(bench, https), "localhost"))}
        path = os.path.join(bench.directory, "cache")
        filed = _write_cache_file(bench, running, backends, path, seconds / 2)
        dead = free_port()  # nobody answers there: only the file knows the name
        last = _last_name(bench, filed)
        found["first answer, file"] = _median(lambda: _time_start(bench, *_daemon(bench, dead, path), "localhost"))
        found["from the file"] = _median(lambda: _time_start(bench, *_daemon(bench, dead, path), last))
        found["answers"] = _answers(path)
        # Of each name there are two answers, and the last name is known when all are read.
        found["reading the file"] = max(0, found["from the file"] - found["first answer"]) * FILED / found["answers"]
        yield DAEMON, found


def _median(attempt):
    return sorted(attempt() for _ in range(_STARTS))[_STARTS // 2]


def _rival(bench, backends, one):
    port = free_port()
    return port, one.command(servers.Place(bench.directory, port, backends.port("plain"), "plain", bench.certificate))


def _daemon(bench, upstream, cache_file=""):
    port = free_port()
    place = servers.Place(bench.directory, port, upstream, "https", bench.certificate, cache_file=cache_file)
    return port, servers.httpdnsd(place, bench.binary)


def _last_name(bench, filed):
    with open(bench.names(FILED)) as names:
        return names.readlines()[filed - 1].strip()


def _write_cache_file(bench, running, backends, path, seconds):
    """Returns how many names are in it: 100,000, or those for which there was time."""
    # The file belongs to settings that do not differ in what the answers depend on: the service's address is none of them.
    process = bench.start(running, backends, DAEMON, "https", cache_file=path)
    filed = Workload("", "", "", names=FILED).warm(bench, process, seconds)
    process.stop()
    if not os.path.exists(path):
        raise Failed(f"no cache file was written: {process.last_words()}")
    return filed


def _answers(path):
    """How many answers a cache file holds, as the heads of its blocks say."""
    with open(path, "rb") as file:
        whole = file.read()
    found, at = 0, _FILE_HEADER
    while at < len(whole):
        length, records = struct.unpack_from("!II", whole, at)
        found, at = found + records, at + _BLOCK_HEADER + length
    return found


def _time_start(bench, port, command, name="ready.bench"):
    """Milliseconds from just before exec until the answer, asked again and again."""
    nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    program = next((path for path in (os.path.join(folder, command[0]) for folder in servers.search_path())
                    if os.access(path, os.X_OK)), command[0])
    message = query(name)
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", port))
        client.setblocking(False)
        os.sched_setaffinity(0, bench.cores.server)  # what the child takes over
        begun = time.perf_counter()
        child = os.posix_spawn(program, command, environment(), file_actions=nowhere, setsid=True)
        os.sched_setaffinity(0, bench.cores.load)
        try:
            while time.perf_counter() < begun + 10:
                with contextlib.suppress(OSError):
                    client.send(message)
                    if select.select([client], [], [], 0.002)[0] and is_good(client.recv(4096)):
                        return (time.perf_counter() - begun) * 1e3
                time.sleep(0.0001)
        finally:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
    raise Failed(f"{command[0]} gave no answer within 10 s of its start")


SPECIAL = {
    "watched": ("hits, 100,000 queries/s, watched, cores that never halt", watched, ("rate", "p99", "rate ratio", "p99 ratio"), 6),
    "listeners": ("hits, one listener and two", listeners, ("cpu", "rate", "scale"), 4),
    "filled": ("memory with a million names, A and AAAA of each", filled, ("bytes a pair", "resident", "names"), 12),
    "start": ("from exec to the first answer; 100,000 answers of the cache file", start,
              ("first answer", "first lookup", "first answer, file", "reading the file"), 8),
}
