"""Mutants: whether the tests see each decision. `make mutants` builds the program once with all its mutants, each of which changes
one decision, and runs the fast tests on each: one that no test notices shows a missing case or a needless branch.

COUNT: how many are tried, chosen by SEED; ONLY: a part of the places that are tried, as in `ONLY=ServerChoice.swift:142`."""

import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

from equivalent import EQUIVALENT
from rewriting import Source, rewritten

TOP = pathlib.Path(__file__).resolve().parents[2]
WORK = TOP / ".build/mutants"
COPY = WORK / "copy"
# What decides. What only shows is left out.
DECIDES = ("Sources/Forwarding/*.swift", "Sources/Upstreams/*/ConnectionPlan*.swift", "Sources/DNSCache/*.swift",
           "Sources/Names/*.swift")
SHOWS = re.compile(r"/Explanation|Overview")
TESTS = ("NamesTests", "DNSCacheTests", "ForwardingTests", "UpstreamsTests")
# Of these, those that take long: they are for the mutants that no other test notices.
LONG = ("HostileSnapshotTests|MemoryTests|LongAnswersTests|ConcurrencyTests|FleetEconomyTests|BoundsTests|SourcesTests|"
        "SharingTests|RandomForwarderTests|BasisChanceTests|RandomDomainRulesTests")
HOURS = "20"
# The seed of the tests and of the simulated hours.
CHANCE = "1"

# Goes into the copy's `Base`.
SUPPORT = """import Glibc

private let activeMutant = unsafe getenv("MUTANT").flatMap { unsafe Int(String(cString: $0)) } ?? 0

@inline(never)
public func isMutant(_ number: Int) -> Bool { activeMutant == number }

@inline(never)
public func off<Number: BinaryInteger>(_ number: Int, _ value: Number) -> Number { activeMutant == number ? value + 1 : value }
"""
# The copy is built without what comes from elsewhere, and with warnings.
PACKAGE = """
package.products = []
package.dependencies = []
package.targets.removeAll { $0.name == "httpdnsd" || $0.type == .test && ![%s].contains($0.name) }
"""


def write(path, text):
    """What has not changed is not built again."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def copy(sources, to=COPY):
    """The tree in another place, without the sources that are rewritten."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "Sources", "Tests", "Package.swift"],
                           cwd=TOP, check=True, capture_output=True, text=True).stdout.split("\n")
    wanted = {name for name in names if name and (TOP / name).exists()}
    for old in [path for folder in ("Sources", "Tests") for path in (to / folder).rglob("*") if path.is_file()]:
        if str(old.relative_to(to)) not in wanted | {"Sources/Base/Mutants.swift"}:
            old.unlink()
    for name in wanted - set(sources):
        into = to / name
        if not into.exists() or into.read_bytes() != (TOP / name).read_bytes():
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(TOP / name, into)
    package = (TOP / "Package.swift").read_text().replace("    .treatAllWarnings(as: .error),\n", "")
    write(to / "Package.swift", package + PACKAGE % ", ".join(f'"{name}"' for name in TESTS))
    write(to / "Sources/Base/Mutants.swift", SUPPORT)


def find():
    """All mutants by the source they are in."""
    paths = sorted({path for pattern in DECIDES for path in TOP.glob(pattern) if not SHOWS.search(str(path))})
    sources, number = {}, 0
    for path in paths:
        name, text = str(path.relative_to(TOP)), path.read_text()
        mutants = sorted(Source(text).mutants(), key=lambda mutant: (mutant.start, mutant.change))
        for mutant in mutants:
            number += 1
            mutant.number, mutant.file = number, name
            mutant.line = text.count("\n", 0, mutant.start) + 1
            mutant.source = " ".join(text[mutant.start:mutant.end].split())
        sources[name] = (text, mutants)
    return sources


def lay_out(name, text, mutants):
    text = rewritten(text, mutants)
    if mutants and not re.search(r"^(?:public |package )?import Base$", text, re.MULTILINE):
        # On a line that there is, so that lines keep their numbers.
        text = "import Base; " + text
        for mutant in mutants:
            mutant.span = tuple(place + len("import Base; ") for place in mutant.span)
    write(COPY / name, text)


