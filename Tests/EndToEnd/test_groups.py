"""Groups of upstreams: which names each is asked for, and who is asked next."""

import dns.rcode
import dns.reversename
import pytest

from dns_client import addresses, ask, extended_errors, reasons
from groups import PORT, answers, groups, last_of, no_data

__all__ = ["groups"]  # a fixture


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
