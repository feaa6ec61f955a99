"""DNS over TLS (RFC 7858) for the daemon's clients: answers as over TCP, the certificate, and limits."""

import contextlib
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import dns.edns
import dns.message
import dns.rcode
import pytest

from control import METRICS, fetch, metrics, total
from daemon import run
from dns_client import Stream, addresses, ask
from malformed import operations, wire
from resolvers import reply_to
from test_service_manager import handed_over, listening
from waiting import eventually, waited_since
from ways import ELSEWHERE, HTTPS, PORT, TLS, Encrypted, framed_by_http

BLOCK = 468


def over(context, message, **options):
    with Encrypted(context, **options) as stream:
        stream.send(message)
        return stream.receive_bytes()


def serial(context, **options):
    with Encrypted(context, **options) as stream:
        return stream.socket.getpeercert()["serialNumber"]


def padded(name="www.example.com", kind="A", **options):
    return dns.message.make_query(name, kind, use_edns=0, options=[dns.edns.GenericOption(12, bytes(5))], **options)


def test_programs_of_others_are_answered(serving, authority):
    serving()
    for name in ("www.example.com", "localhost"):
        shown = subprocess.run(["kdig", "@127.0.0.1", "-p", str(TLS), f"+tls-ca={authority.file}", "+tls-hostname=dns.example",
                                "+short", name, "A"], capture_output=True, text=True, timeout=60)
        assert shown.returncode == 0 and shown.stdout.strip() == {"localhost": "127.0.0.1"}.get(name, "192.0.2.1"), shown


def test_the_same_as_over_tcp(serving, trusting):
    """Every operation, type and fault gets the octets that TCP gives."""
    serving(lambda asked: reply_to(asked.message, rcode=dns.rcode.NXDOMAIN))
    ordinary = [dns.message.make_query(name, kind, **options).to_wire() for name, kind, options in (
        ("localhost", "A", {}), ("www.example.com", "A", {"use_edns": 0}), ("www.example.com", "HTTPS", {"want_dnssec": True}),
        ("example.com", "ANY", {}), ("1.0.0.127.in-addr.arpa", "PTR", {}), ("version.bind", "TXT", {"rdclass": "CH"}))]
    with Encrypted(trusting()) as encrypted, Stream(port=PORT) as plain:
        for message in [*ordinary, b"", b"short", b"\0\1\x81" + bytes(9), *operations()]:
            is_silent = len(message) < 12 or message[2] & 0x80  # only the question after it is answered
            got = []
            for stream in (plain, encrypted):
                stream.send(message)
                stream.send(ordinary[0])
                got.append(sorted(stream.receive_bytes() for _ in range(1 if is_silent else 2)))
            assert got[0] == got[1], (message, got)


def test_what_is_padded_comes_back_padded(serving, trusting):
    """A padded question gets a reply of a multiple of 468 octets (RFC 8467) over TLS; other replies are not padded."""
    serving(lambda asked: reply_to(asked.message, *([f'60 IN TXT "{"x" * 200}" "{"y" * 250}"'] * 1)))
    context = trusting()
    for kind, name in (("A", "localhost"), ("TXT", "www.example.com"), ("TXT", "www.example.com")):  # the last from the cache
        message = padded(name, kind)
        wire = over(context, message)
        assert len(wire) % BLOCK == 0, len(wire)
        reply = dns.message.from_wire(wire)
        assert reply.answer and [option.otype for option in reply.options].count(12) == 1
        with Stream(port=PORT) as stream:
            stream.send(message)
            assert 12 not in [option.otype for option in stream.receive().options]
        plain = dns.message.from_wire(over(context, dns.message.make_query(name, kind, use_edns=0)))
        assert 12 not in [option.otype for option in plain.options]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("protocols", [(), ("dot",), ("h2", "dot")])
