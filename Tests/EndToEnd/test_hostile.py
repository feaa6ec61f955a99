"""Hostile octets: the daemon still answers, and retains nothing."""

import itertools
import socket
import struct

import dns.message
import dns.name
import dns.rcode
import dns.rdata
import dns.rdatatype
import pytest

from dns_client import Stream, addresses, ask, exchange
from httpdns_service import Fault
from resolvers import reply_to
from waiting import eventually

DATAGRAMS = 10_000
STREAMS = 1_000
# Random names may enter the cache (1 MB here) and the allocator keeps some free pages.
RESIDENT_TOLERANCE = 5_000  # kB
DESCRIPTOR_TOLERANCE = 2


@pytest.fixture
def victim(daemon, service):
    """A daemon of small limits."""
    running = daemon(service("aes"), {"cache": {"megabytes": 1}, "listen": {
        "addresses": ["127.0.0.1:53"], "tcpIdleSeconds": 1, "tcpClients": 64}, "fallback": {"timeout": 100}})
    return running


def settled(running):
    """Descriptors and memory once nothing is under way any more."""
    def answers():
        return addresses(ask("www.example.com")) and addresses(ask("www.example.com", transport="tcp"))
    assert answers()
    eventually(lambda: running.established_connections() == 0, "all connections are closed")
    return running.descriptors(), running.held_kilobytes()


def check_unchanged(running, before):
    descriptors, resident = before
    eventually(lambda: settled(running)[0] <= descriptors + DESCRIPTOR_TOLERANCE,
               f"no more than {descriptors} + {DESCRIPTOR_TOLERANCE} descriptors", 30)
    after = running.held_kilobytes()
    assert after <= resident + RESIDENT_TOLERANCE, f"{resident} kB resident before, {after} kB after"
    assert running.process.poll() is None


def good_query(chance):
    name = chance.choice(["www.example.com", "example.com", "n3.example.com", "big.example.com", "localhost", "."])
    message = dns.message.make_query(name, chance.choice(["A", "AAAA", "MX", "TXT", "ANY", "SOA"]),
                                     use_edns=chance.choice([False, 0]), want_dnssec=False)
    return message.to_wire()


def hostile(chance):
    """Noise; a good query with octets changed, cut, repeated or appended; a sound header with a bad rest."""
    kind = chance.randrange(6)
    if kind == 0:
        return chance.randbytes(chance.choice([0, 1, 11, 12, 13, 64, 512, chance.randrange(1500), 4096]))
    wire = bytearray(good_query(chance))
    if kind == 1:
        for _ in range(chance.randint(1, 4)):
            wire[chance.randrange(len(wire))] = chance.randrange(256)
    elif kind == 2:
        del wire[chance.randrange(len(wire)):]
    elif kind == 3:
        wire += chance.randbytes(chance.randrange(1, 300))
    elif kind == 4:
        wire = wire[:12] + bytes(chance.choice([0xC0, 0x3F, 0x40, 0xFF, 0]) for _ in range(chance.randrange(1, 300)))
    else:
        counts = struct.pack("!4H", *(chance.choice([0, 1, 2, 0xFFFF]) for _ in range(4)))
        wire[4:12] = counts
    return bytes(wire)


def test_random_datagrams(victim, chance):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.connect(("127.0.0.1", 53))
        channel.setblocking(False)

        def volley(count):
            for sent in range(count):
                channel.send(hostile(chance))
                if sent % 20 == 19:  # the daemon keeps answering, and the sender waits for it
                    assert addresses(ask("localhost"))
                    while drained(channel):
                        pass
        volley(2_000)
        before = settled(victim)
        volley(DATAGRAMS)
    check_unchanged(victim, before)


def drained(channel):
    try:
        return channel.recv(65535) is not None
    except BlockingIOError:
        return False


