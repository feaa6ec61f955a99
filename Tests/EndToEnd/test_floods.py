"""Floods of names and slow clients: memory stays bounded, and clients that ask for cached names are served as usual.

By default the run is short. HTTPDNSD_FLOOD_NAMES=10000000 HTTPDNSD_SLOW_SECONDS=120 is its full size.
"""

import contextlib
import os
import pathlib
import re
import select
import signal
import socket
import struct
import subprocess
import threading
import time

import dns.exception
import dns.message
import pytest

from dns_client import Stream, addresses, ask, labels
from encrypted import Later
from httpdns_service import Record
from malformed import wire
from resolvers import reply_to
from standard import TEST_SECONDS
from waiting import eventually
from ways import Encrypted

NAMES = int(os.environ.get("HTTPDNSD_FLOOD_NAMES", "150000"))
SLOW_SECONDS = int(os.environ.get("HTTPDNSD_SLOW_SECONDS", "4"))
IS_FULL = NAMES >= 1_000_000
MEGABYTES = 32 if IS_FULL else 2
BESIDE_CACHE = 24  # MB of resident memory beside cache.megabytes
KEY = "Swift-HTTPDNS-16"
KNOWN = [f"known{number}.flood.example.com" for number in range(50)]


@pytest.fixture
def flood(compiled):
    return compiled("flood.c", "-lcrypto")


