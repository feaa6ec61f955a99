"""What a server costs, read from /proc while the load runs: CPU of all its threads and children, context switches, memory."""

import json
import os
import re
import subprocess
import time
from dataclasses import dataclass

from processes import Failed, pinned

_TICKS = os.sysconf("SC_CLK_TCK")
_SWITCHES = re.compile(r"ctxt_switches:\s+(\d+)")


@dataclass(frozen=True)
class Usage:
    cpu: float  # seconds, user and system
    user: float
    system: float
    switches: int

    def __sub__(self, before):
        return Usage(self.cpu - before.cpu, self.user - before.user, self.system - before.system,
                     self.switches - before.switches)


def _tree(pid):
    """The process and all that descend from it."""
    found = [pid]
    for one in found:
        try:
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/children") as children:
                    found.extend(int(child) for child in children.read().split())
        except OSError:
            continue  # it has ended meanwhile
    return found


def usage(pid):
    cpu, user, system, switches = 0.0, 0.0, 0.0, 0
    for one in _tree(pid):
        try:
            with open(f"/proc/{one}/stat") as stat:
                fields = stat.read().rpartition(")")[2].split()
            # The process's CPU clock (clock_getcpuclockid): the same sum over all threads as `stat` has, in nanoseconds
            # instead of ticks. Children that were waited for are in `stat` alone.
            cpu += time.clock_gettime((~one << 3) | 2) + (int(fields[13]) + int(fields[14])) / _TICKS
            user += (int(fields[11]) + int(fields[13])) / _TICKS
            system += (int(fields[12]) + int(fields[14])) / _TICKS
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/status") as status:
                    switches += sum(int(count) for count in _SWITCHES.findall(status.read()))
        except OSError:
            continue
    return Usage(cpu, user, system, switches)


def memory(pid):
    """Resident and anonymous megabytes (2^20) of the process and its children."""
    resident, anonymous = 0, 0
    for one in _tree(pid):
        try:
            with open(f"/proc/{one}/status") as status:
                text = status.read()
        except OSError:
            continue
        resident += int(re.search(r"VmRSS:\s+(\d+)", text).group(1))
        anonymous += int(re.search(r"RssAnon:\s+(\d+)", text).group(1))
    return {"resident": resident / 1024, "anonymous": anonymous / 1024}


_next_new_name = time.time_ns() // 1000 << 12


def new_names():
    """Where names begin that nobody has asked for, in this run of the bench or an earlier one."""
    global _next_new_name
    _next_new_name += 1 << 36
    return str(_next_new_name & (1 << 60) - 1)


def start_load(bench, port, seconds, arguments, priority=0, cores=None):
    command = [bench.tool("load"), "--to", f"127.0.0.1:{port}", "--seconds", f"{seconds:.3f}", *arguments]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                            preexec_fn=pinned(cores or bench.cores.load, priority))


def finish_load(load, within):
    try:
        text, _ = load.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        load.kill()
        load.wait()
        raise Failed("the load did not end") from None
    if load.returncode != 0:
        raise Failed(f"the load ended with {load.returncode}")
    return json.loads(text)


def run_load(bench, port, seconds, arguments, priority=0, cores=None):
    return finish_load(start_load(bench, port, seconds, arguments, priority, cores), seconds + 30)


def measure(bench, process, seconds, arguments, priority=0, cores=None):
    """Runs the load and returns what it saw and what the server spent, for each answer."""
    before, asked = usage(process.popen.pid), process.upstream.read() if process.upstream else (0, 0)
    seen = run_load(bench, process.port, seconds, arguments, priority, cores)
    spent = usage(process.popen.pid) - before
    result = figures(seen, spent)
    if process.upstream:
        connections, requests = (now - then for now, then in zip(process.upstream.read(), asked))
        result |= {"connections": 1000 * connections / seen["answered"], "requests": requests / seen["answered"]}
    return result


def figures(seen, spent):
    """Times in microseconds. `bad` is the share of the queries that were lost or answered wrongly; `requests` are those upstream
    for an answer, `connections` those made there for a thousand."""
    answered = seen["answered"]
    if answered == 0:
        raise Failed("nothing was answered")
    result = {
        "cpu": spent.cpu / answered * 1e6,
        "system share": spent.system / max(spent.user + spent.system, 1e-9),
        "switches": spent.switches / answered,
        "rate": seen["rate"],
        "bad": (seen["lost"] + seen["wrong"]) / max(seen["sent"], 1),
    }
    hits, misses = seen["known"], seen["new"]
    main = hits if hits["count"] else misses
    result |= {"p50": main["p50"], "p99": main["p99"]}
    if hits["count"] and misses["count"]:
        result |= {"miss p50": misses["p50"], "miss p99": misses["p99"]}
    return result