def test_broken_streams(victim, chance):
    def attack(count):
        for _ in range(count):
            stream = Stream()
            try:
                foul(stream, chance)
            except OSError:
                pass  # the daemon may close the connection
            finally:
                stream.close()
    attack(200)
    before = settled(victim)
    for _ in range(10):
        attack(STREAMS // 10)
        assert addresses(ask("localhost"))
    check_unchanged(victim, before)


def foul(stream, chance):
    kind = chance.randrange(8)
    channel = stream.socket
    if kind == 0:
        channel.sendall(chance.randbytes(chance.randrange(1, 3000)))
    elif kind == 1:  # announces more than it sends
        channel.sendall(struct.pack("!H", chance.randrange(1, 65536)) + chance.randbytes(3))
    elif kind == 2:  # half a length
        channel.sendall(b"\0")
        channel.shutdown(socket.SHUT_WR)
    elif kind == 3:
        channel.sendall(b"\0\0" * chance.randrange(1, 50))
    elif kind == 4:  # asks and resets
        stream.send(good_query(chance))
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif kind == 5:  # hostile messages, properly framed
        for _ in range(chance.randrange(1, 20)):
            stream.send(hostile(chance))
    elif kind == 6:  # asks for much and leaves
        for _ in range(chance.randrange(1, 20)):
            stream.send(dns.message.make_query("big.example.com", "TXT").to_wire())
    else:  # the largest message there is
        channel.sendall(b"\xff\xff" + chance.randbytes(65535))


def test_hostile_service_bodies(daemon, service, chance):
    """The service, or an attacker in between, sends nonsense that decrypts well."""
    chosen = service("https")
    running = daemon(chosen, {"fallback": {"timeout": 100}})
    alphabet = "0123456789.:;,-|\n\r abcdef\0"

    def nonsense(request):
        name = request.names[0]
        body = chance.choice([
            "".join(chance.choice(alphabet) for _ in range(chance.randrange(200))),
            f"{name}.:" + ";".join(["203.0.113.1"] * chance.choice([1, 33, 4000])) + ",60|1.1.1.1",
            f"{name}.:203.0.113.1,{chance.choice(['-1', '99999999999999999999', 'x', ''])}-0|",
            f"{name}.:::::1,60-1.2.3.4,60|", "\n" * chance.randrange(5000), f"{name}.:1.2.3.4.5,60-::g,1|",
            f"{name}.:" + "a" * chance.randrange(60000)])
        return Fault("text", body)
    chosen.fault = nonsense
    for i in range(200):
        reply = ask(f"h{i}.example.com", edns=True)
        assert len(addresses(reply)) <= 32
    chosen.fault = None
    # The account was out of use: the first questions show that it is back.
    eventually(lambda: addresses(ask("www.example.com")) == ["203.0.113.20", "203.0.113.10", "203.0.113.30"],
               "the account answers")
    assert running.process.poll() is None


# The types that a resolver must be able to read, though it knows no others (RFC 1035 §3.3, RFC 3596, RFC 3597 §4).
READABLE_TYPES = {dns.rdatatype.from_text(kind) for kind in (
    "A NS MD MF CNAME SOA MB MG MR PTR MINFO MX RP AFSDB RT PX AAAA SRV KX DNAME OPT TSIG").split()}


@pytest.fixture
def opaque_data(monkeypatch):
    """RDATA of all other types is opaque (RFC 3597 §3); dnspython would judge the types that it knows."""
    known = dns.rdata.get_rdata_class
    monkeypatch.setattr(dns.rdata, "get_rdata_class", lambda rdclass, rdtype: (
        known(rdclass, rdtype) if rdtype in READABLE_TYPES else dns.rdata.GenericRdata))


@pytest.mark.usefixtures("opaque_data")
def test_hostile_local_resolver(daemon, scripted_resolver, chance):
    """With cut, changed and looped answers, a client gets a sound answer or SERVFAIL, and no such answer is cached."""
    def answer(asked):
        wire = bytearray(reply_to(asked.message, "60 IN MX 10 mail.example.com.").to_wire())
        for _ in range(chance.randint(0, 3)):
            wire[chance.randrange(12, len(wire))] = chance.choice([0, 0xC0, 0xFF, chance.randrange(256)])
        return bytes(wire[:chance.randrange(12, len(wire))] if chance.random() < 0.3 else wire)
    resolver = scripted_resolver(answer)
    running = daemon(None, {"fallback": {"servers": [resolver.endpoint], "timeout": 100}})
    for i in range(150):
        reply = ask(f"h{i}.example.com", "MX")
        assert reply.question[0].name == dns.name.from_text(f"h{i}.example.com")
    resolver.script = lambda asked: reply_to(asked.message, "60 IN MX 10 mail.example.com.")
    fresh = (f"sound{number}.example.com" for number in itertools.count())
    eventually(lambda: ask(next(fresh), "MX").answer, "a sound answer is given")
    assert running.process.poll() is None


def test_a_name_of_every_length(victim):
    """Names from the root to the maximum of 255 octets are read; one more octet is FORMERR."""
    for length in [1, *range(3, 257)]:
        name, left = b"", length - 1
        while left:
            size = min(left - 1, 63) - (left - min(left - 1, 63) == 2)  # avoids an empty label at the end
            name += bytes([size]) + b"a" * size
            left -= size + 1
        answer = exchange(b"\x12\x34\x01\0\0\1\0\0\0\0\0\0" + name + b"\0\0\1\0\1")
        assert (answer[3] & 15 == dns.rcode.FORMERR) == (length > 255), length
