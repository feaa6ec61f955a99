"""Upstreams with scripts: DNS over TCP and TLS (RFC 7858), and over HTTPS (RFC 8484, HTTP/2).

Every script runs on the one thread of its server, in the order in which the questions came.
"""

import asyncio
import base64
import contextlib
import struct
from dataclasses import dataclass, field

import dns.message
import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from resolvers import Asked, reply_to
from server_thread import ServerThread, reset

MEDIA_TYPE = "application/dns-message"
STREAMS = h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS


@dataclass
class Later:
    """An answer that is held back for this many seconds."""

    seconds: float
    answer: object


@dataclass
class Response:
    """A response of a DoH server: `body` may be a message; `fields` replace the usual ones."""

    body: object = b""
    status: int = 200
    fields: list = None


@dataclass
class HTTPAsked(Asked):
    """One question over HTTPS."""

    stream: int = 0
    fields: dict = field(default_factory=dict)


class StreamServer:
    """Listens on a TCP port, with TLS if there is a `context`, and counts connections and questions."""

    protocol = None  # the protocol that ALPN offers

    def __init__(self, script, context=None, *, address="127.0.0.6", port=0):
        self.script = script
        self.address, self.port = address, port
        self.questions = []
        self.connections = 0
        self.live = []
        self.renew(context)
        self._thread = ServerThread(self._serve)
        self.do = self._thread.do
        self.start()

    def start(self):
        """Listens, on the former port if there was one."""
        self.port = self._thread.listen(self.address, self.port, self._context)

    def renew(self, context):
        """Uses another certificate, from the next `start` on."""
        self._context = context
        if context is not None and self.protocol:
            context.set_alpn_protocols([self.protocol])

    def away(self):
        """Closes the listener and resets every connection."""
        self._thread.close()
        self.do(lambda: [one.reset() for one in list(self.live)])

    def stop(self):
        self._thread.stop()

    @property
    def clients(self):
        """(address, port) of the other end of every open connection."""
        return [one.writer.get_extra_info("peername")[:2] for one in list(self.live)]

    async def _serve(self, reader, writer):
        self.connections += 1
        connection = self.kind(self, reader, writer, self.connections)
        self.live.append(connection)
        try:
            await connection.serve()
        except (OSError, asyncio.IncompleteReadError, h2.exceptions.ProtocolError):
            pass  # the other end has closed, or the script cut the connection
        finally:
            self.live.remove(connection)
            writer.close()


class Connection:
    """One connection; `count` is the number of its questions so far."""

    def __init__(self, server, reader, writer, number):
        self.server, self.reader, self.writer, self.number = server, reader, writer, number
        self.count = 0

    def write(self, octets):
        if not self.writer.is_closing():
            self.writer.write(octets)

    def close(self):
        self.writer.close()

    def reset(self):
        reset(self.writer.transport)

    def _told(self, asked):
        self.count += 1
        self.server.questions.append(asked)
        self._give(self.server.script(asked, self), asked)

    def _give(self, answer, asked):
        for one in answer if isinstance(answer, list) else [answer]:
            if isinstance(one, Later):
                asyncio.get_running_loop().call_later(one.seconds, self._give, one.answer, asked)
            elif one is not None:
                self.send(one, asked)


class FramedConnection(Connection):
    """Messages with their length before them."""

    async def serve(self):
        while True:
            length = struct.unpack("!H", await self.reader.readexactly(2))[0]
            wire = await self.reader.readexactly(length)
            port = self.writer.get_extra_info("peername")[1]
            self._told(Asked(dns.message.from_wire(wire), wire, "tcp", port))

    @staticmethod
    def framed(message):
        wire = message if isinstance(message, bytes) else message.to_wire(max_size=65535)
        return struct.pack("!H", len(wire)) + wire

    def send(self, message, asked=None):
        self.write(self.framed(message))


class FramedServer(StreamServer):
    """DNS over TCP, or TLS. `script(asked, connection)` returns a message, octets, `Later`, None or a list of these."""

    kind = FramedConnection

    @property
    def url(self):
        return f"{'tcp' if self._context is None else 'tls'}://{self.address}:{self.port}"


