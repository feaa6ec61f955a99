"""`watch` shows questions while the daemon answers them, delays no client, and counts questions that it could not show."""

import json
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import threading

import dns.message
import pytest

import daemon as processes
from dns_client import addresses, ask, exchange
from encrypted import address_reply
from httpdns_service import Fault, Record
from json_page import documented
from standard import LOCAL_RESOLVER
from waiting import eventually

OFFICE = "127.0.0.41"


class Watcher:
    """A running `watch` whose output is a pipe or, with `terminal`, a terminal."""

    def __init__(self, binary, path, *arguments, terminal=False, variables=None):
        self.text, self.is_closed = "", False
        reading, writing = pty.openpty() if terminal else os.pipe()
        variables = {"TERM": "xterm", "NO_COLOR": ""} | (variables or {})
        self.process = subprocess.Popen(
            [binary, "watch", "--socket", str(path), *arguments], stdin=subprocess.DEVNULL, stdout=writing,
            stderr=writing if terminal else subprocess.PIPE, env=processes.environment(variables))
        os.close(writing)
        self.output = reading
        self.reading = threading.Event()
        self.reading.set()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        while True:
            self.reading.wait()
            try:
                octets = os.read(self.output, 1 << 16)
            except OSError:  # the other end of a terminal is closed
                return
            if not octets:
                return
            # Without the line that is shown until a question comes.
            self.text += re.sub(r"\r\x1b\[K(nothing[^\r\n]*)?", "", octets.decode())

    def begin(self):
        """Waits until questions are shown from now on."""
        def shown():
            ask("begins.localhost")
            return "begins.localhost" in self.text
        eventually(shown, "it watches")
        return self

    def lines(self, *, until):
        """All whole lines but those of `begin`, once one of them has this text."""
        def whole():
            return self.text[:self.text.rfind("\n") + 1]
        eventually(lambda: until in whole(), f"a line with {until}")
        return [line for line in whole().splitlines() if "begins.localhost" not in line]

    def values(self, *, until="ends.localhost"):
        ask(until)
        lines = self.lines(until=until)
        return [json.loads(line) for line in lines if until not in line]

    def stop(self, code=0):
        self.reading.set()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        ended = self.process.wait(20)
        self.thread.join(20)
        os.close(self.output)
        self.is_closed = True
        if self.process.stderr:
            with self.process.stderr:
                self.text += self.process.stderr.read().decode()
        assert code is None or ended == code


@pytest.fixture
def watch(binary, place):
    started = []

    def start(*arguments, **options):
        started.append(Watcher(binary, place / "s", *arguments, **options))
        return started[-1]

    yield start
    for one in started:
        if not one.is_closed:
            one.stop(None)


@pytest.fixture
def world(daemon, service, place, scripted_resolver):
    """A daemon with HTTPDNS, a local resolver, a wall whose server can fall silent, and a hosts file."""
    def start(settings=None, names=None):
        hosts = place / "hosts"
        hosts.write_text("192.0.2.9 nas.lan\n")
        office = scripted_resolver(lambda asked: address_reply(asked), address=OFFICE)
        chosen = service("aes", names or {"www.example.com": Record(["203.0.113.1"], [], 300)})
        running = daemon(chosen, {
            "control": {"socket": str(place / "s")}, "fallback": {"hosts": str(hosts)},
            "upstreams.office": {"servers": [office.endpoint], "domains": ["corp.example"], "timeout": 3000},
        } | (settings or {}))
        running.office, running.service = office, chosen
        return running
    return start


