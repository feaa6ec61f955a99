"""DNS over HTTPS (RFC 8484) for the daemon's clients: answers as over TCP, by HTTP/2 and HTTP/1.1, and hostile clients."""

import base64
import contextlib
import email.utils
import re
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import dns.flags
import dns.message
import dns.name
import dns.rcode
import h2.errors
import hyperframe.frame as frames
import pytest

from control import METRICS, fetch, metrics
from dns_client import Stream, addresses, ask
from frames import DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, START, RawConnection, fields, frame, settings
from malformed import operations
from resolvers import reply_to
from test_tls_clients import BLOCK, check_sockets_of_systemd, padded
from waiting import eventually
from ways import ELSEWHERE, HTTPS, LOCALHOST, MESSAGE, PORT, Over1, Over2, dial, get, post

PROXY = "127.0.0.2"
RAW_GET = fields(":method GET", ":scheme https", ":authority dns.example")


@pytest.fixture
def doors(serving):
    """Starts a daemon that serves TCP and HTTPS."""
    def start(answer=None, listen=None, **settings):
        https = {"tls": [], "https": [f"127.0.0.1:{HTTPS}", f"{ELSEWHERE}:{HTTPS}"]}
        return serving(answer, https | (listen or {}), **settings)
    return start


VERSIONS = {"2": Over2, "1.1": Over1}


@pytest.fixture(params=VERSIONS)
def over(request, trusting):
    return lambda **options: VERSIONS[request.param](trusting(), **options)


def large(asked):
    """200 records of 250 octets."""
    if asked.transport == "tcp":
        return reply_to(asked.message, *[f'60 IN TXT "{number}{"x" * 250}"' for number in range(200)]).to_wire(max_size=65_535)
    reply = reply_to(asked.message)
    reply.flags |= dns.flags.TC
    return reply


def is_well(context):
    with Over2(context) as connection:
        return post(connection, LOCALHOST)[0] == 200


def listens(address):
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection(address, timeout=20):
        return True