def test_versions_and_protocols(serving, trusting, version, protocols):
    serving()
    with Encrypted(trusting(version, protocols)) as stream:
        assert stream.socket.selected_alpn_protocol() == ("dot" if protocols else None)
        stream.send(dns.message.make_query("localhost", "A"))
        assert addresses(stream.receive()) == ["127.0.0.1"]
        kept = stream.socket.session
    if version == ssl.TLSVersion.TLSv1_2:
        context = stream.socket.context
        with Encrypted(context, session=kept) as again:
            assert again.socket.session_reused


def test_what_is_not_taken(serving, trusting):
    """Refused are other protocols by ALPN, key exchanges without forward secrecy, versions before 1.2, and DNS in the clear."""
    serving()
    for context in (trusting(protocols=["h2"]), trusting(ssl.TLSVersion.TLSv1_2, ciphers="AES128-GCM-SHA256"),
                    trusting(ssl.TLSVersion.TLSv1_1, ciphers="ALL:@SECLEVEL=0")):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            Encrypted(context).close()
    with socket.create_connection(("127.0.0.1", TLS), timeout=20) as plain:  # DNS in the clear gets no answer
        message = dns.message.make_query("localhost", "A").to_wire()
        plain.sendall(struct.pack("!H", len(message)) + message)
        plain.shutdown(socket.SHUT_WR)
        heard = b""
        with contextlib.suppress(ConnectionError):
            while piece := plain.recv(4096):
                heard += piece
        assert message[:2] not in heard


def test_why_handshakes_failed(serving, trusting):
    """Failed handshakes are counted by their reason."""
    serving()
    distrusting = ssl.create_default_context()
    for context in (trusting(protocols=["h2"]), trusting(ssl.TLSVersion.TLSv1_2, ciphers="AES128-GCM-SHA256"),
                    trusting(ssl.TLSVersion.TLSv1_1, ciphers="ALL:@SECLEVEL=0"), distrusting):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            Encrypted(context).close()
    for octets in (b"", b"\x16\x03\x01\x02", b"GET / HTTP/1.1\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", TLS), timeout=20) as plain:
            plain.sendall(octets)
            plain.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while plain.recv(4096):
                    pass
    expected = {"protocol": 1, "cipher": 1, "version": 1, "certificate": 1, "left": 2, "not_tls": 1, "timeout": 0, "other": 0}

    def counted():
        return {dict(labels)["reason"]: count for (name, labels), count in metrics().items()
                if name == "httpdnsd_tls_handshakes_failed_total" and dict(labels)["proto"] == "tls"}
    eventually(lambda: sum(counted().values()) == 7, "all are counted")
    assert counted() == expected
    eventually(lambda: total(metrics(), "httpdnsd_tcp_closed_total", reason="handshake") == 7, "and as closed")


def test_failed_handshakes_hold_up_no_other(everywhere, trusting):
    """A handshake that has failed is counted, and is no longer under way, while the client keeps its connection."""
    everywhere()
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            plain = stack.enter_context(socket.create_connection((ELSEWHERE, TLS), 20, (ELSEWHERE, 0)))
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            plain.recv(4096)
        begun = time.monotonic()
        with Encrypted(trusting(), server=ELSEWHERE, source=ELSEWHERE) as stream:
            stream.send(dns.message.make_query("localhost", "A"))
            assert addresses(stream.receive()) == ["127.0.0.1"]
        assert waited_since(begun) < 5
        assert total(metrics(), "httpdnsd_tls_handshakes_failed_total", reason="not_tls") == 8


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_that_has_said_its_end_gets_its_answers(everywhere, trusting, version):
    """close_notify ends one direction alone (RFC 8446 §6.1): a client that has sent it still gets its answers."""
    running = everywhere()
    running.resolver.hold()
    for port, framed in ((TLS, lambda message: struct.pack("!H", len(message)) + message), (HTTPS, framed_by_http)):
        context = trusting(version, protocols=["dot"] if port == TLS else ["http/1.1"])
        reading, writing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = context.wrap_bio(reading, writing, server_hostname="dns.example")
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
            def until_done(step):
                while True:
                    try:
                        return step()
                    except ssl.SSLWantReadError:
                        plain.sendall(writing.read())
                        reading.write(piece) if (piece := plain.recv(65_536)) else reading.write_eof()
            until_done(session.do_handshake)
            for name in ("localhost", f"slow{port}.example.net"):
                session.write(framed(wire(name)))
            with pytest.raises(ssl.SSLWantReadError):
                session.unwrap()
            plain.sendall(writing.read())
            eventually(lambda: any(str(port) in str(asked.name) for asked in list(running.resolver.questions)), "it is asked")
            threading.Timer(0.2, running.resolver.release).start()
            heard = b""
            with contextlib.suppress(ssl.SSLZeroReturnError):  # the daemon has sent close_notify, too
                while True:
                    heard += until_done(lambda: session.read(65_536))
            assert heard.count(bytes([127, 0, 0, 1])) == 1 and heard.count(bytes([192, 0, 2, 1])) == 1, heard


