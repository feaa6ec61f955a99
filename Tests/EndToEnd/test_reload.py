"""HUP: the configuration is read again, and only the changed settings affect any query."""

import itertools
import multiprocessing
import os
import re
import select
import signal
import socket
import struct
import time

import dns.message
import dns.rcode
import pytest

from control import metrics, total
from daemon import toml
from dns_client import Stream, addresses, ask, labels
from httpdns_service import Record, address_of, every_name
from resolvers import reply_to
from standard import TEST_SECONDS, ZONE, settings_for
from waiting import eventually

# HTTPDNSD_HUPS=10000 is the full size.
HUPS = int(os.environ.get("HTTPDNSD_HUPS", "3000"))
SPLIT = {"b.example.com": Record(["198.51.100.2"], [], 600)}


class Reloading:
    """A daemon whose configuration changes. It notifies a service manager, here the test, when it has read it again."""

    def __init__(self, start, authority, path, service, settings):
        self.authority = authority
        self._told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._told.bind(str(path))
        self._told.settimeout(30)
        # One arena: malloc's reserves for each thread would hide a leak.
        self.daemon = start(service, settings, variables={"NOTIFY_SOCKET": str(path), "MALLOC_ARENA_MAX": "1"})
        self.file = self.daemon.directory / "httpdnsd.toml"
        self._wait_for("READY=1")

    def _wait_for(self, word):
        """The notifications until a line equals the word."""
        lines = []
        while word not in lines:
            lines += self._told.recv(4096).decode().split("\n")
        return lines

    def signal(self):
        """Returns when the daemon has read its configuration again."""
        self.daemon.process.send_signal(signal.SIGHUP)
        begun = self._wait_for("RELOADING=1")
        assert any(re.fullmatch(r"MONOTONIC_USEC=\d+", line) for line in begun)
        self._wait_for("READY=1")

    def write(self, text):
        new = self.file.with_suffix(".new")
        new.write_text(text)
        new.replace(self.file)

    def read(self, text):
        """The lines that the daemon logs while it reads the text."""
        known = len(self.daemon.log())
        self.write(text)
        self.signal()
        return self.daemon.log()[known:].splitlines()

    def change(self, service, **settings):
        chosen = settings_for(service, self.authority, settings)
        lines = self.read(toml(chosen))
        assert any("the configuration was read again" in line for line in lines), lines
        return lines

    def close(self):
        self._told.close()


@pytest.fixture
def reloading(daemon, authority, tmp_path):
    made = []

    def start(service=None, **settings):
        made.append(Reloading(daemon, authority, tmp_path / f"notify{len(made)}", service, settings))
        return made[-1]

    yield start
    for one in made:
        one.close()


def ask_later(name, channel):
    channel.send(dns.message.make_query(name, "A").to_wire())


def answer_on(channel):
    return dns.message.from_wire(channel.recv(4096))


@pytest.fixture
def channel():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(20)
        one.connect(("127.0.0.1", 53))
        yield one


def test_another_account_with_questions_in_flight(reloading, service, channel):
    """The former account answers its questions under way, for the clients alone; cached answers stay valid."""
    former, new = service("aes"), service("https", ZONE | SPLIT)
    running = reloading(former, httpdns={"timeout": 20000}, fallback={"hedgeAfter": 60000})
    assert addresses(ask("n9.example.com")) == ["203.0.113.9"]
    former.hold()
    for number in range(8):
        ask_later(f"n{number}.example.com", channel)
    eventually(lambda: len(former.names) == 9, "all are asked for")
    running.change(new, fallback={"hedgeAfter": 60000})
    assert addresses(ask("b.example.com")) == ["198.51.100.2"]
    former.release()
    answers = [answer_on(channel) for _ in range(8)]
    assert sorted(addresses(answer)[0] for answer in answers) == [f"203.0.113.{number}" for number in range(8)]
    for number in [*range(8), 9]:
        assert addresses(ask(f"n{number}.example.com")) == [f"203.0.113.{number}"]
    assert sorted(new.names) == sorted(["b.example.com", *(f"n{number}.example.com" for number in range(8))])
    eventually(lambda: not former.clients, "no connection to the former one is left")
    running.change(former)
    assert addresses(ask("n11.example.com")) == ["203.0.113.11"] and len(new.names) == 9


