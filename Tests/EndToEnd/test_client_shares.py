"""Attacks by clients over each transport, by the numbers of the table in ATTACKS.md: clients hold many resources, so that
all are released at once, or other clients are kept out."""

import contextlib
import itertools
import os
import select
import signal
import socket
import struct
import subprocess
import threading
import time

import dns.message
import dns.rcode
import hyperframe.frame as frames
import pytest
from h2.errors import ErrorCodes

from clients import state
from control import metrics, total
from dns_client import addresses, ask, exchange
from frames import DATA, END_HEADERS, END_STREAM, HEADERS, START, fields, frame, settings
from malformed import opt, wire
from resolvers import Unbound, reply_to
from waiting import eventually
from ways import CONNECTIONS, ELSEWHERE, MESSAGE, PORT, TLS, Encrypted, dial, framed_by_http

TRUE = "192.0.2.1"


def names_asked(resolver):
    return {question.name for question in list(resolver.questions)}


def half_of(way, number):
    """A question whose servers are silent, followed by as much as possible of a message that never ends."""
    question = wire(f"slow{number}.example.net")
    if way in ("tcp", "tls"):
        return struct.pack("!H", len(question)) + question + b"\xff\xff" + bytes(65_000)
    if way == "https1":
        return framed_by_http(question) + framed_by_http(bytes(60_000))[:-1]
    posts = [fields(":method POST", ":scheme https", ":authority h", ":path /dns-query", f"content-type {MESSAGE}")] * 5
    bodies = [question, *[bytes(60_000)] * 4]
    return START + settings() + b"".join(
        frame(HEADERS, END_HEADERS, stream, head)
        + b"".join(frame(DATA, END_STREAM if body is question else 0, stream, body[place:place + 16_384])
                   for place in range(0, len(body), 16_384))
        for stream, head, body in zip(range(1, 11, 2), posts, bodies))


@pytest.mark.parametrize(("way", "turns"), [("tcp", 60), ("tls", 40), ("https", 12), ("https1", 30)])
def test_37_a_client_that_leaves_takes_along_what_is_kept_for_it(everywhere, trusting, way, turns):
    """The data of a client is freed when it leaves, though its questions are still looked up; retained, it would be 30 MB."""
    running = everywhere(fallback={"timeout": 60000})
    running.resolver.hold()
    context, begun = trusting(), running.held_kilobytes("RssAnon")

    def dialled():
        return (socket.create_connection(("127.0.0.1", PORT), 20) if way == "tcp" else Encrypted(context).socket if way == "tls"
                else dial(context, ["h2" if way == "https" else "http/1.1"]))
    for number in range(0, 10 * turns, 10):
        with contextlib.ExitStack() as stack:
            for more in range(10):
                connection = stack.enter_context(dialled())
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.sendall(half_of(way, number + more))
            eventually(lambda: len(names_asked(running.resolver)) == number + 10, "they are looked up")
    eventually(lambda: total(metrics(), "httpdnsd_tcp_clients") == 0, "all have left")
    assert running.held_kilobytes("RssAnon") - begun < 12_000
    running.resolver.release()


def test_38_handshakes_of_one_source(everywhere, trusting):
    """A source has eight handshakes under way at a time: its further clients wait, those of other sources do not."""
    subprocess.run(["ip", "address", "replace", "10.53.53.54/32", "dev", "lo"], check=True)
    everywhere()
    context = trusting()
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection((ELSEWHERE, TLS), 20, (ELSEWHERE, 0))) for _ in range(8)]
        done = threading.Event()

        def waits():
            with Encrypted(context, server=ELSEWHERE, source=ELSEWHERE):
                done.set()
        waiting = threading.Thread(target=waits)
        waiting.start()
        for _ in range(30):
            with Encrypted(context, server=ELSEWHERE, source="10.53.53.54"), Encrypted(context):
                pass
        assert not done.is_set()
        silent[0].close()
        assert done.wait(20)
        waiting.join()
        assert total(metrics(), "httpdnsd_tcp_closed_total", reason="room") == 0


def long_texts(ttl):
    text = " ".join(['"' + "x" * 250 + '"'] * 4)
    return lambda asked: reply_to(asked.message, f"{ttl} IN TXT {text}")


