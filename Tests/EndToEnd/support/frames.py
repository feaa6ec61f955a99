"""HTTP/2 by hand: frames that no library would write (RFC 9113)."""

import struct

DATA, HEADERS, RST, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS = 1, 4
STATUS_200 = b"\x88"


def frame(kind, flags=0, stream=0, payload=b""):
    return len(payload).to_bytes(3) + bytes([kind, flags]) + struct.pack("!I", stream) + payload
