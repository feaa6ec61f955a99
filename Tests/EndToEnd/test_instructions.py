"""The cost of a start, a hit and a miss in instructions, as callgrind counts them: a number that does not depend on other load of
the machine, with an upper bound in ceilings.txt. A change that makes the program cheaper lowers a ceiling; a change that makes it
more expensive raises it and says why."""

import itertools
import pathlib
import re
import shutil
import subprocess

import pytest

from dns_client import ask
from httpdns_service import Record, every_name
from resolvers import answer_locally
from standard import measures_the_build
from waiting import eventually

pytestmark = measures_the_build
HERE = pathlib.Path(__file__).parent
# Rounds of one kind. The cheapest counts: other work of the daemon, or a connection that is doubted because the machine stood
# still, can only add.
ROUNDS = 5
STARTS = 3
HITS = 3200
FILED = 5000  # names in the cache file
MISSES = {"": 200, "-alone": 80}


def ceilings():
    lines = (HERE / "ceilings.txt").read_text().splitlines()
    return {name: int(most) for name, most in (line.split() for line in lines if line and not line.startswith("#"))}


class Counted:
    """A daemon under callgrind."""

    def __init__(self, running, output):
        self.running, self._output, self._dumps = running, output, 0

    def so_far(self):
        """The instructions since the start, or since the last call."""
        subprocess.run(["callgrind_control", "--dump", str(self.running.pid)], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True, timeout=60)
        self._dumps += 1
        text = pathlib.Path(f"{self._output}.{self._dumps}").read_text(errors="replace")
        return int(re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE).group(1))

    def rounds(self, of):
        """The instructions of each round of `of`."""
        self.so_far()
        counts = []
        for number in range(ROUNDS):
            of(number)
            counts.append(self.so_far())
        return counts


@pytest.fixture(scope="module")
def stripped(binary, tmp_path_factory):
    """The program without the debug information that Swift writes, which valgrind cannot read."""
    file = tmp_path_factory.mktemp("stripped") / "httpdnsd"
    subprocess.run(["strip", "-g", "-o", str(file), binary], check=True)
    return file


@pytest.fixture
def counted(daemon, stripped, tmp_path):
    """Starts a daemon under callgrind, whose instructions can be counted."""
    output = tmp_path / "callgrind.out"
    command = (f"shift; exec valgrind -q --tool=callgrind --callgrind-out-file={output} --log-file={tmp_path}/valgrind.log "
               f"{stripped} \"$@\"")

    def start(service, settings):
        # Without this, dictionaries are filled in another order each time.
        running = daemon(service, settings, prefix=["sh", "-c", command, "sh"],
                         variables={"SWIFT_DETERMINISTIC_HASHING": "1"})
        return Counted(running, output)
    yield start
    assert shutil.which("callgrind_control"), "valgrind is installed"


def test_the_order_of_functions_is_of_this_program(binary):
    """The linker puts the functions side by side that config/order.txt lists. With names that are gone it spares less memory:
    `make order` writes it again."""
    listed = (HERE.parents[1] / "config/order.txt").read_text().split()
    symbols = subprocess.run(["nm", "--defined-only", binary], stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    there = {line.split(None, 2)[2] for line in symbols.splitlines()}
    known = sum(name in there for name in listed)
    print(f"{known} of {len(listed)} functions")
    assert known >= 0.8 * len(listed), f"of {len(listed)} functions in config/order.txt {known} are left: run make order"


# One listener, one family, and time enough for a machine that is fifty times slower.
SETTINGS = {"listen": {"addresses": ["127.0.0.1:53"], "workers": 1},
            "httpdns": {"httpOnly": True, "addressType": "ipv4", "timeout": 20000}}


def check(kind, counts, each):
    figures = [count / each for count in counts]
    most = ceilings()[kind]
    print(f"{kind}: {[round(figure) for figure in figures]} instructions, ceiling {most}")
    assert min(figures) <= most, \
        f"{kind} costs {min(figures):.0f} instructions, more than the {most} of {HERE / 'ceilings.txt'}"


def test_hits(counted, service, ask_in_batches):
    zone = {f"n{i}.cost.example.com": Record([f"203.0.113.{i}"], [], 3600) for i in range(64)}
    daemon = counted(service("aes", zone), SETTINGS)
    for _ in range(2):
        ask_in_batches(64, 1, 64, "cost.example.com")
    for kind, at_once in [("hit", 16), ("hit-alone", 1)]:
        check(kind, daemon.rounds(lambda _: ask_in_batches(HITS, at_once, 64, "cost.example.com")), HITS)


def test_a_start_and_an_answer_of_the_cache_file(counted, daemon, service, ask_in_batches, tmp_path):
    """The cost from exec until the daemon answers, and the cost of each answer that is read from the file."""
    chosen = service("aes", every_name)
    kept = SETTINGS | {"cache": {"file": str(tmp_path / "answers")}}
    filling = daemon(chosen, kept)
    ask_in_batches(FILED, 40, FILED, "file.example.com")
    filling.stop()

    def start(settings, read):
        started = counted(chosen, settings)
        eventually(lambda: read in started.running.log(), "it has started", 60)
        count = started.so_far()
        started.running.stop()
        return count, started.running.log_lines(read)[0]
    without = [start(SETTINGS, "listening")[0] for _ in range(STARTS)]
    check("start", without, 1)
    restored = [start(kept, "taken over") for _ in range(STARTS)]
    # A name may have an answer for each family.
    answers = int(re.search(r"(\d+) answers? taken over", restored[0][1]).group(1))
    print(f"{answers} answers")
    assert answers >= FILED
    check("restored", [count - min(without) for count, _ in restored], answers)


def check_misses(name, daemon, ask_in_batches, *at_once):
    """Measures misses with each number of simultaneous questions in turn."""
    # Under valgrind, the first run of any code takes seconds on a busy machine.
    fresh = (f"first{number}.example.com" for number in itertools.count())
    eventually(lambda: ask(next(fresh)).answer, "it answers", 60)
    for size in at_once:
        kind = "-alone" if size == 1 else ""
        count = MISSES[kind]

        def misses(number):
            ask_in_batches(count, size, count, f"round{number}{kind}.example.com")
        misses(ROUNDS)  # includes the first connection, and work that is done once
        check(f"miss-{name}{kind}", daemon.rounds(misses), count)


@pytest.mark.parametrize("encryption", ["aes", "https"])
def test_misses(counted, service, ask_in_batches, encryption):
    check_misses(encryption, counted(service(encryption, every_name), SETTINGS), ask_in_batches, 8, 1)


@pytest.mark.parametrize("name, protocol", [("plain", "udp"), ("dot", "tls"), ("doh", "https")])
def test_misses_of_a_resolver(counted, scripted_resolver, encrypted_resolver, authority, ask_in_batches, name, protocol):
    server = (scripted_resolver(answer_locally).endpoint if protocol == "udp" else encrypted_resolver(protocol).url)
    trust = {} if protocol == "udp" else {"caFile": str(authority.file)}
    settings = {"listen": SETTINGS["listen"], "fallback": {"servers": [server], "timeout": 20000} | trust}
    check_misses(name, counted(None, settings), ask_in_batches, 8, 1)


@pytest.mark.parametrize("provider, at_once", [
    ("alibaba", [5, 1]), ("alibaba-v1", [5, 1]), ("baidu", [5, 1]), ("volcengine", [1])])
def test_misses_of_another_provider(counted, account, ask_in_batches, provider, at_once):
    check_misses(provider, counted(account(provider, zone=every_name), SETTINGS), ask_in_batches, *at_once)
