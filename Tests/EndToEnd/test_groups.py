"""Groups of upstreams: which names each is asked for, who is asked next, and what a change of the settings changes."""

import itertools
import json
import os
import signal

import dns.edns
import dns.rcode
import dns.reversename
import pytest

import daemon as processes
from clients import Clients
from control import metrics, total
from daemon import toml
from dns_client import addresses, ask, extended_errors
from httpdns_service import every_name
from resolvers import reply_to
from waiting import eventually

PORT = 2053
LISTEN = {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}}


def says(last, kind="A"):
    """A script: 192.0.2.`last` for every name; PTR records too."""
    def script(asked, connection=None):
        record = {"A": f"60 IN A 192.0.2.{last}", "PTR": f"60 IN PTR h{last}.example."}.get(asked.kind)
        return reply_to(asked.message, *([record] if record else []))
    return script


def answers(code):
    return lambda asked, connection=None: reply_to(asked.message, rcode=code)


def no_data(asked, connection=None):
    return reply_to(asked.message, "60 IN SOA ns.example. host.example. 1 2 3 4 5", section="authority")


def reasons(reply):
    return " ".join(option.text or "" for option in reply.options if option.otype == dns.edns.EDE)


def last_of(name, kind="A", **options):
    """Who answered, by the last octet of the address."""
    reply = ask(name, kind, port=PORT, **options)
    return [int(address.rpartition(".")[2]) for address in addresses(reply)]


class Groups:
    """A fallback (answers 1), HTTPDNS that knows every name, and groups in the clear as tests choose them."""

    def __init__(self, start, scripted_resolver, chosen):
        self.start, self.scripted_resolver, self.chosen = start, scripted_resolver, chosen
        self.fallback = scripted_resolver(says(1), address="127.0.0.40")
        self.servers = {}

    def server(self, name, script=None):
        last = 41 + len(self.servers)
        self.servers[name] = self.scripted_resolver(script or says(last - 39), address=f"127.0.0.{last}")
        return self.servers[name]

    def run(self, ready=True, httpdns=True, **groups):
        """Each group: keys over `servers` of one that answers 2, 3, and so on in the order of the groups."""
        settings = LISTEN | {"fallback": {"servers": [self.fallback.endpoint]}}
        for name, keys in groups.items():
            if "servers" not in keys and name not in ("fallback", "domains", "control"):
                server = self.servers.get(name) or self.server(name)
                keys = {"servers": [server.endpoint], "timeout": 300} | keys
            section = name if name in ("fallback", "domains", "control", "httpdns") else f"upstreams.{name}"
            settings[section] = settings.get(section, {}) | keys
        return self.start(self.chosen if httpdns else None, settings, port=PORT, ready=ready)

    def names(self, group):
        server = self.fallback if group == "fallback" else self.servers[group]
        return {asked.name.to_text(omit_final_dot=True) for asked in server.questions}


@pytest.fixture
def groups(daemon, scripted_resolver, service):
    return Groups(daemon, scripted_resolver, service("aes", every_name))


# -- walls --

FAILURES = {"silent": lambda asked: None, "SERVFAIL": answers(dns.rcode.SERVFAIL), "garbage": lambda asked: b"xxxx" * 9,
            "NXDOMAIN": answers(dns.rcode.NXDOMAIN), "NODATA": no_data, "REFUSED": answers(dns.rcode.REFUSED)}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_name_of_a_wall_reaches_nobody_else(groups, failure):
    groups.server("office", FAILURES[failure])
    groups.run(office={"domains": ["corp.example"]})
    expected = {"NXDOMAIN": dns.rcode.NXDOMAIN, "NODATA": dns.rcode.NOERROR, "REFUSED": dns.rcode.REFUSED}
    for name, kind in (("a.corp.example", "A"), ("corp.example", "AAAA"), ("b.corp.example", "MX")):
        reply = ask(name, kind, port=PORT, edns=True, timeout=4)
        assert reply.rcode() == expected.get(failure, dns.rcode.SERVFAIL), reply
        assert not reply.answer
        if failure in ("silent", "garbage"):
            assert extended_errors(reply)[0] in (22, 23) and reasons(reply).startswith("office: "), reply
        if failure == "REFUSED":
            assert extended_errors(reply), reply
    assert groups.fallback.questions == [] and groups.chosen.names == []


