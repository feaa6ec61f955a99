"""The shared cache: what a fleet saves, what the store gets to see, and that it is never in the way."""

import concurrent.futures
import contextlib
import ipaddress
import pathlib
import random
import socket
import struct
import tempfile
import threading
import time

import dns.message
import pytest

from control import Control, fetch, metrics, total
from conftest import measures_the_build
from dns_client import addresses, ask, extended_errors
from httpdns_service import Record, address_of, every_name
from resolvers import answer_locally
from store import PASSWORD, FakeStore, Store
from test_clocks import clocks, library  # noqa: F401
from waiting import eventually

KEY = "a key of the fleet, as long as it has to be"
OTHER_KEY = "a key of another fleet, which is none of ours"
NAMES = [f"kept{number}.example.com" for number in range(40)]
STRICT = {"httpOnly": True}


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
            eventually(lambda: started.log_lines("shared cache: in use"), "the store is connected", 10)
        return started
    return start


def count_of(member, name, **labels):
    return total(member.metrics(), f"httpdnsd_shared_cache_{name}", **labels)


def written(member, least):
    """The entries are in the store."""
    eventually(lambda: count_of(member, "writes_total", result="written") >= least, f"{least} entries are written", 10)


def fill(member, names=NAMES):
    for name in names:
        assert addresses(ask(name, port=member.port)) == [address_of(name)]


# What it is for


def test_two_daemons_are_billed_once(service, store, member):
    account = service("https", every_name)
    shared = store()
    first, second = member(account, shared), member(account, shared)
    before = ask("www.example.com", port=first.port)
    written(first, 2)
    time.sleep(1.1)
    after = ask("www.example.com", port=second.port)
    assert addresses(after) == addresses(before) == [address_of("www.example.com")]
    assert before.answer[0].ttl - 3 <= after.answer[0].ttl < before.answer[0].ttl
    assert addresses(ask("www.example.com", "AAAA", port=second.port), "AAAA") == [address_of("www.example.com", 6)]
    assert account.names == ["www.example.com"]
    assert count_of(second, "reads_total", result="hit") == 2
    text = fetch("/", address=("127.0.0.1", 9000 + second.port))[2]
    assert "Shared cache: in use; 2 of 2 looks found something" in text


def test_no_record_is_shared_and_so_is_the_local_resolvers_answer(service, store, member, scripted_resolver):
    local = scripted_resolver(answer_locally)
    account = service("https", {})
    settings = {"fallback": {"servers": [local.endpoint]}}
    shared = store()
    first = member(account, shared, settings=settings)
    second = member(account, shared, settings=settings)
    expected = addresses(ask("local.example.com", port=first.port))
    written(first, 3)
    asked = len(local.questions)
    assert expected and addresses(ask("local.example.com", port=second.port)) == expected
    assert account.names == ["local.example.com"] and len(local.questions) == asked


@pytest.mark.parametrize("waits", [False, True], ids=["fresh", "stale"])
def test_what_it_knew_is_answered_after_a_restart_without_httpdns(service, store, member, waits):
    account = service("https", lambda name, request: Record([address_of(name)], [], 5 if waits else 600))
    shared = store()
    first = member(account, shared, settings={"httpdns": STRICT})
    fill(first)
    written(first, 2 * len(NAMES))
    first.stop()
    account.stop()
    if waits:
        time.sleep(6)
    second = member(account, shared, settings={"httpdns": STRICT})
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda name: ask(name, port=second.port, edns=True), NAMES))
    for name, reply in zip(NAMES, replies):
        assert addresses(reply) == [address_of(name)]
        assert extended_errors(reply) == ([3] if waits else [])


def test_a_local_hit_sends_nothing(service, store, member):
    account = service("https", every_name)
    shared = store()
    one = member(account, shared)
    fill(one, NAMES[:5])
    written(one, 10)
    before = shared.calls()
    for _ in range(40):
        fill(one, NAMES[:5])
    after = shared.calls()
    # Every ten seconds it looks whether everything is to be forgotten.
    assert after["get"] - before["get"] <= 1 and after["set"] == before["set"]


# What the store sees


