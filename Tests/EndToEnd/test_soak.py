"""Endless faults: a thousand questions a second over every kind of upstream, and a fault every few seconds.

By default the run is short. HTTPDNSD_SOAK_SECONDS=3600 is its full size.
"""

import concurrent.futures
import contextlib
import itertools
import os
import random
import signal
import socket
import struct
import threading
import time
import zlib

import dns.exception
import pytest

from comparison import name_end
from control import metrics
from dns_client import addresses, ask, labels
from fleet import KEY
from httpdns_service import Fault, Record
from resolvers import reply_to
from standard import TEST_SECONDS
from waiting import eventually, waited_since

SECONDS = int(os.environ.get("HTTPDNSD_SOAK_SECONDS", "15"))
RATE = 1000
PORT = 2053
PATIENCE = 4  # seconds for an answer, without those in which the machine stood still
LOST = 8  # seconds after which a missing answer counts as lost
HOT, COLD = 40, 200_000  # names of each group that most questions are for, and names of each tenth question
IS_LONG = SECONDS >= 600
# The limit of growth in kilobytes from the first half to the second, once the cache is full; and the limit of additional
# descriptors in the end. A long run waits until idle connections are closed, and descriptors are as in the beginning.
MEMORY, DESCRIPTORS = 2048 if IS_LONG else 6144, 0 if IS_LONG else 8
KEPT = 60  # seconds for which an idle connection may be kept
# The allowed share of SERVFAIL: a group with a single faulty server has no other server to ask.
FAILURES = 0.1
# The group that answers is in the second octet of all its addresses; if HTTPDNS fails, the fallback answers.
GROUPS = ["fallback", "httpdns", "token", "shop", "tls", "https", "tcp", "plain"]
ALLOWED = {group: {place} for place, group in enumerate(GROUPS)} | {"httpdns": {0, 1}}


def address_of(group, name):
    digest = zlib.crc32(name.encode())
    return f"11.{GROUPS.index(group)}.{digest >> 8 & 255}.{digest & 255}"


def ttl_of(name):
    return 5 + zlib.crc32(name.encode()) % 20


def knows(group):
    """A zone of a service."""
    return lambda name, request: Record([address_of(group, name)], [], ttl_of(name))


def says(group):
    """A script of a resolver."""
    def script(asked, connection=None):
        name = asked.name.to_text(omit_final_dot=True)
        return reply_to(asked.message, *([f"{ttl_of(name)} IN A {address_of(group, name)}"] if asked.kind == "A" else []))
    return script


class Crowd:
    """Asks steadily, over UDP and each hundredth question over TCP, and judges every answer."""

    def __init__(self, chance):
        self.chance = chance
        self.waiting = {}  # by the id of the query: time, group and name of the question
        self.waits = []
        self.wrong = []
        self.unanswered, self.failed = [], 0
        self._channel = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._channel.connect(("127.0.0.1", PORT))
        self._channel.settimeout(0.1)
        self._ends = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._pool = concurrent.futures.ThreadPoolExecutor(16)

    def ask_for(self, seconds):
        begun = time.monotonic()
        for number in range(seconds * RATE):
            if number % 10 == 0:
                time.sleep(max(0, begun + number / RATE - time.monotonic()))
            group = self.chance.choice(GROUPS)
            place = self.chance.randrange(COLD) if self.chance.random() < 0.1 else self.chance.randrange(HOT)
            name = f"n{place}.{group}.example"
            if number % 100 == 0:
                self._pool.submit(self._ask_over_tcp, group, name)
            else:
                self._ask(number % 65536, group, name)

    def _ask(self, number, group, name):
        late = self.waiting.pop(number, None)  # an id is used again only after a minute
        if late is not None:
            self.unanswered.append(late)
        self.waiting[number] = time.monotonic(), group, name
        self._channel.send(struct.pack("!6H", number, 0x100, 1, 0, 0, 0) + labels(name) + b"\0\1\0\1")

    def _listen(self):
        while not self._ends.is_set():
            try:
                reply = self._channel.recv(4096)
            except TimeoutError:
                continue
            asked = self.waiting.pop(struct.unpack("!H", reply[:2])[0], None)
            if asked is None:
                self.wrong.append(f"answered twice: {reply.hex()}")
                continue
            at, group, name = asked
            self._judge(time.monotonic() - at, group, name, reply)

    def _judge(self, waited, group, name, reply):
        self.waits.append(waited)
        if waited > PATIENCE and waited_since(time.monotonic() - waited) > PATIENCE:
            self.unanswered.append((waited, group, name))
        code, question = reply[3] & 15, labels(name) + b"\0\1\0\1"
        if reply[12:12 + len(question)] != question or code not in (0, 2) or code == 0 and reply[7] != 1:
            self.wrong.append(f"{name}: {reply.hex()}")
        elif code == 2:
            self.failed += 1
        else:
            end = name_end(reply, 12 + len(question)) + 10
            address = ".".join(map(str, reply[end:end + 4]))
            if address not in {address_of(GROUPS[place], name) for place in ALLOWED[group]}:
                self.wrong.append(f"{name}: {address}")

    def _ask_over_tcp(self, group, name):
        at = time.monotonic()
        try:
            reply = ask(name, port=PORT, transport="tcp", timeout=LOST)
        except (OSError, EOFError, dns.exception.DNSException) as error:
            self.unanswered.append((error, group, name))
        else:
            self._judge(time.monotonic() - at, group, name, reply.to_wire())

    def __str__(self):
        waits = sorted(self.waits)
        at = {share: waits[int(share * (len(waits) - 1))] for share in (0.5, 0.99, 0.9999, 1)}
        return (f"{len(waits)} answers, {self.failed} of them SERVFAIL; seconds: "
                + ", ".join(f"{100 * share:g} %: {wait:.6f}" for share, wait in at.items()))

    def end(self):
        """Waits for the last answers."""
        self._pool.shutdown()
        with contextlib.suppress(AssertionError):
            eventually(lambda: not self.waiting, "all are answered", LOST)
        self._ends.set()
        self._listener.join()
        self._channel.close()
        self.unanswered += self.waiting.values()