def test_21_dnsbomb(everywhere):
    """Held questions that end in the same moment send no burst of answers to the address that was forged as their source."""
    resolver = everywhere(long_texts(1), fallback={"timeout": 4000}).resolver
    names = [f"bomb{number}.example.net" for number in range(8)]
    for name in names:
        assert ask(name, "TXT", edns=True, port=PORT).answer
    time.sleep(2.1)
    resolver.script = lambda asked: None
    came, asked_octets = [], 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)
        channel.connect((ELSEWHERE, PORT))
        channel.setblocking(False)

        def read():
            with contextlib.suppress(BlockingIOError):
                while True:
                    came.append((time.monotonic(), len(channel.recv(4096))))
        begun = time.monotonic()
        for number in range(8000):
            question = wire(names[number % 8], "TXT", number=number, more=opt(), counts=(1, 0, 0, 1))
            with contextlib.suppress(BlockingIOError):
                asked_octets += channel.send(question)
            if number % 20 == 0:
                read()
                time.sleep(max(0, begun + number / 5000 - time.monotonic()))
        end = time.monotonic() + 3
        while time.monotonic() < end:
            select.select([channel], [], [], 0.05)
            read()
    assert len(came) > 4000, "they are answered"
    late = [(at, octets) for at, octets in came if at > begun + 1.65]
    for start, _ in late:
        within = [octets for at, octets in late if start <= at < start + 0.1]
        assert len(within) <= 1000 + 300, "the last questions are answered at once"
    assert sum(octets for _, octets in came) <= 10 * asked_octets
    large = [at for at, octets in came if octets > 512]
    assert len(large) <= 100 * (end - begun + 2)


@pytest.mark.parametrize(("way", "most"), [("tcp", 128), ("tls", 128), ("https1", 1)])
def test_21_questions_of_one_connection_that_are_held(everywhere, connect, way, most):
    """At most this many questions of a connection wait at once; further ones are read later, and none is lost."""
    resolver = everywhere(fallback={"timeout": 60000}).resolver
    resolver.hold()
    count = 300
    with connect(way) as connection:
        for number in range(count):
            connection.send(wire(f"held{number}.example.net", number=number))
        eventually(lambda: len(names_asked(resolver)) >= most, "as many as may be are asked")
        time.sleep(0.3)
        assert len(names_asked(resolver)) == most
        resolver.release()
        replies = [dns.message.from_wire(connection.receive_bytes()) for _ in range(count)]
    assert {reply.id for reply in replies} == set(range(count))
    assert all(addresses(reply) == [TRUE] for reply in replies)


def test_21_streams_beyond_those_that_are_held(everywhere, connect):
    """SETTINGS of HTTP/2 limit a client's streams; the connection of a client that exceeds the limit is closed."""
    resolver = everywhere(fallback={"timeout": 60000}).resolver
    resolver.hold()
    with connect("https") as connection:
        for stream in range(1, 600, 2):
            head = connection.connection.encoder.encode([
                (":method", "POST"), (":scheme", "https"), (":authority", "dns.example"), (":path", "/dns-query"),
                ("content-type", MESSAGE)])
            connection.socket.sendall(
                frames.HeadersFrame(stream, head, flags=["END_HEADERS"]).serialize()
                + frames.DataFrame(stream, wire(f"held{stream}.example.net"), flags=["END_STREAM"]).serialize())
        eventually(lambda: len(names_asked(resolver)) >= 100, "as many as may be are asked")
        while connection.ended is None:
            assert connection.hear()
        assert connection.ended == ErrorCodes.PROTOCOL_ERROR and not connection.hear()
    assert len(names_asked(resolver)) == 100
    resolver.release()
    with connect("https") as connection:
        connection.send(wire("after.example.net"))
        assert addresses(dns.message.from_wire(connection.receive_bytes())) == [TRUE]


@pytest.mark.parametrize("way", ["tcp", "tls", "https"])
def test_21_questions_of_one_source_that_are_held(everywhere, connect, way):
    """One source has at most seven eighths of the clients that wait for one question; its further questions fail at once,
    however many connections it has, so that fewer answers leave in one moment."""
    resolver = everywhere(fallback={"timeout": 60000}).resolver
    resolver.hold()
    came = []

    def ask_for_much(number):
        with connect(way, server=ELSEWHERE) as connection:
            for place in range(100):
                connection.send(wire("held.example.net", number=number * 100 + place))
            for _ in range(100):
                came.append(dns.message.from_wire(connection.receive_bytes()).rcode())
    askers = [threading.Thread(target=ask_for_much, args=(number,)) for number in range(11)]
    for asker in askers:
        asker.start()
    eventually(lambda: len(came) >= 1100 - 896, "those beyond the limit are answered")
    time.sleep(0.3)
    assert set(came) == {dns.rcode.SERVFAIL} and len(came) <= 1100 - 896 + 8
    refused = len(came)
    assert addresses(ask("localhost", server=ELSEWHERE, port=PORT)) == ["127.0.0.1"]
    resolver.release()
    for asker in askers:
        asker.join()
    assert len(came) == 1100 and set(came[refused:]) == {dns.rcode.NOERROR}


