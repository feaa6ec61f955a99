"""Writes the named seeds of each fuzz target into its file in Corpus/: /usr/bin/python3 -B seeds.py

Those with names of hexadecimal digits alone were found by fuzzing and are left as they are.
"""

import base64
import json
import os
import struct

import dns.edns
import dns.flags
import dns.message
import dns.opcode
import dns.rrset
import dns.tsigkeyring
import hpack
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import corpus

try:
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
except ImportError:
    TripleDES = algorithms.TripleDES

AES_KEY, DES_KEY = b"0123456789abcdef", b"01234567"
named = {}  # by target and name


def seed(target, name, data):
    named.setdefault(target, {})[name] = data


def encrypt(text, algorithm):
    block = 128 if algorithm == "aes" else 64
    padder = padding.PKCS7(block).padder()
    padded = padder.update(text) + padder.finalize()
    if algorithm == "aes":
        iv = bytes(range(16))
        encryptor = Cipher(algorithms.AES(AES_KEY), modes.CBC(iv)).encryptor()
    else:
        iv = b""
        encryptor = Cipher(TripleDES(DES_KEY * 3), modes.ECB()).encryptor()
    return iv + encryptor.update(padded) + encryptor.finalize()


def option(code, data):
    return dns.edns.GenericOption(code, data)


def query(name="www.Example.COM", rdtype="A", **more):
    message = dns.message.make_query(name, rdtype, **more)
    message.id = 0x1234
    return message


def response(to, rcode=0, flags=0, answer=(), authority=(), additional=(), options=None):
    message = dns.message.make_response(to)
    message.flags |= dns.flags.RA | flags
    message.use_edns(-1)
    message.set_rcode(rcode)
    for section, sets in ((message.answer, answer), (message.authority, authority), (message.additional, additional)):
        section.extend(dns.rrset.from_text(*records) for records in sets)
    if options is not None:
        message.use_edns(0, options=options, payload=1232)
        message.set_rcode(rcode)
    return message.to_wire()


SOA = ("example.com.", 900, "IN", "SOA", "ns1.example.com. host.example.com. 2024010101 7200 900 1209600 300")
LONGEST = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])


def queries():
    signed = query(use_edns=0, payload=1400)
    ring = dns.tsigkeyring.from_text({"key.example.com": "c2VjcmV0c2VjcmV0"})
    signed.use_tsig(ring, algorithm="hmac-sha256")
    status = query()
    status.set_opcode(dns.opcode.STATUS)
    update = query()
    update.set_opcode(dns.opcode.UPDATE)
    plain = query().to_wire()
    opt = query(use_edns=0).to_wire()[len(plain):]
    transfer = query("example.com", "IXFR")
    transfer.authority.append(dns.rrset.from_text(*SOA))
    chaos = query("version.bind", "TXT", rdclass="CH")
    messages = {
        "plain": plain,
        "aaaa": query(rdtype="AAAA").to_wire(),
        "any": query(rdtype="ANY").to_wire(),
        "https": query(rdtype="HTTPS").to_wire(),
        "root": query(".", "NS").to_wire(),
        "longest-name": query(LONGEST).to_wire(),
        "escaped-name": query(r"a\.b\000\255 \(;\$\@\".example").to_wire(),
        "localhost": query("localhost").to_wire(),
        "reverse": query("1.2.0.192.in-addr.arpa", "PTR").to_wire(),
        "flags": struct.pack("!HH", 1, 0x0170) + plain[4:],
        "response": struct.pack("!HH", 1, 0x8180) + plain[4:],
        "edns": query(use_edns=0, payload=4096, want_dnssec=True).to_wire(),
        "edns-small": query(use_edns=0, payload=12).to_wire(),
        "edns-version-1": query(use_edns=1, payload=4096).to_wire(),
        "edns-options": query(
            use_edns=0,
            options=[option(8, b"\0\1\x18\0\xc0\0\2"), option(12, bytes(16)), option(11, b""), option(65001, b"x" * 9)],
        ).to_wire(),
        "edns-broken-option": query(use_edns=0, options=[option(3, b"abcd")]).to_wire()[:-1] + b"\xff",
        "edns-twice": plain[:11] + b"\2" + plain[12:] + opt + opt,
        "cookie": query(use_edns=0, options=[option(10, b"\1\2\3\4\5\6\7\x08")]).to_wire(),
        "cookie-full": query(use_edns=0, options=[option(10, bytes(range(24)))]).to_wire(),
        "cookie-bad": query(use_edns=0, options=[option(10, bytes(9))]).to_wire(),
        "cookie-alone": plain[:4] + bytes(6) + b"\0\1" + opt[:-2] + b"\0\x0c\0\x0a\0\x08" + bytes(8),
        "keepalive": query(use_edns=0, options=[option(11, b"")]).to_wire(),
        "signed": signed.to_wire(),
        "status": status.to_wire(),
        "update": update.to_wire(),
        "axfr": query("example.com", "AXFR").to_wire(),
        "ixfr": transfer.to_wire(),
        "chaos": chaos.to_wire(),
        "two-questions": plain[:4] + b"\0\2" + plain[6:] + plain[12:],
        "no-question": plain[:4] + bytes(8),
        "compressed": plain[:12] + b"\xc0\x0c" + plain[-4:],
        "trailing": plain + b"more",
        "answer-in-query": plain[:7] + b"\1" + plain[8:] + b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4\1\2\3\4",
        "header": plain[:12],
    }
    for name, data in messages.items():
        seed("query", name, data)
    return messages


