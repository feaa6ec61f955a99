"""Servers of DNS over HTTPS with a good certificate and bad frames: the connection may die, the daemon does not."""

import struct
import time

import dns.rcode
import h2.errors
import pytest

from asking import NEXT_ADDRESS, OURS, PORT, asked_of, at_once, check_answers
from dns_client import addresses, ask
from encrypted import MEDIA_TYPE, Response, address_reply
from waiting import waited_since

__all__ = ["asked_of"]  # a fixture


def frame(kind, flags=0, stream=0, payload=b""):
    return len(payload).to_bytes(3) + bytes([kind, flags]) + struct.pack("!I", stream) + payload


DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS = 1, 4
STATUS_200 = b"\x88"

# What is sent instead of an answer to a question on a stream.
FRAMES = {
    "garbage": lambda stream: b"\xff" * 200,
    "a frame that is too large": lambda stream: (1 << 20).to_bytes(3) + b"\0\0" + struct.pack("!I", stream) + bytes(
        70000),
    "DATA without HEADERS": lambda stream: frame(DATA, END_STREAM, stream, b"x"),
    "DATA on a stream nobody opened": lambda stream: frame(DATA, 0, stream + 100, b"x"),
    "DATA on stream 0": lambda stream: frame(DATA, 0, 0, b"x"),
    "HEADERS on an even stream": lambda stream: frame(HEADERS, END_HEADERS, 2, STATUS_200),
    "a promise": lambda stream: frame(PUSH, END_HEADERS, stream, struct.pack("!I", 2) + b"\x82\x86\x84"),
    "no window": lambda stream: frame(WINDOW, 0, 0, bytes(4)),
    "too much window": lambda stream: frame(WINDOW, 0, 0, b"\x7f\xff\xff\xff") * 2,
    "an invalid setting": lambda stream: frame(SETTINGS, 0, 0, struct.pack("!HI", 5, 1)),
    "settings of five octets": lambda stream: frame(SETTINGS, 0, 0, bytes(5)),
    "a PING of seven octets": lambda stream: frame(PING, 0, 0, bytes(7)),
    "HPACK that ends early": lambda stream: frame(HEADERS, END_HEADERS, stream, b"\x40\x7f"),
    "an index HPACK does not have": lambda stream: frame(HEADERS, END_HEADERS, stream, b"\xff\xff\xff\xff\x0f"),
    "bad Huffman": lambda stream: frame(HEADERS, END_HEADERS, stream, b"\x40\x81\xff\x81\xff"),
    "a table that is too large": lambda stream: frame(
        HEADERS, END_HEADERS, stream, b"\x3f\xe1\xff\xff\x7f" + STATUS_200),
    "no status": lambda stream: frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x0f\x10\x01x"),
    "a status that is no number": lambda stream: frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x08\x03abc"),
    "10,000 CONTINUATION": lambda stream: frame(HEADERS, 0, stream, STATUS_200) + frame(
        CONTINUATION, 0, stream, b"\x00\x01a\x01b") * 10000,
    "fields without end": lambda stream: frame(HEADERS, 0, stream, STATUS_200) + frame(
        CONTINUATION, 0, stream, (b"\x00\x01a\x7f\x01" + b"b" * 128) * 100) * 100,
    "something between HEADERS and CONTINUATION": lambda stream: frame(HEADERS, 0, stream, STATUS_200) + frame(
        PING, 0, 0, bytes(8)),
    "padding longer than its frame": lambda stream: frame(DATA, 8, stream, b"\xff\0\0"),
    "a stream that depends on itself": lambda stream: frame(PRIORITY, 0, stream, struct.pack("!IB", stream, 1)),
    "an unknown frame, then nothing": lambda stream: frame(99, 255, stream, b"x" * 100),
    "a window that is overrun": lambda stream: frame(HEADERS, END_HEADERS, stream, STATUS_200) + frame(
        DATA, 0, stream, bytes(16384)) * 1000,
}


