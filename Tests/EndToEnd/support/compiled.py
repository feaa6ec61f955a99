"""The parts of the tests in C: they have to be fast, or run inside the daemon."""

import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Compiles a file beside this one, once for each set of options."""
    made = {}

    def path(source, *options):
        if (source, options) not in made:
            program = str(tmp_path_factory.mktemp("compiled") / pathlib.Path(source).stem)
            subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, str(HERE / source), *options], check=True)
            made[source, options] = program
        return made[source, options]
    return path


@pytest.fixture
def ask_in_batches(compiled):
    """Asks `count` questions in batches of `size`, for the names n0.SUFFIX, n1.SUFFIX and so on."""
    def run(count, size, names, suffix):
        command = [compiled("helpers.c"), "53", str(count // size), str(size), str(names), suffix]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and int(done.stdout) == count // size * size, done
    return run