def test_a_wall_whose_servers_cannot_be_reached(groups):
    groups.run(office={"domains": ["corp.example"], "servers": ["127.0.0.99", "tls://127.0.0.98"]})
    reply = ask("a.corp.example", port=PORT, edns=True, timeout=4)
    assert reply.rcode() == dns.rcode.SERVFAIL and reasons(reply).startswith("office: "), reply
    assert groups.fallback.questions == [] and groups.chosen.names == []


def test_no_route_to_any_server_of_a_wall_is_said_at_once(groups):
    groups.run(office={"domains": ["corp.example"], "servers": ["192.0.2.99", "tls://192.0.2.98"]})
    reply = ask("a.corp.example", port=PORT, edns=True, timeout=0.5)
    assert reply.rcode() == dns.rcode.SERVFAIL and reasons(reply).startswith("office: "), reply
    assert groups.fallback.questions == [] and groups.chosen.names == []


def test_a_door_in_a_wall(groups):
    """`thenTry`: asked next, in order, when the group fails."""
    groups.server("office", answers(dns.rcode.SERVFAIL))
    groups.server("second", lambda asked: None)
    groups.server("third")
    groups.run(office={"domains": ["corp.example"], "thenTry": ["second", "third"]}, second={}, third={})
    assert last_of("a.corp.example") == [4]
    assert groups.names("second") == groups.names("third") == {"a.corp.example"}
    assert groups.fallback.questions == []


def test_a_door_to_httpdns(groups):
    groups.server("office", answers(dns.rcode.SERVFAIL))
    groups.run(office={"domains": ["corp.example"], "thenTry": ["httpdns"]})
    assert ask("a.corp.example", port=PORT).answer
    assert groups.chosen.names == ["a.corp.example"] and groups.fallback.questions == []


@pytest.mark.parametrize("word", ["nxdomain", "nodata", "refused"])
def test_what_opens_a_door(groups, word):
    """Only what `thenTryOn` names leads on."""
    script = {"nxdomain": answers(dns.rcode.NXDOMAIN), "nodata": no_data, "refused": answers(dns.rcode.REFUSED)}[word]
    groups.server("open", script)
    groups.server("shut", script)
    groups.run(open={"domains": ["open.example"], "thenTry": ["fallback"], "thenTryOn": ["failure", word]},
               shut={"domains": ["shut.example"], "thenTry": ["fallback"]})
    assert last_of("a.open.example") == [1]
    reply = ask("a.shut.example", port=PORT, edns=True)
    assert not reply.answer
    assert reply.rcode() == {"nxdomain": dns.rcode.NXDOMAIN, "nodata": dns.rcode.NOERROR,
                             "refused": dns.rcode.REFUSED}[word], reply
    assert groups.names("fallback") == {"a.open.example"}


# -- routes --

def test_the_longest_pattern_wins(groups):
    groups.run(one={"domains": ["corp.example", "*.deep.lab.corp.example"]}, two={"domains": ["lab.corp.example"]},
               three={"domains": ["*.star.example"]}, four={"domains": ["star.example"]})
    for name, last in {"corp.example": 2, "a.corp.example": 2, "lab.corp.example": 3, "x.lab.corp.example": 3,
                       "deep.lab.corp.example": 3, "x.deep.lab.corp.example": 2, "star.example": 5,
                       "below.star.example": 4, "x.below.star.example": 4}.items():
        assert last_of(name) == [last], name
    assert last_of("notcorp.example") not in ([2], [3])
    assert groups.chosen.names == ["notcorp.example"]


def test_single_labels_and_everything(groups):
    groups.run(httpdns=False, labels={"domains": [""]}, all={"domains": ["."]})
    assert last_of("printer") == [2]
    assert last_of("www.example.com") == [3]
    assert groups.fallback.questions == []
    assert last_of("nas.local") == [1]  # `.` takes no name that RFCs reserve


