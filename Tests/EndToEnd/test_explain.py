"""`explain` reports what the daemon then does: rule, line of the rule, servers, cache, and answers of servers.

Every name is explained, then asked; the resolvers and the service record the questions that they get.
"""

import json
import signal
import subprocess

import dns.edns
import dns.name
import dns.rcode
import dns.rdatatype
import pytest

import daemon as processes
from control import Control, fetch, metrics
from daemon import toml
from dns_client import ask
from groups import LISTEN, PORT, says
from httpdns_service import Fault, Record, every_name
from resolvers import reply_to
from waiting import eventually


class World:
    """A daemon, its operator, an HTTPDNS service, and one scripted resolver for each group, with an answer of its own."""

    def __init__(self, start, binary, place, scripted_resolver, service):
        self.start, self.binary, self.place, self.scripted_resolver = start, binary, place, scripted_resolver
        self.httpdns, self.servers = service, {}
        self.accounts = {}  # further services, of groups that are accounts

    def server(self, group, script=None):
        last = 40 + len(self.servers)
        self.servers[group] = self.scripted_resolver(script or says(last), address=f"127.0.0.{last}")
        return self.servers[group].endpoint

    def run(self, settings, httpdns=True):
        """Starts a daemon with `settings` over a fallback that answers; a group without servers gets a server that answers."""
        whole = {"fallback": {"servers": [self.server("fallback")], "hedgeAfter": 60000, "hosts": ""}}
        for section, keys in settings.items():
            if section.startswith("upstreams.") and not {"servers", "provider"} & set(keys):
                keys = {"servers": [self.server(section.partition(".")[2])], "timeout": 3000} | keys
            whole[section] = whole.get(section, {}) | keys
        whole["control"] = {"socket": str(self.place / "s"), "metrics": "127.0.0.1:9153"}
        running = self.start(self.httpdns if httpdns else None, LISTEN | whole, port=PORT)
        self.operator = Control(self.binary, running)
        self.operator.socket = self.place / "s"
        self.file = running.directory / "httpdnsd.toml"
        return running

    def explain(self, name, kind="A", *arguments):
        return json.loads(self.operator("explain", name, kind, "--json", *arguments))

    def line_of(self, text):
        """The line of a setting in the file."""
        lines = self.file.read_text().splitlines()
        return next(number for number, line in enumerate(lines, 1) if text in line)

    def forget_questions(self):
        for server in self.servers.values():
            server.questions.clear()
        for service in [self.httpdns, *self.accounts.values()]:
            service.requests.clear()

    def who_saw(self, name):
        """The groups whose servers were asked for a name."""
        name = dns.name.from_text(name).canonicalize()
        seen = {group for group, server in self.servers.items()
                if any(asked.name == name for asked in server.questions)}
        return seen | {group for group, service in ({"httpdns": self.httpdns} | self.accounts).items()
                       if name in {dns.name.from_text(one).canonicalize() for one in service.names}}


@pytest.fixture
def world(daemon, binary, place, scripted_resolver, service):
    return World(daemon, binary, place, scripted_resolver, service("aes", every_name))


def texts(reply):
    """The records of the answer section, as explanations write them."""
    return sorted(f"{dns.rdatatype.to_text(rrset.rdtype)} {rdata}" for rrset in reply.answer for rdata in rrset)


def without_ttl(records):
    return sorted(record.rpartition(", ttl ")[0] for record in records)


def seen_as(group):
    return "fallback" if group["name"] == "private" else group["name"]


