"""The cache across restarts: it survives TERM and KILL, is checked when it is read, and is set aside when it is damaged."""

import os
import pathlib
import signal
import stat
import subprocess
import time

import dns.rcode
import pytest

from clients import at_the_same_moment, first_reply
from control import Control
from dns_client import addresses, ask, extended_errors
from httpdns_service import Record, address_of, every_name
from resolvers import reply_to
from standard import measures_the_build
from waiting import eventually, waited_since

STRICT = {"httpOnly": True}
COMPLAINT = "not taken over|aside|damaged|cannot"
NAMES = [f"kept{number}.example.com" for number in range(40)]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "cache" / "answers"


@pytest.fixture
def kept(daemon, file):
    """Starts daemons that share one cache file."""
    file.parent.mkdir()

    def start(chosen, httpdns=None, ready=True, **cache):
        settings = {"httpdns": STRICT | (httpdns or {}), "cache": {"file": str(file)} | cache}
        return daemon(chosen, settings, ready=ready)
    return start


def fill():
    """Has the daemon cache both families of every name."""
    for name in NAMES:
        assert addresses(ask(name)) == [address_of(name)]
        assert addresses(ask(name, "AAAA"), "AAAA") == [address_of(name, 6)]


def wait_until_saved(file):
    """Waits until the daemon saves the cache by itself."""
    since = time.time()
    eventually(lambda: file.exists() and file.stat().st_mtime > since, "the cache is saved")


@pytest.fixture
def killed():
    """A function that kills a daemon; the end of the test does not check its exit code."""
    def end_by_kill(running):
        running.process.send_signal(signal.SIGKILL)
        running.process.wait()
        running.stop = lambda: None
    return end_by_kill


@pytest.mark.parametrize("how", ["TERM", "KILL"])
def test_every_name_that_was_known_answers_after_a_restart(kept, killed, service, file, how):
    """With the service down, the daemon answers both families from the file, with TTLs counted down by the clock."""
    chosen = service("aes", every_name)
    running = kept(chosen)
    fill()
    before = {name: ask(name).answer[0].ttl for name in NAMES}
    if how == "KILL":
        wait_until_saved(file)
        killed(running)
    else:
        running.stop()
    assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, "who asked for what is nobody else's business"
    chosen.stop()
    again = kept(chosen)
    for name in NAMES:
        reply = ask(name, edns=True)
        assert addresses(reply) == [address_of(name)] and not extended_errors(reply)
        assert 0 < reply.answer[0].ttl <= before[name]
        assert addresses(ask(name.upper(), "AAAA", transport="tcp"), "AAAA") == [address_of(name, 6)]
    assert ask("never.example.com").rcode() == dns.rcode.SERVFAIL, "the service is down indeed"
    assert not again.log_lines(COMPLAINT), again.log()


@measures_the_build
def test_the_first_question_after_a_restart(kept, service):
    """A question that arrives while the daemon still starts is answered from the cache file, though the file is large."""
    chosen = service("aes", every_name)
    running = kept(chosen)
    names = [f"many{number}.example.com" for number in range(12_000)]
    for start in range(0, len(names), 100):
        replies = at_the_same_moment(running, [(name, "A") for name in names[start:start + 100]])
        assert all(reply.answer for reply in replies)
    running.stop()
    chosen.stop()
    for _ in range(5):
        running = kept(chosen, ready=False)
        reply = first_reply(names[-1])
        assert addresses(reply) == [address_of(names[-1])], reply
        running.stop()


def test_answers_that_expired_meanwhile_are_stale(kept, service):
    """Answers age while no daemon runs: with the service silent, the client gets a stale answer with EDE 3 in time."""
    chosen = service("aes", lambda name, request: Record([address_of(name)], [address_of(name, 6)], 1))
    running = kept(chosen)
    fill()
    running.stop()
    chosen.hold()
    time.sleep(1)  # the answers' TTL, by the clock
    kept(chosen, {"timeout": 30000})
    begun = time.monotonic()
    reply = ask(NAMES[0], edns=True)
    assert addresses(reply) == [address_of(NAMES[0])] and extended_errors(reply) == [3]
    assert waited_since(begun) < 3.5, "before the daemon gives up"
    chosen.release()


