"""The world the daemon is tested in.

The whole run happens in a network, mount and process namespace of its own: port 53 is free there, /etc/resolv.conf says
`nameserver 127.0.0.1`, so that every program asks the daemon, and no packet can leave. Without root the same is made
inside a user namespace; where that is not allowed either, the run fails and says so.
"""

import concurrent.futures
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile

import pytest

import certificates
from daemon import Daemon, run, toml
from encrypted import FramedServer, HTTPServer, address_reply
from httpdns_service import HTTPDNSService
from networks import Network
from providers import CERTIFICATES, ProviderService
from relay import Relay
from resolvers import ScriptedResolver, Unbound, answer_locally
from standard import LOCAL_RESOLVER, TEST_SECONDS, ZONE, settings_for
from waiting import watch_for_stalls

# The modules of `support` (pytest.ini puts the folder on the path) that have fixtures.
pytest_plugins = ["asking", "clocks", "collector", "compiled", "examples", "fleet", "groups", "ways"]
INSIDE = "HTTPDNSD_E2E_INSIDE"
PROXY_VARIABLES = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"]


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    if config.option.help or config.option.version or os.environ.get(INSIDE):
        return None
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        command[1:1] = ["--user", "--map-root-user"]
    if subprocess.run([*command, "true"], stdin=subprocess.DEVNULL).returncode != 0:
        raise pytest.UsageError(
            "the end-to-end tests need namespaces of their own: run them as root (in a container: privileged), or "
            "allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1)")
    config.pluginmanager.getplugin("capturemanager").stop_global_capturing()
    with tempfile.TemporaryDirectory(prefix="httpdnsd-e2e-") as scratch:
        variables = os.environ | {INSIDE: scratch, "PYTEST_DEBUG_TEMPROOT": scratch, "PYTHONDONTWRITEBYTECODE": "1"}
        again = [*command, sys.executable, "-m", "pytest", *config.invocation_params.args]
        return subprocess.run(again, env=variables).returncode


# Several sessions share the tests: each takes the next free file, and files of one of these sets first. A measurement in one file
# of a set, such as times beside floods, would suffer from another file of the set that keeps a core busy; counted numbers do
# not suffer. All other tests mostly wait, so many of them fit beside these.
SETS = {
    "floods": ("client_attacks", "client_shares", "flights", "floods", "known_attacks", "reload", "status_page"),
    "counts": ("instructions", "cost", "comparison"),
}
SET_OF = {f"test_{name}.py": name_of_set for name_of_set, names in SETS.items() for name in names}


def pytest_addoption(parser):
    parser.addoption("--beside", metavar="FOLDER",
                     help="one of several sessions, of which each takes tests that none has taken, by files in this folder")


def pytest_configure(config):
    config.taken = set()


def share_of(item):
    """The tests that are taken together with this one."""
    return SET_OF.get(item.path.name, item.path.name)


def takes(config, share):
    """Whether this session takes these tests now, or has taken them already."""
    folder = config.getoption("beside")
    if folder is None or share in config.taken:
        return True
    try:
        pathlib.Path(folder, share).touch(exist_ok=False)
    except FileExistsError:
        return False
    config.taken.add(share)
    return True


def pytest_collection_modifyitems(config, items):
    if config.getoption("beside"):
        mine = next((share for share in SETS if takes(config, share)), None)
        others = [item for item in items if share_of(item) in SETS and share_of(item) != mine]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]
    items.sort(key=lambda item: share_of(item) not in SETS)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    return None if takes(item.config, share_of(item)) else True


