"""The answer of a local resolver to the question reaches the client octet for octet."""

import struct
import time

import dns.message
import dns.rcode
import pytest

from dns_client import Stream, addresses, ask, exchange, labels
from resolvers import reply_to
from waiting import eventually, waited_since

PORT = 2053
DO = 0x8000
NAME = labels("raw.example.net")


def record(kind, data, ttl=300, owner=b"\xc0\x0c", record_class=1):
    return owner + struct.pack("!HHIH", kind, record_class, ttl, len(data)) + data


SIGNATURE = (struct.pack("!HBBIIIH", 1, 15, 3, 300, 0x70000000, 0x60000000, 4711) + labels("example.net") + bytes(range(64)))
# Names that a forwarder could mistake for pointers, lower-case, or compress, if it parsed more than it must.
RECORDS = {
    "unknown, like a pointer": (65280, b"\xc0\x0c\xc0\x0c"),
    "unknown, empty": (65281, b""),
    "unknown, of 1100 octets": (65282, bytes(index & 255 for index in range(1100))),
    "NSEC3": (50, b"\1\1\0\5\4salt\x14" + b"\xc0" * 20 + b"\0\7" + b"\x62\1\x80\x08\0\2\x90"),
    "NSEC": (47, b"\5Upper\7example\3net\0\0\7\x62\1\x80\x08\0\3\x80"),
    "RRSIG": (46, SIGNATURE),
    "DNSKEY": (48, b"\1\1\3\x0f" + bytes(range(32))),
    "SVCB with hints": (64, b"\0\1\3Svc\7Example\3net\0\0\4\0\x08\xc0\x0c\xc0\x0c\xc6\x33\x64\1\xff\0\0\2\xc0\x0c"),
    "NAPTR": (35, b"\0\1\0\2\1u\3sip\4!x!y\2Up\7example\3net\0"),
    "MX, upper case": (15, b"\0\x0a\4Mail\x09ELSEWHERE\3Org\0"),
    "MX, compressed": (15, b"\0\x0a\4Mail\xc0\x10"),
    "SOA, compressed": (6, b"\2ns\xc0\x10\1h\xc0\x10" + bytes(20)),
    "SRV": (33, b"\0\1\0\2\1\xbb\4Host\7example\3net\0"),
    "TXT of binary": (16, b"\4\xc0\x0c\0\xff"),
    "HINFO": (13, b"\1\xc0\1\x0c"),
}


class Raw:
    """A resolver's answer of given records, built by hand."""

    def __init__(self, *sections, flags=0x8180, options=b""):
        self.sections, self.flags, self.options = sections, flags, options

    def __call__(self, asked):
        end = 12 + len(NAME) + 4
        counts = [len(section) for section in self.sections] + [0] * (3 - len(self.sections))
        body = b"".join(b"".join(section) for section in self.sections)
        opt = b"\0\0\x29\4\xd0\0\0\x80\0" + struct.pack("!H", len(self.options)) + self.options
        return (asked.wire[:2] + struct.pack("!5H", self.flags, 1, *counts[:2], counts[2] + 1) + asked.wire[12:end]
                + body + opt)

    @property
    def records(self):
        return b"".join(b"".join(section) for section in self.sections)


@pytest.fixture
def resolver(daemon, scripted_resolver):
    chosen = scripted_resolver(lambda asked: None)
    daemon(None, {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "fallback": {"servers": [chosen.endpoint]}}, port=PORT)
    return chosen


def ask_raw(kind, *, flags=0x0100, edns=DO, tcp=False):
    """The flags, the octets of all records, and the options of the OPT."""
    opt = b"" if edns is None else b"\0" + struct.pack("!HHIH", 41, 4096, edns, 0)
    wire = struct.pack("!6H", 0x1234, flags, 1, 0, 0, bool(opt)) + NAME + struct.pack("!HH", kind, 1) + opt
    if tcp:
        with Stream(port=PORT) as stream:
            stream.send(wire)
            reply = stream.receive_bytes()
    else:
        reply = exchange(wire, port=PORT)
    head = 12 + len(NAME) + 4
    assert reply[:2] == wire[:2] and reply[12:head] == wire[12:head]
    tail = reply[head:]
    if edns is None:
        return struct.unpack("!H", reply[2:4])[0], tail, None
    at = tail.rindex(b"\0\0\x29\4\xd0")
    return struct.unpack("!H", reply[2:4])[0], tail[:at], tail[at + 11:]


