"""A daemon whose clocks a test sets: clocks.c, preloaded into it."""

import pathlib
import struct
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent


class Clocks:
    """The clocks of what is started with these variables."""

    def __init__(self, library, file):
        self._file = file
        self.set()
        self.variables = {"LD_PRELOAD": str(library), "CLOCKS": str(file)}

    def set(self, *, day=0, boot=0):
        """Seconds by which the time of day, and the time since the machine started, are off."""
        with open(self._file, "r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=qq", day, boot))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    made = tmp_path_factory.mktemp("clocks") / "clocks.so"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(made),
                    str(HERE / "clocks.c")], check=True)
    return made


@pytest.fixture
def clocks(library, tmp_path):
    return Clocks(library, tmp_path / "clocks")
