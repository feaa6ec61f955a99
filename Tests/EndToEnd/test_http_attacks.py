"""Attacks on the daemon's HTTP servers, by the numbers of the table in ATTACKS.md: on the page and the metrics, on DNS over
HTTPS; and clients of any transport that are slow on purpose. Floods of frames are in test_https_clients.py."""

import base64
import contextlib
import socket
import struct
import time

import dns.message
import pytest

from control import METRICS, fetch
from dns_client import addresses
from frames import END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, RST, RawConnection, frame
from malformed import wire
from waiting import waited_since
from ways import CONNECTIONS, HTTPS, LOCALHOST, MESSAGE, PORT, dial, framed_by_http, post

MANY = 10_000
GIGABYTE = 1_000_000_000


def heard(client, octets, patience=2.0):
    """The reply until the other side closes or, after its first octets, sends nothing for `patience` seconds."""
    reply = b""
    with contextlib.suppress(OSError):
        client.sendall(octets)
    client.settimeout(20)
    with contextlib.suppress(OSError):
        while piece := client.recv(65_536):
            reply += piece
            client.settimeout(patience)
    return reply


FIELDS = "".join(f"x-{number}: y\r\n" for number in range(MANY))
UPGRADE = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"


@pytest.mark.parametrize("request_text", [
    "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\nAccess-Control-Request-Method: GET\r\n\r\n",
    "GET /metrics HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n\r\n",
    f"GET / HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    f"GET / HTTP/1.1\r\nHost: localhost\r\n{FIELDS}\r\n",
    f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {GIGABYTE}\r\n\r\n" + "x" * (1 << 22)],
    ids=["preflight", "origin", "h2c", "HTTP/2", "10,000 fields", "a body of 1 GB"])
def test_28_a_web_page_against_the_page(serving, request_text):
    """Other origins are allowed nothing, no other protocol is accepted, and too long requests are not read."""
    running = serving()
    before = running.held_kilobytes("RssAnon")
    with socket.create_connection(METRICS, timeout=20) as client:
        reply = heard(client, request_text.encode(), patience=0.5)
    head = reply.partition(b"\r\n\r\n")[0].lower()
    assert b"access-control" not in head and b" 101 " not in head and not reply.startswith(b"\0\0")
    assert running.held_kilobytes("RssAnon") < before + 4096
    assert fetch("/metrics")[0] == 200


QUESTION = f"/dns-query?dns={base64.urlsafe_b64encode(LOCALHOST).decode().rstrip('=')}"
HEAD = "Host: dns.example\r\n"
POST = f"POST /dns-query HTTP/1.1\r\n{HEAD}Content-Type: {MESSAGE}\r\n"
# The octets sent over HTTP/1.1, and the only status of the reply.
OVER_1 = {
    "a preflight": (f"OPTIONS /dns-query HTTP/1.1\r\n{HEAD}Origin: https://evil.example\r\n"
                    "Access-Control-Request-Method: POST\r\n\r\n", 405),
    "a web page's question": (f"GET {QUESTION} HTTP/1.1\r\n{HEAD}Origin: https://evil.example\r\n\r\n", 200),
    "h2c": (f"GET {QUESTION} HTTP/1.1\r\n{HEAD}{UPGRADE}\r\n", 200),
    "HTTP/2": ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "10,000 fields": (f"GET {QUESTION} HTTP/1.1\r\n{HEAD}{FIELDS}\r\n", 400),
    "a body of 1 GB": (f"{POST}Content-Length: {GIGABYTE}\r\n\r\n" + "x" * (1 << 22), 413),
    "a body in chunks without end": (
        f"{POST}Transfer-Encoding: chunked\r\n\r\n" + ("1000\r\n" + "x" * 4096 + "\r\n") * 512, 413),
    "two lengths": (f"{POST}Content-Length: {len(LOCALHOST)}\r\nContent-Length: 0\r\n\r\n{LOCALHOST.decode('latin-1')}"
                    f"GET {QUESTION} HTTP/1.1\r\n{HEAD}\r\n", 400),
    "a request in another's body": (f"{POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                                    f"GET {QUESTION} HTTP/1.1\r\n{HEAD}\r\n", 400),
    "fields that command a terminal": ("GET /\x1b]0;x\x07<script> HTTP/1.1\r\nHost: \x1b]0;x\x07\r\nX: <script>\r\n\r\n", 400),
}


@pytest.mark.parametrize("case", OVER_1)
def test_28_a_web_page_against_dns_over_https(serving, trusting, case):
    """The same holds for DNS over HTTP/1.1; octets outside a request are not taken as one."""
    running = serving(listen={"https": [f"127.0.0.1:{HTTPS}"]})
    octets, status = OVER_1[case]
    before = running.held_kilobytes("RssAnon")
    with dial(trusting(), ["http/1.1"]) as client:
        reply = heard(client, octets.encode("latin-1"), patience=0.5)
    assert [int(part.split()[1]) for part in reply.split(b"HTTP/")[1:]] == [status], reply
    assert b"access-control" not in reply.lower() and b"\0\0\0\4" not in reply.partition(b"\r\n\r\n")[0]
    assert running.held_kilobytes("RssAnon") < before + 4096
    assert not any(letter in running.log() for letter in "\x1b\x07")


def test_28_the_same_over_http2(serving, connect):
    running = serving(listen={"https": [f"127.0.0.1:{HTTPS}"]})
    before = running.held_kilobytes("RssAnon")
    origin, content = ("origin", "https://evil.example"), ("content-type", MESSAGE)
    many = [(f"x-{number}", "y") for number in range(MANY)]
    for expected, *request in (
            (405, "OPTIONS", "/dns-query", [origin, ("access-control-request-method", "POST")]),
            (200, "GET", QUESTION, [origin]),
            (413, "POST", "/dns-query", [content, ("content-length", str(GIGABYTE))], bytes(1 << 20)),
            (None, "GET", QUESTION, many)):
        with connect("https") as connection:
            got = None
            with contextlib.suppress(AssertionError, OSError):  # the connection is closed, or the stream is reset
                connection.socket.settimeout(1 if expected is None else 20)
                got = connection.request(*request)
            assert (got and got[0]) == expected or expected is None and got[0] in (400, 431), (request[:2], got)
            assert not got or not any("access-control" in name for name in got[1])
    assert running.held_kilobytes("RssAnon") < before + 4096
    with connect("https") as connection:
        assert post(connection, LOCALHOST)[0] == 200


def references(streams):
    """Requests made of references to a field of 3.9 KB that the first one has put into the table (RFC 7541 §7.3)."""
    request = b"\x82\x87\x84\1\1h"
    head = frame(HEADERS, END_HEADERS | END_STREAM, 1, request + b"\x40\1x\x7f\xbd\x1d" + b"a" * 3900)
    return head + b"".join(frame(HEADERS, END_HEADERS | END_STREAM, stream, request + b"\xbe" * 16_000)
                           for stream in range(3, 3 + 2 * streams, 2))


def test_36_heads_by_reference(serving, connect, trusting):
    """Such requests cost next to nothing and get no answer. The table of a client that has confirmed the settings is too small
    for such a field."""
    running = serving(listen={"https": [f"127.0.0.1:{HTTPS}"]})
    with dial(trusting(), ["h2"]) as socket, connect("https") as good:
        before = running.ticks()
        attacker = RawConnection(socket)
        attacker.send(references(200))
        resets = []
        while len(resets) < 200:
            kind, _, stream, code = attacker.hear()
            resets += [(stream, code)] * (kind == RST)
        assert resets == [(stream, struct.pack("!I", 11)) for stream in range(3, 403, 2)]
        assert running.ticks() - before < 100
        assert post(good, LOCALHOST)[0] == 200
        attacker.send(frame(PING, 0, 0, bytes(8)) * 1000)
        while (heard := attacker.hear())[0] != GOAWAY:
            pass
        assert heard[3][4:8] == struct.pack("!I", 11)
        assert post(good, LOCALHOST)[0] == 200


@pytest.mark.parametrize("octets", [
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0", f"GET {QUESTION} HTTP/1.1\r\n{HEAD}{UPGRADE}\r\n".encode(),
    framed_by_http(LOCALHOST), struct.pack("!H", len(LOCALHOST)) + LOCALHOST], ids=["h2c", "upgrade", "HTTP/1.1", "DNS"])
def test_28_nothing_is_served_in_the_clear(serving, octets):
    serving(listen={"https": [f"127.0.0.1:{HTTPS}"]})
    with socket.create_connection(("127.0.0.1", HTTPS), timeout=20) as client:
        reply = heard(client, octets)
    assert len(reply) < 16 and b"HTTP" not in reply, reply  # at most a TLS alert


@pytest.mark.parametrize("way", CONNECTIONS)
def test_28_an_octet_now_and_then(serving, connect, way):
    """A lone octet is no activity: a client that never completes a question is closed like a silent client."""
    serving(listen={"https": [f"127.0.0.1:{HTTPS}"], "tcpIdleSeconds": 1})
    question = wire("localhost")
    octets = {"https1": framed_by_http(question), "https": frame(HEADERS, END_HEADERS, 1, b"\0\1a\1b" * 10)}.get(
        way, struct.pack("!H", len(question)) + question)
    with connect(way) as connection, connect(way) as good:
        begun = time.monotonic()
        with pytest.raises(OSError):
            for octet in octets:
                connection.socket.sendall(bytes([octet]))
                assert waited_since(begun) < 5, "it is kept"
                time.sleep(0.2)
                if waited_since(begun) < 0.9:
                    good.send(question)
                    assert addresses(dns.message.from_wire(good.receive_bytes())) == ["127.0.0.1"]
    assert time.monotonic() - begun > 0.9