def test_other_answers_are_kept_too(daemon, scripted_resolver, file):
    """Answers of the local resolver survive a restart, negative ones as well."""
    soa = "300 IN SOA ns.example.com. h.example.com. 1 2 3 4 200"

    def script(asked):
        if asked.kind == "MX":
            return reply_to(asked.message, "300 IN MX 10 mx.example.com.")
        return reply_to(asked.message, soa, rcode=dns.rcode.NXDOMAIN, section="authority")
    local = scripted_resolver(script)
    file.parent.mkdir(exist_ok=True)
    settings = {"fallback": {"servers": [local.endpoint], "timeout": 2000}, "cache": {"file": str(file)}}
    running = daemon(None, settings)
    assert ask("example.com", "MX").answer and ask("missing.example.com").rcode() == dns.rcode.NXDOMAIN
    running.stop()
    local.script = lambda asked: None
    daemon(None, settings)
    assert ask("example.com", "MX").answer[0][0].to_text() == "10 mx.example.com."
    assert ask("missing.example.com").rcode() == dns.rcode.NXDOMAIN


def test_killed_at_any_moment_the_file_is_whole(kept, killed, service, file, chance):
    """A daemon that is killed, even while it writes the file, leaves either the last whole file or the one before."""
    chosen = service("aes", every_name)
    fresh = (f"fresh{number}.example.com" for number in range(1_000_000))
    running = kept(chosen)
    fill()
    running.stop()
    running = kept(chosen)
    for _ in range(5):
        until = time.monotonic() + chance.random() * 0.3
        while time.monotonic() < until:
            ask(next(fresh))
        killed(running)
        running = kept(chosen)
        asked = len(chosen.names)
        for name in NAMES:
            assert addresses(ask(name)) == [address_of(name)]
        assert len(chosen.names) == asked, "the first names are still known"
        assert not running.log_lines(COMPLAINT), running.log()
    # Unfinished files of killed daemons do not accumulate.
    running.stop()
    assert len(list(file.parent.iterdir())) <= 2


def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1:]