def check(world, name, kind, expected, pattern=...):
    """`expected`: the group that is asked, or the RCODE that the daemon answers by itself."""
    explained = world.explain(name, kind)
    what = (name, kind, explained)
    if pattern is not ...:
        assert explained["rule"]["pattern"] == pattern, what
    now = explained["now"]
    # The local resolver is asked for private names as well.
    asked = "fallback" if expected == "private" else expected
    # Without --ask HTTPDNS is not asked, and no group gets a name that would not be asked for it.
    told = world.who_saw(name)
    assert not told & {"httpdns", *world.accounts} and told <= {seen_as(group) for group in explained["groups"]}, (told, what)
    says_now = {seen_as(group) for group in explained["groups"]
                if any((server["says"] or {}).get("result") == "answer" for server in group["servers"])}
    assert told == says_now, (told, what)
    world.forget_questions()
    reply = ask(name, kind, port=PORT)
    seen = world.who_saw(name)
    world.forget_questions()
    if expected in ("NOERROR", "NXDOMAIN", "REFUSED"):
        assert now["how"] in ("made", "refused") and now["rcode"] == expected, what
        assert seen == set() and dns.rcode.to_text(reply.rcode()) == expected, (seen, what)
        assert texts(reply) == without_ttl(now.get("records", [])), (reply, what)
        return
    assert now["how"] == "asked" and now["group"] == expected, what
    assert seen == {asked}, (seen, what)
    again = world.explain(name, kind)
    assert again["now"]["how"] == "cached", again
    assert again["cache"]["saidBy"] == expected and again["cache"]["fresh"], again
    assert without_ttl(again["cache"]["records"]) == texts(reply), (reply, again)
    assert again["cache"]["rcode"] == dns.rcode.to_text(reply.rcode()), (reply, again)
    world.forget_questions()


USUAL = [  # name, type, the group that is asked or the RCODE, the pattern
    ("www.example.com", "A", "httpdns", None), ("v6.example.com", "AAAA", "httpdns", None),
    ("example.com", "A", "httpdns", None), ("deep.under.www.example.com", "A", "httpdns", None),
    ("UPPER.Example.COM", "A", "httpdns", None), ("_under.score.example", "A", "httpdns", None),
    ("xn--bcher-kva.example", "A", "httpdns", None), ("notcorp.example", "A", "httpdns", None),
    ("www.example.com", "MX", "fallback", None), ("www.example.com", "TXT", "fallback", None),
    ("www.example.com", "TYPE65280", "fallback", None), ("example.com", "SOA", "fallback", None),
    ("srv.example.com", "SRV", "fallback", None), ("b.example.com", "HTTPS", "NOERROR", None),
    ("b.example.com", "SVCB", "NOERROR", None), ("b.example.com", "TYPE65", "NOERROR", None),
    ("b.example.com", "ANY", "NOERROR", None), ("b.example.com", "AXFR", "REFUSED", None),
    ("b.example.com", "IXFR", "REFUSED", None),
    # Names that HTTPDNS cannot carry.
    (r"a\044b.example.com", "A", "fallback", None), (r"semi\;colon.example", "A", "fallback", None),
    (r"pipe\124.example", "AAAA", "fallback", None), (r"space\032here.example", "A", "fallback", None),
    # bypass
    ("lan", "A", "fallback", "lan"), ("nas.lan", "A", "fallback", "lan"), ("nas.lan", "AAAA", "fallback", "lan"),
    ("nas.lan", "HTTPS", "fallback", "lan"), ("x.internal", "A", "fallback", "internal"),
    ("from.file.bypassed", "A", "fallback", "file.bypassed"),
    # Names with a meaning of their own.
    ("localhost", "A", "NOERROR", "localhost"), ("localhost", "AAAA", "NOERROR", "localhost"),
    ("x.localhost", "A", "NOERROR", "localhost"), ("localhost", "MX", "NOERROR", "localhost"),
    ("localhost", "ANY", "NOERROR", "localhost"), ("a.invalid", "A", "NXDOMAIN", "invalid"),
    ("b.onion", "AAAA", "NXDOMAIN", "onion"), ("c.alt", "A", "NXDOMAIN", "alt"),
    ("use-application-dns.net", "A", "NXDOMAIN", "use-application-dns.net"),
    ("_dns.resolver.arpa", "SVCB", "NOERROR", "resolver.arpa"),
    ("nas.local", "A", "private", "local"), ("x.test", "A", "private", "test"),
    ("nas.home.arpa", "A", "private", "home.arpa"), ("ipv4only.arpa", "AAAA", "private", "ipv4only.arpa"),
    ("1.0.0.127.in-addr.arpa", "PTR", "private", "127.0.0.0/8"),
    ("1.1.168.192.in-addr.arpa", "PTR", "private", "192.168.0.0/16"),
    ("1.16.172.in-addr.arpa", "PTR", "private", "172.16.0.0/12"),
    ("0.0.0.0.d.f.ip6.arpa", "PTR", "private", "fc00::/7"), ("8.8.8.8.in-addr.arpa", "PTR", "fallback", None),
    ("printer", "A", "private", ""), ("com", "NS", "private", ""), (".", "NS", "fallback", None),
    # The operator's own groups.
    ("corp.example", "A", "office", "corp.example"), ("a.corp.example", "AAAA", "office", "corp.example"),
    ("a.corp.example", "MX", "office", "corp.example"), ("a.corp.example", "HTTPS", "office", "corp.example"),
    ("lab.corp.example", "A", "lab", "lab.corp.example"), ("x.lab.corp.example", "A", "lab", "lab.corp.example"),
    ("deep.lab.corp.example", "A", "lab", "lab.corp.example"),
    ("x.deep.lab.corp.example", "A", "office", "*.deep.lab.corp.example"),
    ("www.corp.example", "A", "httpdns", None), ("x.www.corp.example", "A", "httpdns", None),
    ("www.corp.example", "MX", "fallback", None), ("corp.example", "DS", "fallback", None),
    ("a.corp.example", "DS", "office", "corp.example"), ("star.example", "A", "httpdns", None),
    ("x.star.example", "A", "lab", "*.star.example"), ("3.2.1.10.in-addr.arpa", "PTR", "office", "10.0.0.0/8"),
    ("3.2.20.10.in-addr.arpa", "PTR", "lab", "10.20.0.0/16"), ("1.8.b.d.0.1.0.0.2.ip6.arpa", "PTR", "private", "2001:db8::/32"),
    ("x.printers.local", "A", "lab", "printers.local"), ("one.listed.example", "A", "lab", "listed.example"),
    ("two.below.example", "A", "lab", "*.below.example"), ("below.example", "A", "httpdns", None),
    ("a.door.example", "MX", "door", "door.example"), ("a.door.example", "A", "door", "door.example"),
]


