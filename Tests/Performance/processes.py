"""Processes of the bench: where they run, that they answer, and that none is left behind."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field

READY_WITHIN = 20.0
STOP_WITHIN = 3.0
FIRST_PORT = 21000  # below those that the kernel gives to clients
_LAST_PORT = 32000
_PARENT_DEATH_SIGNAL = 1
_libc = ctypes.CDLL(None)


class Failed(Exception):
    """Something could not be started or did not answer; said in one line."""


@dataclass(frozen=True)
class Cores:
    """Who runs where: the server under test alone, the load on another core, what stands behind the servers on a third if
    there is one."""

    server: frozenset
    load: frozenset
    backend: frozenset
    all: tuple

    @classmethod
    def of_this_machine(cls):
        found = tuple(sorted(os.sched_getaffinity(0)))
        last = found[-1]
        return cls(frozenset(found[:1]), frozenset([last]), frozenset([found[1] if len(found) > 2 else last]), found)

    @property
    def pair(self):
        """Two cores for a server with two listeners, and what is left; nil on a small machine."""
        return (frozenset(self.all[:2]), frozenset(self.all[2:])) if len(self.all) >= 4 else None


_next_port = FIRST_PORT


def free_port():
    """A port that nobody listens on, over UDP and TCP."""
    global _next_port
    while True:
        port = _next_port
        _next_port = port + 1 if port < _LAST_PORT else FIRST_PORT
        with socket.socket(type=socket.SOCK_DGRAM) as datagrams, socket.socket() as stream:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                datagrams.bind(("127.0.0.1", port))
                stream.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def environment():
    """No setting of the caller's shell reaches a daemon."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HTTPDNSD_")}
    return kept | {"SWIFT_BACKTRACE": "enable=no"}


def pinned(cores, priority=0):
    """What a new process does first: take its cores, die with the bench, and take a real-time priority if it may."""
    def prepare():
        os.sched_setaffinity(0, cores)
        _libc.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if priority:
            try:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
            except PermissionError:
                pass
    return prepare


def idling(cores):
    """What a new process does first that gives way to all other at once."""
    def prepare():
        pinned(cores)()
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    return prepare


@contextlib.contextmanager
def busy(cores):
    """Keeps each of the cores busy with work of the lowest priority, which gives way to all other at once."""
    with contextlib.ExitStack() as working:
        for core in cores:
            one = subprocess.Popen([sys.executable, "-c", "while True: pass"], stdin=subprocess.DEVNULL,
                                   preexec_fn=idling([core]))
            working.callback(one.wait)
            working.callback(one.kill)
        yield


@dataclass
class Process:
    """A started program, in a process group of its own so that its children end with it. Not in a session of its own: to other
    sessions' work of the lowest priority a processor would be given as to any other (sched(7), autogroups)."""

    name: str
    popen: subprocess.Popen
    log: str
    port: int = 0
    warmed: dict = field(default_factory=dict)  # how many names of which workload are cached
    upstream: object = None  # what the encrypted server behind it counts

    @classmethod
    def start(cls, name, command, directory, cores, port=0):
        log = os.path.join(directory, name.replace(" ", "-") + ".log")
        with open(log, "wb") as output:
            popen = subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                     env=environment(), preexec_fn=pinned(cores), process_group=0)
        return cls(name, popen, log, port)

    def signal(self, number):
        try:
            os.killpg(self.popen.pid, number)
        except ProcessLookupError:
            pass

    def stop(self):
        self.signal(signal.SIGTERM)
        try:
            self.popen.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            pass
        self.signal(signal.SIGKILL)
        self.popen.wait()

    def wait_until_it_answers(self, name="ready.bench"):
        end = time.monotonic() + READY_WITHIN
        while time.monotonic() < end:
            if self.popen.poll() is not None:
                raise Failed(f"{self.name} ended with {self.popen.returncode}: {self.last_words()}")
            if answers(self.port, name):
                return self
            time.sleep(0.02)
        raise Failed(f"{self.name} does not answer: {self.last_words()}")

    def wait_until_it_listens(self):
        end = time.monotonic() + READY_WITHIN
        while time.monotonic() < end:
            if self.popen.poll() is not None:
                raise Failed(f"{self.name} ended with {self.popen.returncode}: {self.last_words()}")
            with socket.socket() as stream:
                if stream.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.02)
        raise Failed(f"{self.name} does not listen: {self.last_words()}")

    def last_words(self):
        with open(self.log, errors="replace") as log:
            return " / ".join(log.read().strip().splitlines()[-2:]) or "it said nothing"


def query(name, identifier=0x6265):
    """A question for A, as bytes."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return identifier.to_bytes(2, "big") + b"\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1"


def is_good(reply):
    """NOERROR with a record."""
    return len(reply) > 12 and reply[3] & 15 == 0 and (reply[6] or reply[7])


def answers(port, name, within=0.25):
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.settimeout(within)
        try:
            client.connect(("127.0.0.1", port))
            client.send(query(name))
            return is_good(client.recv(4096))
        except OSError:
            return False
