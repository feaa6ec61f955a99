"""A Debian of the tests' own: a minimal tree under an overlay in memory, with a network that has nothing but loopback."""

import contextlib
import os
import pathlib
import subprocess
import sys

HTTPDNS_SERVICE = pathlib.Path(__file__).parents[1] / "EndToEnd/httpdns_service.py"

# Says when all is in place, and then keeps the namespaces.
_MAKE = """
set -e
mount --make-rprivate /
mount -t tmpfs none "$2"
mkdir "$2"/upper "$2"/work "$2"/root
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" none "$2"/root
for folder in dev proc sys; do mount --rbind /$folder "$2"/root/$folder; done
ip link set lo up
# Programs that look whether the host has IPv4 at all do not count loopback addresses.
ip address add 10.53.53.53/32 dev lo
exec chroot "$2"/root sh -c 'echo ready; exec sleep infinity'
"""


class Machine:
    """What is changed in it is gone with it. There is no running systemd inside."""

    def __init__(self, tree, directory):
        assert (tree / "etc/debian_version").exists(), f"no Debian in {tree}: make package-test makes it"
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--net", "bash", "-c", _MAKE, "bash", str(tree), str(directory)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout.readline() == "ready\n"
        assert not os.path.samefile(self.path("/"), "/"), "these are the files of the machine the tests run on"
        self._started = []
        self.write("/etc/resolv.conf", "nameserver 127.0.0.1\noptions edns0 trust-ad\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [*self._started, self._holder]:
            process.kill()
            process.communicate()

    def _inside(self, *command):
        return ["nsenter", f"--target={self._holder.pid}", "--mount", "--net", "--root", "--wdns=/", "env", "-i",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
                "SWIFT_BACKTRACE=enable=no", *map(str, command)]

    def path(self, inside):
        """Where a file of the machine is seen from outside."""
        return pathlib.Path(f"/proc/{self._holder.pid}/root{inside}")

    def write(self, path, text):
        with contextlib.suppress(FileNotFoundError):
            self.path(path).unlink()
        self.path(path).write_text(text)

    def run(self, *command, check=True, timeout=60):
        done = subprocess.run(self._inside(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout)
        assert not check or done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}"
        return done

    def start(self, *command):
        process = subprocess.Popen(self._inside(*command), stdin=subprocess.DEVNULL)
        self._started.append(process)
        return process

    def start_service(self, *arguments):
        """An HTTPDNS service on this machine's loopback that the tests know the account of."""
        process = subprocess.Popen(
            ["nsenter", f"--target={self._holder.pid}", "--net", sys.executable, "-B", str(HTTPDNS_SERVICE), *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self._started.append(process)
        assert process.stdout.readline().startswith("[httpdns]")
        return process
