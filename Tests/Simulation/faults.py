"""Whether the judge sees faults that there were: `make faults` puts each file of Faults back into a copy of the sources, and looks
how many simulated hours it lives.

A file: what the fault does, the source, and its lines without and with the fault, where `isFault` is true. All are built at once.
ONLY: a part of the names that are tried; SEED: that of the hours. `--fit` only says which lines the sources do not have."""

import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parent / "Mutants"))
import mutants  # noqa: E402

COPY = mutants.TOP / ".build/faults/copy"
HOURS = 200
SOON = 50


class Fault:
    def __init__(self, path, number):
        self.name, self.number = path.stem, number
        what, changes = path.read_text().split("\n\n", 1)
        self.what = what
        self.file, *lines = changes.splitlines()
        self.before, self.behind = ("".join(line[1:] + "\n" for line in lines if line[0] == sign) for sign in "-+")

    def put(self, text):
        """The source with the fault; None if the source does not have these lines exactly once."""
        if f"\n{text}".count(f"\n{self.before}") != 1:
            return None
        return text.replace(self.before, self.behind.replace("isFault", f"isMutant({self.number})"))


def found(fault, binary):
    """The hours after which the judge finds the fault, and its words; None if the judge does not find it."""
    environment = {**os.environ, "MUTANT": str(fault.number), "SIMULATED_HOURS": str(HOURS), "SEED": os.environ.get("SEED", "")}
    process = subprocess.Popen([binary], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True, cwd=mutants.TOP)
    try:
        for line in process.stdout:
            if after := re.match(r"seed \d+, after (\d+) hours", line):
                return int(after[1]), process.stdout.readline().strip()
        return None
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        process.stdout.close()


def main():
    faults = [Fault(path, number) for number, path in enumerate(sorted((HERE / "Faults").glob("*.txt")), 1)]
    sources = {fault.file: (mutants.TOP / fault.file).read_text() for fault in faults}
    for fault in faults:
        changed = fault.put(sources[fault.file])
        if changed is None:
            sys.exit(f"faults: {fault.name}: {fault.file} does not have its lines, or has them twice")
        sources[fault.file] = changed
    if "--fit" in sys.argv:
        return
    mutants.copy(sources, COPY)
    for name, text in sources.items():
        imports = "" if re.search(r"^(?:public |package )?import Base$", text, re.MULTILINE) else "import Base; "
        mutants.write(COPY / name, imports + text)
    subprocess.run(["swift", "build", "--package-path", COPY, "--scratch-path", COPY.parent / "built", "-c", "release", "-Xswiftc",
                    "-enable-testing", "--product", "Simulation"], check=True, env={**os.environ, "HTTPDNSD_SIMULATION": "1"})
    binary = COPY.parent / "built/release/Simulation"
    tried = [fault for fault in faults if os.environ.get("ONLY", "") in fault.name]
    hours = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for fault, result in zip(tried, pool.map(lambda fault: found(fault, binary), tried)):
            if result:
                hours.append(result[0])
            print(f"{fault.name}: " + (f"{result[0]} hours: {result[1]}" if result else f"lives: {fault.what}"), flush=True)
    print(f"\nfaults: {len(hours)} of {len(tried)} found within {HOURS} hours, {sum(it <= SOON for it in hours)} within {SOON}")


if __name__ == "__main__":
    main()