def test_the_store_learns_nothing(service, store, member):
    account = service("https", every_name)
    shared = store()
    one = member(account, shared)
    fill(one)
    for name in NAMES:
        ask(name, "AAAA", port=one.port)
    written(one, 2 * len(NAMES))
    keys = shared.keys()
    assert len(keys) == 4 * len(NAMES) and all(key.startswith(b"h1:") and len(key) == 25 for key in keys)
    assert all(0 < shared("TTL", key) <= 600 + 86_400 for key in keys)
    assert {len(shared("GET", key)) % 128 for key in keys} == {0}
    dump = shared.dump().lower()
    for name in NAMES:
        assert name.encode() not in dump
        for family in (4, 6):
            address = ipaddress.ip_address(address_of(name, family))
            # A dump of this size has any four octets by chance about once in 80,000 tries.
            for form in (str(address), address.exploded, address.packed.hex(), address.reverse_pointer):
                assert form.encode() not in dump
            assert family == 4 or address.packed not in dump
    for label in (b"kept", b"example", b"\3com", b"httpdnsd", KEY.encode()):
        assert label not in dump.replace(b"redis-ver", b"")
    assert set(shared.calls()) <= {"get", "set", "del", "client|setname", "keys", "ttl", "info", "config|set", "save"}


def test_fleets_with_other_keys_or_settings_see_nothing_of_each_other(service, store, member):
    account = service("https", every_name)
    shared = store()
    first = member(account, shared)
    ask("www.example.com", port=first.port)
    written(first, 2)
    others = [member(account, shared, key=OTHER_KEY), member(account, shared, settings={"httpdns": {"routeIp": "192.0.2.1"}}),
              member(account, shared, settings={"domains": {"privateAddresses": "refuse"}}),
              member(account, shared, settings={"httpdns": {"share": False}})]
    for number, other in enumerate(others):
        ask("www.example.com", port=other.port)
        assert len(account.names) == 2 + number
        assert count_of(other, "reads_total", result="hit") == 0


def test_while_keys_change_both_are_read(service, store, member, tmp_path):
    account = service("https", every_name)
    shared = store()
    first = member(account, shared)
    ask("old.example.com", port=first.port)
    written(first, 2)
    before = tmp_path / "before"
    before.write_text(KEY)
    second = member(account, shared, key=OTHER_KEY, settings={"sharedCache": {"keyFileBefore": str(before)}})
    assert addresses(ask("old.example.com", port=second.port))
    assert account.names == ["old.example.com"]
    ask("new.example.com", port=second.port)
    written(second, 2)
    third = member(account, shared, key=OTHER_KEY)
    assert addresses(ask("new.example.com", port=third.port))
    assert account.names == ["old.example.com", "new.example.com"]


@pytest.mark.parametrize("forge", ["flip", "move", "cut", "foreign", "empty"])
def test_what_the_fleet_did_not_seal_is_deleted_and_never_given(service, store, member, forge):
    account = service("https", every_name)
    shared = store()
    first = member(account, shared)
    fill(first, NAMES[:4])
    written(first, 8)
    values = {key: shared("GET", key) for key in shared.keys()}
    chosen = random.Random(7)
    for key, value in values.items():
        if forge == "flip":
            place = chosen.randrange(len(value))
            forged = value[:place] + bytes([value[place] ^ 1 << chosen.randrange(8)]) + value[place + 1:]
        elif forge == "move":
            forged = values[chosen.choice([other for other in values if other != key])]
        else:
            forged = {"cut": value[:-1], "foreign": b"192.0.2.66", "empty": b""}[forge]
        shared("SET", key, forged, "KEEPTTL")
    second = member(account, shared)
    fill(second, NAMES[:4])
    assert account.names == NAMES[:4] * 2
    eventually(lambda: count_of(second, "refused_total") == 8, "fresh and stale of four names are refused")
    assert "8 foreign entries deleted" in fetch("/", address=("127.0.0.1", 9000 + second.port))[2]


def test_flush_reaches_it(service, store, member, binary):
    account = service("https", every_name)
    shared = store()
    first = member(account, shared, settings={"control": {"socket": "control.sock"}})
    second = member(account, shared)
    fill(first, NAMES[:3])
    written(first, 6)
    control = Control(binary, first)
    control("flush", NAMES[0])
    eventually(lambda: len(shared.keys()) == 8, "the entries of one name are deleted")
    fill(second, NAMES[:3])
    assert account.names == [*NAMES[:3], NAMES[0]]
    control("flush")
    third = member(account, shared)
    fill(third, NAMES[:3])
    assert account.names == [*NAMES[:3], NAMES[0], *NAMES[:3]]
    assert control.json()["sharedCache"]["inUse"] is True


