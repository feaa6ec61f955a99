"""A store for daemons to share: Debian's redis-server as a process, and a fake one with scripted replies."""

import contextlib
import shutil
import signal
import socket
import subprocess
import threading
import time

from waiting import eventually

PASSWORD = "open sesame"


def encode(*words):
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def read_reply(stream):
    """One reply: bytes, None, a number, a list, or an exception's text in a ValueError."""
    line = stream.readline()
    kind, rest = line[:1], line[1:].strip()
    if kind == b"$":
        if rest == b"-1":
            return None
        value = stream.read(int(rest))
        stream.read(2)
        return value
    if kind == b"*":
        return [read_reply(stream) for _ in range(int(rest))]
    if kind == b"-":
        return ValueError(rest.decode())
    return int(rest) if kind == b":" else rest


class Store:
    """A running redis-server."""

    def __init__(self, directory, *options, address="127.0.0.9", port=6379, tls=None, password=None, user=""):
        self.directory, self.address, self.port, self.tls = directory, address, port, tls
        self.path = directory / "store.sock"
        self._login = ([user] if user else []) + ([password] if password else [])
        self._command = [shutil.which("redis-server") or "redis-server", "--bind", address, "--dir", str(directory),
                         "--save", "", "--unixsocket", str(self.path), "--unixsocketperm", "777", "--loglevel", "warning",
                         "--enable-debug-command", "yes"]
        self._command += ["--port", "0", "--tls-port", str(port)] if tls else ["--port", str(port)]
        self._command += [str(option) for option in options]
        self.process = None

    def start(self):
        with (self.directory / "store.log").open("w") as log:
            self.process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        eventually(self._listens, "the store listens", 60)
        return self

    def _listens(self):
        assert self.process.poll() is None, (self.directory / "store.log").read_text()
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(self.path))
            return True
        return False

    def __call__(self, *words, login=()):
        """Runs a command of the test directly, without TLS and network."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(str(self.path))
            stream = connection.makefile("rb")
            if login:
                connection.sendall(encode("AUTH", *login))
                read_reply(stream)
            connection.sendall(encode(*words))
            return read_reply(stream)

    def keys(self, **options):
        return self("KEYS", "*", **options)

    def calls(self, **options):
        """The number of calls of each command."""
        lines = self("INFO", "commandstats", **options).decode().splitlines()
        found = (line.removeprefix("cmdstat_").split(":calls=") for line in lines if line.startswith("cmdstat_"))
        return {name: int(rest.split(",")[0]) for name, rest in found}

    def dump(self):
        """All data of the store, as it would be saved on disk."""
        self("CONFIG", "SET", "rdbcompression", "no")
        self("SAVE")
        return (self.directory / "dump.rdb").read_bytes()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    stop = kill


class FakeStore:
    """Answers each command by `reply(words)`: octets, or a pair of seconds to wait and octets."""

    def __init__(self, reply, address="127.0.0.10", port=6379):
        self.reply, self.commands = reply, []
        self._listener = socket.create_server((address, port), backlog=64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with contextlib.suppress(OSError, ValueError), connection:
            stream = connection.makefile("rb")
            while words := read_reply(stream):
                self.commands.append(words)
                answer = self.reply(words)
                if isinstance(answer, tuple):
                    time.sleep(answer[0])
                    answer = answer[1]
                connection.sendall(answer)

    def stop(self):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