def test_every_rule(world, tmp_path):
    (tmp_path / "bypassed").write_text("# ours\n\nfile.bypassed\n")
    (tmp_path / "listed").write_text("listed.example # with what is under it\n*.below.example\n")
    world.run({
        "domains": {"bypass": ["lan", "internal"], "bypassFile": str(tmp_path / "bypassed")},
        "upstreams.office": {"domains": ["corp.example", "*.deep.lab.corp.example", "10.0.0.0/8"],
                             "except": ["www.corp.example"]},
        "upstreams.lab": {"domains": ["lab.corp.example", "*.star.example", "10.20.0.0/16", "printers.local"],
                          "domainsFile": str(tmp_path / "listed")},
        "upstreams.door": {"domains": ["door.example"], "thenTry": ["httpdns", "fallback"]}})
    for case in USUAL:
        check(world, *case)
    rule = world.explain("nas.lan")["rule"]
    assert (rule["key"], rule["file"], rule["line"]) == ("domains.bypass", str(world.file), world.line_of("bypass = "))
    rule = world.explain("from.file.bypassed")["rule"]
    assert (rule["key"], rule["file"], rule["line"]) == ("domains.bypassFile", str(tmp_path / "bypassed"), 3)
    rule = world.explain("two.below.example")["rule"]
    assert (rule["key"], rule["file"], rule["line"]) == ("upstreams.lab.domainsFile", str(tmp_path / "listed"), 2)
    rule = world.explain("www.corp.example")["rule"]
    assert "www.corp.example, in upstreams.office.except" in rule["exception"] and str(world.line_of("except = ")) in \
        rule["exception"]
    assert rule["line"] == world.line_of("[httpdns]")
    assert [group["name"] for group in world.explain("b.door.example")["groups"]] == ["door", "httpdns", "fallback"]


