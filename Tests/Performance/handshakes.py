#!/usr/bin/python3
"""handshakes.py PORT: begins TLS handshakes at a server of this machine without end, and none is finished. To begin one costs
this program far less than the server: the same first message goes out each time. Writes how many had an answer when it is told
to end.
"""

import select
import signal
import socket
import ssl
import sys

AT_ONCE = 50
RESET = b"\1\0\0\0\0\0\0\0"  # SO_LINGER: closed without a word


def first_message():
    context = ssl.create_default_context()
    written = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), written, server_hostname="bench").do_handshake()
    except ssl.SSLWantReadError:
        return written.read()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    address, hello, answered = ("127.0.0.1", int(sys.argv[1])), first_message(), 0
    waiting, poll = {}, select.epoll()

    def begin():
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        connection.setblocking(False)
        connection.connect_ex(address)
        waiting[connection.fileno()] = connection
        poll.register(connection, select.EPOLLOUT)
    try:
        for _ in range(AT_ONCE):
            begin()
        while True:
            for number, event in poll.poll():
                connection = waiting[number]
                if event == select.EPOLLOUT:
                    connection.send(hello)
                    poll.modify(connection, select.EPOLLIN)
                    continue
                answered += event == select.EPOLLIN
                poll.unregister(connection)
                waiting.pop(number).close()
                begin()
    finally:
        print(answered)


if __name__ == "__main__":
    main()