def test_what_does_not_differ_is_not_touched(reloading, service):
    chosen = service("https")
    running = reloading(chosen)
    for number in range(3):
        lines = running.change(chosen)
        assert any("nothing has changed" in line for line in lines) and len(lines) == 1
        assert addresses(ask(f"n{number}.example.com"))
    lines = running.change(chosen, log={"level": "debug"}, cache={"maxTTL": 50})
    assert any("again: cache.maxTTL, log.level" in line for line in lines)
    assert addresses(ask("n3.example.com")) and chosen.connections == 1
    assert ask("n4.example.com").answer[0].ttl == 50 and ask("n3.example.com").answer[0].ttl > 50 - 5


def test_every_kind_of_change(reloading, service, scripted_resolver, tmp_path):
    """Each change applies as soon as it has been read."""
    chosen = service("aes", every_name)
    local = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.1"))
    other = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.2"), address="127.0.0.5")
    running = reloading(chosen)
    fresh = (f"x{number}.example.com" for number in itertools.count())
    names = {kind: next(fresh) for kind in ("kept", "bypassed", "hosts")}
    for name in names.values():
        assert addresses(ask(name)) == [address_of(name)]

    def change(**settings):
        return running.change(chosen, **{"fallback": {"servers": [local.endpoint]}} | settings)

    with Stream() as stream:
        stream.send(dns.message.make_query(names["kept"], "A"))
        assert stream.receive().answer
        change(listen={"allow": ["192.0.2.0/24"]})
        assert stream.receive() is None, "a present connection is closed"
    assert ask(names["kept"]).rcode() == dns.rcode.REFUSED
    with pytest.raises((ConnectionError, EOFError)):
        ask(names["kept"], transport="tcp")
    change(listen={"allow": ["127.0.0.0/8"], "tcpIdleSeconds": 1})
    with Stream() as stream:
        stream.send(dns.message.make_query(names["kept"], "A"))
        assert stream.receive().answer and stream.receive() is None, "closed soon"

    # Answers of names that now belong to another group are dropped, all others stay.
    asked = len(chosen.names)
    change(domains={"bypass": [names["bypassed"]]})
    assert addresses(ask(names["bypassed"])) == ["192.0.2.1"]
    change(domains={"bypass": [names["bypassed"]]}, fallback={"servers": [other.endpoint]})
    assert addresses(ask("y." + names["bypassed"])) == ["192.0.2.2"]
    change(domains={"intercept": [names["kept"]]})
    assert addresses(ask(next(fresh))) == ["192.0.2.1"]
    assert addresses(ask(names["kept"])) == [address_of(names["kept"])] and len(chosen.names) == asked
    hosts = tmp_path / "hosts"
    hosts.write_text(f"192.0.2.77 {names['hosts']}\n")
    change(fallback={"servers": [local.endpoint], "hosts": str(hosts)})
    assert addresses(ask(names["hosts"])) == ["192.0.2.77"]
    hosts.write_text(f"192.0.2.78 {names['hosts']}\n")
    eventually(lambda: addresses(ask(names["hosts"])) == ["192.0.2.78"], "the file is followed")
    change()
    assert addresses(ask(names["hosts"])) == [address_of(names["hosts"])]

    # All answers of HTTPDNS were for another route, so they are dropped.
    asked = len(chosen.names)
    change(httpdns={"routeIp": "192.0.2.9"})
    assert addresses(ask(names["kept"])) and "ip=192.0.2.9" in chosen.targets[-1] and len(chosen.names) == asked + 1
    change(httpdns={"routeIp": "192.0.2.9", "addressType": "ipv4"})
    assert not ask(names["kept"], "AAAA").answer and len(chosen.names) == asked + 1
    change(httpdns={"httpOnly": True})
    assert not ask("mx.example.com", "MX").answer and addresses(ask(names["kept"]))
    lines = running.change(None, fallback={"servers": [local.endpoint]})
    assert any("no [httpdns] section: fallback answers everything" in line for line in lines)
    assert addresses(ask(names["kept"])) == ["192.0.2.1"]
    change()
    assert addresses(ask(names["kept"])) == [address_of(names["kept"])]
    change(log={"level": "error"})
    assert running.read(running.file.read_text()) == [], "not even that it was read again"