@pytest.mark.parametrize("case", FRAMES)
def test_frames_that_are_wrong(asked_of, encrypted_resolver, case):
    """Who asks is answered by the next server, memory does not grow, and a good server is asked as before."""
    bad = encrypted_resolver("https", lambda asked, connection: connection.write(FRAMES[case](asked.stream)))
    good = encrypted_resolver("https", lambda asked, connection: address_reply(asked, NEXT_ADDRESS[0]),
                              address="127.0.0.7")
    running = asked_of(bad, good, timeout=2000)
    begun = running.held_kilobytes("RssAnon")
    for number in range(3):
        check_answers(at_once([f"n{number}.example.net"]), expected=NEXT_ADDRESS)
    assert running.process.poll() is None and running.held_kilobytes("RssAnon") < begun + 16384


FLOODS = {"PING": frame(PING, 0, 0, bytes(8)), "SETTINGS": frame(SETTINGS), "empty DATA": None,
          "PRIORITY": frame(PRIORITY, 0, 1001, struct.pack("!IB", 3, 1)), "WINDOW_UPDATE": frame(
              WINDOW, 0, 0, struct.pack("!I", 1)), "unknown frames": frame(77, 0, 0, b"xxxx")}


@pytest.mark.parametrize("case", FLOODS)
def test_a_flood_of_frames(asked_of, encrypted_resolver, case):
    """50,000 with each answer: bounded memory, and somebody answers."""
    def script(asked, connection):
        one = FLOODS[case]
        if one is None:
            connection.write(frame(HEADERS, END_HEADERS, asked.stream, STATUS_200))
            one = frame(DATA, 0, asked.stream)
        connection.write(one * 50000)
    bad = encrypted_resolver("https", script)
    good = encrypted_resolver("https", lambda asked, connection: address_reply(asked, NEXT_ADDRESS[0]),
                              address="127.0.0.7")
    running = asked_of(bad, good, timeout=2000)
    begun = running.held_kilobytes("RssAnon")
    for number in range(3):
        check_answers(at_once([f"n{number}.example.net"]), within=2, expected=NEXT_ADDRESS)
    assert running.process.poll() is None and running.held_kilobytes("RssAnon") < begun + 16384


@pytest.mark.parametrize(("count", "expected"), [(20, OURS), (1000, NEXT_ADDRESS)])
def test_fields_beside_the_answer(asked_of, encrypted_resolver, count, expected):
    """Many a proxy adds some: they are passed over. A hundred kilobytes of them are not taken."""
    fields = [("content-type", MEDIA_TYPE), *((f"x-{number}", "y" * 100) for number in range(count))]
    bad = encrypted_resolver("https", lambda asked, connection: Response(address_reply(asked), fields=fields))
    good = encrypted_resolver("https", lambda asked, connection: address_reply(asked, NEXT_ADDRESS[0]),
                              address="127.0.0.7")
    asked_of(bad, good)
    for number in range(3):
        check_answers(at_once([f"n{number}.example.net"]), expected=expected)


@pytest.mark.parametrize("retry", [None, "1", "3600", "soon"])
@pytest.mark.parametrize("status", [429, 503])
def test_too_many_requests_is_heeded(asked_of, encrypted_resolver, status, retry):
    """While it lasts the server is left alone; the next one answers, and nobody is lost."""
    fields = [("content-type", "text/plain")] + ([("retry-after", retry)] if retry else [])
    bad = encrypted_resolver("https", lambda asked, connection: Response(b"slow down", status, fields))
    good = encrypted_resolver("https", lambda asked, connection: address_reply(asked, NEXT_ADDRESS[0]),
                              address="127.0.0.7")
    asked_of(bad, good)
    for number in range(20):
        check_answers(at_once([f"n{number}.example.net"]), expected=NEXT_ADDRESS)
        time.sleep(0.02)
    assert len(bad.questions) <= 5, len(bad.questions)


def test_a_reset_of_every_stream(asked_of, encrypted_resolver):
    """Refused for ever: bounded attempts, and SERVFAIL in time."""
    def script(asked, connection):
        connection.h2.reset_stream(asked.stream, h2.errors.ErrorCodes.REFUSED_STREAM)
        connection.flush()
    server = encrypted_resolver("https", script)
    asked_of(server)
    begun = time.monotonic()
    assert ask("a.example.net", port=PORT).rcode() == dns.rcode.SERVFAIL
    assert waited_since(begun) < 4 and len(server.questions) <= 6
    server.script = lambda asked, connection: address_reply(asked)
    time.sleep(0.1)
    assert addresses(ask("b.example.net", port=PORT)) in (OURS, [])
