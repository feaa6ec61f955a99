"""Attacks by clients over each transport, by the numbers of the table in ATTACKS.md: contents of messages. Attacks by
numbers of messages are in test_client_shares.py, those on HTTP itself in test_http_attacks.py."""

import contextlib
import pathlib
import select
import socket
import ssl
import struct
import subprocess
import time

import dns.message
import dns.name
import dns.rcode
import pytest

from control import METRICS, fetch, metrics, total
from daemon import run
from dns_client import Stream, addresses, ask, exchange, extended_errors
from malformed import operations, opt, wire
from resolvers import ScriptedResolver, reply_to
from waiting import eventually, waited_since
from ways import CONNECTIONS, ELSEWHERE, HTTPS, PORT, TLS, WAYS, Datagrams, framed_by_http

TRUE = "192.0.2.1"


def exchange_at_once(channel, octets, is_whole):
    """Sends all octets, reads nothing for half a second, and then what comes until it is whole. All in one thread: two cannot use a
    TLS connection of Python's at the same time."""
    left, replies, until = memoryview(octets), bytearray(), time.monotonic() + 0.5
    busy = BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError
    channel.setblocking(False)
    while time.monotonic() < until or not is_whole(replies):
        with contextlib.suppress(*busy):
            while left:
                left = left[channel.send(left[:16384]):]
        if time.monotonic() < until:
            time.sleep(0.01)
            continue
        with contextlib.suppress(*busy):
            while piece := channel.recv(1 << 20):
                replies += piece
            assert is_whole(replies), "it was cut off"
        select.select([channel], [channel] if left else [], [], 0 if is_whole(replies) else 5)
    channel.setblocking(True)


def pipelined(connection, count):
    question = wire("localhost")
    connection.send(question)
    length = count * (len(connection.receive_bytes()) + 2)
    exchange_at_once(connection.socket, (struct.pack("!H", len(question)) + question) * count, lambda replies: len(replies) == length)