def responses():
    plain, www = query(), "www.example.com."
    many = query("example.com", "ANY")
    ttl = response(plain, answer=[(www, 60, "IN", "A", "192.0.2.1")])
    chain = [(www, 300, "IN", "CNAME", "web.example.net."), ("web.example.net.", 60, "IN", "A", "192.0.2.1", "192.0.2.2")]
    types = [
        ("A", "192.0.2.1"), ("AAAA", "2001:db8::1"), ("NS", "ns1.example.com."), ("PTR", "host.example.com."),
        ("MX", "10 mail.example.com."), ("TXT", r'"v=spf1 -all" "a\"b\\c\009\255"'), ("SOA", SOA[4]),
        ("CAA", '0 issue "ca.example; x=1"'), ("HINFO", '"RFC8482" ""'), ("CNAME", r"a\.b.example.com."),
        ("TYPE65280", r"\# 3 010aff"), ("TYPE65281", r"\# 0"), ("DNAME", "example.net."), ("RP", "a.example. b.example."),
        ("AFSDB", "1 afs.example."), ("KX", "1 kx.example.com."), ("PX", "1 a.example. b.example."),
        ("NAPTR", '1 2 "u" "sip" "" _sip.example.com.'), ("SRV", "1 2 5060 sip.example.com."),
        ("HTTPS", '1 . alpn="h2" ipv4hint=192.0.2.1'), ("DS", "1 8 2 " + "ab" * 32), ("TLSA", "3 1 1 " + "cd" * 32),
        ("NSEC", "a.example.com. A RRSIG NSEC"), ("LOC", "1 2 3 N 4 5 6 E 7m"), ("SSHFP", "1 1 " + "ef" * 20),
        ("DNSKEY", "257 3 8 AwEAAQ=="), ("URI", '1 2 "https://example.com/"'),
        ("RRSIG", "A 8 2 60 20300101000000 20240101000000 1 example.com. AwEAAQ=="),
    ]
    messages = {
        "address": ttl,
        "huge-ttl": ttl.replace(bytes([0, 0, 0, 60]), b"\x80\0\0\x3c"),
        "chain": response(
            plain, flags=dns.flags.AD, answer=chain,
            authority=[("example.net.", 3600, "IN", "NS", "ns1.example.net.")],
            additional=[("ns1.example.net.", 3600, "IN", "A", "198.51.100.1")], options=[]),
        "nxdomain": response(plain, 3, authority=[SOA], options=[option(15, b"\0\6bogus")]),
        "nodata": response(plain, authority=[SOA]),
        "nodata-without-soa": response(plain),
        "referral": response(plain, authority=[("example.com.", 3600, "IN", "NS", "ns1.example.com.")]),
        "foreign-soa": response(plain, 3, authority=[("example.org.",) + SOA[1:]]),
        "dangling-alias": response(
            plain, authority=[("example.net.",) + SOA[1:]], answer=[(www, 300, "IN", "CNAME", "web.example.net.")]),
        "alias-loop": response(
            plain,
            answer=[(www, 300, "IN", "CNAME", "a.example.com."), ("a.example.com.", 300, "IN", "CNAME", www)]),
        "unrelated": response(plain, answer=[("other.example.com.", 300, "IN", "A", "192.0.2.66")]),
        "dname": response(
            plain,
            answer=[("example.com.", 500, "IN", "DNAME", "example.net."), ("www.example.net.", 70, "IN", "A", "192.0.2.9")]),
        "servfail": response(plain, 2, options=[option(15, b"\0\x16")]),
        "bare-refused": plain.to_wire()[:2] + b"\x81\x85" + bytes(8),
        "badvers": response(plain, 16, options=[]),
        "badcookie": response(plain, 23, options=[option(10, bytes(24))]),
        "truncated": response(plain, flags=dns.flags.TC, answer=[(www, 60, "IN", "A", "192.0.2.1")]),
        "all-types": response(many, answer=[("example.com.", 60, "IN") + pair for pair in types]),
        "big": response(
            query("big.example.com"), answer=[("big.example.com.", 60, "IN", "A") + tuple(f"192.0.2.{i}" for i in range(40))],
            authority=[("example.com.", 90, "IN", "NS", "ns1.example.com.")],
            additional=[("ns1.example.com.", 120, "IN", "A") + tuple(f"198.51.100.{i}" for i in range(8))], options=[]),
        "chaos": response(
            query("version.bind", "TXT", rdclass="CH"), answer=[("version.bind.", 0, "CH", "TXT", '"unbound 1.17"')]),
        "root": response(query(".", "NS"), answer=[(".", 518400, "IN", "NS", "a.root-servers.net.")]),
        "longest-name": response(query(LONGEST), answer=[(LONGEST + ".", 60, "IN", "A", "192.0.2.1")]),
        "no-question": plain.to_wire()[:2] + b"\x81\x80" + bytes(8),
        "header": plain.to_wire()[:2] + b"\x81\x80" + bytes(7),
    }
    for name, rdata in types:
        messages["type-" + name.lower()] = response(
            query("example.com", name), answer=[("example.com.", 60, "IN", name, rdata)])
    for name, data in messages.items():
        seed("response", name, data)
    return messages


