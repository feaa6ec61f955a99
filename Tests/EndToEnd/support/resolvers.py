"""Local resolvers: a real unbound that owns a zone of many types, and a scripted one for behaviour that unbound never shows."""

import pathlib
import re
import socket
import socketserver
import struct
import subprocess
import threading
from dataclasses import dataclass

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

from dns_client import ask
from waiting import eventually

HERE = pathlib.Path(__file__).parent


def encryption(address, certificate):
    """unbound's settings for TLS at port 853 and HTTPS at port 443."""
    if certificate is None:
        return []
    return [f"  interface: {address}@853", f"  interface: {address}@443", "  tls-port: 853", "  https-port: 443",
            f'  tls-service-pem: "{certificate}"', f'  tls-service-key: "{certificate}"']


class Program:
    """A resolver that runs, with its address, process and log."""

    def _answers(self):
        assert self.process.poll() is None, self._log.read_text()
        try:
            return ask("ns.example.com", server=self.address, timeout=0.2).answer
        except (OSError, dns.exception.DNSException):
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


class Unbound(Program):
    """unbound as the master of the files in `zones`, for every name there is.

    With a `certificate` (a file that holds its key as well) it also speaks TLS at port 853 and HTTPS at port 443. `more` are
    further lines of its section `server`.
    """

    def __init__(self, directory, address="127.0.0.2", certificate=None, more=()):
        self.address = address
        self._log = pathlib.Path(directory) / "unbound.log"
        configuration = pathlib.Path(directory) / "unbound.conf"
        own = ["localhost", "test", "invalid", "onion", "home.arpa", "127.in-addr.arpa"]
        configuration.write_text("\n".join([
            "server:", f"  interface: {address}", f'  directory: "{directory}"', '  chroot: ""', '  username: ""',
            '  pidfile: ""', "  do-daemonize: no", "  use-syslog: no", f'  logfile: "{self._log}"',
            "  log-queries: yes", *encryption(address, certificate),
            "  access-control: 127.0.0.0/8 allow", '  module-config: "iterator"', "  unblock-lan-zones: yes",
            "  num-threads: 1", "  rrset-roundrobin: no", *[f'  local-zone: "{zone}." nodefault' for zone in own], *more,
            *self._zone(".", "root.zone"), *self._zone("example.com.", "example.com.zone"),
            "remote-control:", "  control-enable: no"]) + "\n")
        self.process = subprocess.Popen(["unbound", "-d", "-c", str(configuration)], stdin=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        eventually(self._answers, "unbound answers", 60)

    @staticmethod
    def _zone(name, file):
        return ["auth-zone:", f'  name: "{name}"', f'  zonefile: "{HERE / "zones" / file}"', "  for-downstream: yes",
                "  for-upstream: no"]

    def asked(self):
        """(name in lower case, type) of every question so far, in order."""
        found = re.findall(r"info: 127\.\S+ (\S+)\. (\S+) IN", self._log.read_text())
        return [(name.lower(), kind) for name, kind in found]


class Front(Program):
    """A program that speaks TLS at port 853 and HTTPS at port 443, and passes questions on to another resolver."""

    def __init__(self, directory, program, address, certificate, behind):
        self.address = address
        self._log = pathlib.Path(directory) / f"{program}.log"
        configuration = pathlib.Path(directory) / f"{program}.conf"
        pem = f'"{certificate}", "{certificate}"'
        if program == "dnsdist":
            lines = [f'setLocal("{address}:53")', f'addTLSLocal("{address}:853", {pem})',
                     f'addDOHLocal("{address}:443", {pem}, "/dns-query")',
                     f'newServer("{behind}"):setUp()']  # without this, dnsdist would query the resolver each second
            command = ["dnsdist", "--supervised", "--disable-syslog", "-C", str(configuration)]
        else:
            lines = [f"net.listen('{address}', {port}, {{ kind = '{kind}' }})"
                     for port, kind in ((53, "dns"), (853, "tls"), (443, "doh2"))]
            lines += [f"net.tls({pem})", "trust_anchors.remove('.')", "modules.unload('priming')",
                      "cache.size = 10 * MB", f"policy.add(policy.all(policy.STUB('{behind}')))"]
            command = ["kresd", "-n", "-c", str(configuration), str(directory)]
        configuration.write_text("\n".join(lines) + "\n")
        with self._log.open("w") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        eventually(self._answers, f"{program} answers", 60)


@dataclass
class Asked:
    """One question as a scripted resolver received it."""

    message: dns.message.Message
    wire: bytes
    transport: str
    port: int

    @property
    def name(self):
        # The daemon mixes the case of letters as a further secret.
        return self.message.question[0].name.canonicalize()

    @property
    def kind(self):
        return dns.rdatatype.to_text(self.message.question[0].rdtype)


def reply_to(query, *records, rcode=dns.rcode.NOERROR, flags=dns.flags.RA, section="answer"):
    """A resolver's answer; each record is presentation text after the owner, e.g. ("60 IN A 192.0.2.1")."""
    reply = dns.message.make_response(query, recursion_available=True)
    reply.flags |= flags
    reply.set_rcode(rcode)
    for record in records:
        ttl, _, kind, rest = record.split(" ", 3)
        getattr(reply, section).append(dns.rrset.from_text(query.question[0].name, int(ttl), "IN", kind, rest))
    return reply


LOCAL_ADDRESS = "192.0.2.1"


def answer_locally(asked):
    """A script: for every name, an answer that only this resolver gives."""
    record = {"A": f"60 IN A {LOCAL_ADDRESS}", "AAAA": "60 IN AAAA 2001:db8:2::1", "MX": "60 IN MX 10 mx.example.com."}
    return reply_to(asked.message, *([record[asked.kind]] if asked.kind in record else []))


class ScriptedResolver:
    """Asks `script` how to answer each question: a message, raw octets, a list of these, or None for silence."""

    def __init__(self, script, address="127.0.0.4", port=53):
        self.address, self.port = address, port
        self.questions = []
        self.script = script
        self._gate = threading.Event()
        self._gate.set()
        outer = self

        class OverUDP(socketserver.BaseRequestHandler):
            def handle(self):
                wire, channel = self.request
                for answer in outer._answers(wire, "udp", self.client_address[1]):
                    channel.sendto(answer, self.client_address)

        class OverTCP(socketserver.BaseRequestHandler):
            def handle(self):
                while True:
                    length = self.request.recv(2, socket.MSG_WAITALL)
                    if len(length) < 2:
                        return
                    wire = self.request.recv(struct.unpack("!H", length)[0], socket.MSG_WAITALL)
                    for answer in outer._answers(wire, "tcp", self.client_address[1]):
                        self.request.sendall(struct.pack("!H", len(answer)) + answer)

        family, _, _, _, place = socket.getaddrinfo(address, port)[0]

        class UDPServer(socketserver.ThreadingUDPServer):
            address_family, daemon_threads, max_packet_size, block_on_close = family, True, 65535, False

        class TCPServer(socketserver.ThreadingTCPServer):
            address_family, daemon_threads, allow_reuse_address, block_on_close = family, True, True, False

        self._servers = [UDPServer(place, OverUDP), TCPServer(place, OverTCP)]
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def endpoint(self):
        return f"{self.address}:{self.port}"

    def hold(self):
        self._gate.clear()

    def release(self):
        self._gate.set()

    def _answers(self, wire, transport, port):
        asked = Asked(dns.message.from_wire(wire), wire, transport, port)
        self.questions.append(asked)
        self._gate.wait(30)
        answers = self.script(asked)
        if answers is None:
            return []
        answers = answers if isinstance(answers, list) else [answers]
        return [answer if isinstance(answer, bytes) else answer.to_wire() for answer in answers]

    def stop(self):
        self._gate.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()