def test_many_questions_in_pieces_and_out_of_order(serving, trusting):
    running = serving()
    messages = [dns.message.make_query(f"n{number}.example.com", "A") for number in range(100)]
    with Encrypted(trusting()) as stream:
        octets = b"".join(struct.pack("!H", len(wire)) + wire for wire in (one.to_wire() for one in messages))
        for start in range(0, len(octets), 7):
            stream.socket.sendall(octets[start:start + 7])
        got = [stream.receive() for _ in messages]
        assert sorted(reply.id for reply in got) == sorted(one.id for one in messages)
        assert all(addresses(reply) == ["192.0.2.1"] for reply in got)
    assert len({asked.name for asked in running.resolver.questions}) == 100


def test_new_connections_get_the_new_certificate_and_none_is_dropped(serving, trusting, authority, tmp_path):
    file = tmp_path / "server.pem"
    first, second, third = (authority.server_file(names=["dns.example"]).read_bytes() for _ in range(3))
    file.write_bytes(first)
    running = serving(file=file, listen={"tcpIdleSeconds": 120})
    context = trusting()
    with Encrypted(context) as old:
        before = serial(context)

        def replace(contents):
            (tmp_path / "next.pem").write_bytes(contents)
            os.replace(tmp_path / "next.pem", file)
        replace(second)
        eventually(lambda: serial(context) != before, "the new certificate is shown")
        now = serial(context)
        replace(b"no certificate")
        eventually(lambda: running.log_lines("certificate of before: listen.certificateFile: "), "it is said", 30)
        assert serial(context) == now
        replace(third)
        eventually(lambda: serial(context) not in (before, now), "the third certificate is shown")
        old.send(dns.message.make_query("localhost", "A"))
        assert addresses(old.receive()) == ["127.0.0.1"]
    assert len(running.log_lines("certificate of before")) == 1
    # After a reload by the operator, a wrong certificate is refused at once.
    now = serial(context)
    replace(b"none either")
    running.process.send_signal(signal.SIGHUP)
    eventually(lambda: running.log_lines("stays as it was: .*listen.certificateFile: "), "the reload is refused")
    assert serial(context) == now
    assert "PRIVATE KEY" not in running.log()


def test_a_session_outlives_a_reload(serving, trusting):
    running = serving()
    context = trusting(ssl.TLSVersion.TLSv1_2)
    with Encrypted(context) as stream:
        kept = stream.socket.session
    running.process.send_signal(signal.SIGHUP)
    eventually(lambda: running.log_lines("read again, nothing has changed"), "the configuration is read again")
    with Encrypted(context, session=kept) as again:
        assert again.socket.session_reused


