"""Known attacks over TLS and HTTPS, named as in test_known_attacks.py; those on HTTP/2 itself are in test_https_clients.py."""

import socket
import struct
import threading
import time

import dns.message
import pytest

from dns_client import addresses, ask
from test_https_clients import HTTPS, LOCALHOST, Over1, Over2, post
from test_tls_clients import PORT, TLS, Encrypted, certificate, serving, trusting  # noqa: F401 (fixtures)

MANY = 20_000


@pytest.fixture
def running(serving):  # noqa: F811
    return serving(listen={"https": [f"127.0.0.1:{HTTPS}"], "tcpClients": 1000})


def pipelined_over_tls(context):
    with Encrypted(context, timeout=60) as stream:
        octets = (struct.pack("!H", len(LOCALHOST)) + LOCALHOST) * MANY
        sender = threading.Thread(target=stream.socket.sendall, args=(octets,))
        sender.start()
        time.sleep(0.5)  # it reads nothing
        for _ in range(MANY):
            assert stream.receive_bytes()
        sender.join()


def pipelined_over_http2(context):
    with Over2(context) as connection:
        for _ in range(MANY // 100):
            streams = [connection.ask(LOCALHOST) for _ in range(100)]
            for stream in streams:
                assert connection.answer(stream)[0] == 200


def pipelined_over_http1(context):
    with Over1(context) as connection:
        head = (b"POST /dns-query HTTP/1.1\r\nHost: dns.example\r\nContent-Type: application/dns-message\r\nContent-Length: %d\r\n\r\n"
                % len(LOCALHOST)) + LOCALHOST
        sender = threading.Thread(target=connection.connection.sock.sendall, args=(head * MANY,))
        sender.start()
        time.sleep(0.5)
        answered, rest = 0, b""
        while answered < MANY:
            piece = connection.connection.sock.recv(1 << 20)
            assert piece, f"it was cut off after {answered}"
            rest += piece
            answered += rest.count(b"HTTP/1.1 200 OK")
            rest = rest[-14:] if not rest.endswith(b"HTTP/1.1 200 OK") else b""
        sender.join()


@pytest.mark.parametrize("ask_many", [pipelined_over_tls, pipelined_over_http2, pipelined_over_http1])
def test_23_many_questions_on_one_connection(running, trusting, ask_many):  # noqa: F811
    """However many stand behind each other, each is answered, and neither stack nor memory grows."""
    before = running.held_kilobytes("RssAnon")
    ask_many(trusting())
    assert running.held_kilobytes("RssAnon") < before + 8192 and running.resident_kilobytes("VmStk") <= 256


def half_over_tls(context):
    return Encrypted(context).socket, b"\0"


def half_over_http2(context):
    return Over2(context).socket, b"\0\0\x40\1"


def half_over_http1(context):
    return Over1(context).connection.sock, b"POST /dns-query HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n1"


@pytest.mark.parametrize("half", [half_over_tls, half_over_http2, half_over_http1])
def test_24_half_a_question_and_a_reset(running, trusting, half):  # noqa: F811
    """Afterwards nothing spins."""
    for _ in range(100):
        client, octets = half(trusting())
        client.sendall(octets)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    assert addresses(ask("localhost", port=PORT)) == ["127.0.0.1"]
    time.sleep(0.3)
    assert running.ticks_in(1) <= 5
    with Over2(trusting()) as connection:
        reply = dns.message.from_wire(post(connection, LOCALHOST)[2])
        assert addresses(reply) == ["127.0.0.1"]
