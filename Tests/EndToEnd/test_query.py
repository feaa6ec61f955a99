"""`httpdnsd query`, which asks the service directly."""

import json

import dns.rcode
import pytest

import daemon as processes
from encrypted import address_reply
from httpdns_service import Fault, Record
from resolvers import answer_locally, reply_to

NAMES = ["www.example.com", "only4.example.com", "only6.example.com", "none.example.com"]
ZONE = {"www.example.com": Record(["203.0.113.20", "203.0.113.10"], ["2001:db8:1::20", "2001:db8:1::10"], 120),
        "only4.example.com": Record(["203.0.113.40"]), "only6.example.com": Record([], ["2001:db8:1::50"])}


@pytest.mark.parametrize("encryption", ["aes", "des", "https"])
def test_every_address_as_text(command, service, encryption):
    shown = command("query", NAMES[0], settings=service(encryption, ZONE).settings())
    assert shown.returncode == 0, shown.stderr
    for address in ("203.0.113.20", "203.0.113.10", "2001:db8:1::20", "2001:db8:1::10"):
        assert address in shown.stdout


@pytest.mark.parametrize("encryption", ["aes", "des", "https"])
def test_one_name_as_a_pair(command, service, encryption):
    """One name gives a line as WGGetHostByName does: an address of each family, `0` for a missing one, `0 0` for none."""
    settings = service(encryption, ZONE).settings()
    pairs = ["203.0.113.20 2001:db8:1::20", "203.0.113.40 0", "0 2001:db8:1::50", "0 0"]
    for name, pair in zip(NAMES, pairs, strict=True):
        shown = command("query", name, "--format", "pair", "--first", settings=settings)
        assert (shown.returncode, shown.stdout, shown.stderr) == (0, f"{name} {pair}\n", "")


def test_many_names_as_pairs(command, service):
    """Many names give lines as WGGetHostsByNames does, in order, in any spelling, from one request."""
    chosen = service("aes", ZONE)
    names = ["only6.example.com", "WWW.example.com.", "none.example.com", "only6.example.com"]
    shown = command("query", *names, "--format", "pair", "--first", settings=chosen.settings())
    lines = [line.lower().replace(".com. ", ".com ") for line in shown.stdout.splitlines()]
    assert lines == ["only6.example.com 0 2001:db8:1::50", "www.example.com 203.0.113.20 2001:db8:1::20",
                     "none.example.com 0 0", "only6.example.com 0 2001:db8:1::50"]
    distinct = ["only6.example.com", "www.example.com", "none.example.com"]
    assert [request.names for request in chosen.requests] == [distinct]


@pytest.mark.parametrize("encryption", ["aes", "des", "https"])
def test_all_addresses_as_json(command, service, encryption):
    """JSON has all addresses as WGGetAllHostsByNames does, from one request; with `--first`, one address of each family."""
    chosen = service(encryption, ZONE)
    settings = chosen.settings()
    every = command("query", *NAMES, "--format", "json", settings=settings).stdout
    first = command("query", *NAMES, "--format", "json", "--first", settings=settings).stdout
    for text in (every, first):
        assert json.loads(text)
        assert all(name in text for name in NAMES)
        assert "203.0.113.20" in text and "2001:db8:1::20" in text
    assert [request.names for request in chosen.requests] == [NAMES, NAMES]
    for address in ("203.0.113.10", "2001:db8:1::10", "203.0.113.40", "2001:db8:1::50"):
        assert address in every
    assert "203.0.113.10" not in first and "2001:db8:1::10" not in first


@pytest.mark.parametrize("name", ["www.example.com", r"my\032printer.example.com", r"a\"b.example.com", r"\027\155.example.com"])
def test_json_of_any_name(command, name):
    """An escape in a name is escaped once more in JSON."""
    shown = command("query", name, "--group", "fallback", "--type", "a", "--format", "json", whole={"cache": {}})
    assert json.loads(shown.stdout) == [{"name": name, "ipv4": {"addresses": ["192.0.2.1"], "ttl": 60}}]


@pytest.mark.parametrize(("kind", "sent", "pair"), [("a", "", "203.0.113.20 0"), ("aaaa", "aaaa", "0 2001:db8:1::20"),
                                                    ("both", "addrs", "203.0.113.20 2001:db8:1::20")])
def test_a_family_that_is_not_asked_for_is_missing(command, service, kind, sent, pair):
    chosen = service("aes", ZONE)
    shown = command("query", NAMES[0], "--type", kind, "--format", "pair", "--first", settings=chosen.settings())
    assert shown.stdout == f"{NAMES[0]} {pair}\n" and chosen.requests[0].kind == sent
    text = command("query", NAMES[0], "--type", kind, settings=chosen.settings()).stdout
    assert ("203.0.113.20" in text) == (kind != "aaaa") and ("2001:db8:1::20" in text) == (kind != "a")


