"""Questions as octets, sound and malformed."""

import struct

import dns.rdatatype

from dns_client import labels


def wire(name, kind="A", *, number=0x1234, flags=0x100, more=b"", counts=(1, 0, 0, 0), record_class=1):
    """A question as octets; the arguments can make it malformed."""
    kind = dns.rdatatype.from_text(kind) if isinstance(kind, str) else kind
    return (struct.pack("!6H", number, flags, *counts) + labels(name) + struct.pack("!2H", kind, record_class) + more)


def opt(options=b"", *, length=None, owner=b"\0", version=0, payload=1232, flags=0):
    length = len(options) if length is None else length
    return owner + struct.pack("!HHBBHH", 41, payload, 0, version, flags, length) + options


MALFORMED = {
    "an option past its record": lambda name: wire(name, more=opt(struct.pack("!HH", 10, 50) + b"12345678"),
                                                   counts=(1, 0, 0, 1)),
    "half an option": lambda name: wire(name, more=opt(b"\0\x0a\0"), counts=(1, 0, 0, 1)),
    "an OPT that is longer than the message": lambda name: wire(name, more=opt(b"", length=65535), counts=(1, 0, 0, 1)),
    "an OPT of another name": lambda name: wire(name, more=opt(owner=b"\1a\0"), counts=(1, 0, 0, 1)),
    "two OPT": lambda name: wire(name, more=opt() + opt(), counts=(1, 0, 0, 2)),
    "an OPT in the answer section": lambda name: wire(name, more=opt(), counts=(1, 1, 0, 0)),
    "an OPT in the authority section": lambda name: wire(name, more=opt(), counts=(1, 0, 1, 0)),
    "an OPT that is announced and missing": lambda name: wire(name, counts=(1, 0, 0, 1)),
    "version 19": lambda name: wire(name, more=opt(version=19), counts=(1, 0, 0, 1)),
    "version 255": lambda name: wire(name, more=opt(version=255), counts=(1, 0, 0, 1)),
    "a cookie of 7 octets": lambda name: wire(name, more=opt(struct.pack("!HH", 10, 7) + b"1234567"),
                                              counts=(1, 0, 0, 1)),
    "a cookie of 41 octets": lambda name: wire(name, more=opt(struct.pack("!HH", 10, 41) + bytes(41)),
                                               counts=(1, 0, 0, 1)),
    "octets behind the end": lambda name: wire(name) + b"\0",
    "no question": lambda name: wire(name, counts=(0, 0, 0, 0)),
    "two questions": lambda name: wire(name, more=labels(name) + b"\0\1\0\1", counts=(2, 0, 0, 0)),
    "65,535 questions": lambda name: wire(name, counts=(65535, 0, 0, 0)),
    "an answer": lambda name: wire(name, more=b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\1\2\3\4", counts=(1, 1, 0, 0)),
    "half a question": lambda name: wire(name)[:-2],
    "a name that points at itself": lambda name: wire("a.example")[:12] + b"\xc0\x0c\0\1\0\1",
    "a name that points behind the end": lambda name: wire("a.example")[:12] + b"\xff\xfe\0\1\0\1",
    "200 pointers": lambda name: wire("a.example")[:12] + b"".join(
        struct.pack("!H", 0xC000 | 14 + 2 * step) for step in range(200)) + b"\0\0\1\0\1",
    "a label of type 01": lambda name: wire("a.example")[:12] + b"\x41a\0\0\1\0\1",
    "a label of type 10": lambda name: wire("a.example")[:12] + b"\x81a\0\0\1\0\1",
    "a name without an end": lambda name: wire("a.example")[:12] + b"\x3f" + b"a" * 63,
    "a name of 256 octets": lambda name: wire("a.example")[:12] + (b"\x3f" + b"a" * 63) * 4 + b"\0\0\1\0\1",
}


def operations():
    name = "equal.example.net"
    for code in range(1, 16):
        yield wire(name, flags=0x100 | code << 11)
    for kind in (251, 252, 253, 254, 255, 249, 250, 41, 128, 0, 65535):
        yield wire(name, kind)
    for record_class in (0, 3, 4, 254, 255):
        yield wire(name, record_class=record_class)
    for make in MALFORMED.values():
        yield make(name)
    yield wire(name, flags=0x2100 | 0x400)  # NOTIFY with AA
    yield wire(name, 6, flags=0x2900, more=b"\xc0\x0c\0\1\0\xff\0\0\0\0\0\0", counts=(1, 1, 0, 0))  # UPDATE
