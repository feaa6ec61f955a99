"""Network namespaces beside the one the tests run in, the links between them, and packets that vanish on the way."""

import ctypes
import json
import os
import subprocess
import threading

import pytest

from waiting import eventually

_libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
OWN_NAMESPACE = "/proc/thread-self/ns/net"
HAS_IPV6 = os.path.exists("/proc/net/if_inet6")

needs_ipv6 = pytest.mark.skipif(not HAS_IPV6, reason="this host has no IPv6")


def _checked(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Network:
    """A network namespace with only a loopback device.

    Within `with network:` the calling thread is inside, and so is all that it starts there: sockets stay inside
    permanently, threads and processes too.
    """

    def __init__(self):
        self._outside = []  # the former namespace of the threads that are inside; one thread at a time enters
        maker = threading.Thread(target=self._make)
        maker.start()
        maker.join()
        self.run("ip", "link", "set", "lo", "up")

    def _make(self):
        _checked(_libc.unshare(CLONE_NEWNET))
        self._inside = os.open(OWN_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)

    def __enter__(self):
        self._outside.append(os.open(OWN_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC))
        _checked(_libc.setns(self._inside, CLONE_NEWNET))
        return self

    def __exit__(self, *_):
        outside = self._outside.pop()
        _checked(_libc.setns(outside, CLONE_NEWNET))
        os.close(outside)

    @property
    def path(self):
        return f"/proc/{os.getpid()}/fd/{self._inside}"

    def run(self, *command):
        with self:
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)

    def ip(self, *words):
        """Runs an `ip` command inside; each argument may hold several words."""
        self.run("ip", *" ".join(words).split())

    def link(self, other, *, ours="10.77.0.1/24", theirs="10.77.0.2/24"):
        """Makes a cable to another namespace: `cable` at both ends, both up. Further addresses follow after a space."""
        self.ip("link add cable type veth peer name cable netns", other.path)
        for network, addresses in ((self, ours), (other, theirs)):
            network.ip("link set cable up")
            for address in addresses.split():
                network.ip("address add", address, "dev cable", "nodad" if ":" in address else "")
        # Until then the kernel drops all packets.
        eventually(lambda: self._cable["operstate"] == other._cable["operstate"] == "UP", "the cable is up at both ends")

    @property
    def _cable(self):
        with self:
            shown = subprocess.run(["ip", "-j", "link", "show", "cable"], capture_output=True, check=True)
        return json.loads(shown.stdout)[0]

    @property
    def hardware(self):
        """The hardware address of the cable's end."""
        return self._cable["address"]

    def close(self):
        os.close(self._inside)


class BlackHole:
    """Between entering and leaving, packets of TCP connections to some ports vanish without an error at either end.

    `connections` are (address, port) of the clients whose packets vanish; None: all present and future clients.
    """

    def __init__(self, ports, connections=None):
        self._ports = self._set(ports)
        self._clients = "" if connections is None else self._set(client[1] for client in connections)

    @staticmethod
    def _set(ports):
        return "{ " + ", ".join(str(port) for port in ports) + " }"

    def __enter__(self):
        if self._ports == self._set([]):
            return
        onward, back = (f"tcp dport {self._ports}", f"tcp sport {self._ports}")
        if self._clients:
            onward, back = f"{onward} tcp sport {self._clients}", f"{back} tcp dport {self._clients}"
        self._nft("table inet blackhole {\nchain arriving {\ntype filter hook input priority 0;\n"
                  f"{onward} drop\n{back} drop\n}}\n}}\n")

    def __exit__(self, *_):
        if self._ports == self._set([]):
            return
        self._nft("delete table inet blackhole")

    @staticmethod
    def _nft(text):
        subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)


class PlainDNS:
    """From entering to leaving, counts the packets to port 53, whatever the address: UDP and TCP."""

    def __enter__(self):
        text = ("table inet plaindns {\nchain leaving {\ntype filter hook output priority 0;\n"
                "udp dport 53 counter\ntcp dport 53 counter\n}\n}\n")
        subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["nft", "delete", "table", "inet", "plaindns"], check=True)

    @property
    def packets(self):
        shown = subprocess.run(["nft", "-j", "list", "table", "inet", "plaindns"], capture_output=True, check=True)
        rules = [entry["rule"] for entry in json.loads(shown.stdout)["nftables"] if "rule" in entry]
        assert len(rules) == 2
        return sum(part["counter"]["packets"] for rule in rules for part in rule["expr"] if "counter" in part)
