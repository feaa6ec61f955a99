"""The control socket and the metrics address as their clients see them."""

import http.client
import json
import pathlib
import re
import socket

import daemon as processes

METRICS = ("127.0.0.1", 9153)


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path, timeout=20):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def fetch(path, method="GET", *, address=METRICS, over=None, timeout=20):
    """One request: status, head and body. `over`: the path of a unix socket."""
    connection = UnixConnection(over, timeout) if over else http.client.HTTPConnection(*address, timeout=timeout)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()
    finally:
        connection.close()


class Control:
    """A daemon's operator, who types commands."""

    def __init__(self, binary, running):
        self.binary = binary
        self.socket = pathlib.Path(running.directory) / "control.sock"

    def __call__(self, command, *arguments, code=0):
        ended = processes.run(self.binary, command, "--socket", str(self.socket), *arguments)
        assert ended.returncode == code, ended
        return ended.stdout if code == 0 else ended.stderr

    def json(self, command="status"):
        return json.loads(self(command, "--json"))


def metrics(text=None):
    """The samples by name and labels: `{("name", (("label", "value"), …)): number}`."""
    samples = {}
    for line in (fetch("/metrics")[2] if text is None else text).splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = re.fullmatch(r'(\w+)(?:\{(.*)\})? (\S+)', line).groups()
        pairs = tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))
        assert (name, pairs) not in samples, f"twice: {line}"
        samples[name, pairs] = float(value)
    return samples


def total(samples, name, **labels):
    """The sum of all samples of a name that have these labels."""
    return sum(value for (one, pairs), value in samples.items()
               if one == name and labels.items() <= dict(pairs).items())
