"""The JSON of commands has the keys in docs/json.md, no more and no fewer."""

import json

import dns.reversename
import pytest

from control import Control
from dns_client import ask
from fleet import remembered
from httpdns_service import Record, address_of
from json_page import documented
from resolvers import answer_locally

def keys(value, path=""):
    """Every key of a JSON value, as the page writes it."""
    if isinstance(value, dict):
        below = {"*": member for member in value.values()} if path in ("questions.responses", "questions.over", "fallbacks") else value
        return {key for name, member in below.items() for key in keys(member, f"{path}.{name}" if path else name)}
    if isinstance(value, list):
        return {key for member in value for key in keys(member, path + "[]")} or {path + "[]"}
    return {path}


def compare(found, command, rare):
    """All keys are documented, and all documented keys but the rare ones are there. An empty list or null may have members."""
    page = documented(command)
    more = {key for key in found - page if not any(other.startswith((key + ".", key + "[]")) for other in page)}
    assert (more, page - found) == (set(), rare)


@pytest.fixture
def running(service, store, member, scripted_resolver, binary):
    """A daemon with an account, a store, a group with a silent server, one of aliases, and one that names the daemon itself."""
    local = scripted_resolver(answer_locally)
    account = service("https", lambda name, request: Record([], [], 600) if name.startswith("none") else
                      Record([address_of(name)], [], 600))
    daemon = member(account, store(), settings={
        "fallback": {"servers": [local.endpoint, "127.0.0.1:53"], "hosts": ""},
        "cache": {"rank": ["www.example.com:443"]},
        "nat64": {"prefix": "64:ff9b::/96", "synthesize": "always"},
        "upstreams.silent": {"servers": ["127.0.0.99"], "domains": ["silent.example"], "timeout": 100},
        "upstreams.named": {"alias": "www.example.com", "domains": ["named.example"]}, "control": {"socket": "control.sock"}})
    daemon.operator = Control(binary, daemon)
    return daemon


def test_status(running):
    for name in ("www.example.com", "none.example.com", "a.silent.example", "nas.lan"):
        ask(name, port=running.port)
    compare(keys(running.operator.json()), "status", rare={"certificate.beginsAt", "certificate.endsAt"})


def test_explain(running):
    found = set()
    for name, kind, *more in (
            ("www.example.com", "A"), ("www.example.com", "A", "--ask"), ("none.example.com", "A"), ("a.silent.example", "A"),
            (remembered(running, 1)[0], "A"), ("localhost", "A"), ("www.example.com", "OPT"), ("nas.lan", "A"), ("new.example.com", "A"),
            ("www.example.com", "AAAA"), ("named.example", "A"), (dns.reversename.from_address("64:ff9b::1.2.3.4").to_text(), "PTR")):
        found |= keys(json.loads(running.operator("explain", name, kind, "--json", *more)))
        ask(name, "A", port=running.port)
        found |= keys(json.loads(running.operator("explain", name, kind, "--json", *more)))
    compare(found, "explain", rare={"sharedCache.entries[].reason"})  # only while the store fails
