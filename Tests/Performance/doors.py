"""Clients over TLS and HTTPS: what a hit costs on connections that are kept, what a connection holds, what a handshake costs."""

import base64
import contextlib
import os
import re
import socket
import ssl
import subprocess
import sys
import time

from backends import Backends
from measure import memory, run_load, usage
from processes import Failed, Process, free_port, idling, pinned, query
from servers import DAEMON, LIMIT
from workloads import Workload

NAMES = 1000
CLIENTS = 20
OPEN = 1000  # connections that are idle
HANDSHAKES = 300
FLOODED = 0.5  # seconds until a flood is in full swing
_hits_over_udp = Workload("", "", "", ("--rate", "2000"), names=NAMES)
ALPN = {"dot": "dot", "doh": "h2"}


def _hits(bench, way, port, seconds):
    """Answers of a run, lost ones, and its rate; a hundred questions are under way."""
    return (_over_tls if way == "dot" else _over_https)(bench, port, max(1, round(seconds)))


def _over_https(bench, port, seconds):
    path = os.path.join(bench.directory, f"urls-{port}")
    with open(bench.names(NAMES)) as names, open(path, "w") as file:
        for name in names:
            text = base64.urlsafe_b64encode(query(name.strip(), 0)).decode().rstrip("=")
            file.write(f"https://127.0.0.1:{port}/dns-query?dns={text}\n")
    command = ["h2load", "-D", str(seconds), "-c", str(CLIENTS), "-m", "5", "-i", path]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=pinned(bench.cores.load))
    found = re.search(r"finished in \S+, ([\d.]+) req/s.*requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded", done.stdout,
                      re.DOTALL)
    if not found or int(found.group(3)) == 0:
        raise Failed(f"h2load: {(done.stdout + done.stderr)[-200:]}")
    finished, answered = int(found.group(2)), int(found.group(3))
    return answered, finished - answered, float(found.group(1))


def _over_tls(bench, port, seconds):
    path = os.path.join(bench.directory, "questions")
    if not os.path.exists(path):
        with open(bench.names(NAMES)) as names, open(path, "w") as file:
            file.writelines(f"{name.strip()} A\n" for name in names)
    command = ["dnsperf", "-m", "dot", "-s", "127.0.0.1", "-p", str(port), "-d", path, "-c", str(CLIENTS), "-T", "1", "-l",
               str(seconds), "-q", "100"]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=pinned(bench.cores.load))
    found = re.search(r"Queries completed:\s+(\d+)", done.stdout)
    if not found or int(found.group(1)) == 0:
        raise Failed(f"dnsperf: {(done.stdout + done.stderr)[-200:]}")
    lost = int(re.search(r"Queries lost:\s+(\d+)", done.stdout).group(1))
    return int(found.group(1)), lost, float(re.search(r"Queries per second:\s+([\d.]+)", done.stdout).group(1))


def _connect(bench, way, port):
    context = ssl.create_default_context(cafile=bench.certificate)
    context.set_alpn_protocols([ALPN[way]])
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=10), server_hostname="bench")


def _handshakes(bench, way, port, pid):
    """Microseconds of the server's processor for one, none resumed."""
    for _ in range(HANDSHAKES // 10):
        _connect(bench, way, port).close()
    before = usage(pid)
    for _ in range(HANDSHAKES):
        _connect(bench, way, port).close()
    return (usage(pid) - before).cpu / HANDSHAKES * 1e6


def _connection(bench, way, port, pid):
    """KiB that one holds which is idle."""
    before = memory(pid)["resident"]
    with contextlib.ExitStack() as held:
        for _ in range(OPEN):
            held.enter_context(_connect(bench, way, port))
        time.sleep(0.2)
        return (memory(pid)["resident"] - before) / OPEN * 1024


def _least(bench, way):
    """What a handshake costs OpenSSL's own server."""
    port = free_port()
    command = ["openssl", "s_server", "-accept", str(port), "-cert", bench.certificate, "-key", bench.key, "-quiet", "-naccept",
               "100000", "-alpn", ALPN[way], "-num_tickets", "2"]
    with contextlib.ExitStack() as running:
        process = Process.start(f"s_server {port}", command, bench.directory, bench.cores.server, port)
        running.callback(process.stop)
        process.wait_until_it_listens()
        return {"handshake": _handshakes(bench, way, port, process.popen.pid)}


def _door(way):
    def measured(bench, seconds):
        yield LIMIT, _least(bench, way)
        servers = [DAEMON, *(one for one in bench.rivals("plain") if way in one.doors)]
        for server in servers:
            name = server if server == DAEMON else server.name
            door = free_port()
            try:
                with contextlib.ExitStack() as running:
                    more = {"door": (way, door), "key": bench.key}
                    process = bench.start(running, Backends(bench, running), server, "plain", **more)
                    pid = process.popen.pid
                    _hits(bench, way, door, 1)  # all names are cached then
                    before = usage(pid)
                    answered, lost, rate = _hits(bench, way, door, seconds / len(servers))
                    spent = (usage(pid) - before).cpu
                    yield name, {"cpu": spent / answered * 1e6, "rate": rate, "bad": lost / (answered + lost),
                                 "handshake": _handshakes(bench, way, door, pid),
                                 "connection": _connection(bench, way, door, pid)}
            except (Failed, OSError) as failure:
                yield name, {"bad": 1.0}
                print(f"doors-{way}: {name}: {failure}")
    return measured


def _flooded(bench, seconds):
    """Hits over UDP alone, and while handshakes are begun over TLS as fast as the server takes them. What begins them gives way
    to the load, so that what is seen is the server's doing."""
    servers = [DAEMON, *(one for one in bench.rivals("plain") if "dot" in one.doors)]
    for server in servers:
        name, door = server if server == DAEMON else server.name, free_port()
        try:
            with contextlib.ExitStack() as running:
                process = bench.start(running, Backends(bench, running), server, "plain", door=("dot", door), key=bench.key)
                names = _hits_over_udp.warm(bench, process, seconds / 8)
                arguments = _hits_over_udp.arguments(bench, names)
                each = seconds / len(servers) / 2
                alone = run_load(bench, process.port, each, arguments, priority=1)["known"]["p99"]
                flood = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(__file__), "handshakes.py"), str(door)],
                                         stdout=subprocess.PIPE, text=True, preexec_fn=idling(bench.cores.load))
                running.callback(flood.kill)
                time.sleep(FLOODED)
                beside = run_load(bench, process.port, each, arguments, priority=1)["known"]["p99"]
                flood.terminate()
                begun = int(flood.communicate(timeout=10)[0]) / (each + FLOODED)
                yield name, {"alone p99": alone, "p99": beside, "p99 ratio": beside / alone, "handshakes/s": begun}
        except (Failed, OSError, ValueError) as failure:
            yield name, {"bad": 1.0}
            print(f"beside-handshakes: {name}: {failure}")


DOORS = {f"doors-{way}": (f"hits over {what}, 1,000 names, {CLIENTS} connections", _door(way),
                          ("cpu", "rate", "handshake", "connection"), 8)
         for way, what in (("dot", "DNS over TLS"), ("doh", "DNS over HTTPS"))} | {
    "beside-handshakes": ("hits over UDP, 2,000 queries/s, beside a flood of TLS handshakes", _flooded,
                          ("alone p99", "p99", "p99 ratio", "handshakes/s"), 6)}
