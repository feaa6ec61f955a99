"""What of the tests is written in C, as it has to be quick or has to be inside the daemon."""

import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Compiles a file beside this one, with more options; once for each of those."""
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
    """Asks so many questions in batches of so many, for the names n0.SUFFIX, n1.SUFFIX and so on."""
    def run(count, size, names, suffix):
        command = [compiled("helpers.c"), "53", str(count // size), str(size), str(names), suffix]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and int(done.stdout) == count // size * size, done
    return run