@pytest.mark.parametrize("hours", [1, -1])
def test_with_clocks_an_hour_apart_nothing_is_given_past_its_time(service, store, member, clocks, hours):  # noqa: F811
    account = service("https", lambda name, request: Record([address_of(name)], [], 60))
    shared = store()
    clocks.set(day=3600 * hours)
    first = member(account, shared, variables=clocks.variables, settings={"tls": {"whenClockUnset": "accept"}})
    second = member(account, shared)
    fill(first, NAMES[:5])
    written(first, 10)
    for name in NAMES[:5]:
        reply = ask(name, port=second.port)
        assert addresses(reply) == [address_of(name)] and reply.answer[0].ttl <= 60
    assert account.names == NAMES[:5] * 2
    fill(second, NAMES[5:10])
    written(second, 10)
    fill(first, NAMES[5:10])
    said = [len(one.log_lines("shared cache: answers from the future")) for one in (first, second)]
    assert said == ([0, 1] if hours > 0 else [1, 0])


# How it is reached


def test_tls_and_a_user_of_an_access_list(service, store, member, authority, tmp_path):
    certificate = authority.server_file(addresses=["127.0.0.9"])
    acl = tmp_path / "users.acl"
    acl.write_text(f"user default on nopass ~* +@all\nuser dns on >{PASSWORD.replace(' ', '')} ~h1:* +get +set +del\n")
    shared = store("--tls-cert-file", certificate, "--tls-key-file", certificate, "--tls-ca-cert-file", authority.file,
                   "--tls-auth-clients", "no", "--aclfile", acl, tls=True)
    password = tmp_path / "password"
    password.write_text(PASSWORD.replace(" ", ""))
    settings = {"sharedCache": {"caFile": str(authority.file), "user": "dns", "passwordFile": str(password)}}
    account = service("https", every_name)
    both = [member(account, shared, server="tls://127.0.0.9", settings=settings) for _ in range(2)]
    ask("www.example.com", port=both[0].port)
    written(both[0], 2)
    ask("www.example.com", port=both[1].port)
    assert account.names == ["www.example.com"]
    assert PASSWORD.replace(" ", "") not in "".join(one.log() for one in both)


def test_unix_socket_and_password(service, store, member, tmp_path):
    shared = store("--requirepass", PASSWORD)
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    settings = {"sharedCache": {"passwordFile": str(password)}}
    account = service("https", every_name)
    both = [member(account, shared, server=f"unix:{shared.path}", settings=settings) for _ in range(2)]
    ask("www.example.com", port=both[0].port)
    written(both[0], 2)
    ask("www.example.com", port=both[1].port)
    assert account.names == ["www.example.com"]


def test_it_comes_back(service, store, member):
    account = service("https", every_name)
    shared = store(running=False)
    one = member(account, shared, wait=False)
    eventually(lambda: one.log_lines("shared cache: not in use: .*refused"), "it is said that the store is away")
    fill(one, NAMES[:3])
    shared.start()
    eventually(lambda: one.log_lines("shared cache: in use"), "the store is in use", 15)
    shared.kill()
    eventually(lambda: len(one.log_lines("shared cache: not in use")) == 2, "it is said again")
    fill(one, NAMES[3:6])
    assert len(one.log_lines("shared cache")) == 3


# Never in the way


def measure(ports, names, seconds=2.0, rate=150):
    """Questions for new names to each port in turn, at a steady rate: the seconds that each answer took, by port."""
    channels = {}
    for port in ports:
        channels[port] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        channels[port].connect(("127.0.0.1", port))
    asked, took = {}, {port: [] for port in ports}
    total_count = int(seconds * rate)

    def listen(port):
        channel = channels[port]
        channel.settimeout(5)
        while len(took[port]) < total_count:
            try:
                reply = channel.recv(4096)
            except TimeoutError:
                return
            number = struct.unpack("!H", reply[:2])[0]
            assert reply[3] & 15 == 0 and struct.unpack("!H", reply[6:8])[0] > 0, dns.message.from_wire(reply)
            took[port].append(time.monotonic() - asked[port, number])
    listeners = [threading.Thread(target=listen, args=(port,)) for port in ports]
    for listener in listeners:
        listener.start()
    begin = time.monotonic()
    for number in range(total_count):
        for port in ports:
            query = dns.message.make_query(next(names), "A", id=number).to_wire()
            asked[port, number] = time.monotonic()
            channels[port].send(query)
        time.sleep(max(0, begin + (number + 1) / rate - time.monotonic()))
    for listener in listeners:
        listener.join()
    for channel in channels.values():
        channel.close()
    return took


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def big_value(words):
    return b"$10485760\r\n" + bytes(10_485_760) + b"\r\n" if words[0] == b"GET" else b"+OK\r\n"