def test_each_answer_is_one_line(world, watch):
    running = world({"upstreams.safe": {"alias": "nas.lan", "domains": ["alias.example"]}})
    watcher = watch("--json").begin()
    ask("www.example.com")
    ask("WWW.example.COM")
    ask("www.example.com", transport="tcp")
    ask("nas.lan")
    ask("alias.example")
    ask("a.invalid", "AAAA")
    ask("mail.corp.example", "A")
    running.office.stop()
    ask("web.corp.example", "A")
    ask("b.example.com", "MX")
    seen = watcher.values()
    assert [set(one) for one in seen] == [documented("watch") - {"dropped"}] * 9
    service = running.service.settings()["dnsIp"][0]
    assert [(one["name"], one["type"], one["transport"], one["by"], one["group"], one["server"], one["rcode"])
            for one in seen] == [
        ("www.example.com", "A", "udp", "server", "httpdns", service, "NOERROR"),
        ("www.example.com", "A", "udp", "cache", None, None, "NOERROR"),
        ("www.example.com", "A", "tcp", "cache", None, None, "NOERROR"),
        ("nas.lan", "A", "udp", "hosts", None, None, "NOERROR"),
        ("alias.example", "A", "udp", "hosts", None, None, "NOERROR"),
        ("a.invalid", "AAAA", "udp", "daemon", None, None, "NXDOMAIN"),
        ("mail.corp.example", "A", "udp", "server", "office", running.office.endpoint, "NOERROR"),
        ("web.corp.example", "A", "udp", "nobody", None, None, "SERVFAIL"),
        ("b.example.com", "MX", "udp", "server", "fallback", f"{LOCAL_RESOLVER}:53", "NXDOMAIN")]
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", one["time"]) for one in seen)
    assert all(one["client"] == "127.0.0.1" and 0 < one["milliseconds"] < 5000 for one in seen)
    assert min(one["milliseconds"] for one in seen[1:3]) < seen[0]["milliseconds"]
    assert not running.log_lines("example")


def test_what_is_refused_is_shown_too(world, watch):
    world({"listen": {"addresses": ["127.0.0.1:53"], "allow": ["127.0.0.1/32"]}})
    watcher = watch("--json").begin()
    ask("www.example.com", source="127.0.0.2")
    exchange(bytes([0, 7, 0x28, 0, 0, 1, 0, 0, 0, 0, 0, 0]))  # opcode UPDATE, without a question
    future = bytearray(dns.message.make_query("version.example", "A", use_edns=True).to_wire())
    future[-5] = 1  # the version of EDNS
    assert exchange(bytes(future))
    assert [(one["client"], one["name"], one["type"], one["by"], one["rcode"]) for one in watcher.values()] == [
        ("127.0.0.2", "www.example.com", "A", "daemon", "REFUSED"),
        ("127.0.0.1", None, None, "daemon", "NOTIMP"),
        ("127.0.0.1", "version.example", "A", "daemon", "BADVERS")]


@pytest.mark.parametrize("arguments, expected", [
    (["corp.example", "nas.lan"], ["nas.lan", "mail.corp.example"]),
    (["--type", "mx", "--type", "TXT"], ["b.example.com"]),
    (["--by", "office", "--client", "127.0.0.1", "--rcode", "NOERROR", "--slower-than", "0.001"], ["mail.corp.example"]),
    (["--slower-than", "60000", "--type", "TXT"], []),
    (["corp.example", "--over", "udp"], ["mail.corp.example"]),
])
def test_filters(world, watch, arguments, expected):
    world()
    ask("www.example.com")
    watcher, everything = watch("--json", *arguments), watch("--json").begin()

    marks = 0

    def begun():
        # One question for each filter, answered by a server at that moment.
        nonlocal marks
        marks += 1
        for name, kind, source in [(f"mark{marks}.corp.example", "A", None), (f"mark{marks}.corp.example", "MX", None),
                                   ("mark.invalid", "A", "127.0.0.2"), ("mark.example.com", "A", None),
                                   ("mark.nas.lan", "A", None)]:
            ask(name, kind, source=source)
        return '"mark' in watcher.text
    if expected:
        eventually(begun, "it watches")
    ask("www.example.com")
    ask("nas.lan", source="127.0.0.2")
    ask("a.invalid")
    ask("mail.corp.example")
    ask("b.example.com", "MX")
    # Both watchers get these questions at the same time; the filtered one still has to write them.
    everything.values()

    def names():
        lines = watcher.text[:watcher.text.rfind("\n") + 1].splitlines()
        return [name for name in (json.loads(line)["name"] for line in lines) if not name.startswith("mark")]
    eventually(lambda: len(names()) >= len(expected), f"{expected}")
    assert names() == expected


def columns(line):
    return [match.start() for match in re.finditer(r"(?<=  )\S", line)]


