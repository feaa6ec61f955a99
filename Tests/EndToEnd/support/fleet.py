"""Daemons that share a store."""

import contextlib
import dataclasses
import pathlib
import tempfile

import pytest

from control import fetch, metrics, total
from dns_client import addresses, ask
from httpdns_service import address_of
from store import FakeStore, Store
from waiting import eventually

KEY = "a key of the fleet, as long as it has to be"


@pytest.fixture
def store():
    started = []

    def start(*options, running=True, **more):
        # The path of a unix socket must be short.
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="store-", dir="/tmp")))
        started.append(Store(directory, *options, **more))
        return started[-1].start() if running else started[-1]
    with contextlib.ExitStack() as stack:
        yield start
        for one in started:
            one.stop()


@pytest.fixture
def fake_store():
    started = []

    def start(reply, **options):
        started.append(FakeStore(reply, **options))
        return started[-1]
    yield start
    for one in started:
        one.stop()


@pytest.fixture
def member(daemon, tmp_path):
    """Starts daemons of a fleet, the first at port 53, the next at 5301 and so on."""
    count = 0

    def start(service, store, *, key=KEY, wait=True, settings=None, server=None, **options):
        nonlocal count
        port = 53 if count == 0 else 5300 + count
        file = tmp_path / f"key{count}"
        file.write_text(key + "\n")
        count += 1
        shared = {} if server is None and store is None else {
            "server": server or f"redis://{store.address}:{store.port}", "keyFile": str(file)}
        whole = {"listen": {"addresses": [f"127.0.0.1:{port}"]}, "sharedCache": shared,
                 "control": {"metrics": f"127.0.0.1:{9000 + port}"}} | {}
        for section, keys in (settings or {}).items():
            whole[section] = whole.get(section, {}) | keys
        started = daemon(service, whole, port=port, **options)
        started.metrics = lambda: metrics(fetch("/metrics", address=("127.0.0.1", 9000 + port))[2])
        if wait and shared:
            eventually(lambda: started.log_lines("shared cache: in use"), "the store is connected", 30)
        return started
    return start


def count_of(member, name, **labels):
    return total(member.metrics(), f"httpdnsd_shared_cache_{name}", **labels)


@dataclasses.dataclass
class State:
    """Counters of a daemon: entries written to the store, times that it stopped using the store, and reads that failed or
    were too late. A slow machine causes late reads too, since no daemon waits for them."""

    written: int
    outages: int
    unheard: int

    @property
    def faults(self):
        return self.outages + self.unheard


def state(member):
    samples = member.metrics()

    def count(name, **labels):
        return int(total(samples, f"httpdnsd_shared_cache_{name}", **labels))
    return State(count("writes_total", result="written"), count("outages_total"),
                 count("late_total") + count("reads_total", result="failed"))


def in_use(member):
    """Waits until a daemon uses the store, and returns its state. On a stalled machine the store seems slow, so that the
    daemon does not use it for a while."""
    eventually(lambda: count_of(member, "up"), "the store is in use", 60)
    return state(member)


def fill(member, names):
    for name in names:
        assert addresses(ask(name, port=member.port)) == [address_of(name)]


def is_written(member, before, entries=4):
    """Waits until the entries of an answer are in the store: for each type a fresh entry and a stale copy. False: the
    daemon has stopped using the store."""
    def ended():
        now = state(member)
        return now if now.written >= before.written + entries or now.outages > before.outages else None
    return eventually(ended, "the answer is in the store", 20).written >= before.written + entries


def remembered(member, count, prefix="kept"):
    """Asks the daemon for names until `count` of them are in the store, and returns these."""
    names = []
    for number in range(10 * count):
        name = f"{prefix}{number}.example.com"
        before = in_use(member)
        fill(member, [name])
        if is_written(member, before):
            names.append(name)
        if len(names) == count:
            return names
    raise AssertionError("the store does not take answers")


def passed_on(first, second, entries=4, suffix="example.com", kind="A"):
    """Asks the first daemon for a new name, then the second, until the store answers the second in time. Returns the name
    and the replies of both."""
    for number in range(20):
        name = f"passed{number}-{first.port}-{second.port}.{suffix}"
        before, faults = in_use(first), in_use(second).faults
        told = ask(name, kind, port=first.port)
        if not is_written(first, before, entries):
            continue
        again = ask(name, kind, port=second.port)
        if state(second).faults == faults:
            return name, told, again
    raise AssertionError("the store never answers in time")
