"""Servers of DNS over HTTPS with a good certificate and bad frames: the connection may die, the daemon does not."""

import time

import dns.rcode
import h2.errors
import pytest

from asking import NEXT_ADDRESS, OURS, PORT, at_once, check_answers
from dns_client import addresses, ask
from encrypted import MEDIA_TYPE, Response, address_reply
from frames import CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, STATUS_200, frame
from waiting import waited_since



# The octets sent instead of an answer on a stream. HTTPTests/HTTP2FaultTests test every rule that can be broken.
FRAMES = {
    "garbage": lambda stream: b"\xff" * 200,
    "DATA without HEADERS": lambda stream: frame(DATA, END_STREAM, stream, b"x"),
    "bad Huffman": lambda stream: frame(HEADERS, END_HEADERS, stream, b"\x40\x81\xff\x81\xff"),
    "10,000 CONTINUATION": lambda stream: frame(HEADERS, 0, stream, STATUS_200) + frame(
        CONTINUATION, 0, stream, b"\x00\x01a\x01b") * 10000,
    "an unknown frame, then nothing": lambda stream: frame(99, 255, stream, b"x" * 100),
    "a window that is overrun": lambda stream: frame(HEADERS, END_HEADERS, stream, STATUS_200) + frame(
        DATA, 0, stream, bytes(16384)) * 1000,
}


@pytest.mark.parametrize("case", FRAMES)
def test_frames_that_are_wrong(asked_of, encrypted_resolver, case):
    """Clients are answered by the next server, and memory does not grow."""
    bad = encrypted_resolver("https", lambda asked, connection: connection.write(FRAMES[case](asked.stream)))
    good = encrypted_resolver("https", lambda asked, connection: address_reply(asked, NEXT_ADDRESS[0]),
                              address="127.0.0.7")
    running = asked_of(bad, good)
    begun = running.held_kilobytes("RssAnon")
    for number in range(3):
        check_answers(at_once([f"n{number}.example.net"]), expected=NEXT_ADDRESS)
    assert running.process.poll() is None and running.held_kilobytes("RssAnon") < begun + 16384


@pytest.mark.parametrize("kind", [PING, DATA], ids=["PING", "empty DATA"])
def test_a_flood_of_frames(asked_of, encrypted_resolver, kind):
    """With 50,000 frames in each answer, memory stays bounded, and clients are answered by the next server."""
    def script(asked, connection):
        connection.write(frame(HEADERS, END_HEADERS, asked.stream, STATUS_200))
        connection.write((frame(PING, 0, 0, bytes(8)) if kind == PING else frame(DATA, 0, asked.stream)) * 50000)
    bad = encrypted_resolver("https", script)
    good = encrypted_resolver("https", lambda asked, connection: address_reply(asked, NEXT_ADDRESS[0]),
                              address="127.0.0.7")
    running = asked_of(bad, good)
    begun = running.held_kilobytes("RssAnon")
    for number in range(3):
        check_answers(at_once([f"n{number}.example.net"]), expected=NEXT_ADDRESS)
    assert running.process.poll() is None and running.held_kilobytes("RssAnon") < begun + 16384


@pytest.mark.parametrize(("count", "expected"), [(20, OURS), (1000, NEXT_ADDRESS)])
def test_fields_beside_the_answer(asked_of, encrypted_resolver, count, expected):
    """Extra fields, as many proxies add, are ignored; with a hundred kilobytes of fields, the next server is asked."""
    fields = [("content-type", MEDIA_TYPE), *((f"x-{number}", "y" * 100) for number in range(count))]
    bad = encrypted_resolver("https", lambda asked, connection: Response(address_reply(asked), fields=fields))
    good = encrypted_resolver("https", lambda asked, connection: address_reply(asked, NEXT_ADDRESS[0]),
                              address="127.0.0.7")
    asked_of(bad, good)
    for number in range(3):
        check_answers(at_once([f"n{number}.example.net"]), expected=expected)


def test_a_reset_of_every_stream(asked_of, encrypted_resolver):
    """When every stream is refused, attempts are bounded and the client gets SERVFAIL in time."""
    def script(asked, connection):
        connection.h2.reset_stream(asked.stream, h2.errors.ErrorCodes.REFUSED_STREAM)
        connection.flush()
    server = encrypted_resolver("https", script)
    asked_of(server)
    begun = time.monotonic()
    assert ask("a.example.net", port=PORT).rcode() == dns.rcode.SERVFAIL
    assert waited_since(begun) < 3.5 and len(server.questions) <= 6
    server.script = lambda asked, connection: address_reply(asked)
    time.sleep(0.1)
    assert addresses(ask("b.example.net", port=PORT)) in (OURS, [])
