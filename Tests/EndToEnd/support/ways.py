"""The ways by which clients ask the daemon: UDP, TCP, TLS (RFC 7858), and HTTPS (RFC 8484) by HTTP/2 and HTTP/1.1.

Each connection of `WAYS` takes a message by `send`, as many as are wanted, and gives replies by `receive_bytes`.
"""

import base64
import contextlib
import http.client
import socket
import ssl
import warnings

import dns.message
import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings
import pytest

from control import METRICS
from dns_client import Stream
from resolvers import reply_to

PORT, TLS, HTTPS = 2053, 8853, 8443
ELSEWHERE = "10.53.53.53"  # an address of this machine that is not on loopback
MESSAGE = "application/dns-message"
LOCALHOST = dns.message.make_query("localhost", "A", id=0).to_wire()


def from_address(source):
    return (source, 0) if source else None


class Datagrams:
    """Questions over UDP, from one port."""

    def __init__(self, *, server="127.0.0.1", source=None, timeout=20.0):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.socket.settimeout(timeout)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect((server, PORT))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, message):
        self.socket.send(message)

    def receive_bytes(self):
        return self.socket.recv(65_535)


class Encrypted(Stream):
    """A connection with TLS that carries many questions."""

    def __init__(self, context, *, server="127.0.0.1", port=TLS, name="dns.example", source=None, timeout=20.0, session=None):
        plain = socket.create_connection((server, port), timeout, from_address(source))
        self.socket = context.wrap_socket(plain, server_hostname=name, session=session)


def dial(context, protocols, server="127.0.0.1", source=None, timeout=20.0):
    context.set_alpn_protocols(list(protocols))
    plain = socket.create_connection((server, HTTPS), timeout, from_address(source))
    return context.wrap_socket(plain, server_hostname="dns.example")


class Over2:
    """A connection with HTTP/2, by Python's h2."""

    def __init__(self, context, server="127.0.0.1", window=None, **options):
        self.socket = dial(context, ["h2"], server, **options)
        assert self.socket.selected_alpn_protocol() == "h2"
        self.connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.answers, self.ended, self.agreed = {}, None, 0
        self.connection.initiate_connection()
        if window is not None:
            self.connection.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.flush()
        while self.agreed < (1 if window is None else 2):
            assert self.hear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def flush(self):
        self.socket.sendall(self.connection.data_to_send())

    def begin(self, method, path, fields=(), body=b""):
        stream = self.connection.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "https"), (":authority", "dns.example"), (":path", path), *fields]
        self.connection.send_headers(stream, head, end_stream=not body)
        if body:
            with contextlib.suppress(h2.exceptions.ProtocolError):
                for start in range(0, len(body), 16_384):
                    self.connection.send_data(stream, body[start:start + 16_384])
                self.connection.end_stream(stream)
        self.answers[stream] = [None, {}, b""]
        self.flush()
        return stream

    def ask(self, message):
        return self.begin("POST", "/dns-query", [("content-type", MESSAGE)], message)

    def hear(self):
        """Takes what comes next; false: the server has closed."""
        octets = self.socket.recv(65_536)
        for event in self.connection.receive_data(octets) if octets else []:
            stream = getattr(event, "stream_id", None)
            if isinstance(event, h2.events.ResponseReceived):
                fields = dict(event.headers)
                self.answers[stream][:2] = int(fields.pop(":status")), fields
            elif isinstance(event, h2.events.DataReceived):
                self.answers[stream][2] += event.data
                self.connection.acknowledge_received_data(event.flow_controlled_length, stream)
            elif isinstance(event, h2.events.StreamEnded):
                self.answers[stream].append("ended")
            elif isinstance(event, h2.events.SettingsAcknowledged):
                self.agreed += 1
            elif isinstance(event, h2.events.ConnectionTerminated):
                self.ended = event.error_code
        self.flush()
        return bool(octets)

    def answer(self, stream):
        while len(self.answers[stream]) < 4:
            assert self.hear() and self.ended is None, self.ended
        return tuple(self.answers.pop(stream)[:3])

    def request(self, *request):
        return self.answer(self.begin(*request))

    send = ask

    def receive_bytes(self):
        """The reply that is whole first; None where HTTP says that there is none."""
        while not (whole := next((stream for stream, parts in self.answers.items() if len(parts) > 3), None)):
            assert self.hear() and self.ended is None, self.ended
        status, _, body = self.answer(whole)
        return body if status == 200 else None


