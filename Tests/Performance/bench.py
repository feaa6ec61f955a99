#!/usr/bin/python3
"""What httpdnsd costs, beside its rivals and beside the least that any server can cost, in the same run.

    bench.py --binary BINARY [--seconds N] [--only WORKLOAD,…] [--rivals NAME,…] [--output FILE]
    bench.py --table RESULTS.json…        the Markdown table of one or more runs

Server processes run on one core, the load and what stands behind the servers on another; servers are measured in turn, there and
back, in several rounds. Prints medians and their range, ratios to the limit and to the best rival of the same pass with the
interval that noise leaves, and the targets.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import report
import servers
from backends import Backends, make_certificate
from doors import DOORS
from growth import GROWTH, ONCE
from measure import memory
from processes import Cores, Failed, Process, free_port
from servers import DAEMON, LIMIT
from special import SPECIAL as OTHERS
from workloads import STAGES, WORKLOADS

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = {  # sources, libraries
    "load": (["load.c", "load_udp.c", "load_tcp.c", "questions.c"], ["-lm"]),
    "answer": (["answer.c"], []),
    "service": (["service.c", "service_text.c"], ["-lssl", "-lcrypto"]),
    "forward": (["forward.c"], ["-lssl", "-lcrypto"]),
}
COMPILER = ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
IDLE = "idle"
SPECIAL = OTHERS | DOORS | GROWTH
UPSTREAM_NAMES = {"plain": "", "doh2": " doh"}
SHORTEST, LONGEST = 0.2, 4.0  # seconds of one measurement
PASSES = 2  # of each workload in a round: there and back


class Bench:
    """One run: where things are, what is wanted, what was found."""

    def __init__(self, arguments, directory):
        self.binary = os.path.abspath(arguments.binary)
        self.tools = os.path.abspath(arguments.build)
        self.chosen_rivals = arguments.rivals
        self.directory = directory
        self.cores = Cores.of_this_machine()
        self.certificate, self.key, self.both = make_certificate(directory)
        self.cells = []
        self.missing = []

    def tool(self, name):
        return os.path.join(self.tools, name)

    def build_tools(self):
        os.makedirs(self.tools, exist_ok=True)
        for name, (sources, libraries) in PROGRAMS.items():
            subprocess.run([*COMPILER, "-o", self.tool(name), *(os.path.join(HERE, source) for source in sources), *libraries],
                           check=True)

    def names(self, count):
        path = os.path.join(self.directory, f"names-{count}")
        if not os.path.exists(path):
            with open(path, "w") as file:
                file.writelines(f"www.{number:06d}.example.bench\n" for number in range(count))
        return path

    def rivals(self, way):
        found, missing = servers.rivals(way, self.chosen_rivals)
        for line in missing:
            if line not in self.missing:
                self.missing.append(line)
                say(line)
        return found

    def start(self, running, backends, server, way, cores=None, **more):
        """Starts a server, by its name or a Rival, and waits until it answers; `running` stops it."""
        port = free_port()
        name = server if isinstance(server, str) else server.name
        place = servers.Place(self.directory, port, backends.port(way) if way else 0, way, self.certificate, **more)
        if name == LIMIT:
            command = servers.limit(place, self.tools)
        else:
            command = servers.httpdnsd(place, self.binary) if name == DAEMON else server.command(place)
        process = Process.start(f"{name} {port}", command, self.directory, cores or self.cores.server, port)
        process.upstream = backends.counts(way) if way else None
        running.callback(process.stop)
        return process.wait_until_it_answers()

    def note(self, round_, workload, server, figures):
        self.cells.append({"round": round_, "workload": workload, "server": server, "figures": figures})


class Budget:
    """Shares what is left of the time among what is left to measure."""

    def __init__(self, seconds, weight):
        self.end = time.monotonic() + seconds
        self.weight = weight  # of all that is still to come
        self.cut = {}  # how often there was no time for it

    @property
    def is_spent(self):
        return time.monotonic() + SHORTEST > self.end

    def share(self, weight, what):
        """Seconds for a measurement, nil when there is no time left for it."""
        # Starting, ending and noting a measurement take time as well.
        share = 0.85 * (self.end - time.monotonic()) * weight / max(self.weight, weight) - 0.1
        self.weight -= weight
        if self.is_spent:
            self.cut[what] = self.cut.get(what, 0) + 1
            return None
        return min(max(share, SHORTEST), LONGEST * weight)


def say(text):
    print(text, file=sys.stderr, flush=True)


def members(bench, stage):
    """Who takes part in a stage: label, server, way upstream."""
    found = [(LIMIT, LIMIT, stage.limit)] if stage.limit is not None else []
    found += [(DAEMON + UPSTREAM_NAMES.get(way, f" {way}") if len(stage.daemon) > 1 else DAEMON, DAEMON, way)
              for way in stage.daemon]
    for way in stage.rivals:
        found += [(one.name + UPSTREAM_NAMES.get(way, f" {way}"), one, way) for one in bench.rivals(way)]
    return found


def takes_part(label, workload):
    return label != LIMIT or workload.with_limit


def run_stage(bench, name, workloads, round_, budget, with_idle):
    stage = STAGES[name]
    with contextlib.ExitStack() as running:
        backends = Backends(bench, running, stage.delay)
        up = []
        for label, server, way in members(bench, stage):
            try:
                process = bench.start(running, backends, server, way)
            except Failed as failure:
                say(f"{label} is left out: {failure}")
                continue
            up.append((label, process))
        if with_idle:
            time.sleep(0.5)
            for label, process in up:
                if label != LIMIT or name == "cached":
                    bench.note(round_, IDLE, label, memory(process.popen.pid))
        for workload in workloads:
            taking_part = [(label, process) for label, process in up if takes_part(label, workload)]
            # There and back: what drifts meanwhile falls on all alike.
            for pass_, order in enumerate((taking_part, taking_part[::-1])):
                run_pass(bench, workload, order, PASSES * (round_ - 1) + pass_ + 1, budget)


def run_pass(bench, workload, order, pass_, budget):
    """Measures servers one after the other."""
    line = []
    for label, process in order:
        seconds = budget.share(workload.weight / PASSES, workload.name)
        if seconds is None:
            continue
        try:
            figures = workload.measure(bench, process, seconds)
        except Failed as failure:
            say(f"{workload.name}: {label}: {failure}")
            continue
        bench.note(pass_, workload.name, label, figures)
        line.append(f"{label} {figures[workload.shown[0]]:.4g}")
    say(f"pass {pass_}, {workload.name} ({workload.shown[0]}): " + ", ".join(line))


def run_special(bench, name, round_, budget):
    _, function, shown, weight = SPECIAL[name]
    seconds = budget.share(weight, name)
    if seconds is None:
        return
    try:
        for label, figures in function(bench, seconds):
            bench.note(round_, name, label, figures)
            say(f"round {round_}, {name}: {label} " + ", ".join(f"{key} {figures[key]:.4g}" for key in shown if key in figures))
    except Failed as failure:
        say(f"{name}: {failure}")


def run(bench, wanted, rounds, budget):
    for round_ in range(1, rounds + 1):
        for name in STAGES:
            workloads = [one for one in WORKLOADS if one.stage == name and one.name in wanted]
            with_idle = STAGES[name].with_idle and IDLE in wanted
            if budget.is_spent:
                budget.cut |= {one.name: 1 for one in workloads}
            elif workloads or with_idle:
                run_stage(bench, name, workloads, round_, budget, with_idle)
        for name in SPECIAL:
            if name in wanted and (name not in ONCE or round_ == 1):
                run_special(bench, name, round_, budget)


def weight_of(bench, wanted, rounds):
    total = rounds * sum(one.weight for one in WORKLOADS if one.name in wanted
                         for label, _, _ in members(bench, STAGES[one.stage]) if takes_part(label, one))
    return total + sum(weight * (1 if name in ONCE else rounds) for name, (_, _, _, weight) in SPECIAL.items() if name in wanted)


def about(bench, arguments, rounds):
    """What a reader of the figures has to know."""
    with open("/proc/cpuinfo") as cpus:
        model = next((line.partition(":")[2].strip() for line in cpus if line.startswith("model name")), "?")
    own = subprocess.run([bench.binary, "--version"], capture_output=True, text=True).stdout.strip()
    commit = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    names = sorted({one.name for stage in STAGES.values() for way in stage.rivals for one in bench.rivals(way)})
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "commit": commit,
            "command": f"make bench BENCH_SECONDS={arguments.seconds:g}", "rounds": rounds,
            "machine": f"{model}, {len(bench.cores.all)} cores, Linux {platform.release()}",
            "versions": {DAEMON: own} | {name: servers.version(name) for name in names}}


def parsed():
    known = [one.name for one in WORKLOADS] + list(SPECIAL) + [IDLE]

    def words(allowed):
        def parse(text):
            found = []
            for word in filter(None, text.replace(" ", ",").split(",")):
                # A word that is no name stands for all that begin with it: `growth`.
                found += [word] if word in allowed else [one for one in allowed if one.startswith(word + "-")] or [word]
            unknown = [word for word in found if word not in allowed]
            if unknown:
                raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(allowed)}")
            return found or None
        return parse
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", help="the httpdnsd to measure, a release build")
    parser.add_argument("--build", default=".build/bench", help="where the bench's own programs go")
    parser.add_argument("--seconds", type=float, default=600, help="for everything (default: 600)")
    parser.add_argument("--rounds", type=int, default=0, help="default: 1 in less than 4 minutes, else 3")
    parser.add_argument("--only", type=words(known), default=None, help=", ".join(known))
    parser.add_argument("--rivals", type=words(servers.rival_names()), default=None, help=", ".join(servers.rival_names()))
    parser.add_argument("--output", default=".build/bench/results.json")
    parser.add_argument("--table", nargs="+", metavar="RESULTS.json")
    arguments = parser.parse_args()
    if not arguments.table and not (arguments.binary and os.access(arguments.binary, os.X_OK)):
        parser.error("--binary: a built httpdnsd is needed")
    return arguments, arguments.only or known


def main():
    arguments, wanted = parsed()
    if arguments.table:
        return print(report.markdown(arguments.table))
    # All ends well however it ends: what was started is stopped by the ExitStacks on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    rounds = arguments.rounds or (1 if arguments.seconds < 240 else 3)
    directory = tempfile.mkdtemp(prefix="httpdnsd-bench-")
    try:
        bench = Bench(arguments, directory)
        bench.build_tools()
        os.sched_setaffinity(0, bench.cores.load)
        if len(bench.cores.all) < 2:
            say("one core only: servers and load share it, and times of answers mean little")
        facts = about(bench, arguments, rounds)
        budget = Budget(arguments.seconds, weight_of(bench, wanted, rounds))
        with contextlib.suppress(KeyboardInterrupt):
            run(bench, wanted, rounds, budget)
        results = facts | {"left out": bench.missing, "cut short": [f"{what} ({times} times)" for what, times in budget.cut.items()], "cells": bench.cells}
        results["summary"] = report.summarize(bench.cells)
        with open(arguments.output, "w") as file:
            json.dump(results, file, indent=1)
        print(report.text(results))
        print(f"written to {arguments.output}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