def test_names_that_httpdns_has_alone(world):
    world.run({"domains": {"intercept": ["yes.example", "com"], "bypass": ["no.yes.example"]}})
    for case in [("yes.example", "A", "httpdns", "yes.example"), ("a.yes.example", "A", "httpdns", "yes.example"),
                 ("a.yes.example", "MX", "fallback", "yes.example"), ("a.yes.example", "HTTPS", "NOERROR", "yes.example"),
                 ("no.yes.example", "A", "fallback", "no.yes.example"), ("other.example", "A", "fallback", None),
                 ("other.example", "HTTPS", "fallback", None), ("x.com", "A", "httpdns", "com"),
                 ("com", "A", "fallback", "com")]:
        check(world, *case)
    rule = world.explain("third.example")["rule"]
    assert (rule["key"], rule["line"]) == ("domains.intercept", world.line_of("intercept = ")), rule


def test_nobody_but_httpdns(world, tmp_path):
    (tmp_path / "hosts").write_text("192.0.2.77 there.example\n2001:db8::77 six.example\n")
    world.run({"httpdns": {"httpOnly": True, "addressType": "ipv4"}, "fallback": {"hosts": str(tmp_path / "hosts")},
               "upstreams.office": {"domains": ["corp.example"]}})
    for case in [("www.example.com", "A", "httpdns"), ("www.example.com", "AAAA", "NOERROR"),
                 ("www.example.com", "MX", "NOERROR"), ("printer", "A", "NXDOMAIN"), ("nas.lan", "A", "NXDOMAIN"),
                 ("there.example", "A", "NOERROR"), ("there.example", "AAAA", "NOERROR"),
                 ("there.example", "HTTPS", "NOERROR"), ("six.example", "AAAA", "NOERROR"),
                 ("77.2.0.192.in-addr.arpa", "PTR", "NOERROR"), ("there.example", "MX", "NOERROR"),
                 ("a.corp.example", "A", "office"), ("a.corp.example", "AAAA", "office")]:
        check(world, *case)
    assert world.explain("there.example")["reason"] == "hosts"
    assert world.explain("www.example.com", "AAAA")["reason"] == "familyLeftOut"


def test_without_httpdns(world):
    world.run({"upstreams.all": {"domains": ["."]}, "upstreams.labels": {"domains": [""]}}, httpdns=False)
    for case in [("www.example.com", "A", "all", "."), ("www.example.com", "HTTPS", "all", "."),
                 ("printer", "A", "labels", ""), ("nas.local", "A", "private", "local"),
                 ("nas.lan", "A", "private", "lan"), ("a.invalid", "A", "NXDOMAIN", "invalid")]:
        check(world, *case)


def test_accounts_of_groups(world, account, authority):
    """Accounts answer addresses alone; other types go to the first group of `thenTry` that can carry them."""
    world.accounts = {"shop": account("alibaba", zone=every_name), "till": account("baidu", zone=every_name)}
    keys = {group: service.settings() | {"caFile": str(authority.file)} for group, service in world.accounts.items()}
    world.run({"upstreams.shop": keys["shop"] | {"domains": ["shop.example"], "except": ["old.shop.example"],
                                                 "thenTry": ["httpdns", "office"]},
               "upstreams.till": keys["till"] | {"domains": ["till.shop.example", "*.wall.example"]},
               "upstreams.office": {}})
    for case in [("shop.example", "A", "shop", "shop.example"), ("a.shop.example", "AAAA", "shop", "shop.example"),
                 ("a.shop.example", "MX", "office", "shop.example"), ("a.shop.example", "TXT", "office", "shop.example"),
                 ("a.shop.example", "HTTPS", "NOERROR", "shop.example"), ("old.shop.example", "A", "httpdns", None),
                 ("old.shop.example", "MX", "fallback", None), ("till.shop.example", "A", "till", "till.shop.example"),
                 ("a.wall.example", "A", "till", "*.wall.example"), ("wall.example", "A", "httpdns", None),
                 ("a.wall.example", "MX", "NOERROR", "*.wall.example"), (r"a\044b.shop.example", "A", "office", "shop.example")]:
        check(world, *case)