def pipelined_over_http2(connection, count):
    for _ in range(count // 100):
        for _ in range(100):
            connection.send(wire("localhost"))
        for _ in range(100):
            assert connection.receive_bytes()


def pipelined_over_http1(connection, count):
    exchange_at_once(connection.socket, framed_by_http(wire("localhost")) * count,
                     lambda replies: replies.count(b"HTTP/1.1 200 ") == count)


PIPELINED = {"tcp": (pipelined, 100_000), "tls": (pipelined, 50_000), "https": (pipelined_over_http2, 20_000),
             "https1": (pipelined_over_http1, 20_000)}


@pytest.mark.parametrize("way", CONNECTIONS)
def test_23_many_questions_on_one_connection(everywhere, connect, way):
    """Every pipelined question is answered, and neither stack nor memory grows."""
    running = everywhere()
    with connect(way, timeout=60) as connection:
        before = running.held_kilobytes("RssAnon")
        ask_many, count = PIPELINED[way]
        ask_many(connection, count)
        assert running.held_kilobytes("RssAnon") < before + 8192 and running.resident_kilobytes("VmStk") <= 256


HALVES = {"tcp": b"\0", "tls": b"\0", "https": b"\0\0\x40\1",
          "https1": b"POST /dns-query HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n1"}


@pytest.mark.parametrize("way", CONNECTIONS)
def test_24_half_a_question_and_a_reset(everywhere, connect, way):
    """After clients send half a question and reset the connection, the daemon is idle and still answers."""
    running = everywhere()
    for _ in range(100):
        with connect(way) as connection:
            connection.socket.sendall(HALVES[way])
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert addresses(ask("after.example.net", port=PORT)) == [TRUE]
    eventually(lambda: running.ticks_in(1) <= 5, "nothing is left to do")
    with connect(way) as connection:
        connection.send(wire("localhost"))
        assert addresses(dns.message.from_wire(connection.receive_bytes())) == ["127.0.0.1"]


def test_25_no_transport_has_another_filter(serving):
    """Every operation, type and fault gets the same octets over UDP and over TCP. The tests of TLS and of HTTPS compare these
    with TCP."""
    serving(lambda asked: reply_to(asked.message, rcode=dns.rcode.NXDOMAIN))
    for message in operations():
        over_udp = exchange(message, port=PORT)
        with Stream(port=PORT) as stream:
            stream.send(message)
            over_tcp = stream.receive_bytes()
        assert over_udp == over_tcp, (message, over_udp, over_tcp)


def test_25_outsiders(serving):
    """Outsiders get REFUSED at most over UDP; over other transports their connections are closed before anything is read."""
    running = serving(listen={"https": [f"{ELSEWHERE}:{HTTPS}"]})
    for message in operations():
        code = exchange(message, server=ELSEWHERE, port=PORT)[3] & 15
        assert message[2] & 0x78 or code in (dns.rcode.REFUSED, dns.rcode.FORMERR), message
    for port in (PORT, TLS, HTTPS):
        with socket.create_connection((ELSEWHERE, port), timeout=20) as connection, contextlib.suppress(ConnectionError):
            connection.sendall(struct.pack("!H", len(wire("localhost"))) + wire("localhost"))
            assert connection.recv(1) == b""
    assert running.resolver.questions == []


@pytest.mark.parametrize("port", [PORT, TLS, HTTPS])
def test_39_outsiders_take_no_room(serving, connect, port):
    """Outsiders' connections are closed without a handshake, and no connection of a client is closed to make room for them."""
    way = {PORT: "tcp", TLS: "tls", HTTPS: "https"}[port]
    serving(listen={"https": [f"127.0.0.1:{HTTPS}", f"{ELSEWHERE}:{HTTPS}"], "tcpClients": 8})
    with contextlib.ExitStack() as stack:
        kept = [stack.enter_context(connect(way)) for _ in range(8)]
        strangers = [stack.enter_context(socket.create_connection((ELSEWHERE, port), timeout=20)) for _ in range(30)]
        for stranger in strangers:
            with contextlib.suppress(ConnectionError):
                assert stranger.recv(1) == b""
        for connection in kept:
            connection.send(wire("localhost"))
            assert addresses(dns.message.from_wire(connection.receive_bytes())) == ["127.0.0.1"]
        eventually(lambda: total(metrics(), "httpdnsd_tcp_closed_total", proto=way, reason="not_allowed") == 30, "they are counted")
        counts = metrics()
        assert total(counts, "httpdnsd_tcp_closed_total", proto=way, reason="room") == 0
        assert total(counts, "httpdnsd_tcp_accepted_total", proto=way) == 8


def test_26_smuggled_options(everywhere, connect):
    """A malformed OPT of a client is refused, and its options never reach an upstream."""
    resolver = everywhere().resolver
    mark = b"SMUGGLED"
    option = struct.pack("!HH", 65001, 8) + mark
    for way in WAYS:
        with connect(way) as connection:
            for number, (more, counts) in enumerate([
                    (opt(option, length=4), (1, 0, 0, 1)), (opt(option, length=200), (1, 0, 0, 1)),
                    (opt(option) * 2, (1, 0, 0, 2)), (opt(option), (1, 1, 0, 0)), (opt(option), (1, 0, 1, 0)),
                    (opt(option) + mark, (1, 0, 0, 1)), (opt(option)[:-1], (1, 0, 0, 1)), (opt(option), (1, 0, 0, 0)),
                    (opt(option), (1, 0, 0, 1))]):
                connection.send(wire(f"s{number}{way}.example.net", more=more, counts=counts))
                code = connection.receive_bytes()[3] & 15
                assert code == (dns.rcode.NOERROR if number == 8 else dns.rcode.FORMERR), (way, number)
    assert {asked.name for asked in resolver.questions} == {dns.name.from_text(f"s8{way}.example.net") for way in WAYS}
    assert not any(mark in asked.wire for asked in resolver.questions)


def test_27_names_as_a_weapon(everywhere, connect, binary, tmp_path):
    """A name with markup, terminal commands or line ends is shown as printable ASCII everywhere."""
    label = b"\x1b]0;x\x07<script>\"\\\n{}"
    running = everywhere(lambda asked: reply_to(asked.message, rcode=dns.rcode.SERVFAIL), log={"level": "debug"},
                         control={"metrics": f"{METRICS[0]}:{METRICS[1]}", "socket": "control.sock"})
    control = ["--socket", str(pathlib.Path(running.directory) / "control.sock")]
    shown = tmp_path / "watch"
    with shown.open("w") as output:
        watch = subprocess.Popen([binary, "watch", *control], stdin=subprocess.DEVNULL, stdout=output)

    def watched():
        return shown.read_text(errors="surrogateescape")
    eventually(lambda: ask("localhost", port=PORT) and watched(), "it watches")
    for way in WAYS:
        names = bytes([len(label)]) + label + b"".join(bytes([len(one)]) + one for one in (way.encode(), b"example", b"net"))
        for number in range(3):
            with connect(way) as connection:
                connection.send(struct.pack("!6H", number, 0x100, 1, 0, 0, 0) + names + b"\0\0\1\0\1")
                assert connection.receive_bytes()
    eventually(lambda: all(f"{way}.example.net" in watched() for way in WAYS), "it has shown them")
    watch.terminate()
    watch.wait()
    explained = [run(binary, "explain", *control, *more, r"\027]0;x\007<script>\"\\\010{}.https.example.net").stdout
                 for more in ([], ["--json"])]
    texts = {"log": running.log(), "page": fetch("/")[2], "metrics": fetch("/metrics")[2], "watch": watched(),
             "status": run(binary, "status", *control).stdout, "explain": explained[0], "explain --json": explained[1]}
    for what, text in texts.items():
        assert text and all(32 <= ord(letter) < 127 or letter == "\n" or ord(letter) > 0xA0 for letter in text), what
        assert "x\x07" not in text and '<script>"' not in text, what
    checked = subprocess.run(["promtool", "check", "metrics"], input=texts["metrics"], text=True, capture_output=True)
    assert checked.returncode in (0, 3), checked.stderr


@pytest.mark.parametrize("server", [f"127.0.0.1:{PORT}", f"tcp://127.0.0.1:{PORT}", f"tls://127.0.0.1:{TLS}#dns.example",
                                    f"https://dns.example:{HTTPS}/dns-query#127.0.0.1"])
def test_29_the_daemon_behind_itself(everywhere, connect, binary, server):
    """A daemon that is its own server recognises its addresses over every transport, so no question goes in circles."""
    running = everywhere(fallback={"servers": [server], "timeout": 60000})
    waits = []
    for number, way in enumerate(WAYS):
        with connect(way) as connection:
            for name in (f"loop{number}.example.net", "ipv4only.arpa", "_dns.resolver.arpa"):
                begun = time.monotonic()
                connection.send(wire(name, "TXT", more=opt(), counts=(1, 0, 0, 1)))
                reply = dns.message.from_wire(connection.receive_bytes())
                waits.append(waited_since(begun))
                assert not reply.answer and (name[0] != "l" or reply.rcode() == dns.rcode.SERVFAIL and extended_errors(reply))
    assert max(waits) < 3.5, "nobody waits for an answer that goes in circles"
    assert total(metrics(), "httpdnsd_dns_requests_total", type="TXT") == 3 * len(WAYS)
    assert running.log_lines("which is this daemon itself")
    checked = run(binary, "check", "-c", str(running.directory / "httpdnsd.toml"))
    assert "which is this daemon itself" in checked.stdout + checked.stderr, checked


def test_29_a_loop_that_is_forged(daemon, network):
    """Datagrams with a server's source address neither end questions under way at that server nor count against it. The "forger"
    has that address indeed: for the daemon, a forged datagram is the same octets."""
    here, there = network(), network()
    here.link(there, theirs="10.77.0.2/24 10.77.0.66/24")
    with there:
        server = ScriptedResolver(lambda asked: reply_to(asked.message, f"60 IN A {TRUE}"), address="10.77.0.2")
        client, forger = (Datagrams(server="10.77.0.1", source=source) for source in ("10.77.0.66", "10.77.0.2"))
    try:
        with here, client, forger:
            running = daemon(whole={
                "listen": {"addresses": [f"127.0.0.1:{PORT}", f"10.77.0.1:{PORT}"], "allow": ["127.0.0.0/8", "10.77.0.0/24"]},
                "fallback": {"servers": [server.endpoint], "hosts": "", "timeout": 20000}}, port=PORT)
            for number in range(3):
                server.hold()
                question = wire(f"f{number}.example.net")
                asked = dns.message.from_wire(question).question[0].name
                client.send(question)
                eventually(lambda asked=asked: asked in [one.name for one in server.questions], "the server is asked")
                forger.send(question)
                assert dns.message.from_wire(forger.receive_bytes()).rcode() == dns.rcode.SERVFAIL
                server.release()
                assert addresses(dns.message.from_wire(client.receive_bytes())) == [TRUE]
            assert not running.log_lines("fails: a loop:")
            assert len(running.log_lines("they come from fallback 10.77.0.2:53, which is being asked the same: a loop")) == 1
    finally:
        server.stop()
