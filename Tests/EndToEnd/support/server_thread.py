"""An event loop on a thread of its own, for the tests' servers."""

import asyncio
import contextlib
import socket
import struct
import threading
import weakref


class ServerThread:
    """Calls `serve(reader, writer)` for each connection, from `listen` to `close` and again.

    Nothing is left open after `stop`, whatever state the connections are in: just accepted, in the middle of their
    handshakes, or closed with octets that the other end does not read.
    """

    def __init__(self, serve):
        self._serve = serve
        self._server = None
        self._transports = weakref.WeakSet()
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda *_: None)  # connections that are cut end in errors without a meaning
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        self._loop.run_forever()
        self._loop.close()

    def do(self, function, *arguments):
        """Calls a function on the thread and returns what it returns."""
        async def call():
            return function(*arguments)
        return self._wait(call())

    def listen(self, address, port, context=None):
        """Listens, with TLS if there is a `context`, and returns the port."""
        async def listen():
            self._server = await asyncio.start_server(self._connected, address, port, ssl=context, backlog=128)
            return self._server.sockets[0].getsockname()[1]
        return self._wait(listen())

    def close(self):
        """Closes the listener; open connections stay."""
        self._wait(self._close())

    def stop(self):
        self._wait(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    def _wait(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _connected(self, reader, writer):
        self._transports.add(writer.transport)
        await self._serve(reader, writer)

    async def _close(self):
        for listener in self._server.sockets:
            self._loop.remove_reader(listener)
        await _turns()  # accepted sockets become connections now: asyncio makes none for a closed server
        self._server.close()

    async def _end(self):
        await self._close()
        for transport in list(self._transports):
            reset(transport)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _turns()  # now the transports close their sockets


def reset(transport):
    """Ends a connection with an RST, unless it has ended."""
    with contextlib.suppress(OSError, AttributeError):
        linger = struct.pack("ii", 1, 0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    with contextlib.suppress(AttributeError):
        transport.abort()


async def _turns():
    for _ in range(5):
        await asyncio.sleep(0)