def test_without_the_door_the_certificate_stays_until_a_restart(serving, trusting):
    running = serving()
    context = trusting()
    before = serial(context)
    file = running.directory / "httpdnsd.toml"
    text, count = re.subn(r"(?m)^(tls|certificateFile|keyFile) = .*\n", "", file.read_text())
    assert count == 3
    file.write_text(text)
    running.process.send_signal(signal.SIGHUP)
    words = "listen.tls, listen.certificateFile, listen.keyFile need a restart"
    eventually(lambda: running.log_lines(words), "the log names the keys")
    assert running.log_lines("the configuration was read again, nothing has changed")
    assert serial(context) == before


@pytest.mark.parametrize("case, said", [
    ("missing key", "listen.keyFile: missing"), ("no such file", "No such file"), ("no certificate", "listen.certificateFile: "),
    ("another key", "listen.keyFile: ")])
def test_a_wrong_certificate_at_start(binary, authority, tmp_path, case, said):
    good, other = authority.server_file(names=["a.example"]), authority.server_file(names=["b.example"])
    (tmp_path / "text").write_text("nothing\n")
    key = {"missing key": "", "another key": other}.get(case, good)
    shown = {"no such file": "/nowhere.pem", "no certificate": tmp_path / "text"}.get(case, good)
    config = tmp_path / "c.toml"
    config.write_text(f'[listen]\naddresses = ["127.0.0.1:{PORT}"]\ntls = ["127.0.0.1:{TLS}"]\ncertificateFile = "{shown}"\n'
                      f'keyFile = "{key}"\n')
    for command in ("run", "check"):
        ended = run(binary, command, "-c", str(config))
        assert ended.returncode == 78 and said in ended.stderr, ended


def test_handshakes_that_are_not_finished_shut_nobody_out(serving, trusting):
    """Unfinished handshakes are limited and end after 10 s; a client that finishes is served, and TCP is not affected."""
    serving(listen={"tcpClients": 8})
    context = trusting()
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(Encrypted(context))
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", TLS), timeout=30)) for _ in range(30)]
        for number, one in enumerate(silent):
            with contextlib.suppress(ConnectionError):
                one.sendall(b"\x16\x03\x01\x02"[:number % 5])
        assert addresses(ask("localhost", transport="tcp", port=PORT)) == ["127.0.0.1"]
        with Encrypted(context) as stream:
            stream.send(dns.message.make_query("localhost", "A"))
            assert addresses(stream.receive()) == ["127.0.0.1"]
        kept.send(dns.message.make_query("localhost", "A"))  # a served client's connection is not closed to make room for them
        assert addresses(kept.receive()) == ["127.0.0.1"]
        for one in silent:
            with contextlib.suppress(ConnectionError):
                assert one.recv(1) == b""
        assert 8 < time.monotonic() - began and waited_since(began) < 30

    def closed(reason):
        return total(metrics(), "httpdnsd_tcp_closed_total", proto="tls", reason=reason)
    eventually(lambda: closed("handshake") >= 6 and closed("room") >= 20, "they are counted")
    counts = metrics()
    assert counts[("httpdnsd_tcp_closed_total", (("proto", "tcp"), ("reason", "room")))] == 0


def test_who_does_not_read_is_cut_off(serving, trusting):
    serving(lambda asked: reply_to(asked.message, *[f'60 IN TXT "{number}{"x" * 250}"' for number in range(200)]))
    with Encrypted(trusting()) as stream:
        wire = dns.message.make_query("big.example.com", "TXT").to_wire()
        stream.socket.settimeout(2)
        with contextlib.suppress(OSError):
            while True:
                stream.socket.sendall((struct.pack("!H", len(wire)) + wire) * 100)
        assert addresses(ask("localhost", port=PORT)) == ["127.0.0.1"]


def test_counted_by_transport(serving, trusting):
    serving()
    with Encrypted(trusting()) as stream:
        stream.send(dns.message.make_query("localhost", "A"))
        stream.receive()
        counts = metrics()
    assert counts[("httpdnsd_dns_requests_total", (("proto", "tls"), ("family", "1"), ("type", "A")))] == 1
    assert counts[("httpdnsd_tcp_clients", (("proto", "tls"),))] == 1
    assert counts[("httpdnsd_tcp_clients", (("proto", "tcp"),))] == 0


