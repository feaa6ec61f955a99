"""Questions to the daemon, by dnspython and by bare sockets."""

import socket
import struct

import dns.edns
import dns.message
import dns.query
import dns.rdatatype

SERVER = "127.0.0.1"


def ask(name, kind="A", *, transport="udp", server=SERVER, port=53, source=None, edns=False, timeout=20.0, message=None,
        **options):
    """One question, one answer. `edns=True` sends an OPT; `options` go to dnspython's `make_query`."""
    if message is None:
        if edns is True:
            options.setdefault("payload", 1232)
        message = dns.message.make_query(name, kind, use_edns=0 if edns is True else edns, **options)
    query = dns.query.udp if transport == "udp" else dns.query.tcp
    return query(message, server, timeout=timeout, port=port, source=source)


def addresses(reply, kind="A"):
    """The addresses of the answer section in their order."""
    return [rdata.address for rrset in reply.answer if rrset.rdtype == dns.rdatatype.from_text(kind) for rdata in rrset]


def extended_errors(reply):
    return [int(option.code) for option in reply.options if option.otype == dns.edns.EDE]


def reasons(reply):
    """The texts of the extended errors."""
    return " ".join(option.text or "" for option in reply.options if option.otype == dns.edns.EDE)


def synthetic_soa(reply):
    """The SOA of a "no data" answer: (TTL, MINIMUM)."""
    found = [rrset for rrset in reply.authority if rrset.rdtype == dns.rdatatype.SOA]
    assert len(found) == 1, reply
    return found[0].ttl, found[0][0].minimum


def has_opt(reply):
    return reply.edns >= 0


def exchange(payload, *, server=SERVER, port=53, timeout=20.0):
    """Raw bytes over UDP; the raw answer, or None when none comes."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.settimeout(timeout)
        channel.connect((server, port))
        channel.send(payload)
        try:
            return channel.recv(65535)
        except TimeoutError:
            return None


class Stream:
    """A TCP connection that carries many questions."""

    def __init__(self, *, server=SERVER, port=53, source=None, timeout=20.0):
        self.socket = socket.create_connection((server, port), timeout, (source, 0) if source else None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, message):
        wire = message if isinstance(message, bytes) else message.to_wire()
        self.socket.sendall(struct.pack("!H", len(wire)) + wire)

    def receive(self):
        """The next message; None at the end of the stream."""
        wire = self.receive_bytes()
        return None if wire is None else dns.message.from_wire(wire)

    def receive_bytes(self):
        length = self._exactly(2)
        return None if length is None else self._exactly(struct.unpack("!H", length)[0])

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                assert not data, "the stream ended inside a message"
                return None
            data += piece
        return data


def labels(name):
    """A name as it stands in a DNS message."""
    return b"".join(bytes([len(label)]) + label.encode() for label in name.rstrip(".").split(".")) + b"\0"
