"""The daemon as a server of HTTP/2: its reaction to each frame that RFC 9113 names, sentence by sentence.

All that the RFC permits is accepted. A stream error may be treated as a connection error (§5.4). A connection error is
reported by GOAWAY, which the RFC only recommends (§5.4.1); a case says so where GOAWAY may be left out.
"""

import base64
import contextlib
import time

import dns.message
import pytest

from frames import (
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING, PRIORITIZED, PUSH, RST, SETTINGS, START,
    WINDOW, RawConnection, fields, frame, priority, settings, word)
from resolvers import ScriptedResolver
from test_https_clients import large
from ways import HTTPS, LOCALHOST, MESSAGE, PORT, dial

WHOLE = END_HEADERS | END_STREAM
GOOD = 1001  # the stream of the question that follows each case
MOST = (1 << 31) - 1


def path(message):
    return ":path /dns-query?dns=" + base64.urlsafe_b64encode(message).decode().rstrip("=")


GET = [":method GET", ":scheme https", ":authority dns.example", path(LOCALHOST)]
POST = [":method POST", *GET[1:3], ":path /dns-query", "content-type " + MESSAGE]
HEAD = fields(*GET)


def get(stream=1, flags=WHOLE, *more):
    return frame(HEADERS, flags, stream, fields(*GET, *more))


def post(stream=1, *more):
    return frame(HEADERS, END_HEADERS, stream, fields(*POST, *more))


def data(octets=LOCALHOST, flags=END_STREAM, stream=1):
    return frame(DATA, flags, stream, octets)


# The accepted reactions.
def connection(*codes):
    return {f"connection error {code}" for code in codes}


def stream(*codes):
    return {f"stream error {code}" for code in codes} | connection(*codes)


ANSWERED, IGNORED = {"answer 200"}, {"ignored"}
P, F, C, S, W = "PROTOCOL_ERROR", "FRAME_SIZE_ERROR", "COMPRESSION_ERROR", "STREAM_CLOSED", "FLOW_CONTROL_ERROR"
# §5.1: a frame on a closed stream may be discarded after minimal processing, or is an error.
DISCARDED = IGNORED | stream(S)
# In this state the stream stays half-closed (remote): the client gives no room for the answer.
HALF = settings((4, 0)) + get()
RESET = post() + word(RST, 8, 1)
# Field sections that continue in CONTINUATION.
PART, OPEN = frame(HEADERS, END_STREAM, 1, HEAD[:7]), frame(HEADERS, END_STREAM, 1, HEAD)
END = frame(CONTINUATION, END_HEADERS, 1, HEAD[7:])
# One stream is cancelled, to make room for the question that follows.
MANY = b"".join(map(post, range(3, 205, 2))) + word(RST, 8, 3)
TRAILERS = post() + data(flags=0)