def test_what_servers_say_and_how_long_it_takes(world):
    world.server("bad", lambda asked: reply_to(asked.message, rcode=dns.rcode.SERVFAIL))
    endpoint = world.server("good")
    world.run({"upstreams.office": {"servers": [world.servers["bad"].endpoint, endpoint, "127.0.0.99"],
                                    "domains": ["corp.example"], "timeout": 2000, "thenTry": ["fallback"]},
               "upstreams.wall": {"servers": ["127.0.0.99"], "domains": ["wall.example"], "timeout": 2000}})
    office, fallback = world.explain("a.corp.example")["groups"]
    said = [server["says"] for server in office["servers"]]
    assert said[0]["rcode"] == "SERVFAIL" and said[1]["rcode"] == "NOERROR" and said[2]["result"] == "failure"
    assert said[1]["records"][0].startswith("A 192.0.2.") and 0 < said[1]["milliseconds"] < 2000
    assert fallback["after"] == ["failure"] and fallback["servers"][0]["says"]["rcode"] == "NOERROR"
    text = world.operator("explain", "a.corp.example")
    assert "office, then fallback if it fails" in text and "SERVFAIL" in text
    assert text.splitlines()[-1].startswith("Check 127.0.0.")
    wall = world.operator("explain", "a.wall.example").splitlines()[-1]
    assert wall.startswith("Check 127.0.0.99") and wall.endswith("no other group may be asked."), wall


def test_httpdns_is_asked_when_told_to(world):
    world.run({})
    assert world.explain("www.example.com")["groups"][0]["servers"][0]["says"]["result"] == "notAsked"
    assert world.httpdns.names == [] and "--ask" in world.operator("explain", "www.example.com")
    said = world.explain("www.example.com", "A", "--ask")["groups"][0]["servers"][0]["says"]
    assert said["result"] == "addresses" and len(said["records"]) == 2 and world.httpdns.names == ["www.example.com"]
    # The answer of --ask is not cached.
    assert world.explain("www.example.com")["now"]["how"] == "asked"
    ask("www.example.com", port=PORT)
    assert world.httpdns.names == ["www.example.com"] * 2
    assert world.explain("www.example.com", "A", "--ask")["advice"] is None


def test_what_was_found_out_decides(daemon, binary, place, scripted_resolver, service):
    """`explain` follows what the daemon has learned: a missing record, a paused account, a changed answer."""
    zone = {"known.example": Record(["203.0.113.1"], [], 600), "none.example": Record([], [], 600)}
    world = World(daemon, binary, place, scripted_resolver, service("aes", zone))
    world.run({"upstreams.office": {"domains": ["corp.example"]}})
    check_none = [world.explain("none.example", kind)["now"] for kind in ("A", "HTTPS")]
    assert [now["how"] for now in check_none] == ["asked", "made"]
    world.forget_questions()
    ask("none.example", port=PORT)
    assert world.who_saw("none.example") == {"httpdns", "fallback"}
    cached = world.explain("none.example")
    assert cached["cache"]["saidBy"] == "fallback" and cached["cache"]["inPlaceOfHTTPDNS"], cached
    explained = world.explain("none.example", "HTTPS")
    assert explained["now"]["group"] == "fallback" and explained["groups"][0]["standing"] == "withoutRecord", explained
    world.forget_questions()
    ask("none.example", "HTTPS", port=PORT)
    assert world.who_saw("none.example") == {"fallback"}
    ask("a.corp.example", port=PORT)
    world.servers["office"].script = says(99)
    assert "httpdnsd flush a.corp.example" in world.operator("explain", "a.corp.example")
    world.httpdns.fault = Fault("status", 401)
    ask("first.example", port=PORT)
    explained = world.explain("second.example")
    assert explained["groups"][0]["standing"] == "paused" and explained["now"]["group"] == "fallback", explained
    world.forget_questions()
    ask("second.example", port=PORT)
    assert world.who_saw("second.example") == {"fallback"}
    world.httpdns.violations.clear()