@pytest.mark.parametrize("what", RECORDS)
def test_octet_for_octet(resolver, what):
    kind, data = RECORDS[what]
    signature = record(46, struct.pack("!H", kind) + SIGNATURE[2:])
    answer = Raw([record(kind, data), signature], [record(2, b"\2NS\xc0\x10", owner=b"\xc0\x10")],
                 [record(1, b"\xc0\x0c\xc0\x0c", owner=b"\2ns\xc0\x10"), record(65280, b"\xc0\x0c", owner=b"\2ns\xc0\x10")])
    resolver.script = answer
    shown = Raw(*answer.sections[:2])  # the additional section is not passed on
    # A cached answer may have lower TTLs, though usually not within one second.
    for tcp in (False, True):
        for _ in range(2):
            flags, records, _ = ask_raw(kind, tcp=tcp)
            assert flags == 0x8180 and len(records) == len(shown.records)
            assert records == shown.records or without_ttls(records, shown)
    assert len(resolver.questions) == 1, "it was kept"


def without_ttls(records, answer):
    """Whether only TTLs differ, by some seconds."""
    offset = 0
    for section in answer.sections:
        for one in section:
            name = one.index(b"\xc0") + 2 if one[0] != 0xC0 else 2
            ours = records[offset:offset + len(one)]
            old, new = (struct.unpack("!I", octets[name + 4:name + 8])[0] for octets in (one, ours))
            if ours[:name + 4] + ours[name + 8:] != one[:name + 4] + one[name + 8:] or not 0 <= old - new <= 30:
                return False
            offset += len(one)
    return offset == len(records)


def test_extended_errors_and_authenticity_are_passed_on(resolver):
    error = b"\0\x0f\0\x0a\0\x06because!"
    resolver.script = Raw([record(16, b"\2ok")], flags=0x81A0, options=error)
    for edns, flags, expected in ((DO, 0x0100, 0x81A0), (0, 0x0100, 0x8180), (0, 0x0120, 0x81A0), (None, 0x0120, 0x81A0),
                                  (None, 0x0100, 0x8180)):
        got, records, options = ask_raw(16, edns=edns, flags=flags)
        assert got == expected and records[-3:] == b"\2ok"
        assert options == (None if edns is None else error)


def test_all_extended_errors_are_passed_on_and_kept(resolver):
    """All extended errors of RFC 8914 are passed on with their texts, within bounds; other options are not."""
    def error(code, text=b""):
        return struct.pack("!HHH", 15, 2 + len(text), code) + text
    sent = [error(6, b"no signature for rAW.Example.Net."), error(49152), error(23, "\u00fc".encode())]
    shown = [error(6, b"no signature for raw.example.net."), *sent[1:]]
    resolver.script = Raw([record(16, b"\2ok")], options=b"\0\x0a\0\x08" + bytes(8) + b"".join(sent))
    for _ in range(2):
        assert ask_raw(16)[2] == b"".join(shown)
    assert len(resolver.questions) == 1, "it was kept"
    resolver.script = Raw([], flags=0x8182, options=b"".join(sent))
    assert ask_raw(15)[2] == b"".join(shown)
    resolver.script = Raw([record(33, b"\0\1\0\2\1\xbb\0")], options=error(6, b"x" * 5000) + error(7) * 20)
    assert ask_raw(33)[2] == error(6, b"x" * 255) + error(7) * 7, "within bounds"