CASES = {
    "4.1 a frame of an unknown type": (frame(0xFE, 0xFF, 0, b"x" * 20) + frame(0xFE, 0, 1, b"y"), IGNORED),
    "4.1 undefined flags of HEADERS": (get(flags=WHOLE | 0xD2), ANSWERED),
    "4.1 undefined flags of DATA": (post() + data(flags=END_STREAM | 0xF6), ANSWERED),
    "4.1 undefined flags of SETTINGS": (settings(flags=0xFE), IGNORED),
    "4.1 undefined flags of WINDOW_UPDATE": (frame(WINDOW, 0xFF, 0, b"\0\0\0\1"), IGNORED),
    "4.1 the reserved bit of a stream's id": (get(1 | 1 << 31), ANSWERED),
    "6.9 the reserved bit of an increment": (word(WINDOW, 1 | 1 << 31), IGNORED),
    "4.2 DATA of the largest size": (post() + data(bytes(16_384), 0) + word(RST, 8, 1), IGNORED),
    "4.2 DATA beyond it": (post() + data(bytes(16_385)), stream(F)),
    "4.2 HEADERS beyond it": (frame(HEADERS, WHOLE, 1, HEAD + fields("x " + "y" * 100) * 170), connection(F)),
    "4.2 SETTINGS beyond it": (settings(*[(4, 65_535)] * 2731), connection(F)),
    "4.3 an index beyond the tables": (frame(HEADERS, WHOLE, 1, HEAD + b"\xff\x80\x01"), connection(C)),
    "4.3 the index 0": (frame(HEADERS, WHOLE, 1, HEAD + b"\x80"), connection(C)),
    "4.3 a field that is cut off": (frame(HEADERS, WHOLE, 1, HEAD + b"\0\x05ab"), connection(C)),
    "4.3 Huffman code with a padding of zeros": (frame(HEADERS, WHOLE, 1, HEAD + b"\0\x01x\x81\x00"), connection(C)),
    "4.3 Huffman code with EOS": (frame(HEADERS, WHOLE, 1, HEAD + b"\0\x01x\x84\xff\xff\xff\xff"), connection(C)),
    "4.3 a table larger than was allowed": (frame(HEADERS, WHOLE, 1, b"\x3f\xe2\x1f" + HEAD), connection(C)),
    "4.3 a change of the table's size behind fields": (frame(HEADERS, WHOLE, 1, HEAD + b"\x20"), connection(C)),
    "4.3 a head in parts": (PART + frame(CONTINUATION, 0, 1) + END, ANSWERED),
    "4.3 PRIORITY in a head": (PART + priority(1), connection(P)),
    "4.3 HEADERS of another stream in a head": (PART + get(3), connection(P)),
    "4.3 DATA in a head": (PART + data(), connection(P)),
    "4.3 PING in a head": (PART + frame(PING, 0, 0, bytes(8)), connection(P)),
    "5.1 idle: DATA": (data(), connection(P)),
    "5.1 idle: RST_STREAM": (word(RST, 8, 1), connection(P)),
    "5.1 idle: WINDOW_UPDATE": (word(WINDOW, 1, 1), connection(P)),
    "5.1 idle: CONTINUATION": (END, connection(P)),
    "5.1 idle: PRIORITY": (priority(1), IGNORED),
    "5.1 half-closed (remote): DATA": (HALF + data(), stream(S)),
    "5.1 half-closed (remote): HEADERS": (HALF + get(), stream(S)),
    "5.1 half-closed (remote): CONTINUATION": (HALF + END, connection(P, S)),
    "5.1 half-closed (remote): WINDOW_UPDATE": (HALF + word(WINDOW, 100, 1), ANSWERED),
    "5.1 half-closed (remote): PRIORITY": (HALF + priority(1), ANSWERED),
    "5.1 half-closed (remote): RST_STREAM": (HALF + word(RST, 8, 1), IGNORED | ANSWERED),
    "5.1.1 an even id": (get(2), connection(P)),
    # The first use of 3 closes 1, so its request may be discarded as well (§5.1), as nghttp2 does: it is not answered.
    "5.1.1 a lower id": (post(3) + get(), connection(P) | DISCARDED),
    "5.1.2 one stream too many": (MANY, stream(P, "REFUSED_STREAM")),
    # RFC 9113 has no rule for it any more (§5.3.2); by RFC 7540 §5.3.1 it was a stream error.
    "5.3 a stream that depends on itself": (priority(1, on=1), IGNORED | stream(P)),
    "5.3 a head that depends on itself": (frame(HEADERS, WHOLE | PRIORITIZED, 1, b"\0\0\0\1\x0f" + HEAD), ANSWERED | stream(P)),
    "5.5 a frame of an unknown type in a head": (PART + frame(0xFE, 0, 1), connection(P)),
    "6.1 DATA on stream 0": (data(stream=0), connection(P)),
    "6.1 DATA with a padding": (post() + data(b"\7" + LOCALHOST + bytes(7), END_STREAM | PADDED), ANSWERED),
    "6.1 DATA with nothing but padding": (post() + data(b"\4" + bytes(4), END_STREAM | PADDED), {"answer 400"}),
    "6.1 DATA with a padding as long as its payload": (post() + data(b"\5" + bytes(4), END_STREAM | PADDED), connection(P)),
    "6.1 DATA without the length of its padding": (post() + data(b"", END_STREAM | PADDED), connection(P, F)),
    "6.2 HEADERS on stream 0": (get(0), connection(P)),
    "6.2 HEADERS with padding and priority": (
        frame(HEADERS, WHOLE | PADDED | PRIORITIZED, 1, b"\3\0\0\0\0\x0f" + HEAD + bytes(3)), ANSWERED),
    "6.2 HEADERS with a padding that is longer": (frame(HEADERS, WHOLE | PADDED, 1, b"\xff" + HEAD), connection(P)),
    "6.2 HEADERS too short for its priority": (frame(HEADERS, WHOLE | PRIORITIZED, 1, bytes(4)), connection(F, P)),
    # nghttp2 ignores all PRIORITY of the right length, since the daemon announces that it uses none (RFC 9218 §2.1): harmless.
    "6.3 PRIORITY on stream 0": (priority(0), connection(P) | IGNORED),
    "6.3 PRIORITY of 4 octets": (post() + priority(1, length=4), stream(F)),
    "6.3 PRIORITY of 6 octets": (post() + priority(1, length=6), stream(F)),
    "6.4 RST_STREAM on stream 0": (word(RST, 8), connection(P)),
    "6.4 RST_STREAM of 3 octets": (post() + frame(RST, 0, 1, bytes(3)), connection(F)),
    "6.4 RST_STREAM of 5 octets": (post() + frame(RST, 0, 1, bytes(5)), connection(F)),
    "6.5 SETTINGS on a stream": (settings(stream=1), connection(P)),
    "6.5 SETTINGS with ACK and a payload": (settings((4, 1), flags=ACK), connection(F)),
    "6.5 SETTINGS of 5 octets": (frame(SETTINGS, 0, 0, bytes(5)), connection(F)),
    "6.5.2 ENABLE_PUSH of 2": (settings((2, 2)), connection(P)),
    "6.5.2 INITIAL_WINDOW_SIZE beyond 2^31-1": (settings((4, 1 << 31)), connection(W)),
    "6.5.2 MAX_FRAME_SIZE below 2^14": (settings((5, 16_383)), connection(P)),
    "6.5.2 MAX_FRAME_SIZE beyond 2^24-1": (settings((5, 1 << 24)), connection(P)),
    "6.5.2 unknown settings": (settings((0xFF, 1), (0xFFFF, 1 << 31)), IGNORED),
    "6.5.3 the last of several values counts": (settings((4, 1 << 30), (4, 0), (4, 65_535)) + get(), ANSWERED),
    "6.6 PUSH_PROMISE of a client": (post() + frame(PUSH, END_HEADERS, 1, b"\0\0\0\2" + HEAD), connection(P)),
    "6.7 PING on a stream": (frame(PING, 0, 1, bytes(8)), connection(P)),
    "6.7 PING of 7 octets": (frame(PING, 0, 0, bytes(7)), connection(F)),
    "6.7 PING of 9 octets": (frame(PING, 0, 0, bytes(9)), connection(F)),
    "6.7 PING with ACK that was not asked": (frame(PING, ACK, 0, bytes(8)), IGNORED),
    "6.8 GOAWAY on a stream": (frame(GOAWAY, 0, 1, bytes(8)), connection(P)),
    "6.9 an increment of 0": (word(WINDOW, 0), connection(P)),
    "6.9 an increment of 0 on a stream": (post() + word(WINDOW, 0, 1), stream(P)),
    "6.9 WINDOW_UPDATE of 3 octets": (frame(WINDOW, 0, 0, b"\0\0\1"), connection(F)),
    "6.9 WINDOW_UPDATE of 5 octets on a stream": (post() + frame(WINDOW, 0, 1, b"\0\0\0\0\1"), connection(F)),
    "6.9.1 a window beyond 2^31-1": (word(WINDOW, MOST), connection(W)),
    "6.9.1 a stream's window beyond 2^31-1": (post() + word(WINDOW, MOST, 1), stream(W)),
    # nghttp2 ends the stream alone, and sends nothing on it, which is harmless: it should be the connection.
    "6.9.2 a stream's window beyond 2^31-1 by SETTINGS": (post() + word(WINDOW, 1, 1) + settings((4, MOST)), stream(W)),
    "6.10 CONTINUATION on stream 0": (OPEN + frame(CONTINUATION, END_HEADERS), connection(P)),
    "6.10 CONTINUATION on another stream": (OPEN + frame(CONTINUATION, END_HEADERS, 3), connection(P)),
    "6.10 CONTINUATION behind END_HEADERS": (post() + END, connection(P)),
    "6.10 CONTINUATION behind CONTINUATION with END_HEADERS": (
        OPEN + frame(CONTINUATION, END_HEADERS, 1) * 2, connection(P)),
    "8.1 trailers": (TRAILERS + frame(HEADERS, WHOLE, 1, fields("x y")), ANSWERED),
    "8.1 trailers without END_STREAM": (TRAILERS + frame(HEADERS, END_HEADERS, 1, fields("x y")), stream(P)),
    "8.1 trailers with a pseudo-header": (TRAILERS + frame(HEADERS, WHOLE, 1, fields(":path /")), stream(P)),
    "8.1.1 a content-length that is right": (post(1, f"content-length {len(LOCALHOST)}") + data(), ANSWERED),
    "8.1.1 a content-length that is too large": (post(1, f"content-length {len(LOCALHOST) + 1}") + data(), stream(P)),
    "8.1.1 a content-length that is too small": (post(1, f"content-length {len(LOCALHOST) - 1}") + data(), stream(P)),
    "8.1.1 a content-length that several DATA exceed": (post(1, "content-length 3") + data(b"ab", 0) + data(b"cd"), stream(P)),
    "8.1.1 a content-length and no DATA": (get(1, WHOLE, "content-length 1"), stream(P)),
    "8.2.2 te: trailers": (get(1, WHOLE, "te trailers"), ANSWERED),
}