def test_networks_by_their_reverse_names(groups):
    groups.run(one={"domains": ["10.0.0.0/9", "192.0.2.64/26"]}, two={"domains": ["10.20.0.0/16", "2001:db8::/33"]})

    def asked(address):
        reply = ask(dns.reversename.from_address(address).to_text(), "PTR", port=PORT)
        return reply.answer[0][0].target.to_text()
    for address, last in {"10.1.2.3": 2, "10.20.1.1": 3, "10.127.0.1": 2, "10.128.0.1": 1, "192.0.2.64": 2,
                          "192.0.2.127": 2, "192.0.2.63": 1, "192.0.2.128": 1, "2001:db8::1": 3,
                          "2001:db8:7fff::1": 3, "2001:db8:8000::1": 1}.items():
        assert asked(address) == f"h{last}.example.", address
    assert groups.chosen.names == []


def test_what_a_group_does_not_take(groups):
    groups.run(office={"domains": ["corp.example"], "except": ["www.corp.example"]})
    assert last_of("a.corp.example") == [2]
    assert ask("www.corp.example", port=PORT).answer and ask("x.www.corp.example", port=PORT).answer
    assert groups.chosen.names == ["www.corp.example", "x.www.corp.example"]
    assert groups.names("office") == {"a.corp.example"}


def test_groups_beside_intercept_and_bypass(groups):
    groups.run(domains={"bypass": ["example"], "intercept": []},
               office={"domains": ["corp.example", "local", "home.arpa"]})
    assert last_of("a.corp.example") == [2] and last_of("nas.local") == [2] and last_of("nas.home.arpa") == [2]
    assert last_of("other.example") == [1]
    assert groups.chosen.names == []


def test_names_that_rfcs_reserve_go_nowhere(groups):
    groups.run(httpdns=False, all={"domains": ["."]})
    assert addresses(ask("localhost", port=PORT)) == ["127.0.0.1"]
    for name in ("a.invalid", "b.onion", "use-application-dns.net"):
        assert ask(name, port=PORT).rcode() == dns.rcode.NXDOMAIN
    assert groups.names("all") == set() and groups.fallback.questions == []


def test_ds_is_asked_where_the_parent_goes(groups):
    groups.run(httpdns=False, office={"domains": ["corp.example"]})
    ask("corp.example", "DS", port=PORT)
    ask("below.corp.example", "DS", port=PORT)
    ask("corp.example", "SOA", port=PORT)
    assert groups.names("fallback") == {"corp.example"} and groups.names("office") == {
        "corp.example", "below.corp.example"}


def test_an_answer_of_one_group_is_not_given_to_a_name_of_another(groups):
    groups.run(httpdns=False, one={"domains": ["one.example"]}, two={"domains": ["two.example"]})
    for _ in range(2):
        assert last_of("www.one.example") == [2] and last_of("www.two.example") == [3]


# -- files of names --

def replace(file, text):
    new = file.with_name("new")
    new.write_text(text)
    os.rename(new, file)


def test_a_file_of_names_is_read_again_when_it_changes(groups, tmp_path):
    """Comments and blank lines are none of its names."""
    file = tmp_path / "names"
    file.write_text("# the company's\ncorp.example  # and below\n\n*.lab.example\n10.0.0.0/8\n")
    groups.run(httpdns=False, office={"domains": ["own.example"], "domainsFile": str(file)})
    assert last_of("a.own.example") == last_of("a.corp.example") == last_of("a.lab.example") == [2]
    assert last_of("lab.example") == last_of("a.new.example") == [1]
    file.write_text("new.example\n")
    fresh = (f"f{number}" for number in itertools.count())
    eventually(lambda: last_of(f"{next(fresh)}.new.example") == [2], "the file is followed")
    assert last_of("b.corp.example") == [1] and last_of("b.own.example") == [2]


@pytest.mark.parametrize("wrong", ["a wrong line", "gone"])
def test_a_file_of_names_that_goes_wrong(groups, tmp_path, wrong):
    """Said with file and line, and the names of before stay."""
    file = tmp_path / "names"
    file.write_text("corp.example\n")
    running = groups.run(httpdns=False, office={"domainsFile": str(file)})
    if wrong == "gone":
        os.remove(file)
    else:
        replace(file, "new.example\n\nnot a name!..\n")
    eventually(lambda: running.log_lines(str(file) + (":3" if wrong != "gone" else "")), "what is wrong is said")
    assert last_of("a.corp.example") == [2] and last_of("a.new.example") == [1]