# Each octet and length that can be wrong is tried in DNSCacheTests/HostileSnapshotTests.
DAMAGE = {
    "half": lambda data, chance: data[:len(data) // 2],
    "a bit somewhere": lambda data, chance: flipped(data, chance.randrange(len(data))),
    "foreign": lambda data, chance: b"SQLite format 3\0" + chance.randbytes(8000),
}


@pytest.fixture(scope="module")
def written(module_daemon, service, tmp_path_factory):
    """The octets of a file that a daemon wrote, and the service it asked, which has ended."""
    chosen = service("aes", every_name)
    path = tmp_path_factory.mktemp("cache") / "answers"
    running = module_daemon(chosen, {"httpdns": STRICT, "cache": {"file": str(path)}})
    for name in NAMES:
        ask(name)
    running.stop()
    chosen.stop()
    return chosen, path.read_bytes()


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_that_is_not_what_was_written(kept, written, file, chance, damage):
    """The daemon starts, logs one line, sets the file aside, and gives no answer that could be wrong."""
    chosen, sound = written
    broken = DAMAGE[damage](sound, chance)
    assert broken != sound
    file.write_bytes(broken)
    os.chmod(file, 0o600)
    running = kept(chosen)
    for name in NAMES[:10]:
        reply = ask(name, edns=True)
        assert reply.rcode() == dns.rcode.SERVFAIL or addresses(reply) == [address_of(name)], reply
    told = running.log_lines(COMPLAINT)
    assert len(told) == 1 and str(file) in told[0], running.log()
    aside = [one for one in file.parent.iterdir() if one != file and one.read_bytes() == broken]
    assert len(aside) == 1, f"set aside under another name: {list(file.parent.iterdir())}"
    running.stop()
    # The next start reads the new file without a complaint. The question is answered only after the file is read.
    again = kept(chosen)
    ask(NAMES[0])
    assert not again.log_lines(COMPLAINT), again.log()


def test_a_sound_file_is_used(kept, written, file):
    """A sound file is taken over, as the tests of damaged files assume."""
    chosen, sound = written
    file.write_bytes(sound)
    kept(chosen)
    for name in NAMES:
        assert addresses(ask(name)) == [address_of(name)]


@pytest.mark.parametrize("obstacle", ["folder is missing", "folder in its place", "folder may not be written"])
def test_a_file_that_cannot_be_had(daemon, service, tmp_path, obstacle):
    """The daemon warns, answers without a cache file, and stops in order."""
    path = tmp_path / "answers"
    if obstacle == "folder is missing":
        path = tmp_path / "missing" / "answers"
    elif obstacle == "folder in its place":
        path.mkdir()
    else:
        path = "/proc/self/answers"
    running = daemon(service("aes", every_name), {"httpdns": STRICT, "cache": {"file": str(path)}})
    assert addresses(ask("one.example.com")) == [address_of("one.example.com")]
    running.stop()
    assert 1 <= len(running.log_lines("cache.file")) <= 2, running.log()


def test_a_full_disk_is_left_to_others(kept, service, file):
    """The cache does not fit on the disk after a restart: the attempts, each of which takes all free space, are rare."""
    chosen = service("aes", every_name)
    running = kept(chosen)
    for start in range(0, 6000, 100):
        at_the_same_moment(running, [(f"many{number}.example.com", "A") for number in range(start, start + 100)])
    running.stop()
    saved, free = file.read_bytes(), 1 << 18
    assert len(saved) > free
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={len(saved) + free}", "none", str(file.parent)], check=True)
    try:
        file.write_bytes(saved)
        running = kept(chosen)
        assert addresses(ask("new.example.com")) == [address_of("new.example.com")]
        eventually(lambda: running.log_lines("cache.file cannot be written"), "the disk is full")

        def written():
            figures = pathlib.Path(f"/proc/{running.pid}/io").read_text().split()
            return int(figures[figures.index("wchar:") + 1])
        before = written()
        time.sleep(10)
        assert written() - before < 10 * 65536 + 2 * free
        running.stop()
    finally:
        subprocess.run(["umount", "-l", str(file.parent)], check=True)


def test_a_group_that_is_added_costs_its_own_names_alone(kept, daemon, service, scripted_resolver, file):
    """After a group is added, its name is asked of its server; all other answers are taken over, though the service is down."""
    chosen = service("aes", every_name)
    running = kept(chosen)
    fill()
    running.stop()
    chosen.stop()
    shop = scripted_resolver(lambda asked: reply_to(asked.message, "300 IN A 192.0.2.80"))
    group = {"servers": [shop.endpoint], "domains": [NAMES[0]]}
    again = daemon(chosen, {"httpdns": STRICT, "cache": {"file": str(file)}, "upstreams.shop": group})
    for name in NAMES[1:]:
        assert addresses(ask(name)) == [address_of(name)]
    assert addresses(ask(NAMES[0])) == ["192.0.2.80"]
    assert again.log_lines("taken over from cache.file, [12] of other settings left out"), again.log()


def test_how_many_questions_there_were_is_known_after_a_restart(daemon, binary, service, place, file):
    """The history continues after a restart; a damaged history file is reported once and not taken over."""
    file.parent.mkdir()
    settings = {"cache": {"file": str(file)}, "control": {"socket": str(place / "s")}, "httpdns": STRICT}

    def begun():
        running = daemon(service("aes", every_name), settings)
        operator = Control(binary, running)
        operator.socket = place / "s"
        return running, operator

    def sums(operator):
        day, month = operator.json()["history"]
        assert (day["stepSeconds"], month["stepSeconds"]) == (300, 3600)
        assert time.time() - 3600 < month["beganAt"] <= day["beganAt"] + 300
        kinds = ("questions", "cache", "encrypted", "loopback", "clear", "failed")
        assert all(sum(day[kind]) == sum(month[kind]) for kind in kinds)
        return {kind: sum(day[kind]) for kind in kinds}
    running, operator = begun()
    fill()
    before = sums(operator)
    assert before["questions"] >= 2 * len(NAMES) and before["cache"] + before["encrypted"] == before["questions"]
    running.stop()
    history = pathlib.Path(f"{file}.history")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600 and b"example" not in history.read_bytes()
    running, operator = begun()
    after = sums(operator)
    assert before["questions"] <= after["questions"] <= before["questions"] + 5  # the fixture asks questions, too
    assert after["encrypted"] >= before["encrypted"]
    running.stop()
    history.write_bytes(history.read_bytes()[:-1])
    running, operator = begun()
    assert sums(operator)["questions"] <= 5
    assert len(running.log_lines("the history is not taken over")) == 1
    running.stop()
    # Files of a later version are left out with one log line each, and the daemon runs as usual.
    file.write_bytes(b"httpdnsd" + bytes([0, 0, 0, 99]) + bytes(1000))
    history.write_bytes(b"httpdnsd-history" + bytes([0, 0, 0, 99]) + bytes(1000))
    running, operator = begun()
    assert sums(operator)["questions"] <= 5
    assert len(running.log_lines("the history is not taken over: it is of version 99, not 2")) == 1
    assert len(running.log_lines("cache.file is not taken over: it is of version [0-9]+, not [0-9]+; it is")) == 1


def lines_of(resolver_address, resolv_conf):
    """Replaces resolv.conf as tools do: by another file, renamed into place."""
    other = resolv_conf.with_suffix(".new")
    other.write_text(f"nameserver {resolver_address}\n")
    other.rename(resolv_conf)


def test_private_names_survive_a_restart_in_the_same_network_and_no_other(daemon, scripted_resolver, file, tmp_path):
    """After a restart, private names of the same network come from the file; in another network, its own resolver is asked."""
    file.parent.mkdir()
    home = scripted_resolver(lambda asked: reply_to(asked.message, "3600 IN A 192.0.2.1"), address="127.0.0.20")
    scripted_resolver(lambda asked: reply_to(asked.message, "3600 IN A 192.0.2.2"), address="127.0.0.21")
    resolv_conf = tmp_path / "resolv.conf"
    lines_of("127.0.0.20", resolv_conf)
    settings = {"fallback": {"servers": [], "resolvConf": [str(resolv_conf)], "hosts": ""}, "cache": {"file": str(file)}}

    def answered():
        return addresses(ask("nas.lan"))
    running = daemon(None, settings)
    assert answered() == ["192.0.2.1"]
    running.stop()
    home.stop()
    running = daemon(None, settings)
    assert answered() == ["192.0.2.1"], running.log()
    # The same daemon moves to another network: the new resolver is asked at once, however long the TTL is.
    lines_of("127.0.0.21", resolv_conf)
    eventually(lambda: answered() == ["192.0.2.2"], "the answer is that of the network")
    running.stop()
    # A daemon starts that was stopped while the network changed.
    lines_of("127.0.0.22", resolv_conf)
    scripted_resolver(lambda asked: reply_to(asked.message, "3600 IN A 192.0.2.3"), address="127.0.0.22")
    running = daemon(None, settings)
    assert answered() == ["192.0.2.3"], running.log()


def test_a_flush_right_after_the_start_is_not_undone(daemon, binary, service, place, file):
    """A name flushed while the file is still being read is asked for again, and its neighbour comes from the file."""
    file.parent.mkdir()
    chosen = service("aes", every_name)
    settings = {"cache": {"file": str(file)}, "control": {"socket": str(place / "s")}, "httpdns": STRICT}
    running = daemon(chosen, settings)
    for start in range(0, 4000, 100):
        at_the_same_moment(running, [(f"many{number}.example.com", "A") for number in range(start, start + 100)])
    running.stop()
    asked = []
    chosen.stop()
    again = service("aes", lambda name, request: asked.append(name) or every_name(name, request))
    running = daemon(again, settings, ready=False)
    operator = Control(binary, running)
    operator.socket = place / "s"
    eventually((place / "s").exists, "the control socket is there")
    operator("flush", "many7.example.com")
    eventually(lambda: running.log_lines("taken over from cache.file"), "the file is read")
    assert addresses(ask("many8.example.com")) == [address_of("many8.example.com")] and not asked
    assert addresses(ask("many7.example.com")) == [address_of("many7.example.com")] and asked == ["many7.example.com"]


def test_a_flush_reaches_answers_of_other_settings(daemon, binary, service, place, file):
    """An answer that a restart leaves in the file, as it is of other settings, does not return after a flush."""
    file.parent.mkdir()
    asked = []
    chosen = service("aes", lambda name, request: asked.append(name) or every_name(name, request))
    settings = {"cache": {"file": str(file)}, "control": {"socket": str(place / "s")}, "httpdns": STRICT}
    running = daemon(chosen, settings)
    assert addresses(ask("one.example.com")) == [address_of("one.example.com")]
    running.stop()
    group = {"servers": ["127.0.0.9"], "domains": ["."]}
    running = daemon(chosen, settings | {"upstreams.shop": group}, ready=False)
    eventually(lambda: running.log_lines("of other settings left out"), "the file is read")
    operator = Control(binary, running)
    operator.socket = place / "s"
    operator("flush", "--all")
    running.stop()
    asked.clear()
    daemon(chosen, settings)
    assert addresses(ask("one.example.com")) == [address_of("one.example.com")] and "one.example.com" in asked


def test_a_flush_that_does_not_reach_the_file(daemon, binary, service, place, file):
    """On a disk that has become read-only, the log and status say that a restart brings the flushed answers back."""
    file.parent.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(file.parent)], check=True)

    def remounted(how):
        # Refused while a file is being written.
        mounting = ["mount", "-o", f"remount,{how}", str(file.parent)]
        return subprocess.run(mounting, check=False, capture_output=True).returncode == 0
    try:
        running = daemon(service("aes", every_name), {
            "cache": {"file": str(file)}, "control": {"socket": str(place / "s")}, "httpdns": STRICT})
        operator = Control(binary, running)
        operator.socket = place / "s"
        assert addresses(ask("one.example.com")) == [address_of("one.example.com")]
        eventually(lambda: file.exists() and b"\3one\7example\3com\0" in file.read_bytes(), "the answer is saved")
        eventually(lambda: remounted("ro"), "the disk is read-only")
        operator("flush", "--all")
        words = "cache.file cannot be written, so a restart brings back what was flushed"
        eventually(lambda: running.log_lines(words), "the log says it")
        assert words in operator("status")
        assert remounted("rw")
        eventually(lambda: words not in operator("status"), "the file is written")
        assert b"\3one\7example\3com\0" not in file.read_bytes()
        running.stop()
    finally:
        subprocess.run(["umount", "-l", str(file.parent)], check=True)