def test_without_the_keys_there_is_nothing_of_it(daemon, scripted_resolver):
    resolver = scripted_resolver(lambda asked: reply_to(asked.message))
    daemon(None, {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "control": {"metrics": f"{METRICS[0]}:{METRICS[1]}"},
                  "fallback": {"servers": [resolver.endpoint]}}, port=PORT)
    assert 'proto="tls"' not in fetch("/metrics")[2]


def check_sockets_of_systemd(binary, certificate, tmp_path, key, port, name, is_served):
    """A socket's name assigns it to an encrypted transport; an address without a socket is logged, not announced to clients."""
    handed = [listening(socket.SOCK_DGRAM, ("127.0.0.1", 53)), listening(socket.SOCK_STREAM, ("127.0.0.1", 53)),
              listening(socket.SOCK_STREAM, ("127.0.0.1", port))]
    more = {"HTTPDNSD_LISTEN_CERTIFICATEFILE": str(certificate), "HTTPDNSD_LISTEN_KEYFILE": str(certificate),
            f"HTTPDNSD_LISTEN_{key.upper()}": f"127.0.0.1:{port},192.168.1.2:853", "HTTPDNSD_LISTEN_NAME": "dns.example"}
    process = handed_over(binary, handed, tmp_path, names=["dns", "dns", name], more=more)
    try:
        eventually(lambda: "listening on" in (tmp_path / "log").read_text(), "it serves")
        assert is_served()
        assert addresses(ask("localhost", transport="tcp")) == ["127.0.0.1"]
        found = ask("_dns.resolver.arpa", "SVCB").answer[0]
        assert [record.params[3].port for record in found] == [port]
        said = [line for line in (tmp_path / "log").read_text().splitlines() if f"listen.{key} names" in line]
        assert len(said) == 1 and "192.168.1.2:853" in said[0] and f"FileDescriptorName={name}" in said[0], said
    finally:
        process.terminate()
        assert process.wait(20) == 0
        for one in handed:
            one.close()


def test_sockets_of_systemd(binary, trusting, certificate, tmp_path):
    question = dns.message.make_query("localhost", "A").to_wire()
    check_sockets_of_systemd(
        binary, certificate, tmp_path, "tls", TLS, "dot",
        lambda: addresses(dns.message.from_wire(over(trusting(), question))) == ["127.0.0.1"])


def test_sockets_of_systemd_for_tls_alone(binary, trusting, certificate, tmp_path):
    """Where systemd hands over none for UDP and TCP, the daemon binds listen.addresses as without systemd."""
    more = {"HTTPDNSD_LISTEN_CERTIFICATEFILE": str(certificate), "HTTPDNSD_LISTEN_KEYFILE": str(certificate),
            "HTTPDNSD_LISTEN_ADDRESSES": "127.0.0.9:53"}
    with listening(socket.SOCK_STREAM, ("127.0.0.1", TLS)) as handed:
        process = handed_over(binary, [handed], tmp_path, names=["dot"], more=more)
        try:
            eventually(lambda: f"listening on 127.0.0.9:53, tls://127.0.0.1:{TLS}" in (tmp_path / "log").read_text(), "it serves both")
            for transport in ("udp", "tcp"):
                assert addresses(ask("localhost", server="127.0.0.9", transport=transport)) == ["127.0.0.1"]
            question = dns.message.make_query("localhost", "A").to_wire()
            assert addresses(dns.message.from_wire(over(trusting(), question))) == ["127.0.0.1"]
        finally:
            process.terminate()
            assert process.wait(20) == 0