def test_a_terminal_gets_columns_and_colours(world, watch):
    world()
    watcher = watch(terminal=True, variables={"COLUMNS": "200"}).begin()
    for name in ("nas.lan", "www.example.com", "a.invalid", "ends.localhost"):
        ask(name)
    lines = [line for line in watcher.lines(until="ends.localhost")]
    assert "\x1b[32mNOERROR\x1b[0m" in lines[0] and "\x1b[33mNXDOMAIN\x1b[0m" in lines[2], lines
    bare = [re.sub(r"\x1b\[\d*m", "", line) for line in lines]
    assert not any("\x1b" in line for line in bare), bare
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}  127\.0\.0\.1  udp  nas\.lan +A +hosts +NOERROR +\S+ (µs|ms)", bare[0]), bare
    # The columns before the widest text so far.
    assert all(columns(line)[:5] == columns(bare[0])[:5] for line in bare), bare
    assert columns(bare[2])[:6] == columns(bare[3])[:6], bare
    watcher.process.send_signal(signal.SIGINT)
    watcher.stop()


@pytest.mark.parametrize("options", [
    {}, {"terminal": True, "variables": {"NO_COLOR": "1"}}, {"terminal": True, "variables": {"TERM": "dumb"}}],
    ids=["a pipe", "NO_COLOR", "a dumb terminal"])
def test_no_colours_where_they_are_not_wanted(world, watch, options):
    world()
    watcher = watch(**options).begin()
    ask("ends.localhost")
    lines = watcher.lines(until="ends.localhost")
    assert not any(re.search(r"\x1b\[\d*m", line) for line in lines), lines


def test_when_it_cannot_watch(world, watch, place, binary):
    running = world()
    for arguments in (["--type", "NONSENSE"], ["--rcode", "FINE"], ["--client", "300.1.2.3"], ["--slower-than", "-1"], ["--over", "smoke"],
                      ["bad..name"]):
        assert processes.run(binary, "watch", "--socket", str(place / "s"), *arguments).returncode == 64, arguments
    for word in ("cash", "Cache", "192.0.2.1", "", "office2"):
        refused = processes.run(binary, "watch", "--socket", str(place / "s"), "--by", "office", "--by", word)
        assert refused.returncode == 64 and not refused.stdout, refused
        line = f"--by {word} is not known here; give one of cache, stale, hosts, daemon, nobody, "
        assert re.fullmatch(re.escape(line) + r"(\w+, )*\w+\n", refused.stderr) and "office" in refused.stderr, refused
    four = [watch().begin() for _ in range(4)]
    refused = processes.run(binary, "watch", "--socket", str(place / "s"))
    assert refused.returncode == 69 and refused.stderr == "4 watch already, which is the most; end one of them\n"
    # A watcher that ends in any way makes room.
    four[0].process.kill()
    four[0].process.wait()
    eventually(lambda: "begins.localhost" in another_try(watch), "there is room again")
    running.stop()
    for one in four[1:]:
        assert one.process.wait(20) == 69
        one.stop(69)
        assert one.text.endswith("the daemon has ended\n")
    absent = processes.run(binary, "watch", "--socket", str(place / "absent"))
    assert absent.returncode == 69 and "no daemon answers" in absent.stderr and absent.stdout == ""


def another_try(watch):
    one = watch()
    eventually(lambda: ask("begins.localhost") and one.text or one.process.poll() is not None, "it watches or has ended")
    return one.text


def test_it_ends_with_who_reads_it(world, binary, place):
    world()
    process = subprocess.Popen(f"{binary} watch --socket {place}/s | head -n 1", shell=True, stdout=subprocess.PIPE)

    def ended():
        ask("a.localhost")
        return process.poll() is not None
    eventually(ended, "both have ended")
    assert process.stdout.read().count(b"\n") == 1
    process.stdout.close()


FLOOD = 320_000


