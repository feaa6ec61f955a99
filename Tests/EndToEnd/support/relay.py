"""A TCP relay between the daemon and a service, which can be made to fail as networks fail."""

import asyncio
import contextlib

from server_thread import ServerThread, reset


class Relay:
    """Passes octets both ways, until a test changes that, also while connections live.

    A frozen connection is neither read nor written, closed nor reset, as if the network behind it had gone.
    """

    def __init__(self, target, address=None):
        self.target = target  # something with `address` and `port`
        self.address = address or target.address
        self.port = 0
        self.connections = 0  # the number accepted so far
        self.delay = 0  # the delay of each piece of data each way, in seconds
        self._frozen_from_birth = False
        self._reset_at_birth = False
        self._live = set()
        self._thread = ServerThread(self._serve)
        self.accept()

    @property
    def endpoint(self):
        return f"{self.address}:{self.port}"

    @property
    def live(self):
        return len(self._live)

    def accept(self):
        """Accepts new connections, as at the beginning."""
        self._reset_at_birth = False
        self.port = self._thread.listen(self.address, self.port)

    def refuse(self):
        """Refuses new connections; live ones stay."""
        self._thread.close()

    def freeze(self, *, live=True, new=True):
        """Stops all data on live connections, on new ones, or on both."""
        self._thread.do(self._freeze, live, new)

    def thaw(self):
        """Lets all data move again, beginning with data that was held back."""
        self._thread.do(self._thaw)

    def reset(self, *, live=True, new=False):
        """Ends live connections with an RST; with `new`, every later connection, too."""
        self._thread.do(self._reset, live, new)

    def stop(self):
        self._thread.stop()

    def _freeze(self, live, new):
        self._frozen_from_birth = new
        if live:
            for connection in self._live:
                connection.flowing.clear()

    def _thaw(self):
        self._frozen_from_birth = False
        for connection in self._live:
            connection.flowing.set()

    def _reset(self, live, new):
        self._reset_at_birth = new
        for connection in list(self._live) if live else ():
            connection.reset()

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
            pass  # one side, or `stop`, has ended it
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
        self._writers = [writer]

    def add(self, writer):
        self._writers.append(writer)

    def reset(self):
        for writer in self._writers:
            reset(writer.transport)

    def close(self):
        for writer in self._writers:
            writer.close()
