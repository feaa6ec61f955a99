"""The questions that tcpdump sees on the loopback device: to an HTTPDNS service in aes mode, and over UDP."""

import pathlib
import signal
import struct
import subprocess
import urllib.parse

import dns.message
import dns.rdatatype

from waiting import eventually

FILE_HEAD, RECORD_HEAD, ETHERNET = 24, 16, 14
TCP, UDP = 6, 17
MARK = 9  # the port of a datagram that marks a position in the capture


class Wire:
    """Between entering and leaving: each name of each request, and each question, in order."""

    def __init__(self, directory, service):
        self.service = service
        self.names, self.questions = [], {}  # questions by the address that was asked
        self._file = pathlib.Path(directory) / "wire.pcap"
        self._messages = pathlib.Path(directory) / "tcpdump.log"
        self._read = FILE_HEAD
        self._marks = 0
        self._streams = {}  # by the client's port: the number of the next octet, and the unfinished request

    def __enter__(self):
        with self._messages.open("w") as messages:
            self._process = subprocess.Popen(
                ["tcpdump", "-i", "lo", "-n", "-s", "0", "-U", "--immediate-mode", "-B", "16384", "-Z", "root", "-w",
                 str(self._file), f"tcp dst port {self.service.port} or udp dst port 53 or udp dst port {MARK}"],
                stdin=subprocess.DEVNULL, stdout=messages, stderr=messages)
        eventually(self._listens, "tcpdump listens")
        return self

    def _listens(self):
        assert self._process.poll() is None, self._messages.read_text()
        return "listening on" in self._messages.read_text()

    def __exit__(self, *_):
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)
        assert "\n0 packets dropped by kernel" in self._messages.read_text(), self._messages.read_text()

    def catch_up(self, socket):
        """Reads all packets up to now: a datagram of the test marks the end."""
        mark = self._marks + 1
        socket.sendto(b"mark", ("127.0.0.1", MARK))

        def has_come():
            self._read_on()
            return self._marks >= mark
        eventually(has_come, "tcpdump wrote the last packet")

    def _read_on(self):
        with self._file.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        place = 0
        while len(data) - place >= RECORD_HEAD:
            length = struct.unpack_from("<I", data, place + 8)[0]
            if len(data) - place - RECORD_HEAD < length:
                break
            self._packet(data[place + RECORD_HEAD + ETHERNET:place + RECORD_HEAD + length])
            place += RECORD_HEAD + length
        self._read += place

    def _packet(self, packet):
        if packet[0] >> 4 != 4:
            return
        protocol, payload = packet[9], packet[(packet[0] & 15) * 4:struct.unpack_from("!H", packet, 2)[0]]
        if protocol == UDP and struct.unpack_from("!H", payload, 2)[0] == MARK:
            self._marks += 1
        elif protocol == UDP:
            [question] = dns.message.from_wire(payload[8:]).question
            name = question.name.to_text(omit_final_dot=True).lower()
            address = ".".join(map(str, packet[16:20]))
            self.questions.setdefault(address, []).append((name, dns.rdatatype.to_text(question.rdtype)))
        elif protocol == TCP:
            self._segment(*struct.unpack_from("!H", payload), struct.unpack_from("!I", payload, 4)[0], payload[13],
                          payload[(payload[12] >> 4) * 4:])

    def _segment(self, port, number, flags, data):
        if flags & 2:  # SYN
            self._streams[port] = [number + 1 & 0xFFFFFFFF, b""]
        stream = self._streams[port]
        if not data or number != stream[0]:  # or the segment is there already
            assert number - stream[0] & 0x80000000 or not data, "tcpdump has missed a segment"
            return
        stream[0] = number + len(data) & 0xFFFFFFFF
        *heads, stream[1] = (stream[1] + data).split(b"\r\n\r\n")
        for head in heads:
            target = head.split(b" ")[1].decode()
            parameters = dict(urllib.parse.parse_qsl(target.partition("?")[2]))
            self.names += self.service.cipher.decrypt(parameters["dn"]).split(",")
