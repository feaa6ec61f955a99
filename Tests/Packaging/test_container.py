"""The sidecar's image, run with podman beside an application that shares its network."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

from machine import HTTPDNS_SERVICE
from waiting import eventually

HERE = pathlib.Path(__file__).parent
KEY = "0123456789abcdef"
ACCOUNT = {"HTTPDNSD_HTTPDNS_ENCRYPTTYPE": "aes", "HTTPDNSD_HTTPDNS_DNSID": "12345", "HTTPDNSD_HTTPDNS_DNSKEY": KEY,
           "HTTPDNSD_HTTPDNS_DNSIP": "127.0.0.1:8053", "HTTPDNSD_HTTPDNS_ADDRESSTYPE": "dual"}
ADDRESS = "203.0.113.20"
MEGABYTE = 1_000_000


class Podman:
    """Podman with a storage of its own."""

    def __init__(self, directory):
        self._run = tempfile.mkdtemp(prefix="podman-", dir="/run")  # podman requires a short path
        self._options = [f"--root={directory}/storage", f"--runroot={self._run}"]
        self._services = []

    def __call__(self, *arguments, check=True):
        done = subprocess.run(["podman", *self._options, *map(str, arguments)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60,
                              env=os.environ | {"CONTAINERS_CONF": str(HERE / "containers.conf")})
        assert not check or done.returncode == 0, done.stderr
        return done

    def inspect(self, name, template):
        return self("inspect", f"--format={template}", name).stdout.strip()

    def start_service(self, beside, *arguments):
        """Starts an HTTPDNS service on the loopback of a container."""
        service = subprocess.Popen(
            ["nsenter", f"--target={self.inspect(beside, '{{.State.Pid}}')}", "--net", sys.executable, "-B",
             HTTPDNS_SERVICE, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self._services.append(service)
        assert service.stdout.readline().startswith("[httpdns]")

    def close(self):
        for service in self._services:
            service.kill()
            service.communicate()
        self("rm", "--force", "--all", "--time=0", check=False)
        self("unmount", "--all", "--force", check=False)
        shutil.rmtree(self._run, ignore_errors=True)


@pytest.fixture(scope="module")
def image(top, version):
    return top / f".build/image/httpdnsd-{version}.tar"


@pytest.fixture(scope="module")
def podman(tmp_path_factory, image):
    one = Podman(tmp_path_factory.mktemp("podman"))
    one("load", f"--input={image}")
    yield one
    one.close()


@pytest.fixture(scope="module")
def name(version):
    return f"localhost/httpdnsd:{version}"


@pytest.fixture
def application(top, podman):
    """A Debian container with a network that has nothing but loopback, whose resolv.conf names the sidecar."""
    resolv_conf = top / "config/container/resolv.conf"
    podman("run", "--detach", "--name=application", "--network=none", "--read-only", "--cap-drop=all",
           f"--volume={resolv_conf}:/etc/resolv.conf:ro", "--rootfs", f"{top}/.build/packaging/root:O",
           "sleep", "infinity")
    yield "application"
    podman("rm", "--force", "--time=0", "--depend", "application")


def sidecar(podman, name, variables, *options):
    """The sidecar, hardened as it is meant to be run."""
    given = [f"--env={key}={value}" for key, value in variables.items()]
    podman("run", "--detach", "--name=httpdnsd", "--network=container:application", "--read-only", "--cap-drop=all",
           "--cap-add=net_bind_service", "--security-opt=no-new-privileges", *options, *given, name)


def lookup(podman, of="www.example.com"):
    return podman("exec", "application", "getent", "hosts", of, check=False).stdout.split()[:1]


def test_the_image_is_small_and_has_nothing_beside_the_daemon(podman, name):
    config = json.loads(podman.inspect(name, "{{json .Config}}"))
    assert config["User"] == "65532:65532"
    assert json.loads(podman.inspect(name, "{{json .HealthCheck}}"))["Test"] == ["CMD", "/usr/sbin/httpdnsd", "status", "--ready"]
    assert int(podman.inspect(name, "{{.Size}}")) < 40 * MEGABYTE
    for program in ("/bin/sh", "/usr/bin/env"):
        assert podman("run", "--rm", f"--entrypoint={program}", name, check=False).returncode == 127


def test_an_application_resolves_through_it_and_survives_its_death(podman, name, application):
    podman.start_service(application, "--key", KEY, "--record", f"www.example.com={ADDRESS}")
    sidecar(podman, name, ACCOUNT, "--restart=always")
    eventually(lambda: lookup(podman) == [ADDRESS], "the application resolves")
    pid = int(podman.inspect("httpdnsd", "{{.State.Pid}}"))
    status = dict(line.split(":\t") for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    assert status["Uid"].split() == ["65532"] * 4
    net_bind_service = f"{1 << 10:016x}"
    assert {status["CapEff"], status["CapPrm"], status["CapBnd"]} == {net_bind_service}
    assert status["NoNewPrivs"] == "1"

    os.kill(pid, 9)
    failed = 0
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        if lookup(podman) != [ADDRESS]:
            failed += 1
            time.sleep(2)
            assert lookup(podman) == [ADDRESS], "a second try, two seconds later, is not answered"
    assert failed <= 1
    assert int(podman.inspect("httpdnsd", "{{.State.Pid}}")) != pid

    podman("stop", "--time=5", "httpdnsd")
    assert podman.inspect("httpdnsd", "{{.State.ExitCode}}") == "0"


def test_its_health_needs_no_shell(podman, name, application):
    podman.start_service(application, "--key", KEY, "--record", f"www.example.com={ADDRESS}")
    sidecar(podman, name, ACCOUNT)

    def healthy():
        return podman("healthcheck", "run", "httpdnsd", check=False).returncode == 0
    eventually(healthy, "the image's health check passes")
    assert "warning control" not in podman("logs", "httpdnsd").stderr
    os.kill(int(podman.inspect("httpdnsd", "{{.State.Pid}}")), 19)  # SIGSTOP
    assert not healthy()


def test_it_trusts_the_authorities_of_the_image(podman, name, application, tmp_path):
    """The daemon accepts an https service whose authority is in the image's store, and refuses one whose authority is not."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc",
                    "-keyout", tmp_path / "key.pem", "-out", tmp_path / "authority.pem", "-days", "2",
                    "-subj", "/CN=authority", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    (tmp_path / "service.pem").write_text((tmp_path / "authority.pem").read_text() + (tmp_path / "key.pem").read_text())
    podman.start_service(application, "--encryption", "https", "--certificate", tmp_path / "service.pem",
                         "--record", f"www.example.com={ADDRESS}")
    account = {"HTTPDNSD_HTTPDNS_TOKEN": "678905432", "HTTPDNSD_HTTPDNS_DNSIP": "127.0.0.1:8053",
               "HTTPDNSD_HTTPDNS_ADDRESSTYPE": "dual"}
    sidecar(podman, name, account,
            f"--volume={tmp_path}/authority.pem:/etc/ssl/certs/ca-certificates.crt:ro")
    eventually(lambda: lookup(podman) == [ADDRESS], "the application resolves")
    podman("rm", "--force", "--time=0", "httpdnsd")
    sidecar(podman, name, account)

    def refused():
        lookup(podman)
        return "self-signed and not one of the trusted ones" in podman("logs", "httpdnsd").stderr
    eventually(refused, "the log says why the service is not believed")