def streams(messages):
    def framed(*parts):
        return b"".join(struct.pack("!H", len(part)) + part for part in parts)

    hit = query("www.example.com").to_wire()
    large = query("www.example.com", "PTR").to_wire()
    for name in ("plain", "edns", "cookie", "cookie-alone", "keepalive", "two-questions", "response", "status", "chaos"):
        seed("stream", name, framed(messages[name]))
    seed("stream", "hit", framed(hit))
    seed("stream", "pipeline", framed(hit, messages["plain"], messages["cookie"], hit, messages["keepalive"]))
    seed("stream", "large", framed(large))
    seed("stream", "many-large", framed(*[large] * 12))
    seed("stream", "empty-messages", framed(b"", b"", hit, b""))
    seed("stream", "short-messages", framed(b"\0", hit[:11], hit[:12], hit[:20], hit))
    seed("stream", "cut", framed(hit, hit)[:-3])
    seed("stream", "half-a-length", framed(hit) + b"\0")
    seed("stream", "long-length", framed(hit) + b"\xff\xff" + hit)
    seed("stream", "http", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")


def frames():
    """Answers to questions with the ids 0 to 7."""
    def answer(number, octets=0):
        return struct.pack("!HH", number, 0x8180) + bytes(8) + bytes(octets)

    def framed(*parts):
        return b"".join(struct.pack("!H", len(part)) + part for part in parts)

    seed("frames", "in-order", framed(*[answer(number) for number in range(8)]))
    seed("frames", "backward", framed(*[answer(number, number) for number in reversed(range(8))]))
    seed("frames", "twice", framed(answer(1), answer(1)))
    seed("frames", "given-up", framed(answer(3), answer(4)))
    seed("frames", "strangers", framed(*[answer(number) for number in range(8, 28)]))
    seed("frames", "large", framed(answer(0, 65_523)))
    seed("frames", "empty", framed(answer(2), b"", answer(5)))
    seed("frames", "short", framed(answer(2), answer(5)[:11]))
    seed("frames", "cut", framed(answer(6), answer(7, 20))[:-3])
    seed("frames", "half-a-length", framed(answer(6)) + b"\0")
    seed("frames", "http", b"HTTP/1.1 400 Bad Request\r\n\r\n")


def resp():
    """Replies to eight commands, of which nobody waits for the fourth."""
    value = b"$5\r\nvalue\r\n"
    seed("resp", "all-kinds", b"+OK\r\n" + value + b"$-1\r\n:1\r\n-OOM command not allowed\r\n$0\r\n\r\n:-3\r\n-x\r\n")
    seed("resp", "given-up", value * 5)
    seed("resp", "strangers", value * 9)
    seed("resp", "line-ends", b"$4\r\n\r\n\r\n\r\n" + value)
    seed("resp", "cut", (value * 3)[:-3])
    seed("resp", "length", b"$6\r\nvalue\r\n")
    seed("resp", "too-long", b"$10485760\r\n")
    seed("resp", "list", b"*2\r\n" + value * 2)
    seed("resp", "http", b"HTTP/1.1 400 Bad Request\r\n\r\n")


def http():
    body = b"www.example.com.:192.0.2.1;192.0.2.2,60-2001:db8::1,60|198.51.100.7"
    head = b"HTTP/1.1 200 OK\r\nServer: nginx\r\n"
    length = b"Content-Length: %d\r\n" % len(body)
    seeds = {
        "length": head + b"Connection: keep-alive\r\n" + length + b"\r\n" + body,
        "close": head + b"Connection: foo, Close\r\n" + length + b"\r\n" + body,
        "until-close": head + b"\r\n" + body,
        "http-1.0": b"HTTP/1.0 200 OK\r\n" + length + b"\r\n" + body,
        "chunked": head + b"Transfer-Encoding: chunked\r\n\r\n5\r\n0,60-\r\n1A;a=b\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n",
        "trailers": head + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n",
        "empty-chunked": head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "interim": b"HTTP/1.1 100 Continue\r\n\r\n" + head + length + b"\r\n" + body,
        "interims": b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 9 + head + b"Content-Length: 0\r\n\r\n",
        "upgrade": b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "no-content": b"HTTP/1.1 204 No Content\r\n\r\n",
        "not-modified": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
        "unauthorized": b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
        "too-many": b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",
        "date": b"HTTP/1.1 503 x\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\nContent-Length: 0\r\n\r\n",
        "folded": head + b"X: a\r\n b\r\n\tc\r\n" + length + b"\r\n" + body,
        "lines-of-lf": (head + length + b"\r\n").replace(b"\r", b"") + body,
        "two": (head + length + b"\r\n" + body) * 2,
        "two-lengths": head + length + length + b"\r\n" + body,
        "lengths-differ": head + length + b"Content-Length: 1\r\n\r\n" + body,
        "smuggling": head + length + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "gzip": head + b"Content-Encoding: gzip\r\n" + length + b"\r\n" + body,
        "identity": head + b"Content-Encoding: identity\r\n" + length + b"\r\n" + body,
        "too-long": head + b"Content-Length: 99999999999999999999999\r\n\r\n",
        "bad-length": head + b"Content-Length: -1\r\n\r\n",
        "bad-name": head + b"Na me: x\r\n\r\n",
        "bad-value": head + b"A: b\rc\r\n\r\n",
        "bad-chunk": head + b"Transfer-Encoding: chunked\r\n\r\n 5\r\nabcde\r\n",
        "long-chunk": head + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "cut": head + length + b"\r\n" + body[:9],
        "tls": b"\x15\x03\x01\x00\x02\x02\x28",
        "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    }
    for name, data in seeds.items():
        seed("http", name, data)
    keepalive({name: data for name, data in seeds.items() if b"\0" not in data})


def keepalive(responses):
    """Several on one connection; at an octet 0 the next request is sent."""
    usual, stray = responses["length"], responses["two"]
    seeds = {
        "usual": [usual] * 4,
        "left-over": [stray, usual],
        "left-over-head": [usual + b"HTTP/1.1 200 OK\r\n", b"Content-Length: 0\r\n\r\n", usual],
        "left-over-octet": [usual + b"x", usual],
        "left-over-interim": [usual + b"HTTP/1.1 100 Continue\r\n\r\n", usual],
        "body-of-no-content": [responses["no-content"] + usual, usual],
        "body-of-not-modified": [responses["not-modified"] + b"123456789", usual],
        "cut": [usual[:-9], usual[-9:], usual],
        "nothing": [b"", usual, b"", usual],
        "chunked": [responses["chunked"], usual, responses["trailers"], responses["empty-chunked"]],
        "close": [responses["close"], responses["http-1.0"], responses["until-close"], usual],
        "refusals": [responses["unauthorized"], responses["too-many"], responses["date"], usual],
        "interims": [responses["interim"], responses["interim"], responses["interims"], usual],
        "errors": [responses["gzip"], responses["smuggling"], responses["ssh"], usual],
        "all": list(responses.values()),
    }
    for name, data in seeds.items():
        seed("keepalive", name, b"\0".join(data))


def requests():
    names = b"www.example.com,a.example.net"
    fields = b" HTTP/1.1\r\nHost: 127.0.0.1:8053\r\nUser-Agent: httpdnsd\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n"
    flags = b"&ttl=1&query=1&clientip=1"

    def lookup(text, credentials, more=b"", algorithm=None):
        dn = encrypt(text, algorithm).hex().encode() if algorithm else text
        return b"GET /d?dn=" + dn + credentials + more + flags + fields

    token, aes, des = b"&token=424242", b"&id=4242&alg=aes", b"&id=4242&alg=des"
    seeds = {
        "https": lookup(b"www.example.com", token),
        "https-both": lookup(names, token, b"&type=addrs"),
        "https-route": lookup(names, token, b"&type=aaaa&ip=203.0.113.7"),
        "expiry": lookup(names + b";1800000000", token),
        "expired": lookup(names + b";1600000000", token),
        "expiry-not-a-number": lookup(names + b";soon", token),
        "wrong-token": lookup(names, b"&token=1"),
        "aes": lookup(names, aes, b"&type=addrs", "aes"),
        "des": lookup(names, des, b"&type=addrs", "des"),
        "des-without-alg": lookup(names, b"&id=4242", b"", "des"),
        "des-route": lookup(names, des, b"&ip=" + encrypt(b"2001:db8::7", "des").hex().encode(), "des"),
        "unknown-alg": lookup(names, b"&id=4242&alg=rot13", b"", "des"),
        "undecryptable": lookup(b"00112233445566778899aabbccddeeff", aes),
        "nine-names": lookup(b",".join([b"a.example.com"] * 9), token),
        "bad-name": lookup(b"a..example.com", token),
        "conf": b"GET /conf?token=424242" + fields,
        "conf-des": b"GET /conf?id=4242&alg=des" + fields,
        "not-found": b"GET /" + fields,
        "post": b"POST /d?dn=a" + fields,
        "http-1.0": lookup(b"www.example.com", token).replace(b"HTTP/1.1", b"HTTP/1.0"),
        "close": lookup(b"www.example.com", token).replace(b"keep-alive", b"close"),
        "no-host": b"GET /d?dn=a HTTP/1.1\r\n\r\n",
        "body": b"GET /d?dn=a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        "pipeline": lookup(b"www.example.com", token) * 3,
        "empty-lines": b"\r\n\n\r\n" + lookup(b"www.example.com", token),
        "cut": lookup(b"www.example.com", token)[:-2],
        "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    }
    for name, data in seeds.items():
        seed("request", name, data)


def service():
    texts = {
        "ipv4": b"www.example.com.:192.0.2.1;192.0.2.2,60|198.51.100.7",
        "ipv6": b"www.example.com.:2001:db8::1;2001:db8::2,60|2001:db8::7",
        "both": b"www.example.com.:192.0.2.1,60-2001:db8::1,120|198.51.100.7",
        "batch": b"www.example.com.:192.0.2.1,60-2001:db8::1,60|198.51.100.7\nexample.com.:0-0|198.51.100.7\n"
        b"a-b_c.example.net.:192.0.2.3,60-0|198.51.100.7",
        "no-name": b"192.0.2.1;192.0.2.2,60",
        "no-name-ipv6": b"2001:db8::1,60",
        "name-alone": b"www.example.com|203.0.113.7",
        "name-and-dot": b"www.example.com.|203.0.113.7",
        "no-record": b"www.example.com.:0",
        "no-record-with-ttl": b"www.example.com.:0,60",
        "neither": b"www.example.com.:0-0",
        "another-name": b"other.example.com.:192.0.2.1,60",
        "other-case": b"WWW.Example.COM.:192.0.2.1,60",
        "no-ttl": b"www.example.com.:192.0.2.1",
        "no-ttl-beside-zero": b"www.example.com.:192.0.2.1-0|198.51.100.7",
        "name-twice": b"www.example.com.:192.0.2.1,60\nwww.example.com.:192.0.2.2,60",
        "no-client": b"www.example.com.:192.0.2.1,60|",
        "multicast": b"www.example.com.:224.0.0.1,60-ff02::1,60",
        "bad-ttl": b"www.example.com.:192.0.2.1,soon",
        "huge-ttl": b"www.example.com.:192.0.2.1,99999999999999999999",
        "final-semicolon": b"www.example.com.:192.0.2.1;,60",
        "bad-address": b"www.example.com.:192.0.2.256;192.0.2.1,60",
        "wrong-family": b"www.example.com.:2001:db8::1,60-192.0.2.1,60",
        "mapped": b"www.example.com.:::ffff:192.0.2.1,60",
        "one-list-of-both": b"www.example.com.:192.0.2.1;2001:db8::1,60",
        "twice": b"www.example.com.:192.0.2.1;192.0.2.1,60",
        "many": b"www.example.com.:" + b";".join(b"192.0.2.%d" % i for i in range(40)) + b",60",
        "spaces": b" \r\n www.example.com.: 192.0.2.1 ; 192.0.2.2 , 60 | 198.51.100.7 \r\n\r\n",
        "empty": b"",
        "white-space": b"\r\n",
        "html": b"<html><body>Login</body></html>",
        "separators": b"|:;,-.\n",
    }
    for name, data in texts.items():
        seed("service", name, data)
    for algorithm in ("aes", "des"):
        payload = encrypt(texts["both"], algorithm)
        seed("service", algorithm, payload.hex().encode() + b"\r\n")
        seed("service", algorithm + "-octets", payload)
        seed("service", algorithm + "-cut", payload.hex().encode()[:-2])
        seed("service", algorithm + "-nothing", encrypt(b"", algorithm).hex().encode())
    seed("service", "vector-alone", bytes(range(16)).hex().encode())
    seed("service", "odd-digits", b"123")


def providers():
    version2 = {"code": "success", "mode": 0, "data": {"cip": "192.0.2.9", "answers": [
        {"dn": "www.example.com", "v4": {"ips": ["192.0.2.1"], "ttl": 60, "extra": "&quot;"},
         "v6": {"ips": ["2001:db8::1"], "ttl": 30}},
        {"dn": "example.com", "v4": {"ips": [], "ttl": 300, "no_ip_code": "NXDOMAIN"}, "v6": None}]}}
    version1 = {"host": "www.example.com", "ips": ["192.0.2.1"], "ipsv6": ["2001:db8::1"], "ttl": 60, "client_ip": "x"}
    texts = {
        "alibaba": version2, "alibaba-data": version2["data"], "alibaba-v1": version1,
        "alibaba-v1-batch": {"dns": [version1 | {"type": 1}, {"host": "example.com", "ips": ["192.0.2.2"], "type": 1},
                                     {"host": "example.com", "ips": ["2001:db8::2"], "type": 28, "ttl": 5}]},
        "baidu": {"msg": "ok", "data": {"www.example.com": {
            "ipv4": {"ip": ["192.0.2.1"], "ttl": 300, "msg": "ok"}, "ipv6": {"ip": [], "msg": "x", "ttl": 1}}},
            "timestamp": 1513602734},
        "volcengine": {"cip": "192.0.2.9", "host": "www.example.com", "ips": ["192.0.2.1", "2001:db8::1"], "ttl": 60},
        "refusal": {"code": "InvalidSignature", "timestamp": 1513602734}, "expired": {"msg": "SignatureExpired"},
        "list": {"service_ip": ["192.0.2.1"], "service_ipv6": ["2001:db8::1"]},
        "meta": {"svc_meta": {"main_domains": ["192.0.2.1"], "backup_domains": ["x.example"]}, "update_interval_min": 30},
        "forms": [1, -2.5e3, True, None, {"a": {"b": []}}, "\n\u00e9/"],
    }
    for name, value in texts.items():
        seed("providers", name, json.dumps(value).encode())


def conf():
    texts = {
        "one": b"log:1|domain:0|ip:119.29.29.98;119.28.28.98|ttl:60",
        "final-semicolon": b"log:0|domain:0|ip:119.29.29.98;|ttl:1440",
        "ipv6": b"log:0|domain:0|ip:2402:4e00::1;119.29.29.99|ttl:1",
        "order": b"ttl:5|ip:119.29.29.98|unknown:7|domain:1|log:0",
        "unknown-text": b"log:0|domain:0|unknown:x|ip:192.0.2.1|ttl:5",
        "twice": b"log:0|domain:0|ip:192.0.2.1|ip:192.0.2.2|ttl:1|ttl:2",
        "same-twice": b"log:0|domain:0|ip:192.0.2.1;192.0.2.1|ttl:1",
        "no-address": b"log:0|domain:0|ip:|ttl:60",
        "no-list": b"log:0|domain:1|ttl:60",
        "zero": b"log:0|domain:0|ip:0|ttl:0",
        "bad-address": b"log:0|domain:0|ip:192.0.2.300;127.0.0.1;0.0.0.0;224.0.0.1;255.255.255.255;ff02::1;::|ttl:10",
        "only-bad": b"log:0|domain:0|ip:nowhere|ttl:10",
        "too-many": b"log:0|domain:0|ip:" + b";".join(b"192.0.2.%d" % i for i in range(20)) + b"|ttl:60",
        "ttl-too-long": b"log:0|domain:0|ip:192.0.2.1|ttl:1441",
        "ttl-huge": b"log:0|domain:0|ip:192.0.2.1|ttl:99999999999999999999",
        "ttl-bad": b"log:0|domain:0|ip:192.0.2.1|ttl:-1",
        "spaces": b" log : 0 | ip : 192.0.2.1 ; 192.0.2.2 | ttl : 60 \r\n",
        "log-alone": b"log:0",
        "in-one-block": b"ip:192.0.2.1",
        "empty": b"",
        "html": b"<html><body>Login</body></html>",
    }
    for name, data in texts.items():
        seed("conf", name, data)
    for algorithm in ("aes", "des"):
        seed("conf", algorithm, encrypt(texts["one"], algorithm).hex().encode())


def checksum(data, earlier=0):
    """Folded multiplication, eight octets a step, and the rest."""
    whole = len(data) // 8 * 8
    words = [int.from_bytes(data[at:at + 8], "little") for at in range(0, whole, 8)]
    state = earlier << 32 | len(data)
    for word in words + [int.from_bytes(data[whole:], "big")]:
        product = (word ^ 0x243F6A8885A308D3) * (state ^ 0x13198A2E03707344)
        state = (product >> 64 ^ product) & (1 << 64) - 1
    return state & 0xFFFFFFFF


def cachefile(messages):
    def record(message, age=5, keep=60, flags=8, code=0, counts=None, errors=0, context=0):
        body = message[12:]
        counts = counts or struct.unpack("!3H", message[6:12])
        return struct.pack("!IIHBB4HI", age, keep, len(body), flags, code, *counts, errors, context) + body

    def snapshot(*blocks, version=6):
        header = b"httpdnsd" + struct.pack("!IIQQQ", version, 4900, 1_700_000_000, 0, 77)
        header += struct.pack("!I", checksum(header))
        data = header
        for sequence, records in enumerate((*blocks, [])):
            joined = b"".join(records)
            fields = struct.pack("!III", len(joined), len(records), sequence)
            data += fields + struct.pack("!I", checksum(joined, checksum(fields, checksum(header[:40])))) + joined
        return data

    def lower(name):
        message = bytearray(messages[name])
        message[12:29] = message[12:29].lower()
        return bytes(message)

    records = {
        "address": record(lower("address")),
        "stale": record(lower("address"), age=120),
        "too-old": record(lower("address"), age=1000),
        "nodata": record(lower("nodata"), flags=0),
        "nxdomain": record(lower("nxdomain")[:-11 - 11] + b"\0\x0f\0\2\0\6", code=3, flags=16, counts=(0, 1, 0), errors=6),
        "all-types": record(messages["all-types"], flags=32),
        "type-txt": record(messages["type-txt"], flags=4 | 48),
        "type-soa": record(messages["type-soa"], flags=0),
        "type-srv": record(messages["type-srv"], flags=0),
        "big": record(messages["big"][:-11], counts=(40, 1, 8)),
        "root": record(messages["root"], flags=0),
        "upper-case": record(messages["address"]),
        "keep-0": record(lower("address"), keep=0),
        "bad-flags": record(lower("address"), flags=255),
        "with-opt": record(lower("servfail"), code=2),
        "trailing": record(lower("address") + b"x"),
        "count-too-high": record(lower("address"), counts=(2, 0, 0)),
    }
    for name, data in records.items():
        seed("cachefile", "record-" + name, data)
        if name in ("address", "nodata", "all-types", "big"):
            seed("cachefile", "file-" + name, snapshot([data]))
    several = [records[name] for name in ("address", "nodata", "all-types", "type-txt", "root")]
    seed("cachefile", "records", b"".join(several))
    seed("cachefile", "file-blocks", snapshot(several[:2], several[2:]))
    seed("cachefile", "file-empty", snapshot())
    seed("cachefile", "file-version", snapshot(version=1))
    seed("cachefile", "file-context", snapshot([record(lower("address"), context=7)]))
    seed("cachefile", "file-cut", snapshot(several)[:-20])
    seed("cachefile", "file-trailing", snapshot(several) + b"x")
    seed("cachefile", "same-twice", records["address"] * 2)
    seed("cachefile", "text", b"# a configuration file\n")


def configuration():
    with open(corpus.CORPUS / "../../../config/httpdnsd.toml", "rb") as file:
        shipped = file.read()
    sections = shipped.split(b"\n[")
    for section in sections[1:]:
        name = section.split(b"]")[0].decode()
        lines = [line.split(b"#")[0].rstrip() for line in (b"[" + section).split(b"\n")]
        seed("configuration", "shipped-" + name, b"\n".join(line for line in lines if line) + b"\n")
    pin = b"sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    seeds = {
        "empty": b"",
        "https": b'[httpdns]\ntoken = "123456789"\ndnsIp = ["119.29.29.99", "[2402:4e00::1]:8443"]\n',
        "aes": b'[httpdns]\nencryptType = "aes"\ndnsId = 12345\ndnsKey = "0123456789abcdef"\n',
        "des": b"[httpdns]\nencryptType = 'des'\ndnsId = 4294967295\ndnsKey = '01234567'\n",
        "key-file": b'[httpdns]\nencryptType = "aes"\ndnsId = 1\ndnsKeyFile = "dnsKey"\n',
        "token-file": b'[httpdns]\ntokenFile = "/etc/token"\nappId = "my app"\nenableReport = true\n'
        b'reportUrl = "https://reports.example.com:8443/a?b=%20"\n',
        "both-sources": b'[httpdns]\ntoken = "1"\ntokenFile = "x"\n',
        "missing-file": b'[httpdns]\ntokenFile = "missing"\n',
        "tls": b'[httpdns]\ntoken = "1"\n[tls]\nserverName = "dns.example.com"\ncaFile = "ca.pem"\nvalidateDomain = false\n'
        b'pins = ["' + pin + b'"]\nclientCertificate = "c.p12"\nclientCertificatePasswordFile = "password"\n',
        "listen": b'[listen]\naddresses = ["0.0.0.0:53", "[::]:53"]\nallow = ["10.0.0.0/8", "fd00::/8", "::1"]\nworkers = 2\n',
        "dotted": b'listen.workers = 1\nlog.level = "debug"\n',
        "inline": b'listen = { workers = 1, tcpClients = 10 }\n',
        "comments": b"# c\n[log] # d\nlevel = \"info\" # e\n\n\n",
        "crlf": b'[log]\r\nlevel = "info"\r\n',
        "byte-order-mark": b'\xef\xbb\xbf[log]\nlevel = "info"\n',
        "strings": b'[cache]\nfile = """\n/a\\\n   b\\u00e9\\t"""\n[fallback]\nhosts = \'\'\'/c\'\'\'\n',
        "numbers": b"[cache]\nmegabytes = 0x40\nmaxTTL = 1_000\nminTTL = +5\nstaleTTL = 0b11\n",
        "names": b'[domains]\nintercept = ["Example.COM.", "a_b.example"]\nbypass = []\n'
        b'[cache]\nkeepAliveDomains = ["www.example.com"]\npreResolve = ["a.example"]\n',
        "socket-beside-file": b'[control]\nsocket = "' + b"s" * 107 + b'"\n',
        "groups": b'[upstreams.office]\nservers = ["tls://10.1.0.53#dns.corp.example", "resolvConf"]\n'
        b'domains = ["corp.example", "*.lan", ".", "", "10.0.0.0/8", "fd12:3456::/32"]\nexcept = ["www.corp.example"]\n'
        b'thenTry = ["partner", "fallback"]\nthenTryOn = ["failure", "nxdomain"]\nrouteIp = "192.0.2.1"\n'
        b'[upstreams.partner]\nservers = ["172.20.0.10"]\ndomainsFile = "names.txt"\ncaFile = "ca.pem"\n',
        "groups-accounts": b'[upstreams.shop]\nprovider = "alibaba"\nencryptType = "aes"\ndnsId = 7\ndnsKey = "0123456789abcdef"\n'
        b'aesKey = "000102030405060708090a0b0c0d0e0f"\ndomains = ["shop.example"]\nhttpOnly = false\nfrom = "::1"\ndevice = "wg0"\nmark = 7\n'
        b'[upstreams.b]\nprovider = "tencent"\nencryptType = "des"\ndnsId = 7\ndnsKey = "01234567"\ndomains = ["b.example"]\n'
        b'[upstreams.c]\nprovider = "tencent"\ntoken = "1"\ndomains = ["c.example"]\nthenTry = ["b"]\nserverName = "a.example"\n',
        "groups-answer": b'[upstreams.ads]\nanswer = "nxdomain"\ndomains = ["ads.example"]\nexcept = ["good.ads.example"]\n'
        b'[upstreams.pages]\nanswer = ["192.0.2.7", "2001:db8::7"]\ndomainsFile = "pages.txt"\n',
        "groups-inline": b'upstreams = { a = { servers = ["::1"], domains = ["a"] } }\nupstreams.b.servers = ["::1"]\n',
        "groups-circle": b'[upstreams.a]\nservers = ["::1"]\nthenTry = ["b"]\n[upstreams.b]\nservers = ["::1"]\nthenTry = ["a"]\n',
        "groups-same-pattern": b'[upstreams.a]\nservers = ["::1"]\ndomains = ["x"]\n[upstreams.A2]\nservers = ["::1"]\ndomains = ["X."]\n',
        "environment-groups": b'[upstreams.Office]\nservers = ["::1"]\n\x01HTTPDNSD_UPSTREAMS_OFFICE_DOMAINS=-,a,10.0.0.0/8'
        b'\x01HTTPDNSD_UPSTREAMS_B_SERVERS=https://dns.example/q#192.0.2.1,192.0.2.2\x01HTTPDNSD_UPSTREAMS_B_DOMAINS=b',
        "fallback": b'[fallback]\nservers = ["https://dns.alidns.com/dns-query#223.5.5.5+223.6.6.6", "tls://dot.pub#1.12.12.12"]\n'
        b'thenTry = ["httpdns"]\n[httpdns]\ntoken = "1"\nthenTry = []\n',
        "unknown-key": b"[listen]\nworker = 1\n",
        "unknown-section": b"[listne]\n",
        "wrong-type": b'[listen]\nworkers = "1"\n',
        "date": b"[listen]\nworkers = 2024-01-01\n",
        "float": b"[listen]\nworkers = 1.5\n",
        "nan": b"[listen]\nworkers = nan\n",
        "nested": b"[[listen]]\nworkers = [[{a = [1, 2]}]]\n",
        "not-toml": b"workers: 1\n",
        "unclosed": b'[listen]\naddresses = ["1.2.3.4:53"\n',
        "twice": b"[listen]\nworkers = 1\nworkers = 2\n",
        "many-names": b"a.b.c.d.e.f.g.h.i.j = 1\n",
        "environment": b'\x01HTTPDNSD_HTTPDNS_TOKEN=123\x01HTTPDNSD_LISTEN_ADDRESSES=127.0.0.1:53, [::1]:53\x01PATH=/bin',
        "environment-over-file": b'[listen]\nworkers = 1\n\x01HTTPDNSD_LISTEN_WORKERS=3\x01HTTPDNSD_CACHE_FILE=/x',
        "environment-aes": b"\x01HTTPDNSD_HTTPDNS_ENCRYPTTYPE=aes\x01HTTPDNSD_HTTPDNS_DNSID=7\x01HTTPDNSD_HTTPDNS_DNSKEY=0123456789abcdef",
        "environment-unknown": b"\x01HTTPDNSD_LISTEN_WORKER=1",
        "environment-kubernetes": b"\x01HTTPDNSD_PORT=tcp://10.0.0.1:53\x01HTTPDNSD_SERVICE_HOST=10.0.0.1",
    }
    for name, data in seeds.items():
        seed("configuration", name, data)


def server():
    texts = {
        "plain": "192.0.2.1", "plain-port": "[2001:db8::1]:5353", "zone": "fe80::1%eth0", "tcp": "tcp://192.0.2.1:54",
        "tls": "tls://dot.example", "tls-addresses": "tls://dot.example:8853#192.0.2.1+2001:db8::1",
        "tls-name": "tls://[2001:db8::1]#dot.example", "https": "https://dns.example/dns-query",
        "https-get": "https://dns.example:8443/a/%20b{?dns}#192.0.2.1", "https-address": "https://192.0.2.1/",
        "resolvconf": "resolvConf", "unbound": "192.0.2.1@853#dot.example", "coredns": "tls://192.0.2.1%dot.example",
        "user": "https://user:pass@dns.example/q", "no-path": "https://dns.example{?dns}", "h3": "h3://dns.example/q",
        "stamp": "sdns://AwAAAAAAAAAACTE5Mi4wLjIuMQAPZG90LmV4YW1wbGUuY29t", "empty": "",
    }
    for name, text in texts.items():
        seed("server", name, text.encode())

    def short(*texts):
        return b"".join(bytes([len(text)]) + text for text in texts)

    properties = bytes(8)
    hashes = b"\xa0" + bytes(range(32)) + b"\x20" + bytes(32)
    stamps = {
        "plain": b"\0" + properties + short(b"[fe80::1%eth0]:54"),
        "https": b"\2" + properties + short(b"192.0.2.1:8443") + hashes + short(b"Doh.example", b"/dns-query"),
        "https-bootstrap": b"\2" + properties + short(b":444", b"", b"doh.example", b"/q", b"192.0.2.9"),
        "tls": b"\3" + b"\7" + properties[1:] + short(b"", b"", b"dot.example:8853"),
        "tls-address": b"\3" + properties + short(b"[2001:db8::1]") + hashes + short(b"[2001:db8::1]"),
        "dnscrypt": b"\1" + properties + short(b"192.0.2.1", bytes(32), b"2.dnscrypt-cert.example"),
        "relay": b"\x81" + short(b"192.0.2.1"),
    }
    for name, octets in stamps.items():
        seed("server", "stamp-" + name, octets)


def files():
    resolvconf = {
        "glibc": b"# made by hand\nsearch example.com\nnameserver 192.0.2.53\nnameserver 2001:db8::53\noptions edns0 trust-ad\n",
        "resolved": b"nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch .\n",
        "loops": b"nameserver 127.0.0.1\nnameserver ::1\nnameserver 0.0.0.0\nnameserver ::ffff:127.0.0.1\nnameserver 192.0.2.1\n",
        "zone": b"nameserver fe80::1%eth0\nnameserver fe80::1\n",
        "comments": b"; a\n#b\nnameserver 192.0.2.1 # c\nnameserver 192.0.2.2;d\n",
        "white-space": b"\t nameserver\t192.0.2.1 \r\n nameserver 192.0.2.2 more\r\n",
        "many": b"".join(b"nameserver 192.0.2.%d\n" % i for i in range(12)),
        "twice": b"nameserver 192.0.2.1\nnameserver 192.0.2.1\n",
        "bad": b"nameserver\nnameserver 192.0.2.300\nnameserver localhost\nNAMESERVER 192.0.2.1\n",
        "no-end": b"nameserver 192.0.2.1",
        "long-line": b"search " + b"a.example " * 500 + b"\nnameserver 192.0.2.1\n",
        "empty": b"",
    }
    hosts = {
        "debian": b"127.0.0.1\tlocalhost\n127.0.1.1\tbox.example.com box\n\n::1 localhost ip6-localhost ip6-loopback\nff02::1 ip6-allnodes\n",
        "comments": b"# a\n192.0.2.1 a.example # b.example\n#192.0.2.2 c.example\n",
        "both-families": b"192.0.2.1 a.example\n2001:db8::1 a.example\n192.0.2.2 a.example\n192.0.2.1 a.example\n",
        "case": b"192.0.2.1 A.Example a.example. a.EXAMPLE\n",
        "block-list": b"".join(b"0.0.0.0 ads-%d.example\n" % i for i in range(80)),
        "many-addresses": b"".join(b"192.0.2.%d a.example\n" % i for i in range(80)),
        "escapes": b"192.0.2.1 a\\.b.example c\\032d.example e\\035.example \\256.example\n",
        "bad": b"192.0.2.300 a\n192.0.2.1\na.example 192.0.2.1\n192.0.2.1 a..b " + b"x" * 64 + b" ok\n",
        "long-name": b"192.0.2.1 " + LONGEST.encode() + b"\n",
        "long-line": b"192.0.2.1 " + b"a.example " * 450 + b"b.example\n",
        "white-space": b"\t192.0.2.1\ta \r\n 192.0.2.2\x0bb\n",
        "root": b"192.0.2.1 .\n",
        "unicode": "\ufeff192.0.2.1 Büro.example\n".encode(),
        "no-end": b"192.0.2.1 a.example",
        "empty": b"",
    }
    addresses = {
        "written": b"# Addresses at which servers were reached last; written by httpdnsd.\n"
        b"dns.example 192.0.2.1 2001:db8::1\na_b-c.example 192.0.2.2\n",
        "same-name": b"dns.example 192.0.2.1\nDNS.example. 192.0.2.2\n",
        "same-address": b"dns.example 192.0.2.1 192.0.2.1\n",
        "too-many": b"dns.example 192.0.2.1 192.0.2.2 192.0.2.3\nb.example 192.0.2.1\n",
        "no-machine": b"a.example 0.0.0.0\nb.example 224.0.0.1\nc.example ::ffff:192.0.2.1\nd.example fe80::1\n",
        "white-space": b"a.example  192.0.2.1\nb.example\t192.0.2.1\nc.example 192.0.2.1\r\n d.example 192.0.2.1\n",
        "no-address": b"a.example\nb.example \n. 192.0.2.1\n",
        "many-names": b"".join(b"a%d.example 192.0.2.1\n" % i for i in range(80)),
        "longest": LONGEST.encode() + b" 2001:db8:1111:1111:1111:1111:1111:1111\n",
        "no-end": b"dns.example 192.0.2.1",
        "empty": b"",
    }
    for name, data in addresses.items():
        seed("addresses", name, data)
    domains = {
        "kinds": b'# what the office knows\ncorp.example\n*.partner.example\n.\n""\n10.0.0.0/8\nfd12:3456::/32\n',
        "networks": b"0.0.0.0/0\n::/0\n10.0.0.0/9\n172.16.0.0/12\n192.0.2.1/32\nfc00::/7\n2001:db8::/61\n2001:db8::1/128\n",
        "one-name-twice": b"10.0.0.0/8\n10.in-addr.arpa\na.example\nA.Example.\n*.a.example\n",
        "reserved": b"localhost\nlocal\na.home.arpa\n_dns.resolver.arpa\nonion\n10.20.0.0/16\nnas\n",
        "white-space": b"\xef\xbb\xbf\t a.example \t# b\r\n\r\n  \r\nb.example#c\r\n",
        "bits-behind": b"10.0.0.1/8\n",
        "address": b"192.0.2.1\n",
        "asterisk": b"a.*.example\n",
        "block-list": b"0.0.0.0 ads.example\n",
        "dnsmasq": b"server=/a.example/*.b.example/192.0.2.53\nlocal=/c.example/\naddress=/d.example/0.0.0.0\n",
        "unicode": "\ufeffBücher.example\n*.例え。テスト\n".encode(),
        "longest-name": LONGEST.encode() + b"\n*." + LONGEST.encode() + b".\n",
        "many-labels": b".".join([b"a"] * 127) + b"\n",
        "long-label": b"x" * 64 + b".example\n",
        "no-end": b"a.example",
        "empty": b"",
    }
    for name, data in domains.items():
        seed("domains", name, data)
    blocklist = {
        "kinds": b"[Adblock Plus 2.0]\n! Title: a list\n||ads.example^\n||*.b.example^\n|c.example^|\n@@||good.ads.example^|\n"
                 b"0.0.0.0 d.example e.example # f\nplain.example\n*.below.example\n10.0.0.0/8\n",
        "hosts": b"127.0.0.1 localhost localhost.localdomain\n::1\tip6-loopback\nfe80::1%lo0 localhost\n255.255.255.255 broadcasthost\n"
                 b"0.0.0.0 0.0.0.0\r\n0.0.0.0 a.example 192.0.2.1 b.example\n::1 c.example\n",
        "not-followed": b"||ad*.example^\n||a.example^$third-party\n/ad[0-9]/\na.example##.ad\nb.example,c.example#@#.ad\n"
                        b"@@-ds.metric.example^|\n||192.0.2.1^\n||d.example\n-ad.example^\n",
        "other-address": b"192.0.2.1 a.example\n",
        "dnsmasq": b"server=/a.example/b.example/192.0.2.53#53\nlocal=/c.example/ # d\naddress=/e.example/#\naddress=/f.example/::\n"
                   b"address=/g.example/192.0.2.1\nserver=192.0.2.53\nserver=//192.0.2.53\n",
        "unicode": "\ufeff\ufeffbücher.example\n0.0.0.0 MÜNCHEN.example\n||例え。テスト^\n\ufeffi❤.ws\n".encode(),
        "addresses": b"203.0.113.9\n203.0.113.0/24\n2001:db8::1\n109.201\n.\n\"\"\n://x\n@direct/a.example\n",
        "unknown": b"a.example\n<!doctype html>\n",
        "comments": b"#\n!\n# a ## b\n##.ad\n[Adblock]\n\xef\xbb\xbf\na.example#b\n",
        "longest-name": b"||" + LONGEST.encode() + b"^\n0.0.0.0 " + LONGEST.encode() + b"\n",
        "empty": b"",
    }
    for name, data in bindings().items():
        seed("binding", name, data)
    for name, data in blocklist.items():
        seed("blocklist", name, data)
    for name, data in resolvconf.items():
        seed("resolvconf", name, data)
    for name, data in hosts.items():
        seed("hosts", name, data)


def bindings():
    """The data of HTTPS and SVCB records, those of RFC 9460, appendix D, among them."""
    foo = b"\x03foo\x07example\x03com\x00"
    return {
        "alias": b"\x00\x00" + foo, "self": b"\x00\x01\x00", "port": b"\x00\x10" + foo + b"\x00\x03\x00\x02\x00\x35",
        "unknown-key": b"\x00\x01" + foo + b"\x02\x9b\x00\x05hello",
        "ipv6": b"\x00\x01" + foo + b"\x00\x06\x00\x20" + bytes.fromhex("20010db8000000000000000000000001" * 2),
        "mandatory": b"\x00\x10\x03foo\x07example\x03org\x00" + bytes.fromhex(
            "00000004000100040001000902683205" "68332d3139" "00040004c0000201"),
        "ech": b"\x00\x01\x00" + bytes.fromhex("0001000302683300040004c0000201" "00050004deadbeef"
                                              "0006001020010db8000000000000000000000001"),
        "only-mandatory-hint": b"\x00\x01\x00" + bytes.fromhex("0000000200040004" "0004c0000201"),
        "out-of-order": b"\x00\x01\x00" + bytes.fromhex("00030002003500010003026832"),
        "twice": b"\x00\x01\x00" + bytes.fromhex("000100030268320001000302" "6832"),
        "cut": b"\x00\x01\x00\x00\x04\x00\x08\xc0\x00\x02\x01", "compressed": b"\x00\x01\xc0\x0c", "empty": b"",
        "long-name": b"\x00\x01" + (b"\x3f" + b"x" * 63) * 4 + b"\x00",
    }


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def http2():
    (data, headers, _, reset, settings, promise, ping, away, window, more) = range(10)
    ended, whole, padded = 1, 4, 8
    start = frame(settings) + frame(settings, 1)
    body = b"answer" * 20
    encoder = hpack.Encoder()

    def head(*fields, status="200"):
        return encoder.encode([(":status", status), *fields])

    def answer(stream, *fields):
        return frame(headers, whole, stream, head(*fields)) + frame(data, ended, stream, body)

    dns = (("content-type", "application/dns-message"), ("content-length", str(len(body))), ("age", "12"))
    seeds = {
        "answers": start + answer(1, *dns) + answer(5, *dns) + answer(3, *dns) + answer(7, *dns) + answer(9, *dns),
    }
    encoder = hpack.Encoder()
    seeds["limits"] = frame(settings, 0, 0, struct.pack("!HIHIHI", 3, 1, 4, 10, 1, 0)) + answer(1, *dns)
    seeds["limits"] += frame(window, 0, 3, struct.pack("!I", 70000)) + frame(settings, 0, 0, struct.pack("!HI", 3, 9))
    encoder = hpack.Encoder()
    seeds["going-away"] = start + frame(away, 0, 0, struct.pack("!II", 0x7FFFFFFF, 0)) + answer(1)
    seeds["going-away"] += frame(away, 0, 0, struct.pack("!II", 3, 0)) + answer(3)
    encoder = hpack.Encoder()
    seeds["resets"] = start + b"".join(frame(reset, 0, 1 + 2 * n, struct.pack("!I", (7, 8, 2, 0)[n])) for n in range(3))
    seeds["interim"] = start + frame(headers, whole, 1, head(status="103")) + frame(headers, whole, 1, head(("age", "x")))
    seeds["interim"] += frame(data, padded, 1, b"\x02ab\0\0") + frame(data, 0, 1)
    seeds["interim"] += frame(headers, whole | ended, 1, encoder.encode([("age", "1")]))
    encoder = hpack.Encoder()
    block = head(("retry-after", "9"), ("location", "https://a.example/b?c"), status="301")
    seeds["continued"] = start + frame(headers, 0, 1, block[:3]) + frame(more, 0, 1, block[3:6])
    seeds["continued"] += frame(more, whole, 1, block[6:]) + frame(data, ended, 1)
    encoder = hpack.Encoder()
    seeds["too-long"] = start + frame(headers, whole, 1, head()) + frame(data, 0, 1, b"x" * 4000) * 2
    seeds["too-long"] += frame(headers, whole, 3, head(("content-length", "5001"))) + frame(data, 0, 3, b"x")
    encoder = hpack.Encoder()
    large = ("x", "y" * 3000)
    seeds["large-head"] = start + frame(headers, whole | ended, 1, head(*[large] * 9)) + answer(3)
    encoder = hpack.Encoder()
    seeds["malformed"] = start + frame(headers, whole, 1, head(("content-length", "3"), ("content-length", "4")))
    seeds["malformed"] += frame(headers, whole | ended, 3, head(("content-encoding", "gzip")))
    seeds["malformed"] += frame(headers, whole | ended, 5, encoder.encode([("age", "1")]))
    encoder = hpack.Encoder()
    request = [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/")]
    seeds["pushed"] = frame(settings) + frame(promise, whole, 1, struct.pack("!I", 2) + encoder.encode(request))
    seeds["pushed"] += answer(2) + answer(1) + frame(settings, 1)
    seeds["pings"] = start + frame(ping, 0, 0, b"abcdefgh") * 20 + frame(ping, 1, 0, struct.pack("<Q", 1))
    seeds["window"] = start + frame(window, 0, 1, struct.pack("!I", 0)) + frame(window, 0, 0, struct.pack("!I", 1 << 31))
    seeds["http1"] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
    seeds["empty"] = b""
    for name, bytes in seeds.items():
        seed("http2", name, bytes)


def doh():
    """An even octet, then HTTP/1.1; or an odd one, then HTTP/2 behind its preface."""
    message = bytes.fromhex("000001000001000000000000" "03777777076578616d706c6503636f6d0000010001")
    text = base64.urlsafe_b64encode(message).rstrip(b"=")
    host, kind = b" HTTP/1.1\r\nHost: a\r\n", b"Content-Type: application/dns-message\r\n"
    length = b"Content-Length: %d\r\n\r\n" % len(message)
    get = b"GET /dns-query?dns=" + text + host + b"\r\n"
    post = b"POST /dns-query" + host + kind + length + message
    seeds = {
        "get": get, "post": post, "pipeline": get + post + get, "short": b"GET /dns-query?dns=AAAA" + host + b"\r\n",
        "other-path": b"GET /" + host + b"\r\n", "put": post.replace(b"POST", b"PUT"), "no-type": post.replace(kind, b""),
        "padded": get.replace(b" HTTP", b"= HTTP"), "no-parameter": b"GET /dns-query?a=b&c" + host + b"\r\n",
        "second": get.replace(b"?", b"?a=b&"), "close": get.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + get,
        "expects": b"POST /dns-query" + host + b"Expect: 100-continue\r\n" + kind + length + message,
        "chunked": b"POST /dns-query" + host + kind + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        "two-lengths": post.replace(b"\r\n\r\n", b"\r\nContent-Length: 1\r\n\r\n", 1),
        "too-long": b"POST /dns-query" + host + kind + b"Content-Length: 65536\r\n\r\n", "cut": post[:-3], "preface": b"PRI * HTTP/2.0",
    }
    for name, octets in seeds.items():
        seed("doh", name, b"\0" + octets)
    (data, headers, priority, reset, settings, _, ping, away, window, more) = range(10)
    ended, whole = 1, 4

    def head(method=b"GET", path=b"/dns-query?dns=" + text, *fields):
        return hpack.Encoder().encode([(":method", method), (":scheme", "https"), (":authority", "a"), (":path", path), *fields])

    kind = ("content-type", "application/dns-message")
    get = frame(headers, whole | ended, 1, head())
    block = head(b"POST", b"/dns-query", kind)
    post = frame(headers, whole, 3, block) + frame(data, ended, 3, message)
    seeds = {
        "2-get": get, "2-post": get + post + frame(settings, 1), "2-other": frame(headers, whole | ended, 1, head(b"GET", b"/")),
        "2-parts": frame(headers, 0, 1, block[:9]) + frame(more, whole, 1, block[9:]) + frame(data, 0, 1, message[:9])
        + frame(data, ended, 1, message[9:]),
        "2-resets": b"".join(frame(headers, whole | ended, 1 + 2 * n, head()) + frame(reset, 0, 1 + 2 * n, bytes(4)) for n in range(9)),
        "2-window": frame(settings, 0, 0, struct.pack("!HI", 4, 0)) + get + frame(window, 0, 1, struct.pack("!I", 9)) + post,
        "2-long": frame(headers, whole, 1, block) + frame(data, 0, 1, bytes(16_000)) * 5,
        "2-large-head": frame(headers, whole | ended, 1, head(b"GET", b"/", *[("x", "y" * 3000)] * 6)) + post,
        "2-trailers": frame(headers, whole, 1, block) + frame(data, 0, 1, message)
        + frame(headers, whole | ended, 1, hpack.Encoder().encode([("content-type", "a/b")])),
        "2-lengths": frame(headers, whole, 1, head(b"POST", b"/dns-query", kind, ("content-length", "9"))) + frame(data, ended, 1, b"x"),
        "2-pings": frame(ping, 0, 0, bytes(8)) * 30 + frame(priority, 0, 1, bytes(5)) + frame(away, 0, 0, bytes(8)) + get,
    }
    for name, octets in seeds.items():
        seed("doh", name, b"\1" + octets)


def history():
    """The file with the past, in either width: seconds of the last step, steps, five counts of each."""
    head = b"httpdnsd-history" + struct.pack(">IIQQQ", 1, 4900, 1_700_000_000, 0, 77)

    def course(elapsed, *steps):
        return struct.pack(">II", elapsed, len(steps)) + b"".join(struct.pack(">5Q", *step) for step in steps)
    seeds = {
        "one": course(0, (1, 1, 0, 0, 0)) + course(0, (1, 1, 0, 0, 0)),
        "some": course(299, (9, 3, 1, 2, 1), (0, 0, 0, 0, 0), (7, 0, 0, 7, 7)) + course(3599, (16, 3, 1, 9, 8)),
        "large": course(5, (1 << 48, 1 << 48, 1 << 48, 1 << 48, 1 << 48)) + course(5, (1 << 48, 0, 0, 0, 1 << 48)),
        "too-large": course(5, (1 << 48 | 1, 0, 0, 0, 0)) + course(5, (0, 0, 0, 0, 0)),
        "failed-alone": course(0, (0, 0, 0, 0, 3)) + course(0, (0, 0, 0, 0, 3)),
        "late": course(300, (1, 0, 0, 0, 0)) + course(0, (1, 0, 0, 0, 0)),
        "none": struct.pack(">IIII", 0, 0, 0, 0),
    }
    for name, courses in seeds.items():
        seed("history", name, head + courses + bytes(8))
    seed("history", "empty", b"")
    seed("history", "text", b"# a configuration file\n")


streams(queries())
frames()
resp()
cachefile(responses())
http()
http2()
doh()
requests()
service()
providers()
conf()
configuration()
server()
files()
history()
for target, inputs in named.items():
    corpus.write(target, corpus.read(target) | inputs)
