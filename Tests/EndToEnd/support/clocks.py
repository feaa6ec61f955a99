"""A daemon whose clocks a test sets: clocks.c, preloaded into it."""

import struct

import pytest


class Clocks:
    """The clocks of programs that are started with these variables."""

    def __init__(self, library, file):
        self._file = file
        self.set()
        self.variables = {"LD_PRELOAD": str(library), "CLOCKS": str(file)}

    def set(self, *, day=0, boot=0):
        """Sets the offsets, in seconds, of the time of day and of the time since the machine started."""
        with open(self._file, "r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=qq", day, boot))


@pytest.fixture
def clocks(compiled, tmp_path):
    return Clocks(compiled("clocks.c", "-shared", "-fPIC"), tmp_path / "clocks")
