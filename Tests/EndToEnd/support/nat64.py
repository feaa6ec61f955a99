"""A network without IPv4, whose translator (NAT64) is Debian's tayga."""

import shutil
import subprocess

ROUTER = "2001:db8:1::1"
MACHINE = "2001:db8:1::2"
POOL = "192.168.255"


class Translator:
    """A running tayga in a network: packets under the prefix leave it with addresses of IPv4."""

    def __init__(self, network, directory, prefix, number=1):
        self._network, self._device = network, f"nat64-{number}"
        pool = f"{POOL}.{16 * number}"
        configuration = directory / f"tayga-{number}.conf"
        configuration.write_text(
            f"tun-device {self._device}\nipv4-addr {POOL}.{number}\nipv6-addr 2001:db8:1::6{number}\n"
            f"prefix {prefix}\ndynamic-pool {pool}/28\ndata-dir {directory}\n")
        command = [shutil.which("tayga") or "/usr/sbin/tayga", "-c", str(configuration)]
        network.run(*command, "--mktun")
        network.ip(f"link set {self._device} up")
        network.ip(f"route add {pool}/28 dev {self._device}")
        network.ip(f"route add {prefix} dev {self._device}")
        with network:
            self._process = subprocess.Popen([*command, "-d"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                             stderr=subprocess.DEVNULL)

    def stop(self):
        self._process.kill()
        self._process.wait()
        self._network.ip(f"link delete {self._device}")


def without_ipv4(network, servers):
    """A machine with IPv6 alone, and the far side of its link with these IPv4 addresses."""
    machine, far = network(), network()
    machine.link(far, ours=f"{MACHINE}/64", theirs=f"{ROUTER}/64")
    for server in servers:
        far.ip(f"address add {server}/32 dev lo")
    for setting in ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"):
        far.run("sysctl", "-qw", setting)
    machine.ip(f"-6 route add default via {ROUTER}")
    return machine, far
