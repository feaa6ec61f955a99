#!/usr/bin/python3
"""An HTTPDNS service for tests, written from the protocol alone and sharing no code with the daemon.

It speaks AES and DES over HTTP and plain text over HTTPS, answers from a dict, records every request and every
departure from the protocol, and can be told to misbehave. In a test it runs on threads of the test process; by hand:

    python3 httpdns_service.py --encryption aes --port 8053 --record www.example.com=203.0.113.10,2001:db8::10
"""

import argparse
import contextlib
import ipaddress
import os
import socket
import ssl
import struct
import sys
import threading
import time
import zlib
from dataclasses import dataclass, field
from email.utils import formatdate
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

try:  # the module in newer releases of `cryptography`
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
except ImportError:
    TripleDES = algorithms.TripleDES

NAMES_IN_A_BATCH = 8


class AES:
    """AES-128-CBC, PKCS#7, a random IV before the ciphertext, as lower-case hex."""

    def __init__(self, key):
        self.key = key.encode()

    def encrypt(self, text):
        initial = os.urandom(16)
        padder = padding.PKCS7(128).padder()
        padded = padder.update(text.encode()) + padder.finalize()
        encryptor = Cipher(algorithms.AES(self.key), modes.CBC(initial)).encryptor()
        return (initial + encryptor.update(padded) + encryptor.finalize()).hex()

    def decrypt(self, text):
        payload = bytes.fromhex(text)
        decryptor = Cipher(algorithms.AES(self.key), modes.CBC(payload[:16])).decryptor()
        padded = decryptor.update(payload[16:]) + decryptor.finalize()
        unpadder = padding.PKCS7(128).unpadder()
        return (unpadder.update(padded) + unpadder.finalize()).decode()


class DES:
    """DES-ECB, PKCS#5, as lower-case hex. Triple DES with one key three times over is DES."""

    def __init__(self, key):
        self.key = key.encode() * 3

    def encrypt(self, text):
        padder = padding.PKCS7(64).padder()
        padded = padder.update(text.encode()) + padder.finalize()
        encryptor = Cipher(TripleDES(self.key), modes.ECB()).encryptor()  # noqa: S305 (the protocol's choice)
        return (encryptor.update(padded) + encryptor.finalize()).hex()

    def decrypt(self, text):
        decryptor = Cipher(TripleDES(self.key), modes.ECB()).decryptor()  # noqa: S305 (the protocol's choice)
        padded = decryptor.update(bytes.fromhex(text)) + decryptor.finalize()
        unpadder = padding.PKCS7(64).unpadder()
        return (unpadder.update(padded) + unpadder.finalize()).decode()


class PlainText:
    """HTTPS: TLS encrypts, so texts stay plain."""

    encrypt = staticmethod(lambda text: text)
    decrypt = staticmethod(lambda text: text)


@dataclass
class Record:
    """The service's record of a name."""

    v4: list = field(default_factory=list)
    v6: list = field(default_factory=list)
    ttl: int = 120


@dataclass
class Request:
    """One request as the service understood it."""

    names: list
    kind: str  # "", "aaaa" or "addrs"
    parameters: dict
    connection: int
    at: float = 0  # on the monotonic clock
    expiry: int = None  # what follows the names as ";<seconds since 1970>"


def address_of(name, family=4):
    """The address `every_name` has for a name, one of 65,536."""
    digest = zlib.crc32(name.encode())
    return f"198.18.{digest >> 8 & 255}.{digest & 255}" if family == 4 else f"2001:db8:18::{digest & 65535:x}"


def every_name(name, request):
    """A zone that knows every name."""
    return Record([address_of(name)], [address_of(name, 6)], 600)


@dataclass
class Fault:
    """A fault of the service; see `_reply` for each kind."""

    kind: str
    value: object = None