def test_an_encrypted_server_is_verified_as_ever(world, encrypted_resolver, authority, other_authority):
    trusted = encrypted_resolver("tls", address="127.0.0.60")
    other = encrypted_resolver("tls", address="127.0.0.61", tls=other_authority.server(addresses=["127.0.0.61"]))
    world.run({"upstreams.good": {"servers": [trusted.url], "domains": ["good.example"], "caFile": str(authority.file)},
               "upstreams.bad": {"servers": [other.url], "domains": ["bad.example"], "caFile": str(authority.file)}})
    said = world.explain("a.good.example")["groups"][0]["servers"][0]
    assert said["protocol"] == "tls" and said["says"].get("rcode") == "NOERROR", said["says"]
    assert [asked.name.to_text() for asked in trusted.questions] == ["a.good.example."]
    bad = world.operator("explain", "a.bad.example")
    assert bad.splitlines()[-1].startswith(f"Check the certificate of {other.url}"), bad
    assert other.questions == []


def test_nothing_changes_by_it(world):
    """`explain` changes neither the cache nor any counter, those of servers included."""
    world.run({"upstreams.office": {"servers": [world.server("office"), "127.0.0.99"], "domains": ["corp.example"],
                                    "timeout": 2000}})
    for name in ("www.example.com", "a.corp.example", "none.lan"):
        ask(name, port=PORT)

    def state():
        status = world.operator.json()
        del status["uptimeSeconds"], status["headline"]
        for group in status["groups"]:
            for server in group["servers"]:
                server["lastFailure"] = server["lastFailure"] and server["lastFailure"]["reason"]
        samples = {key: value for key, value in metrics().items()
                   if "process" not in key[0] and "uptime" not in key[0] and "time" not in key[0].rpartition("_")[2]}
        return status["groups"], status["cache"], status["fallbacks"], status["limits"], status["questions"]["asked"], samples
    before = eventually(lambda: (seen := state()) == state() and seen, "what was asked has been counted")
    for name in ("www.example.com", "new.example", "a.corp.example", "b.corp.example", "none.lan", "localhost"):
        for kind in ("A", "AAAA", "MX", "HTTPS", "ANY"):
            world.explain(name, kind, "--ask")
    eventually(lambda: state() == before, "nothing has changed")


def test_a_reload_is_followed(world):
    running = world.run({"upstreams.office": {"domains": ["corp.example"]}})
    before = world.explain("a.corp.example")["rule"]
    world.file.write_text("# one more line\n" + world.file.read_text())
    running.process.send_signal(signal.SIGHUP)
    eventually(lambda: world.explain("a.corp.example")["rule"]["line"] == before["line"] + 1, "the file is read again")


def test_a_file_that_the_daemon_has_not_read(world, binary, place, tmp_path):
    """The daemon goes by its own settings, which is said; without a socket the file alone is explained."""
    world.run({}, httpdns=False)
    file = tmp_path / "new.toml"
    file.write_text(toml({"upstreams.ads": {"answer": "nxdomain", "domains": ["ads.example"]}}))

    def explained(*arguments):
        ended = processes.run(binary, "explain", "www.ads.example", "-c", str(file), *arguments,
                              variables={"HTTPDNSD_CONTROL_SOCKET": str(place / "s")})
        assert ended.returncode == 0 and not ended.stderr, ended
        return ended.stdout
    text = explained()
    assert text.startswith("By the settings of the running daemon") and str(file) in text.splitlines()[0], text
    assert "fallback" in text and "upstreams.ads" not in text
    assert "running daemon" not in explained("--json")
    text = explained("--socket", "")
    assert "\nBy the configuration alone" in text and "upstreams.ads.domains" in text, text


# -- without a daemon --

@pytest.fixture
def alone(binary, tmp_path):
    """Runs `explain` with a configuration and nothing else."""
    file = tmp_path / "own.toml"
    file.write_text(toml({"httpdns": {"token": "1234"}, "fallback": {"servers": ["127.0.0.2"], "hosts": ""},
                          "upstreams.office": {"servers": ["127.0.0.3"], "domains": ["corp.example"]},
                          "control": {"socket": str(tmp_path / "nothing")}}))

    def call(*arguments, code=0):
        ended = processes.run(binary, "explain", *arguments, "-c", str(file),
                              variables={"HTTPDNSD_CONTROL_SOCKET": str(tmp_path / "nothing")})
        assert ended.returncode == code, ended
        return ended
    call.file = file
    return call