def test_other_rules_for_the_certificate(reloading, service, authority, other_authority):
    chosen = service("https")
    running = reloading(chosen)
    assert addresses(ask("n0.example.com"))
    running.change(chosen, tls={"caFile": str(other_authority.file)})
    assert addresses(ask("n1.example.com")) != ["203.0.113.1"]
    assert running.daemon.log_lines("fails: certificate is signed by an unknown authority")
    assert chosen.names == ["n0.example.com"], "no connection from before is used"
    running.change(chosen)
    assert addresses(ask("n2.example.com")) == ["203.0.113.2"]


def test_a_cookie_stays_good(reloading):
    running = reloading()

    reply = ask("localhost", edns=True, options=[dns.edns.GenericOption(dns.edns.OptionType.COOKIE, b"01234567")])
    own = next(option for option in reply.options if option.otype == dns.edns.OptionType.COOKIE).to_wire()
    running.change(None, listen={"allow": ["127.0.0.1"]})
    message = dns.message.make_query("localhost", "A", use_edns=0, options=[
        dns.edns.GenericOption(dns.edns.OptionType.COOKIE, own)])
    message.question = []
    assert ask(None, message=message).rcode() == dns.rcode.NOERROR, "BADCOOKIE else"


def test_what_needs_a_restart_is_named(reloading, service, tmp_path):
    chosen = service("aes")
    running = reloading(chosen)
    extra = {"listen": {"addresses": ["127.0.0.1:5353"], "workers": 1},
             "cache": {"file": str(tmp_path / "cache"), "megabytes": 1, "minTTL": 1000}}
    for again in (False, True):
        lines = running.change(chosen, **extra)
        assert "listen.addresses, listen.workers, cache.megabytes, cache.file need a restart" in lines[-1]
        assert ("again: cache.minTTL" if not again else "nothing has changed") in lines[-2]
    assert ask("n0.example.com").answer[0].ttl == 1000
    lines = running.change(chosen, cache={"file": str(tmp_path / "cache")})
    assert lines[-1].endswith(" cache.file needs a restart; until then it stays as it was")
    lines = running.change(chosen)
    assert not any("restart" in line for line in lines)


def test_a_wrong_file_changes_nothing(reloading, service, tmp_path):
    chosen = service("https")
    running = reloading(chosen)
    good = running.file.read_text()
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing\n")
    wrong = [("", " it is gone, or has no section any more; "), ("# nothing yet\n", " it is gone, or has no section any more; "),
             ("[listen]\nallow = [\"127.0.0.0/8\"]\nworker = 1\n", "3: listen.worker: unknown key"),
             ("[log\n", "1: log: not TOML"),
             ("[httpdns]\nencryptType = \"https\"\n", "1: httpdns.token: missing"),
             (good.replace("[tls]", f"[tls]\nclientCertificate = \"{empty}\""), ": tls.clientCertificate: ")]
    for text, message in wrong:
        lines = running.read(text)
        assert len(lines) == 1 and f"the configuration stays as it was: {running.file}:" in lines[0], lines
        assert message in lines[0]
        assert addresses(ask("n0.example.com")) == ["203.0.113.0"]
    running.file.unlink()
    running.signal()
    assert "stays as it was: open " in running.daemon.log().splitlines()[-1]
    lines = running.read(good)
    assert len(lines) == 1 and "nothing has changed" in lines[0]
    assert addresses(ask("n1.example.com")) and chosen.connections == 1