@pytest.mark.parametrize("way", ["+https", "+https-get"])
@pytest.mark.parametrize("name", ["www.example.com", "localhost"])
def test_kdig_is_answered(doors, authority, way, name):
    doors()
    shown = subprocess.run(["kdig", "@127.0.0.1", "-p", str(HTTPS), way, f"+tls-ca={authority.file}",
                            "+tls-hostname=dns.example", "+short", name, "A"], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0 and shown.stdout.strip() == {"localhost": "127.0.0.1"}.get(name, "192.0.2.1"), shown


def test_curl_finds_a_web_server_through_it(doors, authority):
    """curl looks its name up through the daemon, by the HTTP version that curl prefers."""
    doors(lambda asked: reply_to(asked.message, *([f"60 IN A {METRICS[0]}"] if asked.kind == "A" else [])))
    shown = subprocess.run(
        ["curl", "-sv", "--cacert", str(authority.file), "--resolve", f"dns.example:{HTTPS}:127.0.0.1", "--doh-url",
         f"https://dns.example:{HTTPS}/dns-query", f"http://localhost.example.com:{METRICS[1]}/metrics", "-H", "Host: localhost"],
        capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0 and "httpdnsd_" in shown.stdout, shown.stderr


def test_the_same_as_over_tcp(doors, over):
    """Every operation, type and fault gets the octets that TCP gives, or 400 where TCP gives none."""
    doors(lambda asked: reply_to(asked.message, rcode=dns.rcode.NXDOMAIN))
    ordinary = [dns.message.make_query(name, kind, **options).to_wire() for name, kind, options in (
        ("localhost", "A", {}), ("www.example.com", "A", {"use_edns": 0}), ("www.example.com", "HTTPS", {"want_dnssec": True}),
        ("example.com", "ANY", {}), ("1.0.0.127.in-addr.arpa", "PTR", {}), ("version.bind", "TXT", {"rdclass": "CH"}))]
    with over() as connection, Stream(port=PORT) as plain:
        for message in [*ordinary, b"short", b"\0\1\x81" + bytes(9), *operations()]:
            if len(message) < 12 or message[2] & 0x80:
                assert post(connection, message)[0] == get(connection, message)[0] == 400, message
                continue
            plain.send(message)
            expected = plain.receive_bytes()
            for way in (post, get):
                status, fields, body = way(connection, message)
                assert (status, fields["content-type"], body) == (200, MESSAGE, expected), message


def test_how_long_an_answer_may_be_kept(doors, over):
    """max-age is the least TTL of the answer, and 0 for a failure."""
    answers = {dns.name.from_text("a.example.com"): ["60 IN A 192.0.2.1", "20 IN A 192.0.2.2"],
               dns.name.from_text("b.example.com"): []}
    doors(lambda asked: reply_to(asked.message, *answers[asked.name]) if asked.name in answers else
          reply_to(asked.message, rcode=dns.rcode.SERVFAIL))
    with over() as connection:
        for name, ages in (("a.example.com", range(18, 21)), ("failing.example.com", [0])):
            status, fields, _ = post(connection, dns.message.make_query(name, "A").to_wire())
            said = email.utils.parsedate_to_datetime(fields["date"]).timestamp()
            assert time.time() - 5 < said <= time.time(), "RFC 9110 §6.6.1"
            assert status == 200 and fields["cache-control"] in [f"max-age={age}" for age in ages], fields
        status, fields, body = post(connection, dns.message.make_query("b.example.com", "A").to_wire())
        ttl = min((record.ttl for record in dns.message.from_wire(body).authority), default=0)
        assert fields["cache-control"] == f"max-age={ttl}"


def test_what_is_padded_comes_back_padded(doors, over):
    doors()
    with over() as connection:
        for name in ("localhost", "www.example.com", "www.example.com"):
            assert len(post(connection, padded(name).to_wire())[2]) == BLOCK
            assert len(post(connection, dns.message.make_query(name, "A", use_edns=0).to_wire())[2]) < BLOCK


def test_requests_that_are_none(doors, over):
    running = doors()
    question = base64.urlsafe_b64encode(LOCALHOST).decode().rstrip("=")
    for status, *request in (
        (404, "GET", "/"), (404, "POST", "/", [("content-type", MESSAGE)], LOCALHOST), (404, "GET", "/metrics"),
        (405, "HEAD", f"/dns-query?dns={question}"), (405, "PUT", "/dns-query", [("content-type", MESSAGE)], LOCALHOST),
        (405, "OPTIONS", "/dns-query", [("origin", "https://evil.example")]), (400, "GET", "/dns-query"),
        (400, "GET", f"/dns-query?dns={question}="), (400, "GET", "/dns-query?dns=*"),
        (415, "POST", "/dns-query", [], LOCALHOST), (415, "POST", "/dns-query", [("content-type", "text/plain")], LOCALHOST),
        (400, "POST", "/dns-query", [("content-type", MESSAGE)]),
        (413, "POST", "/dns-query", [("content-type", MESSAGE)], bytes(65_536)),
    ):
        with over() as connection:
            got = connection.request(*request)
            assert (got[0], got[2]) == (status, b""), (request, got)
            assert got[1].get("allow") == ("GET, POST" if status == 405 else None)
            assert not any("access-control" in name for name in got[1])
            if status != 413:  # after 413 the connection may be closed
                assert post(connection, LOCALHOST)[0] == 200
    assert running.resolver.questions == []


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("offered, chosen", [((), None), (("h2",), "h2"), (("http/1.1", "h2"), "h2"), (("http/1.1",), "http/1.1")])
def test_versions_and_protocols(doors, trusting, version, offered, chosen):
    """A client that offers HTTP/2 gets it, whatever its preference; a client that offers nothing gets HTTP/1.1."""
    doors()
    with dial(trusting(version), offered) if offered else trusting(version).wrap_socket(
            socket.create_connection(("127.0.0.1", HTTPS), timeout=20), server_hostname="dns.example") as client:
        assert client.selected_alpn_protocol() == chosen
        if chosen != "h2":
            client.sendall(b"GET /dns-query?dns=" + base64.urlsafe_b64encode(LOCALHOST).rstrip(b"=")
                           + b" HTTP/1.1\r\nHost: dns.example\r\n\r\n")
            assert client.recv(4096).startswith(b"HTTP/1.1 200 OK\r\n")


def test_who_offers_other_protocols_is_not_served(doors, trusting):
    doors()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        dial(trusting(), ["dot"]).close()


def test_a_hundred_at_once_and_out_of_order(doors, trusting):
    """A slow name delays no other."""
    doors(lambda asked: None if asked.name.labels[0] == b"slow" else reply_to(asked.message, "60 IN A 192.0.2.1"),
          fallback={"timeout": 60000})
    with Over2(trusting()) as connection:
        slow = connection.ask(dns.message.make_query("slow.example.com", "A").to_wire())
        streams = [connection.ask(dns.message.make_query(f"n{number}.example.com", "A").to_wire()) for number in range(99)]
        for stream in reversed(streams):
            assert addresses(dns.message.from_wire(connection.answer(stream)[2])) == ["192.0.2.1"]
        assert len(connection.answers[slow]) == 3


def test_an_answer_larger_than_the_window_comes_in_parts(doors, trusting):
    doors(large)
    with Over2(trusting(), window=100) as connection:
        body = connection.answer(connection.ask(dns.message.make_query("big.example.com", "TXT").to_wire()))[2]
        assert len(dns.message.from_wire(body).answer[0]) == 200


def test_many_large_answers_come_without_another_word(doors, trusting):
    """A client with wide windows gets large answers without sending anything further."""
    doors(large)
    with Over2(trusting(), window=1 << 20) as connection:
        connection.connection.increment_flow_control_window(1 << 24)
        connection.flush()
        message = dns.message.make_query("big.example.com", "TXT").to_wire()
        length = len(connection.answer(connection.ask(message))[2])  # from the cache from now on
        for _ in range(3):
            connection.ask(message)
        came = 0
        while came < 3 * length:
            came += len(connection.socket.recv(65_536))


# The frames that an attacker repeats on an HTTP/2 connection, by the names under which the attacks are known.
def rapid_reset(number, encoder):
    stream = 2 * number + 1
    head = [(":method", "GET"), (":scheme", "https"), (":authority", "h"),
            (":path", f"/dns-query?dns={base64.urlsafe_b64encode(LOCALHOST).decode().rstrip('=')}")]
    return [frames.HeadersFrame(stream, encoder.encode(head), flags=["END_HEADERS", "END_STREAM"]),
            frames.RstStreamFrame(stream, error_code=8)]


def continuation(number, encoder):
    if number == 0:
        return [frames.HeadersFrame(1, encoder.encode([(":method", "GET")]))]
    return [frames.ContinuationFrame(1, encoder.encode([(f"x{number}", "y" * 500)]))]


def header_bomb(number, encoder):
    """One field of 4,000 octets, then one octet for each repetition."""
    first = encoder.encode([("a", "b" * 3900)])
    head = encoder.encode([(":method", "GET"), (":scheme", "https"), (":authority", "h"), (":path", "/")])
    return [frames.HeadersFrame(2 * number + 1, head + first + b"\xbe" * 15_000, flags=["END_HEADERS", "END_STREAM"])]


ATTACKS = {
    "rapid reset": rapid_reset,
    "CONTINUATION": continuation,
    "header bomb": header_bomb,
    "SETTINGS": lambda number, _: [frames.SettingsFrame(0, settings={4: 65_535})],
    "PING": lambda number, _: [frames.PingFrame(0, b"12345678")],
    "empty DATA": lambda number, encoder: [
        frames.HeadersFrame(1, encoder.encode([(":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/")]),
                            flags=["END_HEADERS"]) if number == 0 else frames.DataFrame(1, b"")],
    "PRIORITY": lambda number, _: [frames.PriorityFrame(2 * number + 1, depends_on=0, stream_weight=1)],
    "WINDOW_UPDATE": lambda number, _: [frames.WindowUpdateFrame(0, window_increment=1)],
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_flood_ends_its_connection_alone(doors, trusting, attack):
    running = doors()
    with Over2(trusting()) as victim, Over2(trusting()) as attacker:
        before = running.held_kilobytes("RssAnon")
        with contextlib.suppress(OSError):
            for start in range(0, 20_000, 50):
                attacker.socket.sendall(b"".join(
                    frame.serialize() for number in range(start, start + 50)
                    for frame in ATTACKS[attack](number, attacker.connection.encoder)))
        assert post(victim, LOCALHOST)[0] == 200
        with contextlib.suppress(OSError):
            while attacker.hear():
                pass
        assert running.held_kilobytes("RssAnon") < before + 4096
        with pytest.raises(OSError):  # the connection is closed
            for _ in range(10_000):
                attacker.socket.sendall(frames.PingFrame(0, bytes(8)).serialize() * 100)
    assert is_well(trusting())


def test_who_gives_no_room_for_answers_is_closed_in_the_end(doors, trusting):
    """A client without a window is cut off when too many answers wait for it, or closed when it has been idle."""
    running = doors(large, {"tcpIdleSeconds": 2})
    before = running.held_kilobytes("RssAnon")
    with Over2(trusting(), window=0) as greedy:
        with contextlib.suppress(OSError):
            for number in range(100):
                greedy.ask(dns.message.make_query(f"n{number}.example.com", "TXT").to_wire())
            while greedy.hear():
                pass
        with pytest.raises((OSError, AssertionError)):
            greedy.answer(1)
    asked = {question.name for question in running.resolver.questions}
    assert 0 < len(asked) <= 100
    assert running.held_kilobytes("RssAnon") < before + 16_384
    assert is_well(trusting())


def test_cancelled_questions_are_under_way_all_the_same(doors, trusting):
    """A client that cancels questions gets no more of them looked up than a client that waits."""
    running = doors(lambda asked: None, fallback={"timeout": 60000})
    names = set()

    def asked():
        names.update(question.name for question in running.resolver.questions)
        return names
    with Over2(trusting()) as connection:
        def question(number):
            return connection.ask(dns.message.make_query(f"n{number}.example.com", "A").to_wire())
        first = [question(number) for number in range(100)]
        eventually(asked, "they are looked up")
        for stream in first:
            connection.connection.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
        connection.flush()
        for number in range(100, 400):
            connection.connection.reset_stream(question(number), h2.errors.ErrorCodes.CANCEL)
            connection.flush()
    asked()
    assert 0 < len(names) <= 100, len(names)
    assert is_well(trusting())


def get_frame(message, stream=1):
    head = RAW_GET + fields(":path /dns-query?dns=" + base64.urlsafe_b64encode(message).decode().rstrip("="))
    return frame(HEADERS, END_HEADERS | END_STREAM, stream, head)


def test_an_idle_connection_ends_with_a_word(doors, trusting):  # noqa: F811
    """GOAWAY has the last accepted stream, so that a client knows whether another question was accepted (RFC 9113 §6.8)."""
    doors(listen={"tcpIdleSeconds": 1})
    with dial(trusting(), ["h2"]) as client:
        connection = RawConnection(client, START + settings() + get_frame(LOCALHOST, 5))
        connection.until(DATA, 5, END_STREAM)
        assert connection.until(GOAWAY) == struct.pack("!II", 5, 0)
        assert connection.hear() is None


def test_connections_are_told_that_the_daemon_stops(doors, trusting):  # noqa: F811
    """At a stop, connections get GOAWAY at once, and earlier questions are answered."""
    may_answer = threading.Event()

    def slow(asked):
        may_answer.wait(20)
        return reply_to(asked.message, "60 IN A 192.0.2.1")
    running = doors(slow)
    with dial(trusting(), ["h2"]) as idle, dial(trusting(), ["h2"]) as client:
        question = get_frame(dns.message.make_query("slow.example.com", "A").to_wire())
        connections = [RawConnection(idle), RawConnection(client, START + settings() + question)]
        eventually(lambda: running.resolver.questions, "it is looked up")
        running.process.send_signal(signal.SIGTERM)
        assert [connection.until(GOAWAY) for connection in connections] == [bytes(8), struct.pack("!II", 1, 0)]
        may_answer.set()
        assert connections[1].until(HEADERS, 1)[":status"] == "200"
        connections[1].until(DATA, 1, END_STREAM)
        assert connections[0].hear() is None and connections[1].hear() is None


def test_counted_by_transport(doors, over):
    doors()
    with over() as connection:
        assert post(connection, LOCALHOST)[0] == 200
        counts = metrics()
    assert counts[("httpdnsd_dns_requests_total", (("proto", "https"), ("family", "1"), ("type", "A")))] == 1
    assert counts[("httpdnsd_tcp_clients", (("proto", "https"),))] == 1
    assert 'proto="tls"' not in fetch("/metrics")[2]


def test_sockets_of_systemd(binary, trusting, certificate, tmp_path):
    check_sockets_of_systemd(binary, certificate, tmp_path, "https", HTTPS, "doh", lambda: is_well(trusting()))


def test_a_proxy_that_sends_chunks(doors, trusting, certificate, tmp_path):
    """haproxy asks over HTTP/1.1 by default, and sends a body of unknown length in chunks."""
    running = doors()
    file = tmp_path / "haproxy.cfg"
    file.write_text(f"""
defaults
  mode http
  timeout connect 20s
  timeout client 30s
  timeout server 30s
listen doh
  bind {PROXY}:{HTTPS} ssl crt {certificate} alpn h2
  server daemon 127.0.0.1:{HTTPS} ssl verify none
""")
    with subprocess.Popen(["haproxy", "-db", "-f", str(file)], stderr=subprocess.DEVNULL) as proxy:
        try:
            eventually(lambda: proxy.poll() is not None or listens((PROXY, HTTPS)), "haproxy listens")
            with Over2(trusting(), PROXY) as connection:
                for question in (LOCALHOST, dns.message.make_query("www.example.com", "A", id=0).to_wire()):
                    status, _, body = post(connection, question)
                    assert status == 200 and dns.message.from_wire(body).rcode() == dns.rcode.NOERROR
        finally:
            proxy.terminate()
    assert running.resolver.questions
    with Over1(trusting()) as connection:
        for pieces in ([LOCALHOST], [bytes([octet]) for octet in LOCALHOST], [LOCALHOST[:9], LOCALHOST[9:]]):
            assert connection.request("POST", "/dns-query", [("content-type", MESSAGE)], iter(pieces))[0] == 200


def test_octets_that_are_no_http(doors, trusting):
    """DNS as over TLS, HTTP/2 without its preface, and an endless request are refused, and the daemon serves on."""
    doors(listen={"tcpIdleSeconds": 2})
    framed = struct.pack("!H", len(LOCALHOST)) + LOCALHOST
    for protocol, octets in (("http/1.1", framed), ("http/1.1", b"GET /" + b"x" * 60_000), ("h2", framed), ("h2", b"GET / HTTP/1.1\r\n\r\n")):
        with dial(trusting(), [protocol]) as client:
            heard = b""
            with contextlib.suppress(OSError):
                client.sendall(octets)
                while piece := client.recv(4096):
                    heard += piece
            assert LOCALHOST[12:] not in heard
            if protocol == "http/1.1" and len(octets) > 20_000:
                assert heard.startswith(b"HTTP/1.1 400 ")
    assert is_well(trusting())


def designated(reply):
    """Protocol, port, path and addresses of each record, in the order of their priorities."""
    assert reply.rcode() == dns.rcode.NOERROR
    records = sorted((record for answer in reply.answer for record in answer), key=lambda record: record.priority)
    assert [record.priority for record in records] == list(range(1, len(records) + 1))
    return [(record.target.to_text(), *(record.params[key].to_text() if key in record.params else None for key in (1, 3, 7, 4)))
            for record in records]


def test_clients_find_the_ways(doors, trusting):
    """SVCB records are at the resolver's special name (RFC 9462) and at the certificate's name (RFC 9461)."""
    doors(lambda asked: reply_to(asked.message, rcode=dns.rcode.NXDOMAIN),
          {"tls": [f"{ELSEWHERE}:8853"], "name": "dns.example"})
    expected = [("dns.example.", '"dot"', '"8853"', None, f'"{ELSEWHERE}"'),
                ("dns.example.", '"h2"', f'"{HTTPS}"', '"/dns-query{?dns}"', None)]
    for name in ("_dns.resolver.arpa", "_dns.dns.example", "_DNS.Resolver.ARPA"):
        assert designated(ask(name, "SVCB", port=PORT)) == expected
        for kind in ("A", "HTTPS", "TXT"):
            reply = ask(name, kind, port=PORT)
            assert reply.rcode() == dns.rcode.NOERROR and reply.answer == []
    with Over2(trusting()) as connection:
        reply = post(connection, dns.message.make_query("_dns.resolver.arpa", "SVCB").to_wire())[2]
        assert designated(dns.message.from_wire(reply)) == expected


def test_clients_find_the_port_that_the_system_chose(doors):
    running = doors(listen={"tls": [f"{ELSEWHERE}:0"], "https": [], "name": "dns.example"})
    port = re.search(rf"tls://{ELSEWHERE}:(\d+)", running.log())[1]
    for _ in range(2):
        assert designated(ask("_dns.resolver.arpa", "SVCB", port=PORT)) == [
            ("dns.example.", '"dot"', f'"{port}"', None, f'"{ELSEWHERE}"')]
        running.process.send_signal(signal.SIGHUP)
        eventually(lambda: running.log_lines("read again"), "the configuration is read again")


def test_a_reload_changes_what_clients_find(doors):
    running = doors()
    assert ask("_dns.resolver.arpa", "SVCB", port=PORT).answer == []
    file = running.directory / "httpdnsd.toml"
    text = file.read_text()
    file.write_text(text.replace("[listen]\n", '[listen]\nname = "dns.example"\n'))
    running.process.send_signal(signal.SIGHUP)
    eventually(lambda: ask("_dns.resolver.arpa", "SVCB", port=PORT).answer, "the new name is told")
    file.write_text(text)
    running.process.send_signal(signal.SIGHUP)
    eventually(lambda: not ask("_dns.resolver.arpa", "SVCB", port=PORT).answer, "nothing is told any more")
