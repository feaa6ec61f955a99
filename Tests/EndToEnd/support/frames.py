"""HTTP/2 by hand: frames that no library would write (RFC 9113)."""

import contextlib
import struct

import h2.errors
import hpack

DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITIZED = 1, 1, 4, 8, 32
STATUS_200 = b"\x88"
START = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags=0, stream=0, payload=b""):
    return len(payload).to_bytes(3) + bytes([kind, flags]) + struct.pack("!I", stream) + payload


def fields(*lines):
    """Literals without Huffman code that leave the table alone (RFC 7541 §6.2.2)."""
    texts = [text.encode("latin-1") for line in lines for text in line.partition(" ")[::2]]
    return b"".join(b"\0" * (place % 2 == 0) + bytes([len(text)]) + text for place, text in enumerate(texts))


def settings(*pairs, flags=0, stream=0):
    return frame(SETTINGS, flags, stream, b"".join(struct.pack("!HI", *pair) for pair in pairs))


def word(kind, number, stream=0):
    """A frame with one number: RST_STREAM, WINDOW_UPDATE."""
    return frame(kind, 0, stream, struct.pack("!I", number))


def priority(stream, on=0, length=5):
    return frame(PRIORITY, 0, stream, (struct.pack("!I", on) + bytes([15, 0]))[:length])


class RawConnection:
    """A connection on which frames are sent and heard as they are."""

    def __init__(self, socket, first=START + settings()):
        self.socket, self.octets, self.decoder = socket, b"", hpack.Decoder()
        self.send(first)

    def send(self, octets):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(octets)

    def has(self, length):
        while len(self.octets) < length:
            try:
                piece = self.socket.recv(65_536)
            except ConnectionResetError:
                piece = b""
            if not piece:
                return False
            self.octets += piece
        return True

    def hear(self):
        """The next frame: type, flags, stream, and payload or fields; None once the peer has closed."""
        if not self.has(9) or not self.has(length := 9 + int.from_bytes(self.octets[:3])):
            return None
        heard, self.octets = self.octets[:length], self.octets[length:]
        payload = dict(self.decoder.decode(heard[9:])) if heard[3] == HEADERS else heard[9:]
        return heard[3], heard[4], int.from_bytes(heard[5:9]), payload

    def until(self, kind, stream=0, flags=0):
        """The payload of the next frame of a type and stream; other frames before it are skipped."""
        while heard := self.hear():
            if (heard[0], heard[2]) == (kind, stream) and heard[1] & flags == flags:
                return heard[3]
            assert heard[0] not in (GOAWAY, RST), heard
        raise AssertionError("the peer has closed")

    def came(self):
        """The octets of DATA that arrive now. The answer to a first PING may overtake them, that to a second does not."""
        count = 0
        for _ in range(2):
            self.send(frame(PING, 0, 0, bytes(8)))
            while (heard := self.hear())[0] != PING:
                count += len(heard[3]) if heard[0] == DATA else 0
        return count

    def reaction(self, good, last):
        """Sends a good request on stream `last`; returns the peer's reaction on the only other stream until the answer."""
        self.send(good)
        became = "ignored"
        while heard := self.hear():
            kind, flags, on, payload = heard
            if kind == GOAWAY:
                assert not self.hear(), "the connection is not closed (§5.4.1)"
                return f"connection error {named(payload[4:8])}"
            if kind == RST and on != last:
                became = f"stream error {named(payload)}"
            if kind == HEADERS and on != last and became == "ignored":
                became = f"answer {payload[':status']}"
            if on == last and kind == HEADERS:
                assert payload[":status"] == "200"
            if on == last and flags & END_STREAM:
                return became
        return "closed"


def named(code):
    return h2.errors.ErrorCodes(int.from_bytes(code)).name
