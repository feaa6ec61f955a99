"""`explain` beside a shared cache reports what the store has, the daemon then does the same, and `explain` changes nothing."""

import json

import pytest

from control import Control
from dns_client import addresses, ask
from fleet import count_of, in_use, is_written, remembered, state
from httpdns_service import Record, address_of
from resolvers import LOCAL_ADDRESS, answer_locally
from waiting import eventually

COUNTS = ("reads_total", "hits_total", "late_total", "writes_total", "refused_total", "outages_total")


class Fleet:
    """Two daemons with one account, one local resolver and a store. The first asks; the second is explained."""

    def __init__(self, service, store, member, scripted_resolver, binary):
        self.local = scripted_resolver(answer_locally)
        self.account = service("https", lambda name, request: Record([], [], 600) if name.startswith("none") else
                               Record([address_of(name)], [address_of(name, 6)], 600))
        self.store = store()
        settings = {"fallback": {"servers": [self.local.endpoint], "hosts": "", "timeout": 5000}, "upstreams.lab": {
            "servers": [self.local.endpoint], "domains": ["lab.example"], "share": False}}
        self.first = member(self.account, self.store, settings=settings)
        self.second = member(self.account, self.store, settings=settings | {"control": {"socket": "control.sock"}})
        self.operator = Control(binary, self.second)

    def asked(self, name):
        """How often the account, which bills, and the local resolver were asked for a name."""
        return self.account.names.count(name), [str(one.name) for one in self.local.questions].count(f"{name}.")

    def explain(self, name, kind="A"):
        """The explanation, which must change no count of the store and cause no lookup that is billed."""
        before = [count_of(self.second, count) for count in COUNTS], self.asked(name)[0]
        explained = json.loads(self.operator("explain", name, kind, "--json"))
        assert ([count_of(self.second, count) for count in COUNTS], self.asked(name)[0]) == before
        # If the daemon did not answer, the explanation would be made from the configuration alone.
        assert explained["source"]["daemon"], explained["source"]
        return explained

    def does(self, name, kind="A"):
        """The second daemon's reply and its new questions to the servers; None if the store was too slow."""
        asked, faults = self.asked(name), in_use(self.second).faults
        reply = ask(name, kind, port=self.second.port)
        if state(self.second).faults != faults:
            return None
        return reply, tuple(now - before for now, before in zip(self.asked(name), asked))


@pytest.fixture
def fleet(service, store, member, scripted_resolver, binary):
    return Fleet(service, store, member, scripted_resolver, binary)


def entries(explained):
    return [(entry["group"], entry["result"]) for entry in explained["sharedCache"]["entries"]]


def data(records):
    return sorted(record.rpartition(", ttl ")[0].split()[-1] for record in records)


def known(fleet, name, kind, entries):
    """Has the first daemon asked for a name; returns whether the answer is in the store."""
    before = in_use(fleet.first)
    ask(name, kind, port=fleet.first.port)
    return is_written(fleet.first, before, entries)


def test_what_the_store_holds_is_what_is_answered(fleet):
    agreed = 0
    for name in remembered(fleet.first, 8):
        for kind, family in (("A", 4), ("AAAA", 6)):
            in_use(fleet.second)
            explained = fleet.explain(name, kind)
            assert entries(explained) == [("httpdns", "fresh"), ("fallback", "nothing")], explained
            assert (explained["now"]["how"], explained["now"]["group"]) == ("stored", "httpdns"), explained
            held = explained["sharedCache"]["entries"][0]
            assert held["rcode"] == "NOERROR" and held["ageSeconds"] + held["ttlSeconds"] == 600, held
            # The second daemon has not cached it, so it still has to ask the store.
            assert fleet.explain(name, kind)["cache"] is None
            done = fleet.does(name, kind)
            if done is None:
                break  # The account was asked instead, and its answer holds both families.
            reply, asked = done
            assert asked == (0, 0), (name, kind)
            assert addresses(reply, kind) == data(explained["now"]["records"]) == [address_of(name, family)]
            assert held["ttlSeconds"] - 5 <= reply.answer[0].ttl <= held["ttlSeconds"]
            again = fleet.explain(name, kind)
            assert again["now"]["how"] == "cached" and again["cache"]["saidBy"] == "httpdns", again
            assert data(again["cache"]["records"]) == addresses(reply, kind)
            assert held["ageSeconds"] <= again["cache"]["ageSeconds"] <= held["ageSeconds"] + 5
            agreed += 1
    assert agreed >= 8
    text = fleet.operator("explain", name)
    assert "\n       of HTTPDNS: NOERROR: A " in text and "\n       of fallback: nothing\n" in text, text


def test_what_it_does_not_hold_is_asked(fleet):
    for number in range(4):
        name = f"new{number}.example.com"
        explained = fleet.explain(name)
        assert entries(explained) == [("httpdns", "nothing"), ("fallback", "nothing")], explained
        assert (explained["now"]["how"], explained["now"]["group"]) == ("asked", "httpdns"), explained
        done = fleet.does(name)
        assert done is None or done[1] == (1, 0), done
        assert fleet.explain(name)["now"]["how"] == "cached"


def test_no_record_leads_to_the_next_group(fleet):
    def agrees(number):
        name = f"none{number}.example.com"
        if not known(fleet, name, "A", 6):
            return False
        explained = fleet.explain(name)
        assert entries(explained) == [("httpdns", "noRecord"), ("fallback", "fresh")], explained
        assert (explained["now"]["how"], explained["now"]["group"]) == ("stored", "fallback"), explained
        done = fleet.does(name)
        if done is None:
            return False
        assert done[1] == (0, 0) and addresses(done[0]) == data(explained["now"]["records"]) == [LOCAL_ADDRESS]
        again = fleet.explain(name)
        assert again["now"]["how"] == "cached" and again["cache"]["saidBy"] == "fallback", again
        return True
    assert any(agrees(number) for number in range(10))


def test_what_a_group_does_not_share_is_asked(fleet):
    ask("a.lab.example", port=fleet.first.port)
    explained = fleet.explain("a.lab.example")
    assert explained["sharedCache"] is None and explained["groups"][0]["shared"] is False, explained
    assert (explained["now"]["how"], explained["now"]["group"]) == ("asked", "lab"), explained


def test_what_is_not_the_fleets_is_said_and_stays(fleet):
    name, *_ = remembered(fleet.first, 1)
    for key in fleet.store.keys():
        fleet.store("SET", key, "something else", "EX", "600")
    explained = fleet.explain(name)
    assert entries(explained)[0] == ("httpdns", "failure"), explained
    assert explained["now"]["how"] == "asked" and {fleet.store("GET", key) for key in fleet.store.keys()} == {b"something else"}
    done = fleet.does(name)
    assert done is None or done[1] == (1, 0)


def test_a_silent_store_holds_nobody_up(fleet):
    name, *_ = remembered(fleet.first, 1)
    in_use(fleet.second)
    fleet.store.pause()
    fleet.local.script = lambda asked: None  # a silent server has what is left of the four seconds
    try:
        explained = json.loads(fleet.operator("explain", name, "A", "--json"))
    finally:
        fleet.store.resume()
        fleet.local.script = answer_locally
    assert explained["source"]["daemon"], explained["source"]
    assert all(result == "failure" for _, result in entries(explained)) and explained["now"]["how"] == "asked", explained
    eventually(lambda: entries(fleet.explain(name))[:1] == [("httpdns", "fresh")], "the store answers again", 60)
