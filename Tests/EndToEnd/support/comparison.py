"""Answers of a resolver, direct and through the daemon, compared.

These parts must differ: AA is clear, TTLs count down on their own, and the OPT is the daemon's own (of its options an
extended error stays, without its text). The additional section is not passed on (RFC 2181 §9: no client may need it).
"""

import select
import socket
import struct
import subprocess
import time

import dns.dnssec
import dns.exception
import dns.message
import dns.name
import dns.rdatatype
import dns.rrset
from cryptography.hazmat.primitives.asymmetric import ed25519

from dns_client import Stream, ask
from resolvers import encryption
from waiting import eventually

ADDRESS = "127.0.0.22"
KINDS = ["A", "AAAA", "MX", "TXT", "NS", "SOA", "SRV", "CAA", "HTTPS", "DNSKEY", "PTR"]
# Every fourth name is also asked for these types, which a forwarder need not know and must not parse.
OTHER_KINDS = ["TYPE65280", "NAPTR", "RP", "SSHFP", "CNAME", "DS", "NSEC"]
HOST_KINDS = ["A", "AAAA", "MX", "TXT", "SRV", "CAA", "HTTPS", "PTR", "NAPTR", "RP", "TYPE65280", "SSHFP"]
WINDOW = 100  # questions under way at once
RD, AD, CD, DO = 0x100, 0x20, 0x10, 0x8000
# Flags of the header and of the OPT; None: no OPT.
VARIANTS = [(RD, None), (RD | AD, 0), (RD, DO), (RD | CD, 0), (RD | AD | CD, DO)]


def question(name, kind, variant=(RD, None)):
    """A question without its id."""
    flags, edns = variant
    opt = b"" if edns is None else b"\0" + struct.pack("!HHIH", 41, 1232, edns, 0)
    return (struct.pack("!5H", flags, 1, 0, 0, bool(opt)) + name.to_wire()
            + struct.pack("!HH", dns.rdatatype.from_text(kind), 1) + opt)


class Zone:
    """A zone in the making: RRsets by name and type."""

    def __init__(self, origin):
        self.origin = dns.name.from_text(origin)
        self.rrsets = {}
        self.key = None
        self.add("@", "SOA", "ns hostmaster 7 3600 600 86400 90")
        self.add("@", "NS", "ns", "ns2")
        self.add("ns", "A", "198.51.100.1")
        self.add("ns2", "A", "198.51.100.2")

    def add(self, name, kind, *data, ttl=3000):
        owner = dns.name.from_text(name, self.origin)
        rrset = dns.rrset.from_text_list(owner, ttl, "IN", kind, data, origin=self.origin, relativize=False)
        self.rrsets[owner, rrset.rdtype] = rrset

    def sign(self):
        """Adds NSEC and RRSIG records for all RRsets (RFC 4034). One key signs keys and zone."""
        private = ed25519.Ed25519PrivateKey.generate()
        self.key = dns.dnssec.make_dnskey(private.public_key(), "ED25519", flags=257)
        self.rrsets[self.origin, dns.rdatatype.DNSKEY] = dns.rrset.from_rdata(self.origin, 3000, self.key)
        owners = sorted({owner for owner, _ in self.rrsets})
        for owner, following in zip(owners, owners[1:] + owners[:1], strict=True):
            kinds = [dns.rdatatype.to_text(kind) for name, kind in self.rrsets if name == owner]
            text = f"{following} {' '.join([*kinds, 'RRSIG', 'NSEC'])}"
            self.rrsets[owner, dns.rdatatype.NSEC] = dns.rrset.from_text(owner, 90, "IN", "NSEC", text)
        self.signatures = [
            dns.rrset.from_rdata(owner, rrset.ttl, dns.dnssec.sign(rrset, private, self.origin, self.key,
                                                                   lifetime=86400, inception=time.time() - 3600))
            for (owner, _), rrset in self.rrsets.items()]

    def write(self, path):
        lines = [rrset.to_text() for rrset in self.rrsets.values()]
        if self.key:
            lines += [rrset.to_text() for rrset in self.signatures]
        path.write_text("\n".join(lines) + "\n")


def data(kind, chance, number, origin):
    """RDATA of a kind; its names are inside and outside the zone, so that some can be compressed."""
    host = chance.choice([f"h{number}.{origin}", f"h{number}.example.net.", origin, f"Mixed.Case{number}.{origin}"])
    return {
        "A": lambda: f"198.51.100.{number % 256}", "AAAA": lambda: f"2001:db8:7::{number:x}",
        "MX": lambda: f"{number} {host}", "NS": lambda: host, "PTR": lambda: host, "CNAME": lambda: host,
        "TXT": lambda: " ".join(f'"{chance.randbytes(chance.randrange(80)).hex()}"' for _ in range(1 + number % 3)),
        "SRV": lambda: f"{number} 5 443 {host}", "CAA": lambda: f'0 issue "ca{number}.example.net"',
        "HTTPS": lambda: chance.choice([f"1 . alpn=h2,h3 ipv4hint=198.51.100.{number % 256}", f"0 {host}",
                                        f"{number + 1} {host} port=8443 key65400=abc"]),
        "NAPTR": lambda: f'{number} 10 "u" "E2U+sip" "!^.*$!sip:x@example.net!" .',
        "RP": lambda: f"{host} txt.{origin}", "TYPE65280": lambda: rf"\# 6 c00c{chance.randbytes(4).hex()}",
        "SSHFP": lambda: f"4 2 {chance.randbytes(32).hex()}", "DS": lambda: f"1 15 2 {chance.randbytes(32).hex()}",
    }[kind]()