# A lower id may as well be an error of its own (§5.1.1).
CLOSED = {
    "DATA": (data(), DISCARDED), "HEADERS": (get(), DISCARDED | connection(P)), "CONTINUATION": (END, connection(P, S)),
    "RST_STREAM": (word(RST, 8, 1), IGNORED | connection(S)), "WINDOW_UPDATE": (word(WINDOW, 1, 1), IGNORED | connection(S)),
    "PRIORITY": (priority(1), IGNORED)}
CASES |= {f"5.1 closed by RST_STREAM: {kind}": (RESET + octets, expected) for kind, (octets, expected) in CLOSED.items()}
MALFORMED = {
    "8.1.1 two values of content-length": [*GET, "content-length 0", "content-length 1"],
    "8.1.1 a content-length that is no number": [*GET, "content-length -1"],
    "8.2.1 a name in upper case": [*GET, "X-y z"],
    "8.2.1 a name with a control character": [*GET, "x\x01 y"],
    "8.2.1 a name beyond ASCII": [*GET, "x\xfc y"],
    "8.2.1 a name with a colon": [*GET, "x:y z"],
    "8.2.1 an empty name": [*GET, " y"],
    "8.2.1 a value with CR LF": [*GET, "x y\r\nz: 1"],
    "8.2.1 a value with NUL": [*GET, "x y\0z"],
    "8.2.1 a value with a space before it": [*GET, "x  y"],
    "8.2.1 a value with a space behind it": [*GET, "x y "],
    **{f"8.2.2 {line}": [*GET, line] for line in (
        "connection close", "keep-alive 1", "proxy-connection close", "transfer-encoding chunked", "upgrade h2c", "te gzip")},
    "8.3 a pseudo-header behind a field": [*GET[:3], "x y", GET[3]],
    "8.3 an unknown pseudo-header": [*GET, ":x y"],
    "8.3 a pseudo-header of responses": [*GET, ":status 200"],
    **{f"8.3 {line.split()[0]} twice": [*GET, line] for line in GET},
    **{f"8.3.1 no {line.split()[0]}": [other for other in GET if other != line] for line in GET},
    "8.3.1 an empty :path": [*GET[:3], ":path "],
    "8.3.1 a :path that does not begin with a slash": [*GET[:3], GET[3].replace("/", "", 1)]}