class HTTPDNSService:
    """Listens from `start` to `stop`; may be started again on the same port.

    `zone` is a dict of `Record`, or a function from a name and a `Request` to one. `expiring`: every request must carry
    a time that is yet to come after its names, and gets 401 else, with the time of a clock that is `skew` seconds ahead;
    without it no request may carry one. `conf` is what
    /conf says; None: there is no such path.
    """

    def __init__(self, encryption, zone, *, address="127.0.0.3", port=0, dns_id=12345, key=None, token="678905432",
                 tls=None, expiring=False, skew=0, conf=None):
        self.encryption = encryption
        self.zone = zone
        self.expiring = expiring
        self.skew = skew
        self.conf = conf
        self.conf_requests = []  # parameters of each request for /conf
        self.address = address
        self.port = port
        self.dns_id = dns_id
        self.key = key or {"aes": "Swift-HTTPDNS-16", "des": "Swift!01", "https": ""}[encryption]
        self.token = token
        self.tls = tls
        self.cipher = {"aes": lambda: AES(self.key), "des": lambda: DES(self.key), "https": PlainText}[encryption]()
        self.fault = None  # a Fault, or a function from Request to Fault or None
        self.requests = []
        self.violations = []
        self.targets = []  # request targets as they came
        self.hosts = []  # Host headers
        self.resumed = []  # for each TLS connection: was its session resumed?
        self.peers = []  # for each TLS connection: the common name in the client's certificate, None without one
        self.connections = 0
        self._lock = threading.Lock()
        self._gate = threading.Event()
        self._gate.set()
        self._live = set()
        self._stopping = threading.Event()
        self._listener = None

    @property
    def endpoint(self):
        return f"{self.address}:{self.port}"

    @property
    def names(self):
        """Every name of every request, in order."""
        return [name for request in self.requests for name in request.names]

    @property
    def clients(self):
        """(address, port) of the other end of every open connection."""
        with self._lock:
            live = list(self._live)
        found = []
        for connection in live:
            with contextlib.suppress(OSError):
                found.append(connection.getpeername()[:2])
        return found

    def settings(self):
        """The `[httpdns]` section of a daemon that uses this service."""
        section = {"encryptType": self.encryption, "dnsIp": [self.endpoint], "timeout": 3000}
        if self.encryption == "https":
            return section | {"token": self.token}
        return section | {"dnsId": self.dns_id, "dnsKey": self.key}

    def start(self):
        self._stopping.clear()
        listener = socket.socket(socket.AF_INET6 if ":" in self.address else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((self.address, self.port))
        listener.listen(128)
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return self

    def stop(self):
        """Closes the listener and all connections before it returns."""
        self._stopping.set()
        self._gate.set()
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        self.drop_connections()

    def restart(self):
        self.stop()
        self.start()

    def drop_connections(self):
        with self._lock:
            live = list(self._live)
        for connection in live:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def hold(self):
        """Requests are recorded but not answered until `release`."""
        self._gate.clear()

    def release(self):
        self._gate.set()

    def _accept(self, listener):
        while not self._stopping.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                number = self.connections
                self._live.add(connection)
            threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection, number):
        raw = connection
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
                with self._lock:
                    self._live.discard(raw)
                    self._live.add(connection)
                self.resumed.append(connection.session_reused)
                subject = dict(pair for part in (connection.getpeercert() or {}).get("subject", ()) for pair in part)
                self.peers.append(subject.get("commonName"))
            buffer = b""
            while True:
                while b"\r\n\r\n" not in buffer:
                    received = connection.recv(65536)
                    if not received:
                        return
                    buffer += received
                head, _, buffer = buffer.partition(b"\r\n\r\n")
                if not self._answer(connection, number, head.decode("latin-1")):
                    return
        except (OSError, ssl.SSLError):
            return  # the client, or `stop`, closed it
        finally:
            with self._lock:
                self._live.discard(raw)
                self._live.discard(connection)
            connection.close()

    def _violation(self, text):
        self.violations.append(text)

    def _read_head(self, lines):
        """The parts of a request's head; target and Host are recorded for tests."""
        method, target, version = (lines[0].split(" ") + ["", ""])[:3]
        headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines[1:]}
        self.targets.append(target)
        self.hosts.append(headers.get("host"))
        return method, target, version, headers

    def _answer(self, connection, number, head):
        """Answers one request. Returns whether the connection stays open."""
        lines = head.split("\r\n")
        method, target, version, headers = self._read_head(lines)
        if version != "HTTP/1.1" or "host" not in headers:
            self._violation(f"not HTTP/1.1 with a Host: {lines[0]!r}")
        if method != "GET":
            self._violation(f"method {method}")
            return self._send(connection, 501, b"")
        path, _, query = target.partition("?")
        if path == "/conf" and self.conf is not None:
            return self._answer_conf(connection, parse_qs(query, separator="&"))
        if path != "/d":
            self._violation(f"path {path}")
            return self._send(connection, 404, b"")
        parameters = {key: values[0] for key, values in
                      parse_qs(query, keep_blank_values=True, separator="&").items()}
        request = self._read(parameters, number)
        if request is None:
            return self._send(connection, 401, b"")
        with self._lock:
            self.requests.append(request)
        fault = self.fault(request) if callable(self.fault) else self.fault
        self._gate.wait(30)
        return self._reply(connection, request, fault)

    def _answer_conf(self, connection, query):
        parameters = {key: values[0] for key, values in query.items()}
        self.conf_requests.append(parameters)
        if not self._is_authorized(parameters):
            return self._send(connection, 401, b"")
        if "dn" in parameters:
            self._violation("a name in a request for /conf")
        return self._send(connection, 200, self.cipher.encrypt(self.conf).encode())

    def _is_authorized(self, parameters):
        if self.encryption == "https":
            return parameters.get("token") == self.token
        if parameters.get("alg") != self.encryption:
            self._violation(f"alg is {parameters.get('alg')!r}")
        return parameters.get("id") == str(self.dns_id)

    def _read(self, parameters, number):
        """The request, or None for a refused one. Violations of the protocol are recorded."""
        if not self._is_authorized(parameters):
            return None
        for flag in ("query", "ttl"):
            if parameters.get(flag) != "1":
                self._violation(f"{flag}=1 is missing")
        if "dnsKey" in parameters or self.key and self.key in str(parameters):
            self._violation("the key is in the request")
        limit = parameters.get("timeout", "none")
        if not limit.isdigit() or not 1000 <= int(limit) <= 5000:
            self._violation(f"timeout is {limit}")
        sent = parameters.get("dn", "")
        if self.encryption != "https" and sent != sent.lower():
            self._violation("dn is not lower-case hex")
        try:
            text = self.cipher.decrypt(sent)
        except ValueError as error:
            self._violation(f"dn does not decrypt: {error}")
            return None
        expiry = None
        if self.expiring:
            text, _, seconds = text.partition(";")
            if not seconds.isdigit() or int(seconds) <= time.time() + self.skew:
                return None
            expiry = int(seconds)
        names = text.split(",")
        if len(names) > NAMES_IN_A_BATCH:
            self._violation(f"{len(names)} names in a batch")
        if len(set(names)) != len(names):
            self._violation(f"a name twice in a batch: {names}")
        for name in names:
            allowed = name and all(part and len(part) <= 63 and set(part) <= LABEL for part in name.split("."))
            if not allowed or len(name) > 253:
                self._violation(f"not a lower-case host name without a final dot: {name!r}")
        kind = parameters.get("type", "")
        if kind not in ("", "aaaa", "addrs"):
            self._violation(f"type is {kind!r}")
        return Request(names, kind, parameters, number, time.monotonic(), expiry)

    def line(self, name, request):
        """The service's text about one name."""
        record = self.zone(name, request) if callable(self.zone) else self.zone.get(name, Record())
        suffix = f",{record.ttl}" if request.parameters.get("ttl") == "1" else ""

        def listed(addresses):
            return ";".join(addresses) + suffix if addresses else "0"

        result = {"": lambda: listed(record.v4), "aaaa": lambda: listed(record.v6),
                  "addrs": lambda: listed(record.v4) + "-" + listed(record.v6)}[request.kind]()
        if request.parameters.get("query") == "1" or len(request.names) > 1:
            result = f"{name}.:{result}"
        if request.parameters.get("clientip") == "1":
            result += "|203.0.113.7"
        return result

    def _reply(self, connection, request, fault):
        kind, value = (fault.kind, fault.value) if fault else (None, None)
        text = "\n".join(self.line(name, request) for name in request.names)
        if kind == "status":
            return self._send(connection, value, b"")
        if kind == "silence":
            self._stopping.wait(value or 30)
            return False
        if kind == "delay":
            self._stopping.wait(value)
        elif kind == "text":
            text = value
        elif kind == "wrong-name":
            text = "\n".join(self.line(name, request).replace(f"{name}.:", "other.example.net.:", 1)
                             for name in request.names)
        elif kind == "no-family":
            text = ""
        elif kind == "first-only":
            text = self.line(request.names[0], request)
        body = b"\xff\xfenot hex at all<html>" if kind == "garbage" else self.cipher.encrypt(text).encode()
        if kind == "empty-body":
            body = b""
        if kind == "close-mid-body":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:len(body) // 2])
            return False
        if kind == "chunked":
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for start in range(0, len(body), 7):
                piece = body[start:start + 7]
                connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            connection.sendall(b"0\r\n\r\n")
            return True
        if kind == "until-close":
            connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)
            if self.tls is not None:
                connection.unwrap()  # sends close_notify; without it the body might have been cut short
            return False
        if kind == "byte-by-byte":
            reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            for octet in reply:
                connection.sendall(bytes([octet]))
            return True
        if kind == "endless":
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while not self._stopping.is_set():
                connection.sendall(b"0" * 65536)
            return False
        if kind == "reset":
            plain = connection
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if kind == "stray":  # one more response, in the same segment, with another text
            more = self.cipher.encrypt(value).encode()
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
            connection.sendall(head % len(body) + body + head % len(more) + more)
            return True
        return self._send(connection, 200, body, close=kind == "connection-close")

    def _send(self, connection, status, body, close=False):
        extra = b"Connection: close\r\n" if close else b""
        if self.expiring:
            extra += f"Date: {formatdate(time.time() + self.skew, usegmt=True)}\r\n".encode()
        connection.sendall(b"HTTP/1.1 %d Status\r\nContent-Type: text/html\r\n%sContent-Length: %d\r\n\r\n"
                           % (status, extra, len(body)) + body)
        return not close


