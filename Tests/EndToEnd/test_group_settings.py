"""Settings of groups: contradictory ones, changed ones, and how they are shown."""

import itertools
import json
import os
import signal

import dns.rcode
import pytest

import daemon as processes
from clients import Clients
from control import metrics, total
from daemon import toml
from dns_client import addresses, ask
from groups import LISTEN, PORT, last_of, says
from waiting import eventually


# -- wrong settings --

def test_one_pattern_of_two_groups(binary, tmp_path):
    """One pattern in two groups is refused, also as a network and its reverse name; the message has both lines."""
    file = tmp_path / "own.toml"
    file.write_text(toml({"upstreams.one": {"servers": ["127.0.0.3"], "domains": ["10.0.0.0/8"]},
                          "upstreams.two": {"servers": ["127.0.0.4"], "domains": ["10.in-addr.arpa"]}}))
    ended = processes.run(binary, "check", "--all", "-c", str(file))
    assert ended.returncode == 78 and len(ended.stderr.splitlines()) == 1, ended
    assert f"{file}:6: upstreams.two.domains" in ended.stderr and "3" in ended.stderr.split("domains", 1)[1], ended


def test_a_name_that_no_group_is_asked_for(binary, tmp_path):
    """Names that no group is asked for cause a warning, as lists are copied; names of local networks may be given to a group."""
    file = tmp_path / "own.toml"
    file.write_text(toml({"fallback": {"servers": ["127.0.0.2"]}, "upstreams.one": {
        "servers": ["127.0.0.3"], "domains": ["x.example", "home.arpa", "box.onion", "*.localhost"]}}))
    ended = processes.run(binary, "check", "--all", "-c", str(file))
    assert ended.returncode == 0, ended
    assert [line.split()[2] for line in ended.stderr.splitlines()] == ["box.onion", "*.localhost"], ended