def test_what_does_not_answer_is_not_kept(resolver):
    """Replies that do not answer (another name's address, a referral, a loop, NXDOMAIN with a record) are not cached."""
    loop = [record(5, b"\xc0\x0c")]
    cases = [Raw([record(1, bytes(4), owner=b"\5other\xc0\x10")]), Raw([], [record(2, b"\2ns\xc0\x10", owner=b"\xc0\x10")]),
             Raw(loop), Raw([record(1, bytes(4))], flags=0x8183), Raw([record(1, bytes(4), record_class=3)])]
    for case in cases:
        resolver.script = case
        for _ in range(2):
            before = len(resolver.questions)
            ask_raw(1)
            assert len(resolver.questions) > before, case.sections  # two questions if the resolver stood still


def test_an_alias_and_its_target_are_kept_together(resolver):
    """The chain is cached as one answer to one question, and answers no question for a later name in it."""
    chain = [record(5, b"\5alias\xc0\x10", ttl=100), record(5, b"\6target\xc0\x10", owner=b"\5alias\xc0\x10"),
             record(1, b"\xc0\0\2\1", owner=b"\6target\xc0\x10")]
    resolver.script = Raw(chain)
    for _ in range(2):
        assert without_ttls(ask_raw(1)[1], Raw(chain))
    assert len(resolver.questions) == 1
    resolver.script = lambda asked: reply_to(asked.message, "60 IN A 192.0.2.9")
    assert addresses(ask("target.example.net", port=PORT)) == ["192.0.2.9"]


# --- Datagrams that are lost or come from elsewhere ---

def test_a_lost_datagram_costs_a_moment(daemon, scripted_resolver):
    """Each name's first datagram is lost, and is sent again long before the time-out of 20 s."""
    seen = set()

    def answer(asked):
        if asked.name in seen:
            return reply_to(asked.message, "60 IN A 192.0.2.1")
        seen.add(asked.name)
        return None
    resolver = scripted_resolver(answer)
    running = daemon(None, {"listen": {"addresses": [f"127.0.0.1:{PORT}"]},
                            "fallback": {"servers": [resolver.endpoint], "timeout": 20000}}, port=PORT)
    for number in range(4):
        begun = time.monotonic()
        reply = ask(f"lost{number}.example.net", port=PORT)
        assert addresses(reply) == ["192.0.2.1"] and waited_since(begun) < 3.5
        first, second, *_ = [asked for asked in resolver.questions if f"lost{number}" in asked.name.to_text()]
        assert first.name == second.name and (first.message.id, first.port) != (second.message.id, second.port)
        assert first.port != second.port
    assert len(seen) == 4
    assert not running.log_lines("fails"), "nobody has failed"


def test_forged_replies_are_counted(daemon, scripted_resolver):
    """Forged replies from another address do not arrive; those with a wrong id, name or length are counted."""
    import signal
    import socket

    def answer(asked):
        true = reply_to(asked.message, "60 IN A 192.0.2.1")
        forged = reply_to(asked.message, "60 IN A 192.0.2.66").to_wire()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as elsewhere:
            elsewhere.bind(("127.0.0.66", 53))
            for _ in range(3):
                elsewhere.sendto(forged, ("127.0.0.1", asked.port))
        other = dns.message.make_query("other.example.net", "A", id=asked.message.id)
        return [bytes([forged[0] ^ 1]) + forged[1:], reply_to(other, "60 IN A 192.0.2.67").to_wire(), forged[:20], true]
    resolver = scripted_resolver(answer)
    running = daemon(None, {"listen": {"addresses": [f"127.0.0.1:{PORT}"]},
                            "fallback": {"servers": [resolver.endpoint]}}, port=PORT)
    for number in range(5):
        assert addresses(ask(f"forged{number}.example.net", port=PORT)) == ["192.0.2.1"]
    running.process.send_signal(signal.SIGUSR1)
    line = eventually(lambda: running.log_lines("no answer ignored"), "the counters are logged")[0]
    assert "15 messages that were no answer ignored (0 ICMP errors, 0 in another case)" in line
