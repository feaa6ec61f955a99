"""Thousands of questions to servers of DNS over TLS and HTTPS that lose some: the daemon retains nothing of them."""

import itertools
import struct

import pytest

from asking import OURS, PORT
from comparison import ask_all, name_end
from control import metrics
from dns_client import addresses, ask, labels
from encrypted import MEDIA_TYPE, Connection, address_reply
from frames import DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST, SETTINGS, STATUS_200, WINDOW, frame
from standard import measures_the_build
from waiting import eventually

ACK, CANCEL = 1, 8
HEAD = STATUS_200 + b"\x0f\x10" + bytes([len(MEDIA_TYPE)]) + MEDIA_TYPE.encode()  # content-type has index 31 (RFC 7541)
ADDRESS = struct.pack("!HHHIH4B", 0xC00C, 1, 1, 60, 4, 192, 0, 2, 7)


class LosesStreams(Connection):
    """HTTP/2 frames written by hand, as a library would be the slowest part; each hundredth stream is reset."""

    async def serve(self):
        await self.reader.readexactly(24)
        self.write(frame(SETTINGS))
        while True:
            head = await self.reader.readexactly(9)
            payload = await self.reader.readexactly(int.from_bytes(head[:3]))
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:])
            if kind in (SETTINGS, PING) and not flags & ACK:
                self.write(frame(kind, ACK, 0, payload if kind == PING else b""))
            elif kind == DATA:
                assert flags == END_STREAM, "a question is one frame"
                self.count += 1
                self.write(frame(WINDOW, 0, 0, struct.pack("!I", len(payload))) + self._answered(stream, payload))

    def _answered(self, stream, query):
        if self.count % 100 == 0:
            return frame(RST, 0, stream, struct.pack("!I", CANCEL))
        question = query[12:name_end(query, 12) + 4]
        message = struct.pack("!6H", 0, 0x8180, 1, 1, 0, 0) + question + ADDRESS
        return frame(HEADERS, END_HEADERS, stream, HEAD) + frame(DATA, END_STREAM, stream, message)


def loses_connections(asked, connection):
    if connection.count % 100 == 99:
        return connection.reset()
    return None if connection.count % 150 == 149 else address_reply(asked)


@pytest.mark.parametrize(("protocol", "count"), [("tls", 3000), ("https", 10_000)])
def test_nothing_piles_up(asked_of, encrypted_resolver, protocol, count):
    """After reset connections and streams, and missing answers, lookups, sockets and memory are as before."""
    server = encrypted_resolver(protocol, loses_connections)
    if protocol == "https":
        server.kind = LosesStreams
    running = asked_of(server, timeout=1500 if protocol == "tls" else 10_000)
    numbers = itertools.count()

    def many(count):
        questions = [struct.pack("!5H", 0x100, 1, 0, 0, 0) + labels(f"f{next(numbers)}.example.net") + b"\0\1\0\1"
                     for _ in range(count)]
        return sum(reply[3] & 15 == 0 for reply in ask_all(questions, "127.0.0.1", PORT))
    many(1000)
    descriptors, memory = running.descriptors(), running.held_kilobytes("RssAnon")
    good = many(count)
    assert good == count if protocol == "https" else good > count * 0.9, good
    eventually(lambda: metrics()["httpdnsd_lookups_in_flight", ()] == 0, "nothing is under way")
    eventually(lambda: running.descriptors() <= descriptors + 2, "descriptors as before")
    assert running.held_kilobytes("RssAnon") < memory + 4096, (memory, running.held_kilobytes("RssAnon"))


@measures_the_build
def test_what_one_idle_connection_holds(asked_of, encrypted_resolver):
    """A daemon with one HTTPS server holds at most 6 MB outside of files; the kernel can reclaim pages of files at any time."""
    running = asked_of(encrypted_resolver("https"))
    for number in range(10):
        assert addresses(ask(f"n{number}.example.net", port=PORT)) == OURS
    assert running.resident_kilobytes("RssAnon") <= 6 * 1024
    print({kind: running.resident_kilobytes(kind) for kind in ("VmRSS", "RssAnon")})