def test_an_account_that_is_not_there(binary, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(toml({"fallback": {"servers": ["127.0.0.2"]}}))
    for group, code, says in (("httpdns", 78, f"{file}:1: httpdns: "), ("shop", 64, "--group shop ")):
        ended = processes.run(binary, "query", "www.example.com", "--group", group, "-c", str(file))
        assert ended.returncode == code and ended.stderr.startswith(says), ended


# -- what changes while it runs --

def hup(running, settings):
    file = running.directory / "httpdnsd.toml"
    file.with_suffix(".new").write_text(toml(settings))
    os.rename(file.with_suffix(".new"), file)
    running.process.send_signal(signal.SIGHUP)


def test_a_reload_adds_a_group_changes_it_and_takes_it_away(daemon, scripted_resolver, encrypted_resolver, authority):
    """Each reload moves the names to the new server, and clients that ask meanwhile get an answer."""
    fallback = scripted_resolver(says(1), address="127.0.0.40")
    plain = scripted_resolver(says(2), address="127.0.0.41")
    encrypted = encrypted_resolver("tls", says(3))
    whole = LISTEN | {"fallback": {"servers": [fallback.endpoint], "hosts": ""}}
    running = daemon(whole=whole, port=PORT)
    fresh = (f"f{number}" for number in itertools.count())

    def who():
        return last_of(f"{next(fresh)}.corp.example")
    clients = Clients(port=PORT)
    ways = [({"servers": [plain.endpoint], "domains": ["corp.example"]}, 2),
            ({"servers": [encrypted.url], "domains": ["corp.example"], "caFile": str(authority.file)}, 3),
            (None, 1)]
    assert who() == last_of("same.corp.example") == [1]
    for keys, last in ways:
        for _ in range(20):
            clients.ask(f"{next(fresh)}.corp.example")
        hup(running, whole if keys is None else whole | {"upstreams.office": keys})
        for _ in range(20):
            clients.ask(f"{next(fresh)}.corp.example")
        eventually(lambda last=last: who() == [last], f"{last} answers")
        if keys is None or last == 2:
            assert last_of("same.corp.example") == [last], "what would be asked of another group now is forgotten"
    for one in clients.all_answered():
        assert addresses(one.reply) in (["192.0.2.1"], ["192.0.2.2"], ["192.0.2.3"]), one


@pytest.mark.parametrize("protocol", ["tls", "https"])
def test_a_name_that_becomes_a_walls_is_not_told_to_the_server_it_waited_for(
        daemon, scripted_resolver, encrypted_resolver, authority, relay, protocol):
    """A question that waits for a handshake with the old server goes to the wall's server once the settings change."""
    before = encrypted_resolver(protocol, says(3))
    wall = scripted_resolver(says(2), address="127.0.0.41")
    between = relay(before)
    url = before.url.replace(f":{before.port}", f":{between.port}")
    whole = LISTEN | {"fallback": {"servers": [url], "caFile": str(authority.file), "hosts": "", "timeout": 20000}}
    running = daemon(whole=whole, port=PORT)
    between.freeze(live=False)
    between.reset()
    dialled = between.connections
    clients = Clients(port=PORT)
    clients.ask("mail.corp.example")
    eventually(lambda: between.connections > dialled, "it dials once more")
    hup(running, whole | {"upstreams.office": {"servers": [wall.endpoint], "domains": ["corp.example"]}})
    assert [addresses(one.reply) for one in clients.all_answered()] == [["192.0.2.2"]]
    between.thaw()
    eventually(lambda: last_of("www.example.com") == [3], "the server of before answers")
    assert before.questions and not [one for one in before.questions if "corp" in one.name.to_text()], before.questions


# -- what is shown --

@pytest.fixture
def shown(groups, encrypted_resolver, authority, binary, tmp_path):
    good, bad = encrypted_resolver("tls", says(9)), encrypted_resolver("https", address="127.0.0.7")
    bad.away()
    socket = tmp_path / "control.sock"
    running = groups.run(control={"socket": str(socket), "metrics": "127.0.0.1:9153"},
                         office={"servers": [good.url, bad.url], "domains": ["corp.example"],
                                 "caFile": str(authority.file)},
                         broken={"servers": [bad.url], "domains": ["broken.example"], "caFile": str(authority.file)})
    assert last_of("a.corp.example") == [9]
    assert ask("a.broken.example", port=PORT, edns=True).rcode() == dns.rcode.SERVFAIL
    running.good, running.bad, running.socket = good, bad, socket
    return running


def test_status_tells_of_groups(shown, binary):
    ended = processes.run(binary, "status", "--socket", str(shown.socket), "--json")
    told = {group["name"]: group for group in json.loads(ended.stdout)["groups"]}
    assert set(told) == {"httpdns", "fallback", "private", "office", "broken"}
    office, broken = told["office"], told["broken"]
    assert [server["protocol"] for server in office["servers"]] == ["tls", "https"]
    assert office["wall"] and office["servers"][0]["state"] == "answers" and office["servers"][0]["answers"] == 1
    assert broken["servers"][0]["state"] == "fails" and "refused" in broken["servers"][0]["lastFailure"]["reason"]
    text = processes.run(binary, "status", "--socket", str(shown.socket)).stdout
    assert shown.good.url in text and shown.bad.url in text and "broken" in text


def test_metrics_by_group(shown):
    samples = metrics()
    for group, up in (("office", 1), ("broken", 0)):
        assert total(samples, "httpdnsd_group_questions_total", group=group) == 1
        server = shown.good if group == "office" else shown.bad
        assert total(samples, "httpdnsd_server_up", group=group, server=server.url) == up
    assert total(samples, "httpdnsd_group_failures_total", group="broken") >= 1
    assert total(samples, "httpdnsd_group_failures_total", group="office") == 0


def test_check_shows_groups_and_probe_goes_through_them(shown, binary):
    file = str(shown.directory / "httpdnsd.toml")
    checked = processes.run(binary, "check", "--all", "-c", file)
    assert checked.returncode == 0, checked
    for words in ("[upstreams.office]", shown.good.url, "corp.example", "[upstreams.broken]"):
        assert words in checked.stdout, checked.stdout
    before = shown.good.connections
    probed = processes.run(binary, "probe", "-c", file)
    assert probed.returncode == 0 and "HTTPDNS works" in probed.stdout, probed
    assert "office" not in probed.stdout and shown.good.url not in probed.stdout, probed.stdout
    assert shown.good.connections == before
    for group, code, words in (("office", 0, (shown.good.url, shown.bad.url, "office works")),
                               ("broken", 69, (shown.bad.url, "refused"))):
        probed = processes.run(binary, "probe", "-c", file, "--group", group)
        assert probed.returncode == code, probed
        for text in words:
            assert text in probed.stdout, probed.stdout
        assert "HTTPDNS" not in probed.stdout, probed.stdout
    assert shown.good.connections > before
    default, named = (processes.run(binary, "probe", "-c", file, *options)
                      for options in ((), ("--group", "httpdns")))
    assert [line.split(" after")[0] for line in default.stdout.splitlines()] == [
        line.split(" after")[0] for line in named.stdout.splitlines()]
    unknown = processes.run(binary, "probe", "-c", file, "--group", "elsewhere")
    assert unknown.returncode == 64 and len(unknown.stderr.splitlines()) == 1 and "elsewhere" in unknown.stderr, unknown