def test_21_long_answers_need_a_proof(everywhere, connect):
    """Past a hundred long answers a second, an address without cookie or connection gets TC; the daemon's own host does not."""
    running = everywhere(long_texts(600))

    def truncated(way, server, count, cookie=None):
        option = struct.pack("!HH", 10, len(cookie)) + cookie if cookie else b""
        with connect(way, server=server) as connection:
            def is_truncated(number):
                connection.send(wire("long.example.net", "TXT", number=number, more=opt(option), counts=(1, 0, 0, 1)))
                return connection.receive_bytes()[2] >> 1 & 1
            return sum(is_truncated(number) for number in range(count))

    def truncated_of_a_moment(count=200):
        """The questions are in the daemon's socket before it reads the first, so even a slow machine answers within a second."""
        with connect("udp", server=ELSEWHERE) as connection:
            os.kill(running.pid, signal.SIGSTOP)
            try:
                eventually(lambda: state(running.pid) == "T", "the daemon stands still")
                for number in range(count):
                    connection.send(wire("long.example.net", "TXT", number=number, more=opt(), counts=(1, 0, 0, 1)))
            finally:
                os.kill(running.pid, signal.SIGCONT)
            return sum(connection.receive_bytes()[2] >> 1 & 1 for _ in range(count))
    assert truncated("udp", "127.0.0.1", 400) == 0
    assert truncated_of_a_moment() > 0
    for way in CONNECTIONS:
        assert truncated(way, ELSEWHERE, 150) == 0, way
    given = exchange(wire("localhost", more=opt(struct.pack("!HH", 10, 8) + b"12345678"), counts=(1, 0, 0, 1)),
                     server=ELSEWHERE, port=PORT)
    assert given[-24:-16] == b"12345678"
    assert truncated_of_a_moment() > 0
    assert truncated("udp", ELSEWHERE, 400, given[-24:]) == 0


def slow_names_without_end(connection, numbers, over):
    """Follows each reply with a new name; of the first hundred questions, nine in ten repeat an old name."""
    with contextlib.suppress(OSError, AssertionError, ValueError):
        for place in range(100):
            connection.send(wire(f"{next(numbers) if place % 10 else 0}.slow.example.net"))
        while not over.is_set():
            connection.receive_bytes()
            connection.send(wire(f"{next(numbers)}.slow.example.net"))
            over.wait(0.01)


def slow_datagrams(channel, numbers, over):
    with contextlib.suppress(OSError):  # the socket is closed at the end
        while not over.is_set():
            for _ in range(20):
                channel.send(wire(f"{next(numbers)}.slow.example.net"))
            channel.send(wire("0.slow.example.net"))
            over.wait(0.01)


@pytest.mark.parametrize("way", ["udp", "tcp", "tls", "https"])
def test_22_jostling_out(everywhere, connect, tmp_path, way):
    """A source that fills the table with slow names and renews them by asking again does not block new names of other sources."""
    subprocess.run(["ip", "address", "replace", "10.53.53.54/32", "dev", "lo"], check=True)
    # The resolver has a process of its own: in a process that shares Python's lock with the attackers it would lose datagrams.
    resolver = Unbound(tmp_path, "127.0.0.22", more=[
        '  local-zone: "slow.example.net." deny', '  local-zone: "new.example.net." redirect',
        f'  local-data: "new.example.net. 60 IN A {TRUE}"'])
    everywhere(fallback={"servers": [resolver.address], "timeout": 8000})
    over, numbers = threading.Event(), itertools.count()
    connections = [connect(way, server=ELSEWHERE, source="10.53.53.54") for _ in range(1 if way == "udp" else 36)]
    fill = slow_datagrams if way == "udp" else slow_names_without_end
    attackers = [threading.Thread(target=fill, args=(one, numbers, over)) for one in connections]
    for attacker in attackers:
        attacker.start()
    try:
        eventually(lambda: total(metrics(), "httpdnsd_refused_total", limit="lookups") > 100, "the table is full")
        with connect(way, server=ELSEWHERE) as asked:
            for number in range(60):
                asked.send(wire(f"{number}.new.example.net"))
                time.sleep(0.02)
            good = sum(addresses(dns.message.from_wire(asked.receive_bytes())) == [TRUE] for _ in range(60))
    finally:
        over.set()
        for connection, attacker in zip(connections, attackers):
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)
            attacker.join()
            connection.socket.close()
        resolver.stop()
    assert good >= 57