class HTTPConnection(Connection):
    """HTTP/2 on the server's side; `h2` is the state machine, for frames a script sends by itself."""

    async def serve(self):
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=False, header_encoding="utf-8", validate_outbound_headers=False,
            normalize_outbound_headers=False))
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values={STREAMS: 1000})
        self.h2.initiate_connection()
        self._requests, self._unsent = {}, {}
        self.refused = 0
        self.flush()
        self.limit_streams(self.server.streams)
        self.server.greet(self)
        while data := await self.reader.read(65536):
            for event in self.h2.receive_data(data):
                self._heed(event)
            self._send_bodies()

    def limit_streams(self, limit):
        """Limits open streams. `h2` does not know the limit: it would end the connection instead of refusing a stream."""
        self._limit = limit
        self.write(b"\0\0\x06\x04\0\0\0\0\0" + struct.pack("!HI", STREAMS, limit))

    def flush(self):
        self.write(self.h2.data_to_send())

    def _heed(self, event):
        stream = getattr(event, "stream_id", None)
        if isinstance(event, h2.events.RequestReceived) and self.h2.open_inbound_streams > self._limit:
            self.refused += 1
            with contextlib.suppress(h2.exceptions.ProtocolError):  # the client has cancelled the stream
                self.h2.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)
            self.flush()
        elif isinstance(event, h2.events.RequestReceived):
            self._requests[stream] = (event.headers, bytearray())
        elif isinstance(event, h2.events.DataReceived) and stream in self._requests:
            self._requests[stream][1].extend(event.data)
            self.h2.acknowledge_received_data(event.flow_controlled_length, stream)
        elif isinstance(event, h2.events.StreamEnded) and stream in self._requests:
            headers, body = self._requests.pop(stream)
            self._hear(stream, headers, bytes(body))
        elif isinstance(event, h2.events.StreamReset):
            self._requests.pop(stream, None)
            self._unsent.pop(stream, None)

    def _hear(self, stream, headers, body):
        fields = dict(headers)
        if fields[":method"] == "GET":
            encoded = fields[":path"].partition("?dns=")[2]
            body = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
        self.server.headers.append(headers)
        port = self.writer.get_extra_info("peername")[1]
        self._told(HTTPAsked(dns.message.from_wire(body), body, "https", port, stream, fields))

    def send(self, answer, asked):
        answer = answer if isinstance(answer, Response) else Response(answer)
        body = answer.body if isinstance(answer.body, bytes) else answer.body.to_wire(max_size=65535)
        fields = answer.fields
        if fields is None:
            fields = [("content-type", MEDIA_TYPE), ("content-length", str(len(body)))]
        with contextlib.suppress(h2.exceptions.ProtocolError):  # the client has cancelled the stream
            self.h2.send_headers(asked.stream, [(":status", str(answer.status)), *fields])
            self._unsent[asked.stream] = body
        self._send_bodies()

    def _send_bodies(self):
        for stream, body in list(self._unsent.items()):
            with contextlib.suppress(h2.exceptions.ProtocolError):
                while body and (room := min(self.h2.local_flow_control_window(stream),
                                            self.h2.max_outbound_frame_size)):
                    self.h2.send_data(stream, body[:room])
                    body = body[room:]
                if not body:
                    self.h2.end_stream(stream)
            if body:
                self._unsent[stream] = body
            else:
                del self._unsent[stream]
        self.flush()


class HTTPServer(StreamServer):
    """DNS over HTTPS. Scripts return what `FramedServer`'s do, or a `Response`. `streams` may be open at once."""

    kind = HTTPConnection
    protocol = "h2"

    def __init__(self, script, context, *, streams=100, greet=lambda connection: None, **options):
        self.streams = streams
        self.greet = greet  # called for each connection once its SETTINGS are sent
        self.headers = []  # the fields of every request, in order
        super().__init__(script, context, **options)

    @property
    def url(self):
        return f"https://{self.address}:{self.port}/dns-query"


def address_reply(asked, address="192.0.2.7", ttl=60):
    """An answer to any question for an address; NODATA for everything else."""
    return reply_to(asked.message, *([f"{ttl} IN A {address}"] if asked.kind == "A" else []))
