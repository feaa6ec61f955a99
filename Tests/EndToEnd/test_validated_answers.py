"""Whose AD bit a client gets to see: it comes over plain UDP, and whoever is on the path can set it."""

import signal

import dns.flags
import pytest

from dns_client import ask
from resolvers import reply_to
from waiting import eventually

PORT = 2053
BEYOND = "192.0.2.53"  # an address that is not loopback


@pytest.fixture
def beside(network):
    """A network where a resolver can stand beyond loopback."""
    made = network()
    made.ip(f"address add {BEYOND}/32 dev lo")
    return made


def signed(asked):
    return reply_to(asked.message, "600 IN A 192.0.2.1", flags=dns.flags.AD | dns.flags.RA)


def truncated_first(asked):
    reply = signed(asked)
    if asked.transport == "udp":
        reply.answer = []
        reply.flags |= dns.flags.TC
    return reply


def settings(*servers, trusted=None, **cache):
    fallback = {"servers": list(servers)} | ({} if trusted is None else {"trustAD": trusted})
    return {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "fallback": fallback, "cache": cache}


def is_authentic(name, **options):
    """The bit of two answers, the second from the cache."""
    seen = {bool(ask(name, port=PORT, **options).flags & dns.flags.AD) for _ in range(2)}
    assert len(seen) == 1
    return seen.pop()


WAYS = [{"flags": dns.flags.RD | dns.flags.AD}, {"edns": True, "want_dnssec": True},
        {"flags": dns.flags.RD | dns.flags.AD | dns.flags.CD}]


@pytest.mark.parametrize(("address", "trusted", "expected"), [
    ("127.0.0.4", None, True), ("127.0.0.4", False, True), (BEYOND, None, False), (BEYOND, False, False),
    (BEYOND, True, True)])
def test_ad_is_believed_from_loopback_or_by_word(daemon, scripted_resolver, beside, address, trusted, expected):
    with beside:
        scripted_resolver(signed, address=address)
        daemon(None, settings(address, trusted=trusted), port=PORT)
        for number, way in enumerate(WAYS):
            assert is_authentic(f"n{number}.example.net", **way) == expected, way


def test_nor_over_tcp(daemon, scripted_resolver, beside):
    with beside:
        scripted_resolver(truncated_first, address=BEYOND)
        daemon(None, settings(BEYOND), port=PORT)
        assert not is_authentic("big.example.net", edns=True, want_dnssec=True)


def test_another_word_holds_for_what_is_known_too(daemon, scripted_resolver, beside):
    with beside:
        scripted_resolver(signed, address=BEYOND)
        running = daemon(None, settings(BEYOND, trusted=True), port=PORT)
        assert is_authentic("known.example.net", **WAYS[0])
        for trusted in (False, True):
            file = running.directory / "httpdnsd.toml"
            file.write_text(file.read_text().replace(f"trustAD = {toml_word(not trusted)}",
                                                     f"trustAD = {toml_word(trusted)}"))
            before = len(running.log_lines("read again"))
            running.process.send_signal(signal.SIGHUP)
            eventually(lambda before=before: len(running.log_lines("read again")) > before, "it is read again")
            assert is_authentic("known.example.net", **WAYS[0]) == trusted


def toml_word(flag):
    return "true" if flag else "false"


def test_nor_from_a_file_written_under_another_word(daemon, scripted_resolver, beside, tmp_path):
    file = tmp_path / "cache"
    with beside:
        resolver = scripted_resolver(signed, address=BEYOND)
        running = daemon(None, settings(BEYOND, trusted=True, file=str(file)), port=PORT)
        assert is_authentic("kept.example.net", **WAYS[0])
        running.stop()
        asked = len(resolver.questions)
        daemon(None, settings(BEYOND, trusted=False, file=str(file)), port=PORT)
        assert not is_authentic("kept.example.net", **WAYS[0])
        assert len(resolver.questions) > asked
