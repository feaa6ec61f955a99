"""`explain` where the answers of some groups are shared and those of others are not: what is said of each, and then done."""

import json
import pathlib
import tempfile

import pytest

from control import Control
from dns_client import ask
from fleet import in_use, is_written, member, state, store
from httpdns_service import every_name
from resolvers import reply_to

# The zone of each group, and whether its answers are shared.
ZONES = {"httpdns": ("example.com", True), "office": ("corp.example", True), "lab": ("lab.example", False)}


@pytest.fixture
def fleet(binary, service, scripted_resolver, store, member):
    """Two daemons that share a store, how each is explained, and who was asked for a name."""
    account, shared = service("https", every_name), store()
    servers = {name: scripted_resolver(
                   lambda asked, connection=None: reply_to(asked.message, "60 IN A 192.0.2.9"), address=f"127.0.0.{last}")
               for last, name in ((41, "office"), (42, "lab"))}
    groups = {f"upstreams.{name}": {"servers": [server.endpoint], "domains": [ZONES[name][0]], "share": ZONES[name][1]}
              for name, server in servers.items()}

    def asked(name):
        return account.names.count(name) + sum(
            str(question.name).rstrip(".") == name for server in servers.values() for question in server.questions)
    with tempfile.TemporaryDirectory(prefix="x-", dir="/tmp") as folder:
        def one(number):
            started = member(account, shared, settings={"control": {"socket": f"{folder}/{number}"}} | groups)
            operator = Control(binary, started)
            operator.socket = pathlib.Path(folder) / str(number)
            return started, lambda name: json.loads(operator("explain", name, "A", "--json"))
        yield *one(1), *one(2), asked


def test_names_that_the_store_has_and_others(fleet):
    first, explain_first, second, explain_second, asked = fleet
    seen = set()
    for number in range(60):
        group = list(ZONES)[number % 3]
        zone, is_shared = ZONES[group]
        is_known = number % 2 == 0
        name = f"w{number}.{zone}"
        if is_known:
            before = in_use(first)
            told = ask(name, port=first.port)
            if is_shared and not is_written(first, before, 4 if group == "httpdns" else 2):
                continue
            assert explain_first(name)["cache"]["saidBy"] == group
        faults, questions = in_use(second).faults, asked(name)
        explained = explain_second(name)
        if state(second).faults == faults:
            assert explained["now"]["how"] == ("stored" if is_known and is_shared else "asked"), explained
        assert explained["now"]["group"] == group, explained
        assert explained["groups"][0]["name"] == group and explained["groups"][0]["shared"] == is_shared, explained
        told_where = explained["sharedCache"]
        assert (told_where and told_where["inUse"]) == (True if is_shared else None), explained
        explaining = asked(name) - questions
        assert explaining == (0 if group == "httpdns" else 1), explained
        reply = ask(name, port=second.port)
        lookups = asked(name) - questions - explaining
        if state(second).faults > faults:
            continue
        assert lookups == (0 if is_known and is_shared else 1), explained
        if is_known:
            assert [rrset.to_rdataset() for rrset in reply.answer] == [rrset.to_rdataset() for rrset in told.answer]
        again = explain_second(name)
        assert again["now"]["how"] == "cached" and again["cache"]["saidBy"] == group, again
        seen.add((group, is_known))
        if number >= 11 and len(seen) == 6:
            return
    raise AssertionError(f"the store was too slow for all but {seen}")