def build(sources):
    """Builds tests and simulation, and leaves out the mutants that the compiler refuses, until there is none."""
    known = WORK / "refused.json"
    refused = set(json.loads(known.read_text())) if known.exists() else set()
    for name, (text, mutants) in sources.items():
        mutants[:] = [mutant for mutant in mutants if mutant.key not in refused]
        lay_out(name, text, mutants)
    # The simulation as `make simulate` has it: a debug build is ten times as slow.
    for what in (["--build-tests"], ["-c", "release", "-Xswiftc", "-enable-testing", "--product", "Simulation"]):
        scratch = WORK / what[-1].strip("-")
        environment = {**os.environ, **({"HTTPDNSD_SIMULATION": "1"} if "Simulation" in what else {})}
        for attempt in range(30):
            made = subprocess.run(["swift", "build", "--package-path", COPY, "--scratch-path", scratch, *what],
                                  env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if made.returncode == 0:
                break
            errors = set(re.findall(rf"^{COPY}/(Sources/\S+?):(\d+):(\d+): error:", made.stdout, re.MULTILINE))
            errors = {(name, int(line), int(column)) for name, line, column in errors if name in sources}
            dropped = [mutant for name, line, column in errors
                       for mutant in meant(sources[name], COPY / name, line, column, attempt > 5)]
            if not dropped:
                sys.exit(f"{made.stdout}\nmutants: the copy cannot be built")
            for name in {name for name, _, _ in errors}:
                text, mutants = sources[name]
                mutants[:] = [mutant for mutant in mutants if mutant not in dropped]
                lay_out(name, text, mutants)
            refused |= {mutant.key for mutant in dropped}
            known.write_text(json.dumps(sorted(refused)))
            print(f"{len(dropped)} mutants are left out, which the compiler refuses", file=sys.stderr)


def meant(source, path, line, column, broadly):
    """The mutants that an error is about: those around it, else those of its line, else the last before it. Broadly: all these."""
    text, mutants = path.read_text(), source[1]
    begin = sum(len(it) + 1 for it in text.split("\n")[:line - 1])
    end = text.find("\n", begin)
    at = begin + len(text[begin:end].encode()[:column - 1].decode(errors="ignore"))
    around = [mutant for mutant in mutants if mutant.span[0] <= at < mutant.span[1]]
    on_line = [mutant for mutant in mutants if mutant.span[0] < end and mutant.span[1] > begin]
    before = [mutant for mutant in mutants if mutant.span[0] < begin][-1:]
    return around + on_line + before if broadly else around or on_line or before


class Stage:
    def __init__(self, folders, command, environment=()):
        self.folders, self.command, self.environment = folders, command, dict(environment)
        self.limit = 600.0

    def fails(self, number):
        """Whether the tests notice a mutant. They end with the first failure, or after five times what they take without one."""
        environment = {**os.environ, "SWIFT_BACKTRACE": "enable=no", "MUTANT": str(number), "TEST_SEED": CHANCE}
        process = subprocess.Popen(self.command, env={**environment, **self.environment}, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True, cwd=COPY)
        ended = threading.Timer(self.limit, os.killpg, (process.pid, signal.SIGKILL))
        ended.start()
        try:
            noticed = any(re.match(r"(?:\x1b\[\d+m)?✘|seed \d+, after", line) for line in process.stdout)
            if noticed:
                os.killpg(process.pid, signal.SIGKILL)
            return process.wait() != 0 or noticed
        finally:
            ended.cancel()
            process.stdout.close()


def stages():
    """The tests, the shortest first, each with the folders whose mutants it is for."""
    tests = [str(WORK / "build-tests/debug/httpdnsdPackageTests.xctest"), "--testing-library", "swift-testing", "--no-parallel"]
    forwards = ("Names", "DNSCache", "Forwarding")
    return {
        "names": Stage(("Names",), [*tests, "--filter", "^NamesTests"]),
        "plans": Stage(("Upstreams",), [*tests, "--filter", "ConnectionScenarioTests|ConnectionLessonsTests"]),
        "streams": Stage(("Upstreams",), [*tests, "--filter", "^UpstreamsTests.StreamUpstreamTests"]),
        "scenarios": Stage(forwards, [*tests, "--filter", "^ForwardingTests.ScenarioTests"]),
        "cache": Stage(("DNSCache",), [*tests, "--filter", "^DNSCacheTests", "--skip", LONG]),
        "units": Stage(forwards, [*tests, "--filter", "^ForwardingTests", "--skip", LONG]),
        "hours": Stage((*forwards, "Upstreams"), [str(WORK / "Simulation/release/Simulation")],
                       {"SEED": CHANCE, "SIMULATED_HOURS": HOURS}),
        "long": Stage(forwards, [*tests, "--filter", LONG]),
    }


def main():
    os.nice(10)
    sources = find()
    copy(sources)
    build(sources)
    mutants = [mutant for _, of_source in sources.values() for mutant in of_source]
    only, count = os.environ.get("ONLY", ""), int(os.environ.get("COUNT") or 600)
    seed = os.environ.get("SEED") or str(random.randrange(1 << 32))
    chosen = [mutant for mutant in mutants if only in mutant.name and mutant.key not in EQUIVALENT]
    if len(chosen) > count:
        chosen = sorted(random.Random(seed).sample(chosen, count), key=lambda mutant: mutant.number)
    print(f"{len(mutants)} mutants; of these {len(chosen)} are tried (SEED={seed})", flush=True)

    every = stages()
    for name, stage in every.items():
        began = time.monotonic()
        if stage.fails(0):
            sys.exit(f"mutants: {name} fail without a mutant")
        stage.limit = 10 + 5 * (time.monotonic() - began)
    found_by = dict.fromkeys(every, 0)

    def lives(mutant):
        fitting = [name for name, stage in every.items() if mutant.file.split("/")[1] in stage.folders]
        by = next((name for name in fitting if every[name].fails(mutant.number)), None)
        if by:
            found_by[by] += 1
        else:
            print(f"lives: {mutant.name}", flush=True)
        return by is None

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        living = [mutant for mutant, alive in zip(chosen, pool.map(lives, chosen)) if alive]
    print(", ".join(f"{name}: {number}" for name, number in found_by.items()))
    print(f"\nmutants: {len(chosen) - len(living)} of {len(chosen)} found; these live:\n")
    for mutant in living:
        print(mutant.name)


if __name__ == "__main__":
    main()