CASES |= {name: (frame(HEADERS, WHOLE, 1, fields(*lines)), stream(P)) for name, lines in MALFORMED.items()}


def reaction(connection):
    return connection.reaction(settings((4, 65_535)) + get(GOOD), GOOD)


@pytest.fixture(scope="module")
def running(module_daemon, authority):
    """One daemon for all tests."""
    resolver, file = ScriptedResolver(large), str(authority.server_file(names=["dns.example"]))
    listen = {"addresses": [f"127.0.0.1:{PORT}"], "https": [f"127.0.0.1:{HTTPS}"], "certificateFile": file, "keyFile": file}
    yield module_daemon(None, {"listen": listen, "fallback": {"servers": [resolver.endpoint]}}, port=PORT)
    resolver.stop()


@pytest.fixture
def begin(running, trusting):  # noqa: F811
    """Begins connections with these octets; at the end, the daemon must still answer on another connection."""
    with contextlib.ExitStack() as sockets:
        yield lambda octets: RawConnection(sockets.enter_context(dial(trusting(), ["h2"])), octets)
    with dial(trusting(), ["h2"]) as another:
        assert reaction(RawConnection(another)) == "ignored"


@pytest.mark.parametrize("octets, expected", CASES.values(), ids=[
    f"{name}: {' or '.join(sorted(expected))}" for name, (_, expected) in CASES.items()])
