"""The size of UDP answers to clients in a network: no answer is so large that it could be fragmented (RFC 9715)."""

import dns.flags
import pytest

from dns_client import ask
from resolvers import reply_to

PORT = 2053
BEYOND = "192.0.2.7"  # an address of this machine that is not loopback


def of_three_kilobytes(asked):
    text = " ".join(f'"{"x" * 250}"' for _ in range(12))
    reply = reply_to(asked.message, *([] if asked.transport == "udp" else [f"600 IN TXT {text}"]))
    if asked.transport == "udp":
        reply.flags |= dns.flags.TC
    return reply.to_wire(max_size=65535)


@pytest.mark.parametrize(("address", "offered", "is_whole"), [
    (BEYOND, 4096, False), (BEYOND, 65535, False), ("127.0.0.1", 4096, True), ("127.0.0.1", 1232, False)])
def test_big_answers(daemon, network, scripted_resolver, address, offered, is_whole):
    beside = network()
    beside.ip(f"address add {BEYOND}/32 dev lo")
    with beside:
        resolver = scripted_resolver(of_three_kilobytes)
        daemon(None, {"listen": {"addresses": [f"0.0.0.0:{PORT}"], "allow": ["0.0.0.0/0"]},
                      "fallback": {"servers": [resolver.endpoint]}}, port=PORT)
        for _ in ("looked up", "from the cache"):
            reply = ask("big.example.net", "TXT", server=address, port=PORT, edns=0, payload=offered, source=address)
            assert bool(reply.flags & dns.flags.TC) != is_whole and bool(reply.answer) == is_whole
        whole = ask("big.example.net", "TXT", server=address, port=PORT, transport="tcp", source=address)
        assert len(whole.answer[0].to_text()) > 3000