def framed_by_http(message):
    return (b"POST /dns-query HTTP/1.1\r\nHost: dns.example\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
            % (MESSAGE.encode(), len(message))) + message


class Over1:
    """A connection with HTTP/1.1, by Python's own client."""

    def __init__(self, context, server="127.0.0.1", **options):
        self.connection = http.client.HTTPConnection("dns.example")
        self.connection.sock = self.socket = dial(context, ["http/1.1"], server, **options)
        self._replies = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._replies.close()
        self.connection.close()

    def send(self, message):
        self.socket.sendall(framed_by_http(message))

    def receive_bytes(self):
        status = self._replies.readline().split()[1]
        fields = http.client.parse_headers(self._replies)
        body = self._replies.read(int(fields["Content-Length"]))
        return body if status == b"200" else None

    def request(self, method, path, fields=(), body=b""):
        self.connection.request(method, path, body=body or None, headers=dict(fields))
        answer = self.connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


def post(connection, message):
    return connection.request("POST", "/dns-query", [("content-type", MESSAGE)], message)


def get(connection, message):
    return connection.request("GET", "/dns-query?dns=" + base64.urlsafe_b64encode(message).decode().rstrip("="))


# The classes by name; those over TLS take a context.
WAYS = {"udp": Datagrams, "tcp": Stream, "tls": Encrypted, "https": Over2, "https1": Over1}
CONNECTIONS = [way for way in WAYS if way != "udp"]


@pytest.fixture
def trusting(authority):
    """A client's context that trusts the tests' authority alone."""
    def make(version=None, protocols=(), ciphers=None):
        context = ssl.create_default_context(cafile=authority.file)
        if version:
            with warnings.catch_warnings(action="ignore"):  # deprecated versions cause warnings
                context.minimum_version = context.maximum_version = version
        if protocols:
            context.set_alpn_protocols(list(protocols))
        if ciphers:
            context.set_ciphers(ciphers)
        return context
    return make


@pytest.fixture
def certificate(authority):
    return authority.server_file(names=["dns.example"])


@pytest.fixture
def serving(daemon, scripted_resolver, certificate):
    """Starts a daemon with TLS; the resolver answers each name with one address."""
    def start(answer=None, listen=None, file=None, **settings):
        resolver = scripted_resolver(answer or (lambda asked: reply_to(
            asked.message, *(["60 IN A 192.0.2.1"] if asked.kind == "A" else []))))
        file = str(file or certificate)
        listen = {"addresses": [f"127.0.0.1:{PORT}", f"{ELSEWHERE}:{PORT}"], "allow": ["127.0.0.0/8"],
                  "tls": [f"127.0.0.1:{TLS}", f"{ELSEWHERE}:{TLS}"], "certificateFile": file, "keyFile": file} | (listen or {})
        whole = {"listen": listen, "control": {"metrics": f"{METRICS[0]}:{METRICS[1]}"},
                 "fallback": {"servers": [resolver.endpoint]}}
        for section, keys in settings.items():
            whole[section] = whole.get(section, {}) | keys
        running = daemon(None, whole, port=PORT)
        running.resolver = resolver
        return running
    return start


@pytest.fixture
def everywhere(serving):
    """Starts a daemon that this host and the host at `ELSEWHERE` may ask over every transport."""
    def start(answer=None, listen=None, **settings):
        https = {"https": [f"127.0.0.1:{HTTPS}", f"{ELSEWHERE}:{HTTPS}"], "allow": ["127.0.0.0/8", "10.53.53.0/24"]}
        return serving(answer, https | (listen or {}), **settings)
    return start


@pytest.fixture
def connect(trusting):
    """A client's connection over one of `WAYS`; for UDP, its substitute."""
    def make(way, **options):
        if way == "tcp":
            options.setdefault("port", PORT)
        return WAYS[way](*([] if way in ("udp", "tcp") else [trusting()]), **options)
    return make