def fails(error):
    return lambda words: error if words[0] in (b"GET", b"AUTH") else b"+OK\r\n"


def works_then(bad):
    """As an empty store until the daemon is connected, which takes two commands."""
    seen = []

    def reply(words):
        seen.append(words)
        if len(seen) > 2:
            return bad(words)
        return b"$-1\r\n" if words[0] == b"GET" else b"+OK\r\n"
    return reply


FAKES = {
    "loading": fails(b"-LOADING Redis is loading the dataset in memory\r\n"),
    "loading-later": works_then(fails(b"-LOADING Redis is loading the dataset in memory\r\n")),
    "moved": works_then(fails(b"-MOVED 3999 127.0.0.1:6381\r\n")),
    "slow": works_then(lambda words: (1.0, b"$-1\r\n")),
    "ten-megabytes": works_then(big_value),
    "garbage": works_then(lambda words: b"HTTP/1.1 400 Bad Request\r\n\r\n"),
}
REAL = ["absent", "killed", "stopped", "out-of-memory", "read-only", "password", "wrong-types", "certificate"]


@measures_the_build
@pytest.mark.parametrize("fault", [*REAL, *FAKES])
def test_a_store_that_fails_is_not_noticed(service, store, fake_store, member, authority, other_authority, fault):
    account = service("https", every_name)
    plain = member(account, None)
    numbers = iter(range(1 << 30))
    names = iter(lambda: f"{fault}{next(numbers)}.example.com", None)
    settings = {}
    if fault in FAKES:
        fake = fake_store(FAKES[fault])
        server = "redis://127.0.0.10"
    elif fault == "certificate":
        certificate = other_authority.server_file(addresses=["127.0.0.9"])
        shared = store("--tls-cert-file", certificate, "--tls-key-file", certificate, "--tls-ca-cert-file", authority.file,
                       "--tls-auth-clients", "no", tls=True)
        server = "tls://127.0.0.9"
        settings = {"sharedCache": {"caFile": str(authority.file)}}
    else:
        options = {"out-of-memory": ["--maxmemory", "1", "--maxmemory-policy", "noeviction"],
                   "read-only": ["--replicaof", "127.0.0.9", "1"], "password": ["--requirepass", PASSWORD]}
        shared = store(*options.get(fault, []), running=fault != "absent")
        server = "redis://127.0.0.9"
    other = member(account, None, server=server, wait=False, settings=settings)
    works = fault in ("killed", "stopped", "out-of-memory", "read-only", "wrong-types")
    if works:
        eventually(lambda: other.log_lines("shared cache: in use"), "the store is connected", 10)
    spoiler = None
    if fault == "wrong-types":
        def spoil():
            while spoiler.is_alive() and not done.is_set():
                for key in shared.keys():
                    shared("DEL", key)
                    shared("RPUSH", key, "x")
                time.sleep(0.02)
        done = threading.Event()
        spoiler = threading.Thread(target=spoil)
        spoiler.start()
    elif fault == "stopped":
        threading.Timer(0.5, shared.pause).start()
    elif fault == "killed":
        threading.Timer(0.5, shared.kill).start()
    # A quarter and 2 ms are the noise, and what a question waits while the failure is found out is 5 ms more. A machine
    # with other work disturbs a measurement and never improves one.
    for _ in range(3):
        took = measure([plain.port, other.port], names)
        without, beside = took[plain.port], took[other.port]
        assert len(without) == len(beside) == 300
        figures = {name: [round(1000 * percentile(values, share), 2) for values in (without, beside)]
                   for name, share in (("p50", 0.5), ("p99", 0.99))}
        print(fault, "milliseconds without and with:", figures)
        if figures["p50"][1] <= 1.25 * figures["p50"][0] + 2 and figures["p99"][1] <= 1.25 * figures["p99"][0] + 8:
            break
    else:
        raise AssertionError(f"it is noticed: {figures}")
    if spoiler:
        done.set()
        spoiler.join()
    said = other.log_lines("shared cache")
    assert len([line for line in said if "not in use" in line]) <= 2, said
    if fault == "out-of-memory":
        assert other.log_lines(r"shared cache: it takes no answers: .*\(OOM\)")
    if fault == "read-only":
        assert other.log_lines(r"shared cache: it takes no answers: .*\(READONLY\)")
    if fault == "certificate":
        assert other.log_lines("shared cache: not in use: certificate")
    assert PASSWORD not in other.log()