def test_a_pipe_in_the_place_of_a_file_changes_nothing(reloading, service, tmp_path):
    """A pipe without a writer is refused: a daemon that waited for it would react to neither HUP nor TERM."""
    chosen = service("https")
    running = reloading(chosen)
    good, pipe = running.file.read_text(), tmp_path / "pipe"
    os.mkfifo(pipe)
    lines = running.read(good + f'[upstreams.listed]\nservers = ["192.0.2.1"]\ndomainsFile = "{pipe}"\n')
    assert len(lines) == 1 and lines[0].endswith(": Not a regular file; give a file that this user may read"), lines
    lines = running.read(re.sub('token = ".*"', f'tokenFile = "{pipe}"', good))
    assert len(lines) == 1 and "httpdns.tokenFile: cannot read" in lines[0], lines
    os.rename(pipe, running.file)
    running.signal()
    assert "the configuration stays as it was: open " in running.daemon.log().splitlines()[-1]
    assert addresses(ask("n0.example.com")) == ["203.0.113.0"]
    running.daemon.stop()


def test_the_settings_may_come_through_a_pipe(daemon):
    """At the start alone, the settings may come through a pipe, as from a shell's `<(…)`."""
    script = """exec "$0" "$@" -c <(sleep 0.1; echo '[fallback]'; echo 'servers = ["127.0.0.99"]')"""
    running = daemon(None, whole={}, prefix=["bash", "-c", script])
    assert running.log_lines("fallback 127.0.0.99:53")


def test_the_metrics_say_how_it_went(reloading):
    running = reloading(control={"metrics": "127.0.0.1:9153"})

    def counted():
        seen = metrics()
        return [total(seen, "httpdnsd_config_reloads_total", result=result) for result in ("success", "failure")] + [
            seen["httpdnsd_config_last_reload_successful", ()]]

    begun = int(time.time())  # the metric has whole seconds
    good = running.file.read_text()
    assert counted() == [0, 0, 1]
    running.read("[log\n")
    assert counted() == [0, 1, 0]
    running.read(good)
    assert counted() == [1, 1, 1]
    assert begun <= metrics()["httpdnsd_config_last_reload_success_timestamp_seconds", ()] <= time.time()


def test_the_cache_file_is_for_the_settings_that_hold(reloading, daemon, service, authority, tmp_path):
    """Answers that were saved after a change of settings are taken over under the new settings."""
    chosen = service("aes", every_name)
    cache = {"file": str(tmp_path / "cache")}
    running = reloading(chosen, cache=cache, httpdns={"httpOnly": True})
    assert addresses(ask("a.example.com"))
    running.change(chosen, cache=cache, httpdns={"httpOnly": True, "routeIp": "192.0.2.9"})
    assert addresses(ask("b.example.com"))
    running.daemon.stop()
    chosen.stop()
    again = daemon(chosen, {"cache": cache, "httpdns": {"httpOnly": True, "routeIp": "192.0.2.9"}})
    eventually(lambda: again.log_lines("[123] answers taken over"), "the file is taken over")
    assert addresses(ask("b.example.com")) == [address_of("b.example.com")]
    assert ask("a.example.com").rcode() == dns.rcode.SERVFAIL


def query(number, name):
    return struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0) + labels(name) + b"\0\1\0\1"


