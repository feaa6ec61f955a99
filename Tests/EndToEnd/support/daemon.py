"""The daemon under test as a process: its configuration, its life, its log, its resources."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import dns.message

from dns_client import exchange
from waiting import eventually, waited_since

READY_WITHIN = 60.0  # the time under valgrind, on a busy machine
STOP_WITHIN = 30.0  # stopping waits for answers under way, and threads that serve TLS get a tenth of a busy processor
SANITIZED = "HTTPDNSD_SANITIZED" in os.environ


def toml(settings):
    """TOML for a dict of sections. JSON's strings, numbers, booleans and lists of these are also valid TOML."""
    lines = []
    for section, keys in settings.items():
        lines.append(f"[{section}]")
        lines.extend(f"{key} = {json.dumps(value)}" for key, value in keys.items())
    return "\n".join(lines) + "\n"


def environment(extra=None):
    """The environment of a daemon, without the caller's settings and without the control socket of another daemon."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HTTPDNSD_")}
    kept |= {"SWIFT_BACKTRACE": "enable=no", "HTTPDNSD_CONTROL_SOCKET": ""}
    return kept | (extra or {})


class Daemon:
    """A running `httpdnsd run`."""

    def __init__(self, binary, directory, settings, *, arguments=(), variables=None, prefix=(), server="127.0.0.1",
                 port=53):
        self.directory = pathlib.Path(directory)
        self.server, self.port = server, port
        self.secrets = [settings.get("httpdns", {}).get(key) for key in ("dnsKey", "token")]
        command = [*prefix, binary, "run"]
        if settings:
            path = self.directory / "httpdnsd.toml"
            path.write_text(toml(settings))
            command += ["-c", str(path)]
        if "socket" in settings.get("control", {}):
            variables = {"HTTPDNSD_CONTROL_SOCKET": settings["control"]["socket"]} | (variables or {})
        self._log = self.directory / "daemon.log"
        with self._log.open("w") as log:
            self.process = subprocess.Popen([*command, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=environment(variables))

    @property
    def pid(self):
        return self.process.pid

    def wait_until_ready(self):
        """Waits until the daemon answers a question by itself."""
        def answers():
            assert self.process.poll() is None, f"the daemon ended with {self.process.returncode}:\n{self.log()}"
            try:  # a connected socket reports at once that the port is closed
                reply = exchange(question, server=self.server, port=self.port, timeout=3)
            except OSError:
                return False
            return reply is not None and dns.message.from_wire(reply).answer
        question = dns.message.make_query("localhost", "A").to_wire()
        eventually(answers, "the daemon answers", READY_WITHIN)
        return self

    def log(self):
        """The log, which a thread of the daemon writes: it is complete when all threads sleep and it has stopped growing. For a
        busy daemon this waits some seconds at most."""
        def goes_on():
            before = self._log.stat().st_size
            is_idle = self._is_idle()
            time.sleep(0.01)
            return not (is_idle and self._is_idle()) or self._log.stat().st_size != before
        begun = time.monotonic()
        while self.process.poll() is None and waited_since(begun) < 3 and goes_on():
            pass
        return self._log.read_text(errors="replace")

    def _is_idle(self):
        try:
            states = [(task / "stat").read_text().rpartition(")")[2].split()[0]
                      for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir()]
        except OSError:  # a thread, or the process, has ended
            return False
        return set(states) == {"S"}

    def log_lines(self, pattern):
        return [line for line in self.log().splitlines() if re.search(pattern, line, re.IGNORECASE)]

    def stop(self):
        """Stops the daemon by TERM; its exit code must be 0 and its log must have no secret."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        begun, code = time.monotonic(), None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.process.wait(2 * STOP_WITHIN)
        is_late = code is None or waited_since(begun) > STOP_WITHIN
        if code is None:
            self.process.kill()
            self.process.wait()
        assert not is_late, f"the daemon did not stop within {STOP_WITHIN} s of TERM:\n{self.log()}"
        assert code == 0, f"the daemon ended with {code}:\n{self.log()}"
        for secret in self.secrets:
            assert not secret or secret not in self.log(), "a secret is in the log"

    def descriptors(self):
        return len(list(pathlib.Path(f"/proc/{self.pid}/fd").iterdir()))

    def sockets(self):
        """The daemon's sockets, by unique names."""
        held = set()
        for entry in pathlib.Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                held.add(os.readlink(entry))
        return {target for target in held if target.startswith("socket:[")}

    def ticks(self):
        """The ticks of a processor that the daemon has used."""
        return sum(map(int, pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))

    def ticks_in(self, seconds):
        """The ticks of a processor that the daemon uses in this time."""
        before = self.ticks()
        time.sleep(seconds)
        return self.ticks() - before

    def resident_kilobytes(self, kind="VmRSS"):
        """The resident memory, or one kind of it: `RssAnon` is memory without files."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(rf"{kind}:\s+(\d+) kB", status).group(1))

    def held_kilobytes(self, kind="VmRSS"):
        """The memory to compare with a bound: 0 for a sanitizer's build, whose own memory would hide the daemon's."""
        return 0 if SANITIZED else self.resident_kilobytes(kind)

    def established_connections(self):
        """The number of accepted TCP connections at the daemon's DNS port."""
        held = {target[8:-1] for target in self.sockets()}
        count = 0
        for line in pathlib.Path(f"/proc/{self.pid}/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            count += fields[9] in held and fields[3] == "01" and int(fields[1].split(":")[1], 16) == self.port
        return count


def run(binary, *arguments, variables=None, timeout=60.0, cwd=None):
    """Runs a command of the binary that ends by itself."""
    return subprocess.run([binary, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=timeout, env=environment(variables), cwd=cwd)