def test_by_the_configuration_alone(alone):
    text = alone("a.corp.example", "mx").stdout
    assert "By the configuration alone: no daemon answers" in text and "Cache: not known" in text
    line = alone.file.read_text().splitlines().index('domains = ["corp.example"]') + 1
    assert f"corp.example, in upstreams.office.domains ({alone.file}:{line})" in text
    said = json.loads(alone("www.example.com", "--json").stdout)
    assert said["source"]["daemon"] is False and said["cache"] is None and said["now"]["group"] == "httpdns"
    assert all(server["says"] is None for group in said["groups"] for server in group["servers"])
    assert json.loads(alone("x.localhost", "aaaa", "--json").stdout)["now"]["records"] == ["AAAA ::1, ttl 3600"]
    ended = alone("www.example.com", "--ask", code=69)
    assert "HTTPDNS, then fallback" in ended.stdout and "running daemon" in ended.stderr


def test_a_configuration_that_can_be_read_once(binary, alone):
    command = f"{binary} explain a.corp.example -c <(cat {alone.file})"
    shown = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                           env=processes.environment({"HTTPDNSD_CONTROL_SOCKET": str(alone.file) + ".socket"}))
    assert shown.returncode == 0 and "corp.example, in upstreams.office.domains (/dev/fd/" in shown.stdout, shown


@pytest.mark.parametrize("arguments", [
    [], ["a..b"], ["x" * 64], ["a.example", "NOTYPE"], ["a.example", "TYPE65536"], ["a.example", "A", "b.example"],
    ["a.example", "--format", "json"]])
def test_wrong_usage(alone, arguments):
    alone(*arguments, code=64)


def test_a_wrong_configuration(alone):
    alone.file.write_text("[domains]\nbypass = 1\n")
    assert alone("www.example.com", code=78).stderr.startswith(f"{alone.file}:2: domains.bypass: ")


@pytest.mark.parametrize("target", [
    "/explain", "/explain?name=", "/explain?name=a..b", "/explain?name=a.example&type=NO", "/explain?name=a&name=b"])
def test_a_request_that_says_too_little(world, target):
    world.run({})
    assert fetch(target, over=world.place / "s")[0] == 400
    assert fetch("/explain?name=a.example")[0] == 404  # not over the metrics address
    assert fetch("/explain?name=a.example", "POST", over=world.place / "s")[0] == 405


REASONS = {"command": "\x1b]0;x\x07\x1b[2J", "deletion": "a\x08\x7f", "C1": "\u009b31m", "lines": "a\nb\r\n",
           "direction": "\u202eevil\u2066", "separators": "\u2028\u0085"}


@pytest.mark.parametrize("rcode", [dns.rcode.NOERROR, dns.rcode.SERVFAIL])
@pytest.mark.parametrize("reason", REASONS)
def test_what_a_resolver_gives_as_its_reason_commands_no_terminal(world, reason, rcode):
    def script(asked):
        reply = reply_to(asked.message, rcode=rcode)
        reply.use_edns(0, 0, 1232, options=[dns.edns.EDEOption(15, f"begin {REASONS[reason]} end")])
        return reply
    world.run({"fallback": {"servers": [world.server("fallback", script)]}}, httpdns=False)
    ask("www.example.net", port=PORT)
    shown = {arguments: world.operator("explain", "www.example.net", *arguments)
             for arguments in [(), ("--json",), ("--ask",), ("--ask", "--json")]}
    query = processes.run(world.binary, "query", "--group", "fallback", "www.example.net", "-c", str(world.file))
    shown["query"] = query.stdout + query.stderr
    for command, text in shown.items():
        assert all(letter == "\n" or letter.isprintable() for letter in text), (command, text)
        assert not any(line.startswith(("b", "end")) for line in text.split("\n")), "no line is the resolver's"
    with_reason = shown["query"] if rcode else shown[()]
    assert "begin" in with_reason and " end" in with_reason, with_reason