def of_relay(relay):
    """(name, begin, end) of each fault of connections."""
    def mend():
        relay.thaw()
        relay.reset()
    yield "refused", relay.refuse, relay.accept
    yield "reset", relay.reset, None
    yield "reset from birth", lambda: relay.reset(new=True), relay.reset
    yield "black hole", relay.freeze, mend
    yield "half open", lambda: relay.freeze(new=False), mend
    yield "slow", lambda: setattr(relay, "delay", 0.3), lambda: setattr(relay, "delay", 0)


def of_service(service):
    """The faults of requests to HTTPDNS."""
    def mend():
        service.fault = None
    for kind, value in (("status", 503), ("status", 500), ("silence", 2), ("delay", 1), ("garbage", None),
                        ("wrong-name", None), ("close-mid-body", None), ("reset", None), ("byte-by-byte", None),
                        ("connection-close", None)):
        yield kind, lambda fault=Fault(kind, value): setattr(service, "fault", fault), mend


def of_resolver(resolver):
    """The faults of datagrams."""
    usual = resolver.script
    for name, script in (("silent", lambda asked: None), ("garbage", lambda asked: b"\0" * 40),
                         ("another id", lambda asked: bytes([asked.wire[0] ^ 1]) + asked.wire[1:])):
        yield name, lambda script=script: setattr(resolver, "script", script), lambda: setattr(resolver, "script", usual)


def of_store(shared):
    yield "store stopped", shared.pause, shared.resume
    yield "store killed", shared.kill, shared.start


def of_daemon(running):
    for name in ("SIGHUP", "SIGUSR1"):
        yield name, lambda name=name: running.process.send_signal(getattr(signal, name)), None


def trouble(chance, kinds, over, every):
    """Until `over` is set, every few seconds one healthy part gets a fault for a few seconds. Returns the number of each
    fault."""
    counts, mending = {}, {}  # for each faulty part: the end of its fault, and the function that ends it
    while not over.wait(chance.uniform(0.5, 1.5) * every):
        for one, (until, mend) in list(mending.items()):
            if until <= time.monotonic():
                del mending[one]
                mend()
        place = chance.randrange(len(kinds))
        if place in mending:
            continue
        name, begin, mend = chance.choice(kinds[place])
        counts[name] = counts.get(name, 0) + 1
        begin()
        if mend:
            mending[place] = time.monotonic() + chance.uniform(0.5, 2) * every, mend
    for _, mend in mending.values():
        mend()
    return counts


