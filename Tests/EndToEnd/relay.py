"""A TCP relay between the daemon and a service, which can be made to fail as networks fail."""

import asyncio
import contextlib
import socket
import struct
import threading


class Relay:
    """Passes bytes both ways until told otherwise; may be told while connections live.

    What is frozen is neither read nor written, closed nor reset: as when the network behind has gone.
    """

    def __init__(self, target, address=None):
        self.target = target  # something with `address` and `port`
        self.address = address or target.address
        self.port = 0
        self.connections = 0  # accepted so far
        self.delay = 0  # seconds each piece of data waits, each way
        self._frozen_from_birth = False
        self._reset_at_birth = False
        self._live = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.accept()

    def _run(self):
        self._loop.run_forever()
        self._loop.close()

    @property
    def endpoint(self):
        return f"{self.address}:{self.port}"

    @property
    def live(self):
        return len(self._live)

    def accept(self):
        """New connections are accepted; so they are in the beginning."""
        self._do(self._listen())

    def refuse(self):
        """New connections are refused; those that live, live on."""
        self._do(self._close_listener())

    def freeze(self, *, live=True, new=True):
        """Nothing moves any more on live connections, on new ones, or on both."""
        self._do(self._freeze(live, new))

    def thaw(self):
        """Everything moves again, what was held back first."""
        self._do(self._thaw())

    def reset(self, *, live=True, new=False):
        """Live connections end with an RST; with `new`, every connection does that from now on."""
        self._do(self._reset(live, new))

    def stop(self):
        self._do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(5)

    async def _listen(self):
        self._reset_at_birth = False
        self._server = await asyncio.start_server(self._serve, self.address, self.port, backlog=128)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close_listener(self):
        self._server.close()

    async def _freeze(self, live, new):
        self._frozen_from_birth = new
        if live:
            for connection in self._live:
                connection.flowing.clear()

    async def _thaw(self):
        self._frozen_from_birth = False
        for connection in self._live:
            connection.flowing.set()

    async def _reset(self, live, new):
        self._reset_at_birth = new
        for connection in list(self._live) if live else ():
            connection.reset()

    async def _stop(self):
        self._server.close()
        for _ in range(5):  # what has been accepted becomes a connection first, or nobody would close it
            await asyncio.sleep(0)
        for connection in list(self._live):
            connection.reset()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        self.connections += 1
        connection = Connection(writer)
        if self._frozen_from_birth:
            connection.flowing.clear()
        self._live.add(connection)
        try:
            if self._reset_at_birth:
                return connection.reset()
            await connection.flowing.wait()
            onward, back = await asyncio.open_connection(self.target.address, self.target.port)
            connection.add(back)
            await asyncio.gather(self._pump(connection, reader, back), self._pump(connection, onward, writer))
        except (OSError, asyncio.CancelledError):
            pass  # one side has ended it, or `stop`
        finally:
            self._live.discard(connection)
            connection.close()

    async def _pump(self, connection, source, sink):
        while data := await source.read(65536):
            await connection.flowing.wait()
            if self.delay:
                await asyncio.sleep(self.delay)
            sink.write(data)
            await sink.drain()
        await connection.flowing.wait()
        with contextlib.suppress(OSError):
            sink.write_eof()


class Connection:
    """Both halves of a relayed connection."""

    def __init__(self, writer):
        self.flowing = asyncio.Event()
        self.flowing.set()
        self._writers = []
        self.add(writer)

    def add(self, writer):
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._writers.append(writer)

    def reset(self):
        for writer in self._writers:
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    def close(self):
        for writer in self._writers:
            writer.close()
