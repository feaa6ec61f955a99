"""Connections by TCP, TLS and HTTPS that are shared, closed, cut, or die without a word: clients hear nothing of it."""

import asyncio
import time

import pytest

from asking import OURS, PORT, SCHEMES, asked_of, at_once, check_answers, check_failure, fresh
from clients import Clients
from dns_client import addresses, ask
from encrypted import Later, address_reply
from networks import BlackHole
from resolvers import LOCAL_ADDRESS, answer_locally
from waiting import eventually

__all__ = ["asked_of"]  # a fixture
EVERY = 0.2  # five questions a second


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
def test_many_questions_share_a_connection(asked_of, encrypted_resolver, protocol):
    server = encrypted_resolver(protocol, lambda asked, connection: Later(0.05, address_reply(asked)))
    asked_of(server)
    names = fresh()
    check_answers(at_once(next(names) for _ in range(30)))
    check_answers(at_once(next(names) for _ in range(30)))
    assert server.connections <= 2 and len(server.questions) == 60


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
@pytest.mark.parametrize("count", [1, 2, 100])
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
    assert not running.log_lines("fails"), running.log()


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("after", [0, 0.02, 0.5])
def test_a_connection_that_ends_under_queries(asked_of, encrypted_resolver, protocol, end, after):
    """They go out once more on a fresh connection, at once, and nobody hears of it."""
    def script(asked, connection):
        if connection.number > 1 or connection.count == 1:
            return address_reply(asked)
        if connection.count == 2:
            asyncio.get_running_loop().call_later(after, getattr(connection, end))
        return None
    server = encrypted_resolver(protocol, script)
    running = asked_of(server)
    assert addresses(ask("first.example.net", port=PORT)) == OURS
    check_answers(at_once(f"n{number}.example.net" for number in range(5)), within=after + 0.5)
    assert not running.log_lines("fails"), running.log()


@pytest.mark.parametrize("cut", [1, 2, 3, 20])
def test_a_connection_that_ends_inside_a_message(asked_of, encrypted_resolver, cut):
    def script(asked, connection):
        if connection.number == 1 and connection.count > 1:
            connection.write(connection.framed(address_reply(asked))[:cut])
            return connection.close()
        return address_reply(asked)
    server = encrypted_resolver("tls", script)
    asked_of(server)
    check_answers(at_once(["first.example.net"]))
    check_answers(at_once([f"n{number}.example.net" for number in range(3)]))


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
def test_a_server_that_always_closes_without_an_answer_is_not_besieged(asked_of, encrypted_resolver, protocol):
    server = encrypted_resolver(protocol, lambda asked, connection: connection.close())
    asked_of(server)
    check_failure()
    assert server.connections <= 6, server.connections


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
def test_one_slow_name_does_not_delay_the_others(asked_of, encrypted_resolver, protocol):
    def script(asked, connection):
        slow = asked.name.to_text().startswith("slow")
        return Later(1.2, address_reply(asked)) if slow else address_reply(asked)
    server = encrypted_resolver(protocol, script)
    asked_of(server)
    names = fresh()
    clients = Clients(port=PORT)
    check_answers(at_once(next(names) for _ in range(3)))
    clients.ask("slow.example.net")
    clients.ask_steadily([next(names) for _ in range(10)], 0.1)
    asked = clients.all_answered()
    check_answers(asked[1:], within=0.3)
    check_answers(asked[:1], within=2)


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
def test_packets_that_vanish(asked_of, encrypted_resolver, protocol):
    """A live connection dies without a word: a second's answers are late at most, and none is lost."""
    server = encrypted_resolver(protocol)
    asked_of(server, timeout=5000)
    names = fresh()
    for _ in range(10):
        assert addresses(ask(next(names), port=PORT)) == OURS
    clients = Clients(port=PORT)
    with BlackHole([server.port], server.clients):
        began = time.monotonic()
        clients.ask_steadily([next(names) for _ in range(10)], EVERY)
        asked = clients.all_answered()
    for one in asked:
        assert addresses(one.reply) == OURS
    late = [(round(one.at - began, 2), round(one.waited, 2)) for one in asked if one.waited > EVERY]
    print("delayed (asked so many seconds after the fault, waited):", late)
    assert late and all(at < 1.0 and waited < 1.2 for at, waited in late), late


@pytest.mark.parametrize("protocol", ["tcp", *SCHEMES])
def test_a_server_that_restarts(asked_of, encrypted_resolver, protocol):
    server = encrypted_resolver(protocol)
    asked_of(server)
    names = fresh()
    assert addresses(ask(next(names), port=PORT)) == OURS
    for _ in range(3):
        server.away()
        server.start()
        check_answers(at_once(next(names) for _ in range(5)), within=0.5)


@pytest.mark.parametrize("protocol", SCHEMES)
def test_a_server_that_comes_back_is_used_again(asked_of, encrypted_resolver, scripted_resolver, protocol):
    """A plain server that the operator named stands in meanwhile."""
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
    begun = time.monotonic()
    assert "127.0.0.6" in check_failure()
    assert time.monotonic() - begun < 1