def test_a_file_of_names_is_followed(groups, tmp_path):
    """Written in place and replaced; a wrong one is told with its line and the names of before stay, as when it goes."""
    file = tmp_path / "names"
    file.write_text("# the company's\ncorp.example  # and below\n\n*.lab.example\n10.0.0.0/8\n")
    running = groups.run(httpdns=False, office={"domains": ["own.example"], "domainsFile": str(file)})
    fresh = (f"f{number}" for number in itertools.count())

    def takes(domain):
        return last_of(f"{next(fresh)}.{domain}") == [2]
    assert takes("own.example") and takes("corp.example") and takes("lab.example") and not takes("new.example")
    file.write_text("new.example\n")
    eventually(lambda: takes("new.example"), "the file written in place is followed")
    assert not takes("corp.example") and takes("own.example")
    replace(file, "corp.example\n")
    eventually(lambda: takes("corp.example"), "the file renamed into place is followed")
    assert not takes("new.example")
    replace(file, "new.example\n\nnot a name!..\n")
    eventually(lambda: running.log_lines(rf"{file}:3\b"), "what is wrong is said with file and line")
    assert takes("corp.example") and not takes("new.example")
    lines = len(running.log_lines(str(file)))
    os.remove(file)
    eventually(lambda: len(running.log_lines(str(file))) > lines, "that it is gone is said")
    assert takes("corp.example")
    replace(file, "new.example\n")
    eventually(lambda: takes("new.example"), "the file that is there again is followed")


def test_a_relative_file_of_names_stands_beside_the_configuration(groups, binary, tmp_path):
    (tmp_path / "names").write_text("corp.example\n")
    (tmp_path / "own.toml").write_text(toml({"fallback": {"servers": ["127.0.0.2"]}, "upstreams.office": {
        "servers": ["127.0.0.3"], "domainsFile": "names"}}))
    assert processes.run(binary, "check", "-c", str(tmp_path / "own.toml"), cwd="/").returncode == 0


@pytest.mark.parametrize("wrong", ["not there", "wrong line"])
def test_a_wrong_file_of_names_at_start(binary, tmp_path, wrong):
    names = tmp_path / "names"
    if wrong == "wrong line":
        names.write_text("corp.example\na..b\n")
    file = tmp_path / "own.toml"
    file.write_text(toml(LISTEN | {"fallback": {"servers": ["127.0.0.2"]},
                                   "upstreams.office": {"servers": ["127.0.0.3"], "domainsFile": str(names)}}))
    for command in ("run", "check"):
        ended = processes.run(binary, command, "-c", str(file))
        assert ended.returncode == 78 and len(ended.stderr.splitlines()) == 1, ended
        place = f"{names}:2" if wrong == "wrong line" else "upstreams.office.domainsFile"
        assert place in ended.stderr, ended


def test_names_that_httpdns_gets_by_files(groups, tmp_path):
    (tmp_path / "intercept").write_text("shop.example\n")
    (tmp_path / "bypass").write_text("local.shop.example\n")
    groups.run(domains={"interceptFile": str(tmp_path / "intercept"), "bypassFile": str(tmp_path / "bypass")})
    assert last_of("x.local.shop.example") == [1] and last_of("www.example.net") == [1]
    assert groups.chosen.names == []
    assert ask("www.shop.example", port=PORT).answer
    assert groups.chosen.names == ["www.shop.example"]
    replace(tmp_path / "intercept", "net.example\n")
    eventually(lambda: last_of("a.net.example") != [1] or None, "the file is followed")


def test_a_file_of_a_hundred_thousand_names(groups, tmp_path):
    file = tmp_path / "names"
    file.write_text("".join(f"n{number}.big.example\n" for number in range(100_000)))
    groups.run(httpdns=False, office={"domainsFile": str(file)})
    assert last_of("n0.big.example") == [2] and last_of("x.n99999.big.example") == [2]
    assert last_of("n100000.big.example") == [1]


# -- wrong settings --