def test_query_goes_on_to_the_next_server(command, service):
    broken, good = service("aes", ZONE), service("aes", ZONE)
    broken.fault = Fault("status", 500)
    settings = good.settings() | {"dnsIp": [broken.endpoint, good.endpoint]}
    shown = command("query", NAMES[0], "--format", "pair", "--first", settings=settings)
    assert shown.stdout == f"{NAMES[0]} 203.0.113.20 2001:db8:1::20\n"


def test_more_names_than_a_batch_holds(command, service):
    chosen = service("aes")
    names = [f"n{i}.example.com" for i in range(1, 21)]
    shown = command("query", *names, "--format", "pair", "--first", settings=chosen.settings())
    assert shown.stdout.splitlines() == [f"n{i}.example.com 203.0.113.{i} 2001:db8:1::{i:x}" for i in range(1, 21)]
    assert len(chosen.requests) == 3


@pytest.mark.parametrize("encryption", ["aes", "des", "https"])
def test_a_service_that_is_not_there(command, service, encryption):
    unreached = command("query", NAMES[0], settings=service(encryption, ZONE).settings() | {"dnsIp": ["127.0.0.9:9"]})
    assert unreached.returncode == 69 and len(unreached.stderr.splitlines()) == 1, unreached


@pytest.mark.parametrize("arguments", [["query", "a..b\x1b[31m"], ["explain", "\x1b[31mx"], ["explain", "x.example", "NOPE\x1b[31m"]])
def test_a_wrong_argument_does_not_command_the_terminal(binary, arguments):
    shown = processes.run(binary, *arguments)
    assert shown.returncode == 64 and "Error" in shown.stderr and "\x1b" not in shown.stdout + shown.stderr, shown


def test_a_name_that_is_refused_takes_no_other_name_with_it(command, scripted_resolver):
    """What is known is printed, and a server that refuses a question is asked the next one."""
    def answer(asked):
        name = asked.name.to_text().split(".")[0]
        refused = name == "broken" or (name, asked.kind) == ("half", "AAAA")
        return reply_to(asked.message, rcode=dns.rcode.SERVFAIL) if refused else answer_locally(asked)

    office = scripted_resolver(answer, address="127.0.0.41")
    whole = {"upstreams.office": {"servers": [office.endpoint], "domains": ["corp.example"], "timeout": 3000}}
    names = ["a.corp.example", "broken.corp.example", "half.corp.example", "b.corp.example"]
    shown = command("query", *names, "--group", "office", "--format", "pair", whole=whole)
    assert shown.returncode == 69 and [line.split()[0] for line in shown.stdout.splitlines()] == [names[0], *names[2:]], shown
    assert [line.split()[2] == "0" for line in shown.stdout.splitlines()] == [False, True, False], shown
    assert office.endpoint in shown.stderr and ": SERVFAIL for broken.corp.example A" in shown.stderr, shown
    shown = command("query", "broken.corp.example", "--group", "office", "--format", "json", whole=whole)
    assert (shown.returncode, shown.stdout) == (69, ""), shown


def test_any_group_can_be_asked(command, service, scripted_resolver):
    office = scripted_resolver(lambda asked: address_reply(asked), address="127.0.0.41")
    other = service("aes", {"www.shop.example": Record(["203.0.113.77"])})
    whole = {"upstreams.office": {"servers": ["127.0.0.9", office.endpoint], "domains": ["corp.example"], "timeout": 3000},
             "upstreams.shop": other.settings() | {"provider": "tencent", "domains": ["shop.example"]}}
    shown = command("query", "mail.corp.example", "_sip.corp.example", "--group", "office", "--format", "pair", whole=whole)
    assert (shown.returncode, shown.stderr) == (0, ""), shown
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["mail.corp.example", "_sip.corp.example"]
    assert not shown.stdout.endswith(" 0 0\n")
    shown = command("query", "www.shop.example", "--group", "shop", "--format", "pair", whole=whole)
    assert shown.stdout == "www.shop.example 203.0.113.77 0\n", shown
    shown = command("query", "www.example.com", "--group", "fallback", "--type", "a", whole=whole)
    assert shown.returncode == 0 and "www.example.com A " in shown.stdout, shown
    office.stop()
    shown = command("query", "mail.corp.example", "--group", "office", whole=whole)
    assert shown.returncode == 69 and shown.stderr.count("office ") == 2 and office.endpoint in shown.stderr, shown
    shown = command("query", "www.example.com", whole=whole)
    assert shown.returncode == 78 and "--group" in shown.stderr, shown
    for name in ("query", "probe"):
        shown = command(name, *(["www.example.com"] if name == "query" else []), "--group", "offce", whole=whole)
        said = "--group offce is not known here; give one of fallback, private, office, shop\n"
        assert shown.returncode == 64 and shown.stderr == said, shown
    shown = command("query", "*.example", "--group", "shop", whole=whole)
    assert shown.returncode == 64 and "is not a name that HTTPDNS can be asked for" in shown.stderr, shown
