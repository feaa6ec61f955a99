"""An HTTP/2 server on its standard input and output: Python's h2, which shares no code with nghttp2.

/echo tells the request's head and body, /size/N sends N octets, /refuse refuses, /away says farewell and answers.
"""

import os

import h2.config
import h2.connection
import h2.errors
import h2.events

connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
connection.initiate_connection()
heads, bodies, waiting = {}, {}, {}


def answer(stream):
    path = dict(heads[stream])[":path"]
    if path == "/refuse":
        return connection.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)
    if path == "/echo":
        body = "".join(f"{name}: {value}\n" for name, value in heads[stream]).encode() + b"\n" + bodies[stream]
    elif path == "/away":
        body = b"farewell"
    else:
        body = b"x" * int(path.removeprefix("/size/"))
    connection.send_headers(stream, [(":status", "103"), ("link", "</style.css>")])
    fields = [("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body))), ("age", str(stream))]
    connection.send_headers(stream, [(":status", "200"), *fields])
    waiting[stream] = body
    if path == "/away":
        send()
        connection.close_connection(last_stream_id=stream)


def send():
    for stream, body in list(waiting.items()):
        while body and (count := min(connection.local_flow_control_window(stream), connection.max_outbound_frame_size)):
            connection.send_data(stream, body[:count])
            body = body[count:]
        waiting[stream] = body
        if not body:
            connection.send_headers(stream, [("trailer", "1")], end_stream=True)
            del waiting[stream]


while True:
    if output := connection.data_to_send():
        os.write(1, output)
    if not (data := os.read(0, 65536)):
        break
    for event in connection.receive_data(data):
        if isinstance(event, h2.events.RequestReceived):
            heads[event.stream_id], bodies[event.stream_id] = event.headers, b""
        elif isinstance(event, h2.events.DataReceived):
            bodies[event.stream_id] += event.data
            connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            answer(event.stream_id)
    send()