@pytest.mark.parametrize("reads", [True, False], ids=["a reader that keeps up as it can", "a reader that stops"])
def test_what_is_dropped_is_counted_exactly(world, watch, ask_in_batches, reads):
    """Every question of a flood is shown or counted, and memory stays bounded."""
    names = {f"n{number}.flood.example": Record(["203.0.113.1"], [], 3600) for number in range(100)}
    running = world(names=names)
    for name in names:
        assert addresses(ask(name))
    watcher = watch("--json").begin()
    assert watcher.values(until="quiet.localhost") == []
    begun = len(watcher.text.splitlines())
    before = running.held_kilobytes()
    if not reads:
        watcher.reading.clear()
        watcher.process.send_signal(signal.SIGSTOP)
    ask_in_batches(FLOOD, 32, 100, "flood.example")
    grown = running.held_kilobytes() - before
    if not reads:
        watcher.process.send_signal(signal.SIGCONT)
        watcher.reading.set()
    asked = 0

    def lines():
        # The number of dropped questions comes with the next question that is shown.
        nonlocal asked
        asked += 1
        ask(f"ends{asked}.localhost")
        whole = watcher.text[:watcher.text.rfind("\n") + 1].splitlines()[begun:]
        return whole if whole and '"ends' in whole[-1] else None
    seen = [json.loads(line) for line in eventually(lines, "the last question is shown", 60)]
    dropped = sum(one.get("dropped", 0) for one in seen)
    shown = sum("name" in one for one in seen)
    last = int(re.fullmatch(r"ends(\d+)\.localhost", seen[-1]["name"]).group(1))
    assert shown + dropped == FLOOD + last, (shown, dropped, last)
    flooded = sum(one.get("name", "").endswith("flood.example") for one in seen)
    assert flooded + dropped >= FLOOD >= flooded and flooded > 1000, (flooded, dropped)
    assert reads or dropped > FLOOD // 2, (shown, dropped)
    assert grown < 16 << 10, f"{grown} kB"


def test_a_watcher_that_stops_keeps_nobody_waiting(world, watch):
    world()
    stopped = watch("--json").begin()
    stopped.process.send_signal(signal.SIGSTOP)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.settimeout(20)
        channel.connect(("127.0.0.1", 53))
        question = dns.message.make_query("www.example.com", "A").to_wire()
        for _ in range(20_000):
            channel.send(question)
            assert channel.recv(512)
    another = watch("--json").begin()
    assert another.values() == []
    stopped.process.send_signal(signal.SIGCONT)


def test_which_way_each_question_went(world, watch, place):
    """A question that was sent in the clear counts as clear, even if HTTPDNS answers it in the end."""
    running = world({"fallback": {"hosts": "", "servers": ["10.53.53.53:5399"], "hedgeAfter": 1500}},
                    {name: Record(["203.0.113.1"], [], 300) for name in ("www.example.com", "slow.example.com")})
    leaks = watch("--way", "clear", "--json")

    def connections():
        return pathlib.Path("/proc/net/unix").read_text().count(f" {place}/s\n") - 1  # without the listening socket
    eventually(lambda: connections() > 0, "it has asked to be shown what leaks")
    watcher = watch("--json").begin()
    ask("www.example.com")
    ask("www.example.com")
    running.service.fault = Fault("delay", 2.5)
    ask("slow.example.com")
    running.office.stop()
    ask("mail.corp.example")
    seen = watcher.values()
    assert [(one["name"], one["way"]) for one in seen] == [
        ("www.example.com", "encrypted"), ("www.example.com", "cache"), ("slow.example.com", "clear"),
        ("mail.corp.example", "loopback")], seen
    assert [one["reason"] is not None for one in seen] == [False, False, False, True], seen
    assert seen[3]["reason"].startswith("office: "), seen
    [line] = leaks.lines(until="slow.example.com")
    assert json.loads(line)["name"] == "slow.example.com"


def test_lines_fit_the_terminal(world, watch):
    running = world()
    watcher = watch(terminal=True, variables={"COLUMNS": "50", "NO_COLOR": "1"}).begin()
    running.office.stop()
    ask("a-name-of-some-length.corp.example")
    watcher.lines(until="SERVFAIL")
    lines = watcher.text.replace("\r", "").splitlines()
    assert any(line.startswith("  ") and "SERVFAIL" in line for line in lines), lines
    assert all(len(line) <= 50 for line in lines), lines
