"""A Debian of the tests' own: a minimal tree under an overlay in memory, with a network that has nothing but loopback."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys

from waiting import eventually

HTTPDNS_SERVICE = pathlib.Path(__file__).parents[1] / "EndToEnd/support/httpdns_service.py"

# Reports when all mounts are done, and then keeps the namespaces open.
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


def resolver_that_knows(address, *lines):
    """unbound's settings at an address, with data of its own."""
    return "\n".join([
        "", "server:", f"  interface: {address}", "  access-control: 0.0.0.0/0 allow", "  do-daemonize: no", '  chroot: ""',
        '  username: ""', '  pidfile: ""', "  use-syslog: no", *(f"  {line}" for line in lines), "remote-control:",
        "  control-enable: no", ""])


class Machine:
    """All changes are lost with the machine. There is no running systemd inside."""

    _MORE = ()

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

    @property
    def _pid(self):
        return self._holder.pid

    def _inside(self, *command):
        return ["nsenter", f"--target={self._pid}", "--mount", "--net", *self._MORE, "--root", "--wdns=/", "env", "-i",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
                "SWIFT_BACKTRACE=enable=no", *map(str, command)]

    def path(self, inside):
        """The path of a machine's file from outside."""
        return pathlib.Path(f"/proc/{self._pid}/root{inside}")

    def write(self, path, text):
        with contextlib.suppress(FileNotFoundError):
            self.path(path).unlink()
        self.path(path).write_text(text)

    def run(self, *command, check=True, timeout=60):
        done = subprocess.run(self._inside(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout)
        assert not check or done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}"
        return done

    def run_until_killed(self, calls, number, *command):
        """Runs a command of which all threads are killed when one makes one of these system calls for the `number`th time."""
        kill = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e", f"inject={calls}:signal=KILL:when={number}"]
        return subprocess.run([*kill, *self._inside(*command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60)

    def start(self, *command, stdout=None):
        process = subprocess.Popen(self._inside(*command), stdin=subprocess.DEVNULL, stdout=stdout, text=True)
        self._started.append(process)
        return process

    def start_outside(self, *command):
        """Starts a program of the tests in the machine's network."""
        process = subprocess.Popen(["nsenter", f"--target={self._pid}", "--net", *command], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, text=True)
        self._started.append(process)
        return process

    def start_service(self, *arguments):
        """Starts an HTTPDNS service on the machine's loopback."""
        service = self.start_outside(sys.executable, "-B", str(HTTPDNS_SERVICE), *arguments)
        assert service.stdout.readline().startswith("[httpdns]")


class BootedMachine(Machine):
    """A machine with a real systemd as its process 1, controlled from outside."""

    _MORE = ("--pid", "--ipc", "--uts", "--cgroup")
    _BOOT_SECONDS = 60

    def __init__(self, tree, directory):
        # --keep-unit makes the machine's control groups below this process's own, so it starts in some of its own.
        self._groups = []
        for hierarchy in ("systemd", "unified"):
            parent = pathlib.Path("/sys/fs/cgroup") / hierarchy
            if parent.is_dir():
                self._groups.append(parent / f"httpdnsd-packaging-{os.getpid()}")
                self._groups[-1].mkdir(exist_ok=True)

        def enter():
            for group in self._groups:
                (group / "cgroup.procs").write_text("0")
        self._console = directory / "console"
        with self._console.open("w") as console:
            self._nspawn = subprocess.Popen(
                ["systemd-nspawn", "--quiet", f"--directory={tree}", "--volatile=overlay", "--register=no",
                 "--keep-unit", "--private-network", "--resolv-conf=off", "--console=pipe", "--boot",
                 f"--machine=httpdnsd-{os.getpid()}"],
                stdin=subprocess.DEVNULL, stdout=console, stderr=console, preexec_fn=enter)
        self._started = []
        self._init = None
        try:
            self._init = eventually(self._find_init, "the machine has a process 1", self._BOOT_SECONDS)
            assert not os.path.samefile(self.path("/"), "/"), "these are the files of the machine the tests run on"
            eventually(lambda: self.path("/run/systemd/private").exists(), "systemd listens", self._BOOT_SECONDS)
            self.run("systemctl", "is-system-running", "--wait", check=False, timeout=self._BOOT_SECONDS)
        except BaseException:
            self.__exit__()
            raise

    @property
    def _pid(self):
        return self._init

    def _find_init(self):
        assert self._nspawn.poll() is None, self._console.read_text()
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines())
                if status["PPid"] == str(self._nspawn.pid) and status["NSpid"].split()[-1] == "1" \
                        and status["Name"] == "systemd":
                    return int(process.name)
        return None

    def __exit__(self, *_):
        for process in self._started:
            process.kill()
            process.communicate()
        if self._init:
            os.kill(self._init, signal.SIGKILL)  # this ends the whole machine
        else:
            self._nspawn.kill()
        self._nspawn.wait()
        for group in self._groups:
            remove = ["find", str(group), "-depth", "-type", "d", "-exec", "rmdir", "{}", "+"]
            eventually(lambda: subprocess.run(remove, stderr=subprocess.DEVNULL).returncode == 0 or not group.exists(),
                       "the machine's control groups are empty")

    def failed_units(self):
        return self.run("systemctl", "--failed", "--plain", "--no-legend").stdout