def load(rate, ending, result):
    """Asks `rate` questions a second until `ending` is set; one in fifty is for a new name.

    Sends (asked, unanswered after the daemon's four seconds, number of each RCODE of replies that are not NOERROR or empty).
    """
    # Few names, as some reloads cause new lookups of all, and the services here are slow.
    hot = [query(0, f"hot{number}.example.com")[2:] for number in range(20)]
    waiting, asked, bad, lost = {}, 0, {}, 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        channel.setblocking(False)
        channel.connect(("127.0.0.1", 53))
        begun = time.monotonic()
        end = None
        most = rate // 10  # after the machine has stood still, questions that were not asked are left out: they would be a flood
        while end is None or waiting and time.monotonic() < end:
            now = time.monotonic()
            if end is None and ending.is_set():
                end = now + 5
            begun = max(begun, now - (asked + most) / rate)
            while end is None and asked < (now - begun) * rate:
                number = asked % 65536
                lost += number in waiting
                waiting[number] = now
                tail = hot[asked % 20] if asked % 50 else query(0, f"once{asked}.example.com")[2:]
                channel.send(struct.pack("!H", number) + tail)
                asked += 1
            select.select([channel], [], [], 0.005)
            try:
                while True:
                    reply = channel.recv(4096)
                    if waiting.pop(int.from_bytes(reply[:2], "big"), None) is not None:
                        code = reply[3] & 15
                        if code != 0 or reply[6:8] == b"\0\0":
                            bad[code] = bad.get(code, 0) + 1
            except BlockingIOError:
                pass
    result.send((asked, lost + len(waiting), bad))


def test_thousands_of_reloads_under_load(reloading, service):
    """Half of the files are broken, the others differ each time. No question is lost, and no memory is leaked."""
    signal.alarm(max(TEST_SECONDS, HUPS // 40))
    first, second = service("https", every_name), service("aes", every_name)
    # The smallest cache, so that it is full of answers to single questions before the measurement begins.
    # A long time-out, so that on a busy machine the local resolver, which knows none of the names, is not asked.
    always = {"log": {"level": "error"}, "cache": {"megabytes": 1}, "fallback": {"hedgeAfter": 60000},
              "httpdns": {"timeout": 20000}}
    running = reloading(first, **always)
    extras = [
        (first, {}),
        (first, {"httpdns": {"timeout": 20001}, "listen": {"allow": ["127.0.0.0/8", "192.0.2.0/24"]}}),
        (first, {"tls": {"serverName": "127.0.0.3"}, "cache": {"maxTTL": 500}}),
        (second, {"httpdns": {"routeIp": "192.0.2.1"}}),
        (second, {"domains": {"bypass": ["example.net"]}, "cache": {"keepAliveDomains": ["hot1.example.com"]}}),
        (first, {"fallback": {"resolvConf": ["/etc/resolv.conf"], "servers": [], "hosts": "/etc/hosts"}}),
    ]
    whole = [toml(settings_for(chosen, running.authority, {
        section: always.get(section, {}) | extra.get(section, {}) for section in {**always, **extra}}))
        for chosen, extra in extras]
    broken = ["[listen]\nworker = 1\n", "[log\nlevel = 'no", whole[0].replace("timeout = 20000", "timeout = 1"),
              whole[3].replace("encryptType", "# encryptType")]
    texts = itertools.cycle(itertools.chain.from_iterable(
        zip(itertools.islice(itertools.cycle(broken), 12), itertools.cycle(whole), strict=False)))

    def reload(times):
        for text in itertools.islice(texts, times):
            running.write(text)
            running.signal()

    # Another process asks, as this one runs two services.
    fork = multiprocessing.get_context("fork")
    ending, (receiver, sender) = fork.Event(), fork.Pipe(duplex=False)
    asking = fork.Process(target=load, args=(2000, ending, sender))
    asking.start()
    try:
        reload(1000)
        before = running.daemon.descriptors(), running.daemon.held_kilobytes("RssAnon")
        reload(HUPS - 1000)
        after = running.daemon.held_kilobytes("RssAnon")
    finally:
        ending.set()
    asked, lost, bad = receiver.recv()
    asking.join()
    print(f"{asked} asked, {lost} lost, {bad} bad; descriptors and kB: {before}, {running.daemon.descriptors()}, {after}")
    assert (lost, bad) == (0, {}) and asked > 2000
    # Sixteen idle connections are kept for the next peak; a leak would be one for each reload.
    eventually(lambda: running.daemon.descriptors() <= before[0] + 32, "descriptors are given back")
    assert after <= before[1] + 4096, "half a kilobyte for each reload; what a parsed file takes is more"
    assert len(running.daemon.log_lines("the configuration stays as it was")) >= 1