@pytest.fixture
def world(daemon, authority, service, account, relay, scripted_resolver, encrypted_resolver, store, tmp_path):
    """A daemon with a group of each kind, and the faults of each part."""
    plain = [service("aes", knows("httpdns")), service("https", knows("token"))]
    shop = account("alibaba", zone=knows("shop"))
    relays = {group: relay(one) for group, one in zip(["httpdns", "token", "shop"], [*plain, shop], strict=True)}
    servers = {kind: [relay(encrypted_resolver(kind, says(kind))) for _ in range(2)] for kind in ("tcp", "tls", "https")}
    fallback, other = (scripted_resolver(says(group), address=address)
                       for group, address in (("fallback", "127.0.0.40"), ("plain", "127.0.0.41")))
    shared = store()
    (tmp_path / "key").write_text(KEY)
    trust = {"caFile": str(authority.file)}
    path = {"https": "/dns-query"}
    whole = {
        "listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "control": {"metrics": "127.0.0.1:9153"},
        "cache": {"megabytes": 1}, "log": {"level": "error"},
        "sharedCache": {"server": f"redis://{shared.address}:{shared.port}", "keyFile": str(tmp_path / "key")},
        "httpdns": plain[0].settings() | {"dnsIp": [relays["httpdns"].endpoint]},
        "fallback": {"servers": [fallback.endpoint], "hosts": ""},
        "upstreams.token": plain[1].settings() | trust | {"provider": "tencent", "dnsIp": [relays["token"].endpoint]},
        "upstreams.shop": shop.settings() | trust | {"dnsIp": [relays["shop"].endpoint]},
        "upstreams.plain": {"servers": [other.endpoint]}} | {
        f"upstreams.{kind}": trust | {"servers": [f"{kind}://{one.endpoint}{path.get(kind, '')}" for one in servers[kind]]}
        for kind in servers}
    for group in GROUPS[2:]:
        whole[f"upstreams.{group}"]["domains"] = [f"{group}.example"]
    whole["domains"] = {"bypass": ["fallback.example"]}
    running = daemon(whole=whole, port=PORT)
    live = [*relays.values(), *itertools.chain(*servers.values())]
    return running, [*([*of_relay(one)] for one in live), *([*of_service(one)] for one in plain),
                     *([*of_resolver(one)] for one in (fallback, other)), [*of_store(shared)], [*of_daemon(running)]]


# For a peer that resets its connection before a handshake: `wrap_socket` leaves the socket to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
def test_nobody_is_left_without_an_answer(world, chance):
    """Each question gets one right answer or SERVFAIL; in the end the daemon holds as much as before."""
    signal.alarm(TEST_SECONDS + SECONDS + KEPT)
    running, kinds = world
    eventually(lambda: metrics()["httpdnsd_shared_cache_up", ()] == 1, "the store is connected to")
    begun_with = running.descriptors()
    crowd, over = Crowd(random.Random(chance.random())), threading.Event()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        counts = pool.submit(trouble, chance, kinds, over, every=min(3, SECONDS / 15))
        held = pool.submit(watch, running, over)
        try:
            crowd.ask_for(SECONDS)
        finally:
            over.set()
    crowd.end()
    eventually(lambda: all_answer(), "each group answers again", 60)
    eventually(lambda: metrics()["httpdnsd_lookups_in_flight", ()] == 0, "nothing is under way", 30)
    print(counts.result())
    print(crowd)
    memory, descriptors = zip(*held.result(), strict=True)
    half = len(memory) // 2
    for what, values in (("kilobytes", memory), ("descriptors", descriptors)):
        print(what, [max(values[place:place + half // 5 + 1]) for place in range(0, len(values), half // 5 + 1)])
    most = (begun_with if IS_LONG else max(descriptors[:half])) + DESCRIPTORS
    eventually(lambda: running.descriptors() <= most, f"no more than {most} descriptors are held", KEPT)
    print("in the end", running.descriptors(), "descriptors, in the beginning", begun_with)
    assert crowd.unanswered == []
    assert crowd.wrong == []
    assert max(memory[half:]) <= max(memory[half // 4:half]) + MEMORY
    assert crowd.failed <= FAILURES * len(crowd.waits)


def watch(running, over):
    """The daemon's kilobytes and descriptors, each second."""
    held = []
    while not over.wait(1):
        held.append((running.held_kilobytes("RssAnon"), running.descriptors()))
    return held


def all_answer():
    return all(addresses(ask(f"last.{group}.example", port=PORT)) == [address_of(group, f"last.{group}.example")]
               for group in GROUPS)
