"""HTTPS records (RFC 9460) of an account's names: the client's answer, and a browser's use of it."""

import os
import socket
import struct
import threading

import dns.rcode
import dns.rdatatype
import pytest

import chromium
from dns_client import addresses, ask
from httpdns_service import Record
from resolvers import reply_to
from waiting import eventually

WEB = "127.0.0.77"  # the account's address
ELSEWHERE = "127.0.0.78"  # the address in hints
OUTER = "cover.example.net"  # the outer name, which is public


def ech_configs(config_id=77):
    """A list of one configuration of Encrypted Client Hello: X25519, HKDF-SHA256, AES-128-GCM."""
    key = bytes([9]) + bytes(31)  # any point will do: only the first message is checked
    contents = struct.pack("!BHH", config_id, 0x0020, len(key)) + key + struct.pack("!HHH", 4, 1, 1)
    contents += bytes([0, len(OUTER)]) + OUTER.encode() + b"\0\0"
    config = struct.pack("!HH", 0xFE0D, len(contents)) + contents
    return struct.pack("!H", len(config)) + config


def binding(alpn="h2", ech=None, hint=ELSEWHERE):
    """The data of a record, as a zone file has it."""
    import base64
    text = f'1 . alpn="{alpn}" ipv4hint={hint}'
    return text + (f" ech={base64.b64encode(ech).decode()}" if ech else "")


@pytest.fixture
def start(daemon, service, encrypted_resolver, authority):
    """A daemon whose account knows all names, and whose fallback is asked over HTTPS and has HTTPS records."""
    def script(asked, connection):
        name, kind = asked.name.to_text(), asked.kind
        if kind != "HTTPS" or name.startswith("none"):
            return reply_to(asked.message, "60 IN SOA example.com. nobody.example.com. 1 2 3 4 60", section="authority")
        if name.startswith("gone"):
            return reply_to(asked.message, rcode=dns.rcode.NXDOMAIN)
        return reply_to(asked.message, f"300 IN HTTPS {script.data}")
    script.data = binding()
    resolver = encrypted_resolver("https", script)
    account = service("https", lambda name, request: Record([WEB], [], 120))

    def start(**httpdns):
        resolver.questions.clear()
        return daemon(account, {"fallback": {"servers": [resolver.url], "hosts": "", "caFile": str(authority.file)},
                                "httpdns": account.settings() | httpdns})
    start.script, start.resolver = script, resolver
    return start


def https(name):
    reply = ask(name, "HTTPS")
    assert reply.rcode() == dns.rcode.NOERROR
    return [rdata.to_text() for rrset in reply.answer if rrset.rdtype == dns.rdatatype.HTTPS for rdata in rrset]


def test_the_record_leads_to_the_accounts_addresses(start):
    start()
    assert https("new.example.com") == ['1 . alpn="h2"']
    assert addresses(ask("www.example.com")) == [WEB]
    assert https("www.example.com") == [f'1 . alpn="h2" ipv4hint="{WEB}"']
    assert https("none.example.com") == https("gone.example.com") == []
    assert {asked.kind for asked in start.resolver.questions} == {"HTTPS"}


def test_none_asks_nobody(start):
    start(serviceBinding="none")
    assert https("www.example.com") == []
    assert start.resolver.questions == []


class Hellos:
    """Takes connections at the web server's address, and keeps the first message of each."""

    def __init__(self, address=WEB):
        self._listener = socket.create_server((address, 443))
        self.all = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                head = connection.recv(5, socket.MSG_WAITALL)
                if len(head) == 5 and head[0] == 22:
                    self.all.append(extensions(connection.recv(struct.unpack("!H", head[3:])[0], socket.MSG_WAITALL)))

    def stop(self):
        self._listener.close()


def extensions(hello):
    """The extensions of a ClientHello (RFC 8446 §4.1.2), by their number."""
    at = 4 + 2 + 32
    at += 1 + hello[at]
    at += 2 + struct.unpack_from("!H", hello, at)[0]
    at += 1 + hello[at]
    end, at, found = at + 2 + struct.unpack_from("!H", hello, at)[0], at + 2, {}
    while at < end:
        number, length = struct.unpack_from("!HH", hello, at)
        found[number] = hello[at + 4:at + 4 + length]
        at += 4 + length
    return found


def test_chromium_encrypts_the_name_to_the_accounts_address(start):
    """Chromium uses the key of the record, and connects to the address from HTTPDNS."""
    start.script.data = binding(ech=ech_configs())
    start()
    # Chromium waits for the record for some 50 ms only, so all records are cached first.
    assert all(ask("www.example.com", kind).answer for kind in ("A", "HTTPS")) and not ask("www.example.com", "AAAA").answer
    hellos, others = Hellos(), Hellos(ELSEWHERE)

    def hello_with_the_record():
        """The first message of a new Chromium; None if it went without the record, which it then does not look up again."""
        before = len(hellos.all)
        browser = chromium.Chromium("--enable-features=AsyncDns", "--disable-features=DnsOverHttpsUpgrade")
        try:
            browser.go("https://www.example.com/")
            # Chromium also connects for its own updates.
            names = (OUTER.encode(), b"www.example.com")
            hello = eventually(lambda: [hello for hello in hellos.all[before:] if hello[0].endswith(names)], "chromium connects")[0]
        finally:
            browser.close()
        return hello if hello[0].endswith(OUTER.encode()) else None
    try:
        hello = eventually(hello_with_the_record, "chromium has waited for the record", within=60)
    finally:
        hellos.stop()
        others.stop()
    assert others.all == []
    # server_name has the outer name, and encrypted_client_hello names the configuration (RFC 9849 §5): type, suite, id.
    kind, _, _, config_id = struct.unpack_from("!BHHB", hello[0xFE0D])
    assert (kind, config_id) == (0, 77)