def test_a_frame(begin, octets, expected):
    assert reaction(begin(START + settings() + octets)) in expected


# GOAWAY may be left out where the client does not speak HTTP/2 at all (§3.4), as nghttp2 does.
@pytest.mark.parametrize("octets, expected", [
    (START.replace(b"SM", b"MS") + settings(), {"closed"}), (b"GET / HTTP/1.1\r\n\r\n" + bytes(20), {"closed"}),
    (START + frame(PING, 0, 0, bytes(8)), connection(P)), (START + get(), connection(P)),
    (START + settings(flags=ACK), connection(P))],
    ids=["another", "HTTP/1.1", "PING for SETTINGS", "HEADERS for SETTINGS", "ACK for SETTINGS"])
def test_3_4_no_preface(begin, octets, expected):
    assert reaction(begin(octets)) in expected | {"closed"}


def test_3_4_the_preface(begin):
    """The preface may come in any pieces; the daemon sends SETTINGS, and acknowledges each of the client's (§6.5.3)."""
    connection = begin(b"")
    for octet in START + settings((3, 10)):
        connection.send(bytes([octet]))
    connection.send(settings((3, 11)))
    assert connection.hear()[:3] == (SETTINGS, 0, 0)
    for _ in range(2):
        assert connection.until(SETTINGS, flags=ACK) == b""
    assert reaction(connection) == "ignored"


def test_6_7_a_ping_has_its_octets_back(begin):
    """A PING is echoed; undefined flags and the reserved bit of the stream's id are ignored (§4.1)."""
    connection = begin(START + settings((4, 0)) + get() + frame(PING, 0, 0, b"\0octets\xff") + frame(
        PING, 0xFE, 1 << 31, b"reserved"))
    assert connection.until(PING, flags=ACK) == b"\0octets\xff"
    assert connection.until(PING, flags=ACK) == b"reserved"


@pytest.mark.parametrize("octets, expected", CLOSED.values(), ids=CLOSED)
def test_5_1_closed_by_an_answer(begin, octets, expected):
    connection = begin(START + settings() + get())
    connection.until(DATA, 1, END_STREAM)
    connection.send(octets)
    assert reaction(connection) in expected


def test_6_9_a_window_of_one_octet(begin):
    connection = begin(START + settings((4, 1)) + get())
    connection.until(HEADERS, 1)
    assert connection.came() == 1
    for room in (1, 1, 7):
        connection.send(word(WINDOW, room, 1))
        assert connection.came() == room
    assert reaction(connection) == "ignored"


def test_6_9_2_a_window_below_zero(begin):
    """SETTINGS change a stream's window by the difference, even below zero."""
    connection = begin(START + settings((4, 10)) + get())
    connection.until(HEADERS, 1)
    assert connection.came() == 10
    for octets, expected in ((settings((4, 0)) + word(WINDOW, 10, 1), 0), (word(WINDOW, 5, 1), 5), (settings((4, 2)), 2)):
        connection.send(octets)
        assert connection.came() == expected
    assert reaction(connection) == "ignored"


def test_6_9_1_the_window_of_the_connection(begin):
    """The window of the connection applies to all streams together, and SETTINGS do not change it (§6.9.2)."""
    big = frame(HEADERS, WHOLE, 1, fields(*GET[:3], path(dns.message.make_query("big.example.com", "TXT").to_wire())))
    connection = begin(START + settings((4, 1 << 20)) + big + big.replace(b"\0\0\0\1", b"\0\0\0\3", 1))
    came = 0
    while came < 65_535:
        time.sleep(0.01)
        came += connection.came()
    assert came == 65_535 and connection.came() == 0
    for octets, expected in ((word(WINDOW, 5), 5), (settings((4, 1 << 24)), 0)):
        connection.send(octets)
        assert connection.came() == expected
    connection.send(word(WINDOW, 1 << 20))
    assert reaction(connection) == "ignored"