@pytest.fixture
def fast_service(flood):
    """A service that knows every name, fast enough for a flood: the process and its port."""
    process = subprocess.Popen([flood, "serve", KEY], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    yield process, int(process.stdout.readline())
    process.kill()
    process.wait()
    process.stdout.close()


def counters(running):
    """Has the daemon log its counters by USR1; returns the line."""
    before = len(running.log_lines("cache .* answers"))
    running.process.send_signal(signal.SIGUSR1)
    return eventually(lambda: running.log_lines("cache .* answers")[before:], "the counters are logged")[0]


@pytest.mark.parametrize("how", ["answers", "is silent", "is silent, and so is the local resolver"])
def test_random_names(daemon, flood, fast_service, scripted_resolver, chance, how):
    """Under a flood of random names, memory stays bounded and no question for a known name is lost."""
    if IS_FULL:
        signal.alarm(7200)
    service, port = fast_service
    silent = scripted_resolver(lambda asked: None)
    section = {"encryptType": "aes", "dnsId": 12345, "dnsKey": KEY, "dnsIp": [f"127.0.0.3:{port}"],
               "httpOnly": "local" not in how}
    running = daemon(None, {"httpdns": section, "cache": {"megabytes": MEGABYTES},
                            "fallback": {"servers": [silent.endpoint], "timeout": 500, "hedgeAfter": 300}})
    known = {name: addresses(ask(name)) for name in KNOWN}
    assert all(known.values())
    if "silent" in how:
        service.send_signal(signal.SIGSTOP)
    attack = subprocess.Popen([flood, "ask", "53", str(NAMES), "256", "flood.example.com", str(chance.getrandbits(32)),
                               str(len(KNOWN))], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    asked, again, most = 0, 0, 0
    while attack.poll() is None:
        name = KNOWN[asked % len(KNOWN)]
        try:
            assert addresses(ask(name, timeout=1)) == known[name]
        except dns.exception.Timeout:  # on a busy machine the kernel may lose a datagram; a client asks again
            again += 1
            assert addresses(ask(name, timeout=5)) == known[name]
        asked += 1
        most = max(most, running.held_kilobytes())
    answers, good = map(int, attack.stdout.read().split())
    attack.stdout.close()
    print(f"{NAMES} random names: {answers} answers, {good} with addresses; {asked} questions for known names, {again} of them "
          f"asked again, at most {most} kB resident\n{counters(running)}")
    assert asked > 100 and again <= asked / 50 and answers > NAMES / 10
    assert ("silent" in how) == (good == 0)
    assert most <= (MEGABYTES + BESIDE_CACHE) * 1024
    service.send_signal(signal.SIGCONT)


def test_one_source_cannot_take_all_lookups(daemon, service, scripted_resolver):
    """While one address asks for 2,000 dead names a second, every new name of another client is answered."""
    silent = scripted_resolver(lambda asked: None)
    live = [f"live{number}.example.com" for number in range(100)]
    address = "10.53.53.53"
    running = daemon(service("aes", {name: Record(["192.0.2.1"], [], 600) for name in live}),
           {"listen": {"addresses": ["0.0.0.0:2053"], "allow": ["127.0.0.0/8", "10.53.53.0/24"]},
            # The long time-out lets lookups fill all the room, however slowly this machine sends.
            "fallback": {"servers": [silent.endpoint], "timeout": 20_000}}, port=2053)
    over = threading.Event()

    def flood():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
            channel.connect((address, 2053))
            begun, number = time.monotonic(), 0
            while not over.is_set():
                name = labels(f"dead{number}.d{number % 500}.example")
                with contextlib.suppress(ConnectionRefusedError):
                    channel.send(struct.pack("!6H", number & 0xFFFF, 0x100, 1, 0, 0, 0) + name + b"\0\1\0\1")
                number += 1
                time.sleep(max(0, begun + number / 2000 - time.monotonic()))
    attacker = threading.Thread(target=flood)
    attacker.start()
    try:
        eventually(lambda: running.log_lines("questions are refused: too many are under way"), "the flood fills all it can")
        replies = [ask(name, port=2053) for name in live]
    finally:
        over.set()
        attacker.join()
    assert sum(addresses(reply) == ["192.0.2.1"] for reply in replies) == len(live)


class SlowClients:
    """Clients that ask for long answers, then send an octet a second, and read nothing."""

    def __init__(self, count, port):
        query = dns.message.make_query("big.example.com", "TXT").to_wire()
        self._greeting = (struct.pack("!H", len(query)) + query) * 40
        self._port = port
        self._clients = [None] * count
        self._stopping = threading.Event()
        self.connected = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _connect(self):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", self._port))
        client.settimeout(1)
        client.sendall(self._greeting)
        return client

    def _run(self):
        while not self._stopping.is_set():
            for place, client in enumerate(self._clients):
                try:
                    if client is None:
                        self._clients[place] = self._connect()
                    else:
                        client.send(b"\0")
                except OSError:  # the daemon may close the connection: then another client comes
                    client and client.close()
                    self._clients[place] = None
            self.connected.set()
            self._stopping.wait(1)

    def stop(self):
        self._stopping.set()
        self._thread.join()
        for client in self._clients:
            client and client.close()


def test_two_hundred_slow_clients(daemon, unbound):
    """Slow clients delay no answer over UDP, over a new TCP connection or over a lasting one."""
    signal.alarm(TEST_SECONDS + SLOW_SECONDS)
    running = daemon(None)
    assert ask("big.example.com", "TXT", transport="tcp").answer
    before = running.held_kilobytes()
    slow = SlowClients(200, 53)
    try:
        assert slow.connected.wait(30)
        asked, longest, most = 0, 0, 0
        end = time.monotonic() + SLOW_SECONDS
        with Stream() as steady:
            while time.monotonic() < end or asked < 300:
                begun = time.monotonic()
                assert addresses(ask("www.example.com", timeout=2))
                assert addresses(ask("www.example.com", transport="tcp", timeout=2))
                steady.send(dns.message.make_query("www.example.com", "A", id=asked & 0xFFFF))
                assert steady.receive().id == asked & 0xFFFF
                longest = max(longest, time.monotonic() - begun)
                asked += 3
                most = max(most, running.held_kilobytes())
    finally:
        slow.stop()
    print(f"{asked} answers, three of them in {longest * 1000:.1f} ms at most; {before} kB resident, then {most}\n"
          f"{counters(running)}")
    assert most - before < 16_000
    assert not re.search(r" 0 cut off", counters(running)), "what was kept for them reached its bound"


def test_long_answers_that_come_at_one_moment(everywhere, encrypted_resolver, trusting):
    """6,400 questions wait for eight answers of 64 KB. Each reply is written when it is sent: all together they are 400 MB, and the
    thread of TLS clients gives way to that of the lookups."""
    due = []

    def long(asked, connection):
        due.append(time.monotonic() + 2)
        end, count = asked.wire.index(0, 12) + 5, 4000
        records = (b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + struct.pack("!I", 0xCB007100 + number) for number in range(count))
        answer = asked.wire[:2] + struct.pack("!5H", 0x8180, 1, count, 0, 0) + asked.wire[12:end] + b"".join(records)
        return Later(max(0, due[0] - time.monotonic()), answer)
    server = encrypted_resolver("tcp", long)
    running = everywhere(fallback={"servers": [server.url], "timeout": 8000}, cache={"megabytes": 4})
    for thread in pathlib.Path(f"/proc/{running.pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), [min(os.sched_getaffinity(0))])
    context = trusting()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Encrypted(context)) for _ in range(64)]
        before = running.held_kilobytes()
        for number, client in enumerate(clients):
            question = wire(f"long{number // 8}.example.net")
            client.socket.sendall((struct.pack("!H", len(question)) + question) * 100)
        # Questions beyond those that may be on their way get SERVFAIL.
        assert any(len(clients[0].receive_bytes()) > 60_000 for _ in range(100))
        time.sleep(1)
    most = running.held_kilobytes("VmHWM")
    print(f"{before} kB resident, then {most} at most")
    assert most - before < BESIDE_CACHE * 1000


def test_a_slow_reader_gets_every_answer(daemon, unbound):
    """The client asks for 1 MB at once and takes it in small pieces: the daemon pauses reading, and no answer is lost."""
    running = daemon(None)
    whole = ask("big.example.com", "TXT", transport="tcp")
    count = 1_000_000 // len(whole.to_wire())
    with socket.create_connection(("127.0.0.1", 53)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.setblocking(False)
        waiting = b"".join(struct.pack("!HH", len(whole.question[0].name.to_wire()) + 16, number)
                           + b"\1\0\0\1\0\0\0\0\0\0" + whole.question[0].name.to_wire() + b"\0\x10\0\1"
                           for number in range(count))
        came, numbers = b"", []
        while len(numbers) < count:
            readable, writable, _ = select.select([client], [client] if waiting else [], [], 10)
            assert readable or writable, f"{len(numbers)} of {count} answers, then nothing"
            if writable:  # in uneven pieces, so that some length prefixes are split
                waiting = waiting[client.send(waiting[:777]):]
            if readable:
                piece = client.recv(1500)
                assert piece, f"closed after {len(numbers)} of {count} answers"
                came += piece
            while len(came) >= 2 and len(came) >= 2 + struct.unpack("!H", came[:2])[0]:
                length = struct.unpack("!H", came[:2])[0]
                numbers.append(struct.unpack("!H", came[2:4])[0])
                assert length == len(whole.to_wire())
                came = came[2 + length:]
        assert sorted(numbers) == list(range(count))
    assert re.search(r" 0 cut off", counters(running))


def test_one_source_cannot_take_all_connections(daemon, scripted_resolver):
    """A single address has at most a quarter of the connections, however busy; the daemon's own host may have all."""
    resolver = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.1"))
    address = "10.53.53.53"
    running = daemon(None, {"listen": {"addresses": ["0.0.0.0:2053"], "tcpClients": 16,
                                       "allow": ["127.0.0.0/8", "10.53.53.0/24"]},
                            "fallback": {"servers": [resolver.endpoint], "timeout": 5000}}, port=2053)
    resolver.hold()

    def busy(number, server):
        stream = Stream(server=server, port=2053)
        stream.send(dns.message.make_query(f"held{number}.example.net", "A"))
        return stream
    held = [busy(number, address) for number in range(4)]
    eventually(lambda: len({asked.name for asked in resolver.questions}) == 4, "four wait for answers")
    with Stream(server=address, port=2053) as fifth:
        assert fifth.socket.recv(1) == b"", "all of its share wait for answers: the newest is refused"
    # Other clients are not affected.
    held += [busy(number, "127.0.0.1") for number in range(4, 16)]
    eventually(lambda: running.established_connections() == 16, "this host has the rest")
    resolver.release()
    for stream in held:
        assert stream.receive().answer
    # The connections are idle now: the address's oldest is closed for its newest.
    with Stream(server=address, port=2053) as again:
        again.send(dns.message.make_query("localhost", "A"))
        assert again.receive().answer
        closed, _, _ = select.select([stream.socket for stream in held], [], [], 5)
        assert len(closed) == 1 and closed[0].recv(1) == b"" and closed[0].getsockname()[0] == address
    for stream in held:
        stream.close()
    line = counters(running)
    assert " 1 refused" in line and " 1 closed for room" in line, line