LABEL = set("abcdefghijklmnopqrstuvwxyz0123456789-_")


def _main():
    parser = argparse.ArgumentParser(description="HTTPDNS service for tests")
    parser.add_argument("--encryption", choices=["aes", "des", "https"], default="aes")
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8053)
    parser.add_argument("--key", help="16 bytes for aes, 8 for des")
    parser.add_argument("--certificate", help="PEM file with certificate and key, for https")
    parser.add_argument("--record", action="append", default=[], metavar="NAME=ADDRESS[,ADDRESS]…")
    arguments = parser.parse_args()
    zone = {}
    for text in arguments.record or ["www.example.com=203.0.113.20,203.0.113.10,2001:db8::20"]:
        name, _, addresses = text.partition("=")
        parsed = [ipaddress.ip_address(address) for address in addresses.split(",")]
        zone[name.lower()] = Record(*([str(a) for a in parsed if a.version == version] for version in (4, 6)))
    tls = None
    if arguments.encryption == "https":
        if not arguments.certificate:
            parser.error("--encryption https needs --certificate")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(arguments.certificate)
    service = HTTPDNSService(arguments.encryption, zone, address=arguments.address, port=arguments.port,
                             key=arguments.key, tls=tls).start()
    print(f"[httpdns] for {service.endpoint}: {service.settings()}", flush=True)
    shown = 0
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            for request in service.requests[shown:]:
                print(request, flush=True)
                shown += 1
            for violation in service.violations:
                print("violation:", violation, file=sys.stderr, flush=True)
            service.violations.clear()
            time.sleep(0.2)


if __name__ == "__main__":
    _main()