def pytest_sessionstart(session):
    scratch = os.environ.get(INSIDE)
    if not scratch:
        return
    watch_for_stalls()
    for variable in PROXY_VARIABLES:  # the daemon would use these proxies
        os.environ.pop(variable, None)
        os.environ.pop(variable.upper(), None)
    files = {"/etc/resolv.conf": "nameserver 127.0.0.1\noptions timeout:5 attempts:1\n",
             "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
             "/etc/hosts": "127.0.0.1 localhost\n"}
    for target, text in files.items():
        own = pathlib.Path(scratch) / pathlib.Path(target).name
        own.write_text(text)
        subprocess.run(["mount", "--bind", str(own), os.path.realpath(target)], check=True)
    if os.path.isdir("/etc/httpdnsd"):
        subprocess.run(["mount", "-t", "tmpfs", "none", "/etc/httpdnsd"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # Programs that look whether the host has IPv4 or IPv6 at all do not count loopback addresses.
    subprocess.run(["ip", "address", "add", "10.53.53.53/32", "dev", "lo"], check=True)
    if os.path.exists("/proc/net/if_inet6"):
        subprocess.run(["ip", "-6", "address", "add", "fd53::53/128", "dev", "lo"], check=True)


@pytest.fixture(autouse=True)
def bounded():
    """A test that hangs fails."""
    def late(*_):
        raise AssertionError(f"the test took more than {TEST_SECONDS} s")
    signal.signal(signal.SIGALRM, late)
    signal.alarm(TEST_SECONDS)
    yield
    signal.alarm(0)


@pytest.fixture
def chance():
    """Randomness that a later run can repeat."""
    seed = int(os.environ.get("HTTPDNSD_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    print("HTTPDNSD_TEST_SEED =", seed)
    return random.Random(seed)


@pytest.fixture
def place():
    """A folder whose path is short enough for the path of a socket."""
    with tempfile.TemporaryDirectory(prefix="e-", dir="/tmp") as folder:
        yield pathlib.Path(folder)


@pytest.fixture(scope="session")
def binary():
    path = os.environ.get("HTTPDNSD_BINARY")
    if not path:
        show = ["swift", "build", "-c", "release", "--show-bin-path"]
        top = pathlib.Path(__file__).parents[2]
        path = subprocess.run(show, cwd=top, capture_output=True, text=True, check=True).stdout.strip() + "/httpdnsd"
    assert os.access(path, os.X_OK), f"no binary at {path}: build it first (make build)"
    return path


@pytest.fixture(scope="session")
def unbound(tmp_path_factory):
    resolver = Unbound(tmp_path_factory.mktemp("unbound"), LOCAL_RESOLVER)
    yield resolver
    resolver.stop()


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return certificates.Authority(tmp_path_factory.mktemp("authority"), "trusted")


@pytest.fixture(scope="session")
def other_authority(tmp_path_factory):
    return certificates.Authority(tmp_path_factory.mktemp("authority"), "unknown")


@pytest.fixture(scope="module")
def service(authority):
    """Starts HTTPDNS services, and checks at the end that all requests to them followed the protocol."""
    started = []

    def start(encryption="aes", zone=None, **options):
        if encryption == "https" and "tls" not in options:
            options["tls"] = authority.server(addresses=["127.0.0.3"])
        started.append(HTTPDNSService(encryption, ZONE if zone is None else zone, **options).start())
        return started[-1]

    start.started = started
    yield start
    for one in started:
        one.stop()
    for one in started:
        assert one.violations == []


@pytest.fixture
def account(authority):
    """Starts HTTPDNS services of other providers for one test, with the provider's certificate unless `tls` is given."""
    started = []

    def start(provider, encryption="https", zone=None, **options):
        if encryption == "https" and "tls" not in options:
            options["tls"] = authority.server(names=[CERTIFICATES[provider]])
        zone = ZONE if zone is None else zone
        started.append(ProviderService(provider, zone, encryption=encryption, **options).start())
        return started[-1]

    yield start
    for one in started:
        one.stop()
    for one in started:
        assert one.violations == []


@pytest.fixture
def relay():
    """Starts relays to services for one test."""
    started = []

    def start(target, **options):
        started.append(Relay(target, **options))
        return started[-1]

    yield start
    for one in started:
        one.stop()


@pytest.fixture
def network():
    """Makes network namespaces for one test."""
    made = []

    def make():
        made.append(Network())
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def scripted_resolver():
    """Starts scripted resolvers for one test."""
    started = []

    def start(script, **options):
        started.append(ScriptedResolver(script, **options))
        return started[-1]

    yield start
    for one in started:
        one.stop()


@pytest.fixture
def encrypted_resolver(authority):
    """Starts resolvers for one test: over "tcp", "tls" or "https", with a good certificate unless `tls` is given."""
    started = []

    def start(protocol, script=lambda asked, connection: address_reply(asked), *, address="127.0.0.6", tls=None,
              **options):
        if protocol != "tcp" and tls is None:
            tls = authority.server(addresses=[address])
        kind = HTTPServer if protocol == "https" else FramedServer
        started.append(kind(script, tls, address=address, **options))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def daemons(binary, authority, make_directory):
    """A function that starts daemons, and one that stops the daemons it started."""
    started = []

    def start(service=None, settings=None, ready=True, whole=None, **options):
        chosen = settings_for(service, authority, settings or {}) if whole is None else whole
        daemon = Daemon(binary, make_directory(), chosen, **options)
        started.append(daemon)
        return daemon.wait_until_ready() if ready else daemon

    def stop():
        def stopped(daemon):
            try:
                daemon.stop()
            except AssertionError as failure:
                return str(failure)
        if not started:
            return
        with concurrent.futures.ThreadPoolExecutor(len(started)) as pool:  # each daemon may wait for answers under way
            failures = [failure for failure in pool.map(stopped, started) if failure]
        assert not failures, "\n".join(failures)

    return start, stop


@pytest.fixture
def daemon(binary, authority, tmp_path_factory, service, scripted_resolver, encrypted_resolver, unbound):
    """Starts daemons, waits until they answer, and stops them in order at the end of the test."""
    start, stop = daemons(binary, authority, lambda: tmp_path_factory.mktemp("daemon"))
    yield start
    stop()


@pytest.fixture(scope="module")
def module_daemon(binary, authority, tmp_path_factory, service, unbound):
    """Starts daemons as `daemon` does, for all tests of a file."""
    start, stop = daemons(binary, authority, lambda: tmp_path_factory.mktemp("daemon"))
    yield start
    stop()


@pytest.fixture
def command(binary, tmp_path, authority, scripted_resolver):
    """Runs a command of the binary with a service's settings and a local resolver that answers."""
    local = scripted_resolver(answer_locally)

    def call(name, *arguments, settings=None, whole=None, local_resolver=local.endpoint, timeout=60):
        file = tmp_path / "httpdnsd.toml"
        whole = {"fallback": {"servers": [local_resolver], "timeout": 3000}} | (whole or {"httpdns": settings})
        settings = settings or {}
        if settings.get("encryptType") == "https":
            whole["tls"] = {"caFile": str(authority.file)}
        file.write_text(toml(whole))
        ended = run(binary, name, *arguments, "-c", str(file), timeout=timeout)
        for secret in ("dnsKey", "token"):
            assert secret not in settings or settings[secret] not in ended.stdout + ended.stderr
        return ended
    call.local = local
    return call
