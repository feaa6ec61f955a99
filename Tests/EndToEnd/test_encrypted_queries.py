"""Queries to servers of DNS over TLS and HTTPS, and the parts of their replies that clients get."""

import time

import dns.edns
import dns.flags
import dns.message
import dns.rrset
import pytest

from asking import OURS, PORT, SCHEMES
from dns_client import addresses, ask, exchange, extended_errors
from encrypted import MEDIA_TYPE, address_reply
from resolvers import reply_to
from waiting import waited_since



@pytest.mark.parametrize("protocol", SCHEMES)
def test_every_query_is_padded_and_says_nothing_of_the_client(asked_of, encrypted_resolver, protocol):
    """Queries are padded to 128 octets (RFC 8467); cookies, subnets, sizes and ids of clients are not sent."""
    server = encrypted_resolver(protocol)
    asked_of(server)
    options = [dns.edns.ECSOption("198.51.100.0", 24), dns.edns.GenericOption(10, b"12345678")]
    for length in (1, 20, 40, 60):
        for kind in ("A", "TXT", "MX"):
            ask("x" * length + ".example.net", kind, port=PORT, edns=True, options=options)
    assert len({(asked.name, asked.kind) for asked in server.questions}) == 12
    for asked in server.questions:
        assert len(asked.wire) % 128 == 0, len(asked.wire)
        # The idle time-out (RFC 7828) is asked for only over TLS: HTTP has rules of its own.
        expected = [11, 12] if protocol == "tls" else [12]
        assert [option.otype for option in asked.message.options] == expected, asked.message
        assert asked.message.options[0].data.strip(b"\0") == b""
        assert asked.message.flags & ~dns.flags.AD == dns.flags.RD
    if protocol == "https":
        assert {asked.message.id for asked in server.questions} == {0}


@pytest.mark.parametrize("form", ["POST", "GET"])
def test_what_a_request_over_https_holds(asked_of, encrypted_resolver, form):
    server = encrypted_resolver("https")
    asked_of(server.url + ("{?dns}" if form == "GET" else ""))
    assert addresses(ask("one.example.net", port=PORT)) == OURS
    assert addresses(ask("two.example.net", port=PORT)) == OURS
    for headers in server.headers:
        fields = dict(headers)
        assert len(fields) == len(headers) and fields[":method"] == form and fields[":scheme"] == "https"
        assert fields[":authority"] == f"{server.address}:{server.port}" and fields["accept"] == MEDIA_TYPE
        if form == "GET":
            assert fields[":path"].startswith("/dns-query?dns=") and "=" not in fields[":path"][15:]
        else:
            assert fields[":path"] == "/dns-query" and fields["content-type"] == MEDIA_TYPE
        extra = set(fields) - {":method", ":scheme", ":authority", ":path", "accept", "content-type", "content-length"}
        assert not extra, extra
    assert server.connections == 1


@pytest.mark.parametrize("protocol", SCHEMES)
@pytest.mark.parametrize("options", [[dns.edns.GenericOption(12, b"\1" * 50)],
                                     [dns.edns.GenericOption(12, b""), dns.edns.GenericOption(12, b"\0" * 300)],
                                     [dns.edns.GenericOption(12, b"\0" * 380)]])
def test_padding_of_replies_stays_behind(asked_of, encrypted_resolver, protocol, options):
    def script(asked, connection):
        reply = address_reply(asked)
        reply.use_edns(0, 0, 1232, options=[*options, dns.edns.EDEOption(3, "of old")])
        return reply
    asked_of(encrypted_resolver(protocol, script))
    reply = ask("padded.example.net", port=PORT, edns=True)
    assert addresses(reply) == OURS and extended_errors(reply) == [3]
    assert not [option for option in reply.options if option.otype == 12]


@pytest.mark.parametrize("protocol", SCHEMES)
def test_id_spelling_and_size_are_the_clients(asked_of, encrypted_resolver, protocol):
    """A reply has the client's own id and spelling, and is cut at the client's own datagram size."""
    def script(asked, connection):
        reply = address_reply(asked)
        reply.answer = [dns.rrset.from_text_list(asked.message.question[0].name, 60, "IN", "A", [
            f"192.0.2.{number}" for number in range(1, 60)])]
        return reply
    server = encrypted_resolver(protocol, script)
    asked_of(server)
    for size, is_cut in ((512, True), (1232, False)):
        for place, name in enumerate(("MiXeD.example.net", "mixed.EXAMPLE.net")):
            query = dns.message.make_query(name, "A", id=0x5A00 + place, use_edns=0, payload=size)
            reply = dns.message.from_wire(exchange(query.to_wire(), port=PORT))
            assert reply.id == query.id and str(reply.question[0].name) == name + "."
            assert bool(reply.flags & dns.flags.TC) == is_cut and len(addresses(reply)) == (0 if is_cut else 59)
    assert len({asked.message.id for asked in server.questions}) == len(server.questions) == 1


def other_name(asked, connection):
    return reply_to(dns.message.make_query("other.example.net", "A", id=asked.message.id), "60 IN A 192.0.2.66")


def other_id(asked, connection):
    reply = address_reply(asked, "192.0.2.66")
    reply.id ^= 0x5555
    return reply


def truncated(asked, connection):
    reply = address_reply(asked)
    reply.answer = []
    reply.flags |= dns.flags.TC
    return reply


# DNSWireTests/ResponseTests test all other replies that do not match the question.
NOT_ANSWERS = {"another name": other_name, "another id": other_id, "cut": truncated,
               "garbage": lambda asked, connection: asked.wire[:2] + b"\x81\x80" + b"\xff" * 30}


@pytest.mark.parametrize("protocol", SCHEMES)
@pytest.mark.parametrize("case", NOT_ANSWERS)
def test_what_is_no_answer_is_not_believed(asked_of, encrypted_resolver, protocol, case):
    """A reply that is no answer counts as a failure of the server, and the next server is asked."""
    bad = encrypted_resolver(protocol, NOT_ANSWERS[case])
    good = encrypted_resolver(protocol, address="127.0.0.7")
    asked_of(bad, good, timeout=1500)
    for number in range(3):
        begun = time.monotonic()
        reply = ask(f"n{number}.example.net", port=PORT)
        assert addresses(reply) == OURS, reply
        assert waited_since(begun) < 3.5, "before the daemon gives up"
