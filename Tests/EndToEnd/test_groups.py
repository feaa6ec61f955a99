"""Groups of upstreams: which servers receive a name. test_explain.py tests which names each group takes."""

import dns.rcode
import dns.rrset
import pytest

from dns_client import ask, extended_errors, reasons
from groups import PORT, answers, last_of
from resolvers import reply_to



@pytest.mark.parametrize("script", [lambda asked: None, lambda asked: b"xxxx" * 9], ids=["silent", "garbage"])
def test_a_name_of_a_wall_reaches_nobody_else(groups, script):
    groups.server("office", script)
    groups.run(office={"domains": ["corp.example"], "timeout": 1000})
    for name, kind in (("a.corp.example", "A"), ("corp.example", "AAAA"), ("b.corp.example", "MX")):
        reply = ask(name, kind, port=PORT, edns=True)
        assert reply.rcode() == dns.rcode.SERVFAIL and not reply.answer, reply
        assert extended_errors(reply)[0] in (22, 23) and reasons(reply).startswith("office: "), reply
    assert groups.fallback.questions == [] and groups.chosen.names == []


def test_no_route_to_any_server_of_a_wall_is_said_at_once(groups):
    groups.run(office={"domains": ["corp.example"], "servers": ["192.0.2.99", "tls://192.0.2.98"], "timeout": 20000})
    reply = ask("a.corp.example", port=PORT, edns=True, timeout=3)  # the daemon would wait longer for a silent server
    assert reply.rcode() == dns.rcode.SERVFAIL and reasons(reply).startswith("office: "), reply
    assert groups.fallback.questions == [] and groups.chosen.names == []


def test_a_door_in_a_wall(groups):
    """When the group fails, the groups of `thenTry` are asked in order."""
    groups.server("office", answers(dns.rcode.SERVFAIL))
    groups.server("second", lambda asked: None)
    groups.server("third")
    groups.run(office={"domains": ["corp.example"], "thenTry": ["second", "third"]}, second={"timeout": 500}, third={})
    assert last_of("a.corp.example") == [4]
    assert groups.names("second") == groups.names("third") == {"a.corp.example"}
    assert groups.fallback.questions == []


def test_what_opens_a_door(groups):
    """Only results that `thenTryOn` names lead to the next group."""
    for name in ("open", "shut"):
        groups.server(name, answers(dns.rcode.NXDOMAIN))
    groups.run(open={"domains": ["open.example"], "thenTry": ["fallback"], "thenTryOn": ["failure", "nxdomain"]},
               shut={"domains": ["shut.example"], "thenTry": ["fallback"]})
    assert last_of("a.open.example") == [1]
    assert ask("a.shut.example", port=PORT, edns=True).rcode() == dns.rcode.NXDOMAIN
    assert groups.names("fallback") == {"a.open.example"}


def test_a_name_that_is_not_registered_goes_on(groups, encrypted_resolver, authority):
    """An account's DNS over HTTPS answers an unregistered name without records and without an SOA: the next group is asked."""
    def script(asked, connection=None):
        name = asked.name.to_text()
        if name.startswith("unknown"):
            return reply_to(asked.message)
        records = ["60 IN A 192.0.2.9"] if asked.kind == "A" else []
        reply = reply_to(asked.message, *records)
        if not records:
            reply.authority.append(dns.rrset.from_text("shop.example.", 60, "IN", "SOA", "a. b. 1 2 3 4 60"))
        return reply

    account = encrypted_resolver("https", script)
    groups.run(account={"servers": [account.url], "domains": ["shop.example"], "caFile": str(authority.file),
                        "thenTry": ["fallback"], "thenTryOn": ["failure", "norecord"]})
    assert last_of("known.shop.example") == [9]
    no_data = ask("known.shop.example", "AAAA", port=PORT)
    assert no_data.rcode() == dns.rcode.NOERROR and not no_data.answer
    assert groups.fallback.questions == []
    assert last_of("unknown.shop.example") == [1]
    assert groups.names("fallback") == {"unknown.shop.example"}
