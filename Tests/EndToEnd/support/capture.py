"""The packets of one TCP port on the loopback device, seen by tcpdump."""

import pathlib
import socket
import subprocess

from waiting import eventually

LAST = b"this-is-the-end-of-the-capture"


class Capture:
    """Captures all packets from entering until `bytes`."""

    def __init__(self, directory, address, port):
        self.address, self.port = address, port
        self._file = pathlib.Path(directory) / "wire.pcap"
        self._messages = pathlib.Path(directory) / "tcpdump.log"

    def __enter__(self):
        with self._messages.open("w") as messages:
            self._process = subprocess.Popen(
                ["tcpdump", "-i", "lo", "-n", "-s", "0", "-U", "--immediate-mode", "-Z", "root", "-w", str(self._file),
                 "tcp", "port", str(self.port)], stdin=subprocess.DEVNULL, stdout=messages, stderr=messages)
        eventually(self._listens, "tcpdump listens")
        return self

    def _listens(self):
        assert self._process.poll() is None, (
            f"tcpdump ended (in a user namespace it cannot run: be root): {self._messages.read_text()}")
        return "listening on" in self._messages.read_text()

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(30)

    def bytes(self):
        """The capture so far: a connection of the test marks its end."""
        with socket.create_connection((self.address, self.port), timeout=20) as marker:
            marker.sendall(LAST)
        return eventually(lambda: LAST in (data := self._file.read_bytes()) and data, "tcpdump wrote the last packet")
