"""Connections by TCP, TLS and HTTPS that are shared, closed, cut, or die silently: clients notice nothing."""

import asyncio
import contextlib
import socket
import struct
import threading
import time

import dns.message
import pytest
from hyperframe.frame import PingFrame

from asking import NEXT_ADDRESS, OURS, PORT, SCHEMES, at_once, check_answers, check_failure, failures, fresh
from clients import Clients, at_the_same_moment
from control import metrics, total
from dns_client import addresses, ask
from encrypted import FramedConnection, Later, address_reply
from networks import BlackHole
from resolvers import LOCAL_ADDRESS, Asked, answer_locally
from waiting import eventually, waited_since

EVERY = 0.2  # five questions a second


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
def test_many_questions_share_a_connection(asked_of, encrypted_resolver, protocol):
    server = encrypted_resolver(protocol, lambda asked, connection: Later(0.05, address_reply(asked)))
    asked_of(server)
    names = fresh()
    check_answers(at_once(next(names) for _ in range(30)))
    check_answers(at_once(next(names) for _ in range(30)))
    # While the machine stands still, the server seems silent and is asked once more.
    repeats = total(metrics(), "httpdnsd_group_repeats_total")
    assert server.connections <= 2 and len(server.questions) - repeats == 60


def segments(connection):
    """TCP segments with data that came over a connection so far: tcpi_data_segs_in of linux/tcp.h."""
    info = connection.writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return struct.unpack_from("=I", info, 152)[0]


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
def test_what_waits_for_a_connection_goes_out_together(asked_of, encrypted_resolver, protocol):
    """Thirty simultaneous questions use one connection, and leave in two segments after the handshake."""
    seen = []

    def script(asked, connection):
        seen.append(segments(connection))
        return address_reply(asked)
    server = encrypted_resolver(protocol, script)
    running = asked_of(server)
    replies = at_the_same_moment(running, [(f"n{number}.example.net", "A") for number in range(30)])
    assert [addresses(reply) for reply in replies] == [OURS] * 30
    # Over HTTP/2, the server's SETTINGS are also acknowledged (RFC 9113 6.5.3), before or after the questions.
    handshake = {"tcp": 0, "tls": 2, "https": 3}[protocol]
    assert server.connections == 1 and max(seen) <= handshake + 2, seen


@pytest.mark.parametrize(("protocol", "count"), [("tcp", 1), ("tls", 2), ("https", 2)])
def test_a_server_that_closes_after_some_answers(asked_of, encrypted_resolver, protocol, count):
    def script(asked, connection):
        connection.send(address_reply(asked), asked)
        if connection.count == count:
            connection.close()
    server = encrypted_resolver(protocol, script)
    running = asked_of(server)
    names = fresh()
    for _ in range(5):
        assert addresses(ask(next(names), port=PORT)) == OURS
    check_answers(at_once(next(names) for _ in range(40)))
    check_answers(at_once(next(names) for _ in range(40)))
    assert not running.log_lines("fails") and failures() == 0, running.log()


@pytest.mark.parametrize(("protocol", "end", "after"), [("tcp", "reset", 0), ("tls", "close", 0.02), ("https", "reset", 0.5)])
def test_a_connection_that_ends_under_queries(asked_of, encrypted_resolver, protocol, end, after):
    """The questions are sent again at once on a fresh connection, and clients notice nothing."""
    def script(asked, connection):
        if connection.number > 1 or connection.count == 1:
            return address_reply(asked)
        if connection.count == 2:
            asyncio.get_running_loop().call_later(after, getattr(connection, end))
        return None
    server = encrypted_resolver(protocol, script)
    running = asked_of(server)
    assert addresses(ask("first.example.net", port=PORT)) == OURS
    check_answers(at_once(f"n{number}.example.net" for number in range(5)), within=after + 3)
    assert not running.log_lines("fails") and failures() == 0, running.log()
    counted = metrics()
    assert total(counted, "httpdnsd_group_questions_total", group="fallback") == 6
    assert total(counted, "httpdnsd_server_request_duration_seconds_count", group="fallback") == 6


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
def test_packets_that_vanish(asked_of, encrypted_resolver, protocol):
    """After a connection dies silently, at most two seconds' answers are late, and none is lost."""
    server = encrypted_resolver(protocol)
    running = asked_of(server, timeout=5000)
    names = fresh()
    for _ in range(10):
        assert addresses(ask(next(names), port=PORT)) == OURS
    clients = Clients(port=PORT)
    sockets = running.sockets()
    with BlackHole([server.port], server.clients):
        began = time.monotonic()
        clients.ask_steadily([next(names) for _ in range(10)], EVERY)
        asked = clients.all_answered()
        eventually(lambda: sockets - running.sockets(), "the dead connection is closed")
        assert len(running.sockets()) <= len(sockets) + 1 and failures() == 0
    for one in asked:
        assert addresses(one.reply) == OURS
    late = [(round(waited_since(began, one.at), 2), round(one.waited, 2)) for one in asked if one.waited > EVERY]
    print("delayed (asked so many seconds after the fault, waited):", late)
    assert late and all(at < 2.0 and waited < 2.5 for at, waited in late), late


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
@pytest.mark.parametrize("others", ["next", "nobody"])
def test_a_server_that_says_no_word_more(asked_of, encrypted_resolver, next_server, protocol, others):
    """The server's connections stay open and HTTP/2 acknowledges pings, but no question is answered any more."""
    server = encrypted_resolver(protocol)
    asked_of(server, *([next_server] if others == "next" else []), timeout=1500)
    assert addresses(ask("first.example.net", port=PORT)) == OURS
    server.script = lambda asked, connection: None
    if others == "next":
        check_answers(at_once(f"n{number}.example.net" for number in range(5)), expected=NEXT_ADDRESS)
    else:
        assert server.url.removesuffix("/dns-query") in check_failure()