WRONG = {
    "the same pattern twice": ({"upstreams.one": {"servers": ["127.0.0.3"], "domains": ["x.example"]},
                                "upstreams.two": {"servers": ["127.0.0.4"], "domains": ["x.example"]}}, "two.domains"),
    "no servers": ({"upstreams.one": {"domains": ["x.example"]}}, "one"),
    "a group that nobody can reach": ({"upstreams.one": {"servers": ["127.0.0.3"]}}, "one"),
    "an unknown group": ({"upstreams.one": {"servers": ["127.0.0.3"], "domains": ["x.example"],
                                            "thenTry": ["nobody"]}}, "one.thenTry"),
    "itself": ({"upstreams.one": {"servers": ["127.0.0.3"], "domains": ["x.example"], "thenTry": ["one"]}},
               "one.thenTry"),
    "httpdns that is not there": ({"upstreams.one": {"servers": ["127.0.0.3"], "domains": ["x.example"],
                                                     "thenTry": ["httpdns"]}}, "one.thenTry"),
    "a name with an underscore": ({"upstreams.a_b": {"servers": ["127.0.0.3"], "domains": ["x.example"]}}, "a_b"),
    "no path": ({"fallback": {"servers": ["https://127.0.0.3"]}}, "/dns-query"),
    "ADDRESS@PORT#NAME": ({"fallback": {"servers": ["127.0.0.3@853#dns.example"]}}, "tls://"),
    "an unknown key": ({"upstreams.one": {"servers": ["127.0.0.3"], "domains": ["x.example"], "domain": []}},
                       "one.domain"),
    "servers beside an account": ({"upstreams.one": {"servers": ["127.0.0.3"], "provider": "tencent",
                                                     "domains": ["x.example"]}}, "one"),
}


@pytest.mark.parametrize("case", WRONG)
def test_settings_that_cannot_be_meant(binary, tmp_path, case):
    sections, words = WRONG[case]
    file = tmp_path / "own.toml"
    file.write_text(toml(sections))
    ended = processes.run(binary, "check", "-c", str(file))
    assert ended.returncode == 78 and len(ended.stderr.splitlines()) == 1, ended
    assert words in ended.stderr and str(file) in ended.stderr, ended
    if case == "the same pattern twice":
        assert f"{file}:6" in ended.stderr and "3" in ended.stderr.split("domains", 1)[1], ended


def test_a_comma_where_a_plus_was_meant(binary, tmp_path):
    """Environment lists are split at commas: no plain server may come of it."""
    ended = processes.run(binary, "check", "-c", "/dev/null", variables={
        "HTTPDNSD_FALLBACK_SERVERS": "https://dns.example/dns-query#192.0.2.1,192.0.2.2"})
    assert ended.returncode == 78 and "+" in ended.stderr, ended


# -- what changes while it runs --

def hup(running, settings):
    file = running.directory / "httpdnsd.toml"
    file.with_suffix(".new").write_text(toml(settings))
    os.rename(file.with_suffix(".new"), file)
    running.process.send_signal(signal.SIGHUP)


def test_a_reload_adds_a_group_changes_it_and_takes_it_away(daemon, scripted_resolver, encrypted_resolver, authority):
    """Names follow, and nobody who asks meanwhile is left without an answer."""
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
    assert set(told) == {"httpdns", "fallback", "office", "broken"}
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
        assert total(samples, "httpdnsd_upstream_up", group=group, to=server.url) == up
    assert total(samples, "httpdnsd_group_failures_total", group="broken") >= 1
    assert total(samples, "httpdnsd_group_failures_total", group="office") == 0


def test_check_shows_groups_and_probe_goes_through_them(shown, binary):
    file = str(shown.directory / "httpdnsd.toml")
    checked = processes.run(binary, "check", "-c", file)
    assert checked.returncode == 0, checked
    for words in ("[upstreams.office]", shown.good.url, "corp.example", "[upstreams.broken]"):
        assert words in checked.stdout, checked.stdout
    probed = processes.run(binary, "probe", "-c", file, timeout=30)
    for words in ("office", shown.good.url, "broken", shown.bad.url):
        assert words in probed.stdout, probed.stdout
    assert shown.good.connections >= 2
