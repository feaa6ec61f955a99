"""Common parts of the tests of packages, images and hosts. They need root: they make file systems and networks."""

import os
import pathlib
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(TOP / "Tests/EndToEnd/support"))

from machine import BootedMachine, Machine  # noqa: E402


@pytest.fixture(scope="session")
def top():
    return TOP


@pytest.fixture(scope="session")
def binary():
    path = TOP / ".build/release/httpdnsd"
    assert os.access(path, os.X_OK), f"no binary at {path}: build it first (make build)"
    return path


@pytest.fixture(scope="session")
def deb():
    packages = list((TOP / ".build/deb").glob("httpdnsd_*.deb"))
    assert len(packages) == 1, f"one package is wanted: build it first (make deb), found {packages}"
    return packages[0]


@pytest.fixture(scope="session")
def version(binary):
    return subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def machine(tmp_path):
    """A clean Debian whose files and network are its own."""
    with Machine(TOP / ".build/packaging/root", tmp_path) as one:
        yield one


@pytest.fixture(params=["root", "next"], ids=["bookworm", "trixie"])
def either_machine(request, tmp_path):
    """The clean machine, with the Debian on which packages are made, and with the one after it."""
    with Machine(TOP / ".build/packaging" / request.param, tmp_path) as one:
        yield one


@pytest.fixture
def booted(tmp_path):
    """The clean machine with a running systemd."""
    with BootedMachine(TOP / ".build/packaging/root", tmp_path) as one:
        yield one
