#!/usr/bin/python3
"""The functions that a start and the first lookups call, as callgrind sees them, one on each line: the linker puts them side by
side.

    order.py BINARY > config/order.txt

The daemon is started once for each way upstream, with a cache file and a control socket, and is killed once it has answered: what
an end calls is not listed.
"""

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time

import processes
import servers
from backends import Backends
from bench import Bench
from processes import Process, free_port

WAYS = ("plain", "dot", "doh2", "aes", "https")
NAMES = ("ready.bench", "ready.bench", "another.bench")  # the second is a hit
FUNCTION = re.compile(r"^c?fn=\(\d+\) (\S+?)(?:'\d+)?$", re.MULTILINE)


def called(bench, way):
    """The names of all functions that were called, of libraries as well."""
    with contextlib.ExitStack() as running:
        port, output = free_port(), os.path.join(bench.directory, f"called-{way}")
        place = servers.Place(bench.directory, port, Backends(bench, running).port(way), way, bench.certificate,
                              cache_file=output + ".cache", control=output + ".socket")
        command = ["valgrind", "-q", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={output}"]
        process = Process.start(f"daemon {way}", command + servers.httpdnsd(place, bench.binary), bench.directory,
                                bench.cores.server, port)
        running.callback(process.stop)
        for name in NAMES:
            process.wait_until_it_answers(name)
        time.sleep(3)  # what is done from time to time
        subprocess.run(["callgrind_control", "--dump", str(process.popen.pid)], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        process.popen.kill()
        with open(f"{output}.1", errors="replace") as text:
            return set(FUNCTION.findall(text.read()))


def main():
    processes.READY_WITHIN = 120  # under valgrind all takes fifty times as long
    with tempfile.TemporaryDirectory() as directory:
        # Without the debug information that Swift writes, which valgrind cannot read.
        binary = os.path.join(directory, "httpdnsd")
        subprocess.run(["strip", "-g", "-o", binary, sys.argv[1]], check=True)
        symbols = subprocess.run(["nm", "--defined-only", binary], stdout=subprocess.PIPE, text=True, check=True).stdout
        own = {name for _, kind, name in (line.split(None, 2) for line in symbols.splitlines()) if kind in "tTwWV"}
        bench = Bench(argparse.Namespace(binary=binary, build=".build/bench", rivals=None), directory)
        bench.build_tools()
        print("\n".join(sorted(own.intersection(set().union(*(called(bench, way) for way in WAYS))))))


if __name__ == "__main__":
    main()
