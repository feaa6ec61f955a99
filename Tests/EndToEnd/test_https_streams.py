"""HTTP/2 behaviour of servers of DNS over HTTPS, one case of each: GOAWAY, stream limits, resets, no HTTP/2."""

import socket
import subprocess
import time

import h2.connection
import h2.errors
import pytest

from asking import OURS, PORT, at_once, check_answers, check_failure, failures, fresh
from clients import Clients
from dns_client import addresses, ask
from encrypted import Later, address_reply
from waiting import eventually, waited_since



def answer(asked, connection=None):
    return address_reply(asked)


def goaway(last, code=0):
    return b"\0\0\x08\x07\0" + b"\0" * 4 + last.to_bytes(4) + code.to_bytes(4)


def test_goaway_with_streams_open(asked_of, encrypted_resolver):
    """After GOAWAY, refused streams are asked again on a new connection; the accepted ones are answered on the old one.

    The server first announces that it will go, and later the last stream (RFC 9113 §6.8). The first answer takes its time,
    so the daemon expects to wait: no question here is asked again because of a slow answer.
    """
    held = []

    def script(asked, connection):
        if asked.name.to_text().startswith("first"):
            return Later(1.5, address_reply(asked, "192.0.2.1"))
        if held and connection is not held[0][1]:
            return address_reply(asked, "192.0.2.2")
        if not asked.name.to_text().startswith("n"):
            return address_reply(asked, "192.0.2.1")
        held.append((asked, connection))
        if len(held) == 3:
            connection.h2.close_connection(last_stream_id=2 ** 31 - 1)
            connection.flush()
            connection.h2.state_machine.state = h2.connection.ConnectionState.SERVER_OPEN

    def leave():
        last, connection = held[0]
        connection.write(goaway(last.stream))
        connection.send(address_reply(last, "192.0.2.1"), last)
    server = encrypted_resolver("https", script)
    asked_of(server, timeout=20000, hedgeAfter=20000)
    assert addresses(ask("first.example.net", port=PORT)) == ["192.0.2.1"]
    before = server.connections
    clients = Clients(port=PORT)
    for number in range(3):
        clients.ask(f"n{number}.example.net")
    eventually(lambda: len(held) == 3, "all are under way")
    begun = time.monotonic()
    names = fresh()
    eventually(lambda: addresses(ask(next(names), port=PORT)) == ["192.0.2.2"], "another connection is used")
    server.do(leave)
    asked = clients.all_answered()
    assert waited_since(begun) < 3.5, "not as long as for a server that is silent"
    assert sorted(addresses(one.reply)[0] for one in asked) == ["192.0.2.1", "192.0.2.2", "192.0.2.2"], asked
    assert server.connections <= before + 1 and failures() == 0


def test_one_stream_at_a_time(asked_of, encrypted_resolver):
    """The limit comes with the first answer; streams opened before are refused, and sent again."""
    busy, seen = [], []

    def script(asked, connection):
        busy.append(connection.h2.open_inbound_streams)
        return Later(0.005, address_reply(asked))
    server = encrypted_resolver("https", script, streams=1, greet=seen.append)
    asked_of(server)
    names = fresh()
    check_answers(at_once(next(names) for _ in range(50)))
    assert max(busy) == 1 and len({asked.name for asked in server.questions}) == 50
    refused = sum(connection.refused for connection in seen)
    # Two, and up to four more while the daemon mistakes the slowness of a busy machine for dead connections.
    assert server.connections <= 6 and refused < 50 and failures() == 0


@pytest.mark.parametrize("code", ["REFUSED_STREAM", "INTERNAL_ERROR"])
def test_one_of_several_streams_is_reset(asked_of, encrypted_resolver, code):
    """The other streams are answered as usual; the reset one is asked again."""
    held = []

    def script(asked, connection):
        if asked.name.to_text()[0] != "n" or len(held) == 5:
            return address_reply(asked)
        held.append(asked)
        if len(held) < 5:
            return None
        connection.h2.reset_stream(held[1].stream, h2.errors.ErrorCodes[code])
        for one in held[:1] + held[2:]:
            connection.send(address_reply(one), one)
    server = encrypted_resolver("https", script)
    asked_of(server)
    assert addresses(ask("first.example.net", port=PORT)) == OURS
    check_answers(at_once(f"n{number}.example.net" for number in range(5)))
    assert addresses(ask("after.example.net", port=PORT))


@pytest.mark.parametrize("offer", [None, "http/1.1"])
def test_a_server_without_http_2(asked_of, encrypted_resolver, offer):
    server = encrypted_resolver("tls", address="127.0.0.6")
    if offer:
        server._context.set_alpn_protocols([offer])
    asked_of(f"https://{server.address}:{server.port}/dns-query")
    assert "h2" in check_failure()


@pytest.mark.parametrize("scheme", ["tls", "https"])
def test_a_server_that_refuses_by_an_alert(asked_of, authority, scheme):
    """A server of `http/1.1` alone sends no_application_protocol: HTTPS reports this; DNS over TLS tries without ALPN."""
    file = authority.server_file(addresses=["127.0.0.6"])
    command = ["openssl", "s_server", "-accept", "127.0.0.6:8853", "-cert", str(file), "-key", str(file), "-alpn",
               "http/1.1", "-quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        try:
            eventually(lambda: listens("127.0.0.6", 8853), "it listens")
            asked_of(f"{scheme}://127.0.0.6:8853" + ("/dns-query" if scheme == "https" else ""),
                     timeout=1500 if scheme == "tls" else 20000)
            said = check_failure()
            assert ("HTTP/2 (ALPN h2)" if scheme == "https" else "no answer") in said, said
            if scheme == "tls":
                assert server.stdout.read(2) == b"\0\x80", "a query came over the connection without ALPN"
        finally:
            server.terminate()


def listens(address, port):
    with socket.socket() as channel:
        return channel.connect_ex((address, port)) == 0


@pytest.mark.parametrize("offer", [None, "h2", "dot"])
def test_what_a_server_of_dns_over_tls_offers(asked_of, encrypted_resolver, offer):
    """The server need not know `dot`; a server that refuses `dot` is asked again without ALPN."""
    server = encrypted_resolver("tls")
    if offer:
        server._context.set_alpn_protocols([offer])
    asked_of(server)
    check_answers(at_once(f"n{number}.example.net" for number in range(3)))