def test_a_server_that_acknowledges_no_ping(asked_of, encrypted_resolver):
    """A server that answers questions counts as alive, even without answers to pings."""
    def greet(connection):
        connection.h2._frame_dispatch_table[PingFrame] = lambda frame: ([], [])
    server = encrypted_resolver("https", lambda asked, connection: Later(0.35, address_reply(asked)), greet=greet)
    asked_of(server)
    names = fresh()
    for _ in range(3):
        check_answers(at_once(next(names) for _ in range(5)))
    assert failures() == 0 and server.connections <= 2


def test_a_server_that_reads_one_query_of_a_tls_record(asked_of, authority):
    """The server ignores further queries in a TLS record, as dnsdist 1.7 does: these are sent again one by one."""
    context = authority.server(addresses=["127.0.0.6"])

    def serve(channel):
        with contextlib.suppress(OSError), context.wrap_socket(channel, server_side=True) as connection:
            while record := connection.recv(16384):  # recv returns at most one record
                query = record[2:2 + struct.unpack_from("!H", record)[0]]
                connection.sendall(FramedConnection.framed(address_reply(Asked(dns.message.from_wire(query), query, "tls", 0))))

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
    with socket.create_server(("127.0.0.6", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        running = asked_of(f"tls://127.0.0.6:{listener.getsockname()[1]}", timeout=3500)
        assert addresses(ask("first.example.net", port=PORT)) == OURS
        replies = at_the_same_moment(running, [(f"n{number}.example.net", "A") for number in range(30)])
        assert [addresses(reply) for reply in replies] == [OURS] * 30
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("protocol", SCHEMES)
def test_a_server_that_comes_back_is_used_again(asked_of, encrypted_resolver, scripted_resolver, protocol):
    """A configured plain server answers meanwhile."""
    other = scripted_resolver(answer_locally)
    server = encrypted_resolver(protocol)
    asked_of(server, other.endpoint)
    names = fresh()
    assert addresses(ask(next(names), port=PORT)) == OURS
    server.away()
    for _ in range(3):
        assert addresses(ask(next(names), port=PORT)) == [LOCAL_ADDRESS]
    server.start()
    eventually(lambda: addresses(ask(next(names), port=PORT)) == OURS, "the first server is asked again", 40)


@pytest.mark.parametrize("banner", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"220 mail.example.net ESMTP\r\n", b"\0" * 20])
@pytest.mark.parametrize("protocol", SCHEMES)
def test_no_tls_at_the_port(asked_of, encrypted_resolver, banner, protocol):
    server = encrypted_resolver("tcp")
    server.kind = type("Talking", (server.kind,), {"serve": lambda self: talk(self)})

    async def talk(connection):
        connection.write(banner)
        await connection.reader.read(10000)
    asked_of(f"{protocol}://{server.address}:{server.port}" + ("/dns-query" if protocol == "https" else ""))
    said = [check_failure(f"failing{number}.example.net", within=3.5) for number in range(2)][0]
    assert "127.0.0.6" in said and "TLS" in said, said
