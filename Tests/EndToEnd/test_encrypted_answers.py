"""Answers over TLS and HTTPS in any order and pieces, and what is no answer: clients get the right one in time."""

import time

import dns.flags
import dns.message
import dns.rcode
import pytest

from asking import OURS, PORT, SCHEMES, asked_of, at_once, check_answers, check_failure, fresh
from clients import Clients
from dns_client import addresses, ask
from encrypted import Later, address_reply
from resolvers import reply_to
from waiting import waited_since

__all__ = ["asked_of"]  # a fixture


def test_answers_in_any_order_and_any_pieces(asked_of, encrypted_resolver):
    waiting = []

    def script(asked, connection):
        waiting.append(connection.framed(address_reply(asked, f"192.0.2.{len(waiting) + 1}")))
        if len(waiting) == 10:
            octets = b"".join(reversed(waiting))
            for place in range(0, 100):
                connection.write(octets[place:place + 1])  # a TLS record each
            connection.write(octets[100:])
    server = encrypted_resolver("tls", script)
    asked_of(server)
    asked = at_once(f"n{number}.example.net" for number in range(10))
    found = {one.name: addresses(one.reply)[0] for one in asked}
    assert len(set(found.values())) == 10
    order = [question.name.to_text(omit_final_dot=True) for question in server.questions]
    assert [found[name] for name in order] == [f"192.0.2.{number + 1}" for number in range(10)]


def other_name(asked, connection):
    return reply_to(dns.message.make_query("other.example.net", "A", id=asked.message.id), "60 IN A 192.0.2.66")


def other_kind(asked, connection):
    return reply_to(dns.message.make_query(asked.name, "TXT", id=asked.message.id), "60 IN TXT no")


def other_id(asked, connection):
    reply = address_reply(asked, "192.0.2.66")
    reply.id ^= 0x5555
    return reply


def no_question(asked, connection):
    reply = address_reply(asked, "192.0.2.66")
    reply.question = []
    return reply


def a_query(asked, connection):
    return dns.message.make_query(asked.name, "A", id=asked.message.id)


def other_opcode(asked, connection):
    wire = bytearray(address_reply(asked, "192.0.2.66").to_wire())
    wire[2] |= 0x10
    return bytes(wire)


def two_questions(asked, connection):
    reply = address_reply(asked, "192.0.2.66")
    reply.question = reply.question * 2
    return reply


def truncated(asked, connection):
    reply = address_reply(asked)
    reply.answer = []
    reply.flags |= dns.flags.TC
    return reply


def other_class(asked, connection):
    wire = bytearray(address_reply(asked, "192.0.2.66").to_wire())
    wire[wire.index(b"\0", 12) + 4] = 3  # CHAOS, in the question
    return bytes(wire)


NOT_ANSWERS = {"another name": other_name, "another type": other_kind, "another class": other_class,
               "another id": other_id, "cut": truncated, "no question": no_question, "a query": a_query,
               "another opcode": other_opcode, "two questions": two_questions,
               "garbage": lambda asked, connection: asked.wire[:2] + b"\x81\x80" + b"\xff" * 30,
               "empty": lambda asked, connection: b"", "short": lambda asked, connection: b"\0" * 11}


@pytest.mark.parametrize("protocol", SCHEMES)
@pytest.mark.parametrize("case", NOT_ANSWERS)
def test_what_is_no_answer_is_not_believed(asked_of, encrypted_resolver, protocol, case):
    """Alone it is a failure of the server; the next one is asked."""
    bad = encrypted_resolver(protocol, NOT_ANSWERS[case])
    good = encrypted_resolver(protocol, address="127.0.0.7")
    asked_of(bad, good, timeout=1000)
    for number in range(3):
        begun = time.monotonic()
        reply = ask(f"n{number}.example.net", port=PORT)
        assert addresses(reply) == OURS, reply
        assert waited_since(begun) < 2


@pytest.mark.parametrize("protocol", SCHEMES)
@pytest.mark.parametrize("case", NOT_ANSWERS)
def test_what_is_no_answer_and_nobody_else(asked_of, encrypted_resolver, protocol, case):
    asked_of(encrypted_resolver(protocol, NOT_ANSWERS[case]), timeout=500)
    check_failure(within=1.5)


def test_what_is_no_answer_before_the_true_one(asked_of, encrypted_resolver):
    def script(asked, connection):
        return [other_id(asked, connection), address_reply(asked), address_reply(asked, "192.0.2.66")]
    asked_of(encrypted_resolver("tls", script))
    for number in range(5):
        assert addresses(ask(f"n{number}.example.net", port=PORT)) == OURS


def test_a_late_answer_is_nobody_elses(asked_of, encrypted_resolver):
    """What comes after the time-out is passed over, and the connection serves on."""
    def script(asked, connection):
        late = asked.name.to_text().startswith("late")
        return Later(1.8, address_reply(asked, "192.0.2.66")) if late else address_reply(asked)
    server = encrypted_resolver("tls", script)
    asked_of(server, timeout=1200)
    names = fresh()
    clients = Clients(port=PORT)
    clients.ask("late.example.net")
    clients.ask_steadily([next(names) for _ in range(23)], 0.1)
    check_answers(clients.all_answered()[1:], within=0.5)


@pytest.mark.parametrize("protocol", SCHEMES)
@pytest.mark.parametrize("code", [dns.rcode.SERVFAIL, dns.rcode.REFUSED])
def test_the_next_server_when_one_says_no(asked_of, encrypted_resolver, protocol, code):
    no = encrypted_resolver(protocol, lambda asked, connection: reply_to(asked.message, rcode=code))
    good = encrypted_resolver(protocol, address="127.0.0.7")
    asked_of(no, good)
    check_answers(at_once(f"n{number}.example.net" for number in range(3)))


def test_truncated_answers_are_not_cached_as_whole_ones(asked_of, encrypted_resolver):
    bad = encrypted_resolver("https", truncated)
    good = encrypted_resolver("https", address="127.0.0.7")
    asked_of(bad, good)
    assert addresses(ask("cut.example.net", port=PORT)) == OURS