def fill(zone, count, chance):
    """`count` names in the zone's own sequence: hosts, aliases, wildcards, delegations of names, odd ones."""
    origin = zone.origin.to_text()
    names = [zone.origin]
    zone.add("*.wild", "A", "198.51.100.99")
    zone.add("*.wild", "TXT", '"wild"')
    zone.add("deep.empty.non.terminal", "A", "198.51.100.98")
    names += [dns.name.from_text(name, zone.origin) for name in
              ("x.wild", "y.x.wild", "empty.non.terminal", "terminal", "deep.empty.non.terminal", "wild")]
    aliases = 0
    while len(names) < count:
        number = len(names)
        label = chance.choice([f"h{number}", f"H{number}", f"_sip{number}._tcp", f"a.b.c{number}",
                               f"n{number}\\000\\.\\255", f"{number}.2.0.192",
                               "-".join(["long"] * 12) + f"{number}." + ".".join(["x" * 60] * 2)])
        names.append(dns.name.from_text(label, zone.origin))
        kind = number % 10
        if kind == 0:
            continue  # a name that does not exist
        if kind == 1:  # a chain of aliases of one to five steps, inside and out
            aliases += 1
            target = f"chain{aliases}"
            zone.add(label, "CNAME", target)
            for step in range(number // 10 % 5):
                zone.add(target, "CNAME", f"{target}-{step}")
                target = f"{target}-{step}"
            end = number // 50 % 3
            if end == 0:
                zone.add(target, "A", *(f"198.51.100.{i}" for i in range(3)))
            elif end == 1:
                zone.add(target, "CNAME", chance.choice(["nowhere", "x.wild", "empty.non.terminal"]))
            else:
                zone.add(target, "TXT", '"the end of a chain"')
            continue
        for record in chance.sample(HOST_KINDS, k=chance.randint(1, 8)):
            many = chance.choice([1, 1, 2, 3, 25 if number % 40 == 2 else 4])
            values = {data(record, chance, number + i, origin) for i in range(many)}
            zone.add(label, record, *sorted(values), ttl=chance.choice([60, 300, 3000, 86400]))
    return names


class Validator:
    """unbound as a validating, caching resolver of the zones in a directory; by TLS too if it has a `certificate`."""

    def __init__(self, directory, zones, anchors, certificate=None):
        own = [zone.origin.to_text() for zone in zones]
        log = directory / "unbound.log"
        lines = ["server:", f"  interface: {ADDRESS}", f'  directory: "{directory}"', '  chroot: ""', '  username: ""',
                 '  pidfile: ""', "  do-daemonize: no", "  use-syslog: no", f'  logfile: "{log}"',
                 "  access-control: 127.0.0.0/8 allow", '  module-config: "validator iterator"', "  num-threads: 1",
                 "  rrset-roundrobin: no", "  ede: yes", "  minimal-responses: no", "  val-clean-additional: no",
                 "  do-ip6: no", "  so-rcvbuf: 4m", "  val-bogus-ttl: 300", "  qname-minimisation: no",
                 "  aggressive-nsec: no", *encryption(ADDRESS, certificate),
                 *[f'  local-zone: "{name}" nodefault' for name in own],
                 *[f'  trust-anchor: "{anchor}"' for anchor in anchors]]
        for zone in [Zone("."), *zones]:
            path = directory / f"{zone.origin.to_text().strip('.') or 'root'}.zone"
            zone.write(path)
            lines += ["auth-zone:", f'  name: "{zone.origin}"', f'  zonefile: "{path}"', "  for-downstream: no",
                      "  for-upstream: yes"]
        lines += ["remote-control:", "  control-enable: no"]
        (directory / "unbound.conf").write_text("\n".join(lines) + "\n")
        self.process = subprocess.Popen(["unbound", "-d", "-c", str(directory / "unbound.conf")],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def answers():
            assert self.process.poll() is None, log.read_text()
            try:
                return ask(own[0], "SOA", server=ADDRESS, timeout=0.2).answer
            except (OSError, dns.exception.DNSException):
                return False
        eventually(answers, "unbound answers", 60)

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def ask_all(questions, server, port):
    """The answers to all questions, in order. Many questions are under way at once; a lost one is asked again."""
    replies = [None] * len(questions)
    channel = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    channel.connect((server, port))
    channel.setblocking(False)
    waiting, following, silent = {}, 0, 0
    while waiting or following < len(questions):
        # A lost question keeps its id until the others are answered and it is asked again.
        while len(waiting) < WINDOW and following < len(questions) and (identity := following & 0xFFFF) not in waiting:
            waiting[identity] = following
            channel.send(struct.pack("!H", identity) + questions[following])
            following += 1
        if not select.select([channel], [], [], 1.0)[0]:
            silent += 1
            assert silent < 30, f"{len(waiting)} questions without an answer at {server}:{port}"
            for identity, index in waiting.items():
                channel.send(struct.pack("!H", identity) + questions[index])
            continue
        try:
            while True:
                reply = channel.recv(65535)
                index = waiting.pop(reply[0] << 8 | reply[1], None)
                if index is not None:
                    replies[index] = reply
        except BlockingIOError:
            pass
    channel.close()
    return replies


def over_tcp(question, server, port):
    with Stream(server=server, port=port) as stream:
        stream.send(b"\0\0" + question)
        return stream.receive_bytes()


def name_end(wire, offset):
    while True:
        length = wire[offset]
        if length == 0:
            return offset + 1
        if length >= 0xC0:
            return offset + 2
        offset += length + 1


def comparable(wire):
    """The parts that must be equal: flags but AA, code, sections without TTLs, the OPT's DO and extended errors."""
    flags, *counts = struct.unpack_from("!5H", wire, 2)
    offset = 12
    for _ in range(counts[0]):
        offset = name_end(wire, offset) + 4
    body = bytearray(wire)
    opt, code, end = None, flags & 15, offset
    for index in range(sum(counts[1:])):
        end = offset
        offset = name_end(wire, offset)
        kind, _, ttl, length = struct.unpack_from("!HHIH", wire, offset)
        if kind == 41:
            assert index == sum(counts[1:]) - 1, "the OPT comes last"
            opt, code = (ttl & 0xFFFF, errors(wire, offset + 10, length)), code | ttl >> 24 << 4
            counts[3] -= 1
            break
        body[offset + 4:offset + 8] = bytes(4)
        offset += 10 + length
        end = offset
    return flags & ~0x40F, code, tuple(counts), bytes(body[12:end]), opt


def errors(wire, offset, length):
    found, end = [], offset + length
    while offset < end:
        code, size = struct.unpack_from("!HH", wire, offset)
        if code == 15:
            found.append(struct.unpack_from("!H", wire, offset + 4)[0])
        offset += 4 + size
    return found[:1]


def same_records(direct, through):
    """Whether records are equal; names may be spelled and compressed otherwise, and the additional section may be missing."""
    one, other = (dns.message.from_wire(wire, one_rr_per_rrset=True) for wire in (direct, through))

    def records(message, section):
        return [(rrset.name, rrset.rdclass, rrset.rdtype, rrset[0].to_digestable())
                for rrset in getattr(message, section)]
    return (one.question == other.question and not records(other, "additional")
            and all(records(one, section) == records(other, section) for section in ("answer", "authority")))


def same(direct, through):
    left, right = comparable(direct), comparable(through)
    if left == right:
        return "alike"
    if (left[:2], left[2][:3], left[4]) == (right[:2], right[2][:3], right[4]) and same_records(direct, through):
        return "spelled otherwise"
    return None


def differences(questions, direct, through, port):
    """(question, direct, through) of each pair of answers that differ, and the counts."""
    counted = dict.fromkeys(["alike", "spelled otherwise", "over TCP", "AD", "SERVFAIL with EDE", "asked again"], 0)
    different = []
    for question, one, other in zip(questions, direct, through, strict=True):
        if one[2] & 2 or other[2] & 2:
            assert len(other) <= 1232 and (not other[2] & 2 or not struct.unpack_from("!H", other, 6)[0])
            counted["over TCP"] += 1
            one, other = over_tcp(question, ADDRESS, 53), over_tcp(question, "127.0.0.1", port)
        verdict = same(one, other)
        if not verdict:
            # unbound gives varying reasons for a SERVFAIL, and a datagram can be lost: in both cases the question is asked
            # once more. A wrong answer in the daemon's cache would be wrong again.
            counted["asked again"] += 1
            one, other = over_tcp(question, ADDRESS, 53), over_tcp(question, "127.0.0.1", port)
            if question[1] & CD and other[3] & AD:
                # For a cached answer, unbound sets AD with CD only if the additional records are validated as well,
                # which the daemon does not pass on. An answer without CD is validated, and serves clients with CD.
                checked = over_tcp(question[:1] + bytes([question[1] & ~CD]) + question[2:], ADDRESS, 53)
                one = one[:3] + bytes([one[3] | checked[3] & AD]) + one[4:]
            verdict = same(one, other)
        if verdict:
            counted[verdict] += 1
        else:
            different.append((question, one, other))
        flags, code, _, _, opt = comparable(one)
        counted["AD"] += bool(flags & AD)
        counted["SERVFAIL with EDE"] += code == 2 and opt is not None and opt[1] != []
    return different, counted


def shown(different):
    return "\n\n".join(f"{dns.message.from_wire(one)}\n -- through the daemon --\n{dns.message.from_wire(other)}"
                       for _, one, other in different[:3])