def test_sockets_of_systemd_for_tls_alone_while_another_program_has_port_53(binary, trusting, certificate, tmp_path):
    more = {"HTTPDNSD_LISTEN_CERTIFICATEFILE": str(certificate), "HTTPDNSD_LISTEN_KEYFILE": str(certificate)}
    with listening(socket.SOCK_STREAM, ("127.0.0.1", TLS)) as handed, listening(socket.SOCK_STREAM, ("127.0.0.9", 53)):
        process = handed_over(binary, [handed], tmp_path, names=["dot"], more=more)
        try:
            eventually(lambda: f"listening on tls://127.0.0.1:{TLS}" in (tmp_path / "log").read_text(), "it serves what it was given")
            question = dns.message.make_query("localhost", "A").to_wire()
            assert addresses(dns.message.from_wire(over(trusting(), question))) == ["127.0.0.1"]
            eventually(lambda: "no question comes there: bind 127.0.0.9:53: Address already in use: another program has it; "
                       "ss -lntup says which; listen.addresses may name another address or port" in (tmp_path / "log").read_text(),
                       "it says what it does not serve")
            assert "httpdnsd.socket does not" not in (tmp_path / "log").read_text()
        finally:
            process.terminate()
            assert process.wait(20) == 0


def own(common_name, key, folder, name, days="90"):
    """A certificate signed by its own key, by the `openssl` command."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", *key, "-nodes", "-days", days, "-subj", f"/CN={common_name}",
                    "-addext", f"subjectAltName=DNS:{common_name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"],
                   check=True, capture_output=True)


def shown_now():
    """The certificate that a client gets, without verification."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with Encrypted(context) as stream:
        return stream.socket.getpeercert(binary_form=True)


def test_a_key_of_another_type_and_an_end_that_is_near_are_said(binary, daemon, tmp_path):
    """`check`, the start and `status` report them; a running daemon keeps the former pair, and logs one line for each change."""
    curve = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    own("other.example", curve, tmp_path, "server", days="3")
    own("dns.example", ["rsa:2048"], tmp_path, "rsa")
    listen = {"addresses": [f"127.0.0.1:{PORT}"], "tls": [f"127.0.0.1:{TLS}"], "https": ["127.0.0.1:8443"], "name": "dns.example",
              "certificateFile": str(tmp_path / "server.pem"), "keyFile": str(tmp_path / "server.key")}
    control = {"socket": str(tmp_path / "control.sock"), "metrics": "127.0.0.1:9153"}
    running = daemon(None, {"listen": listen, "control": control}, port=PORT)
    file = str(running.directory / "httpdnsd.toml")
    words = [f"the certificate of listen ({tmp_path}/server.pem) {rest}" for rest in
             ("ends in 2 d; have it renewed", "is not for dns.example (listen.name): clients that ask by this name refuse it")]
    for text in (run(binary, "check", file).stderr, running.log(),
                 run(binary, "status", "--socket", control["socket"]).stdout):
        text = re.sub(r"(?:2 d 23|3 d 0) h", "2 d", text)  # the remaining time depends on the seconds that have passed
        assert [text.count(line) for line in words] == [1, 1], text
    left = metrics()["httpdnsd_listen_certificate_expiry_seconds", ()]
    assert 2 * 86400 < left <= 3 * 86400
    before = shown_now()
    shutil.copy(tmp_path / "rsa.pem", tmp_path / "server.pem")
    wrong = "listen.keyFile: the private key does not belong to the certificate"
    assert wrong in run(binary, "check", file).stderr
    eventually(lambda: running.log_lines(f"certificate of before: {wrong}"), "it is said", 30)
    said = f"TLS clients are shown the certificate of before: {wrong}. A restart would fail"
    assert said in run(binary, "status", "--socket", control["socket"]).stdout and shown_now() == before
    shutil.copy(tmp_path / "rsa.key", tmp_path / "server.key")
    eventually(lambda: shown_now() != before, "the whole pair is taken")
    assert len(running.log_lines("new TLS clients are shown")) == 1 and len(running.log_lines("certificate of before")) == 1
