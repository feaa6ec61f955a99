"""The keys of `[httpdns]` in a group with a `provider`: each key applies to the group's account as it does to `[httpdns]`."""

import signal

import dns.rcode
import pytest

import daemon as processes
from collector import Collector, in_the_log
from dns_client import addresses, ask, extended_errors
from httpdns_service import Record
from resolvers import answer_locally
from waiting import eventually

PORT = 2053
PROXY = "http://127.0.0.9:3128"
ZONE = {f"{name}.example": Record([f"203.0.113.{number}"], [f"2001:db8:1::{number}"], 600)
        for number, name in enumerate(("a.shop", "b.shop", "c.shop", "d.shop", "a.other", "b.other"), 1)}


@pytest.fixture
def world(daemon, account, scripted_resolver, authority, binary):
    """A daemon with two accounts, `shop` at Alibaba Cloud and `other` at Baidu, and a local resolver that answers every name."""
    class World:
        shop, other = account("alibaba", zone=ZONE), account("baidu", zone=ZONE, address="127.0.0.4")
        local = scripted_resolver(answer_locally)

        def whole(self, shop, other=None, **sections):
            def group(service, name, keys):
                return service.settings() | {"domains": [f"{name}.example"], "caFile": str(authority.file)} | keys
            return {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "log": {"level": "debug"},
                    "fallback": {"servers": [self.local.endpoint], "hosts": ""},
                    "upstreams.shop": group(self.shop, "shop", shop),
                    "upstreams.other": group(self.other, "other", other or {})} | sections

        def run(self, shop, other=None, variables=None, **sections):
            self.daemon = daemon(whole=self.whole(shop, other, **sections), port=PORT, variables=variables or {})
            self.file = self.daemon.directory / "httpdnsd.toml"
            return self.daemon

        def reload(self, whole=None):
            if whole:
                self.file.write_text(processes.toml(whole))
            said = len(self.daemon.log_lines("was read again"))
            self.daemon.process.send_signal(signal.SIGHUP)
            eventually(lambda: len(self.daemon.log_lines("was read again")) > said, "the configuration is read again")

        def command(self, *words, variables=None):
            return processes.run(binary, *words, "-c", str(self.file), variables=variables)
    return World()


def answer(name, kind="A"):
    return addresses(ask(name, kind, port=PORT), kind)


def is_local(name, kind="A"):
    """Whether the answer came from the local resolver."""
    found = answer(name, kind)
    return bool(found) and not set(found) & {one for record in ZONE.values() for one in record.v4 + record.v6}


@pytest.mark.parametrize("given", ["file", "environment"])
def test_address_type(world, given):
    """An account is never asked for a family outside its `addressType`, not even when another account fails."""
    keys = {"addressType": "ipv4"}
    variables = {"HTTPDNSD_UPSTREAMS_SHOP_ADDRESSTYPE": "ipv4"} if given == "environment" else {}
    world.run(keys if given == "file" else {}, {"addressType": "ipv6", "thenTry": ["shop"]}, variables=variables)
    assert answer("a.shop.example") == ["203.0.113.1"]
    reply = ask("a.shop.example", "AAAA", port=PORT)
    assert reply.rcode() == dns.rcode.NOERROR and not reply.answer
    assert [request.kind for request in world.shop.requests] == ["4"]
    assert answer("a.other.example", "AAAA") == ["2001:db8:1::5"]
    assert answer("a.other.example") == []
    assert [request.kind for request in world.other.requests] == ["ipv6"]
    world.other.stop()
    assert ask("b.other.example", "AAAA", port=PORT).rcode() == dns.rcode.SERVFAIL, "shop is not asked for AAAA"
    assert [request.kind for request in world.shop.requests] == ["4"]
    explained = world.command("explain", "a.shop.example", "AAAA", variables=variables).stdout
    assert "shop is not asked for AAAA (upstreams.shop.addressType)" in explained


@pytest.mark.parametrize(("keys", "goes_on"), [({}, False), ({"httpOnly": True}, False), ({"httpOnly": False}, True),
                                               ({"httpOnly": False, "thenTry": ["other"]}, False)])
def test_http_only(world, keys, goes_on):
    """A group asks no other server by default; with `httpOnly = false` it asks the local resolver, as `[httpdns]` does."""
    world.run(keys)
    assert answer("a.shop.example") == ["203.0.113.1"]
    assert is_local("unknown.shop.example") == goes_on
    assert bool(world.local.questions) == goes_on
    checked = world.command("check", "--all").stdout.split("[upstreams.shop]")[1]
    assert f"\nhttpOnly{' ' * 21} = {'false' if keys.get('thenTry') or goes_on else 'true'} " in checked, checked


def test_debug_is_of_one_account(world):
    running = world.run({"debug": True})
    answer("a.shop.example"), answer("a.other.example")
    world.shop.hold()
    ask("c.shop.example", port=PORT)
    world.shop.stop()
    ask("b.shop.example", port=PORT)
    lines = [line for line in running.log().splitlines() if "lookup" in line]
    assert any("shop: lookup a.shop.example: 203.0.113.1,600 2001:db8:1::1,600" in line for line in lines), lines
    assert any("shop: lookup c.shop.example: no answer within" in line for line in lines), lines
    assert any("shop: lookup b.shop.example: " in line for line in lines), lines
    assert not any("a.other" in line for line in lines)


def test_trace_names_the_session(world):
    """All requests of one start carry one session id, those of the next start another; the log line of a failure shows it."""
    sessions = []
    for number in range(2):
        running = world.run({"trace": True}, control={"metrics": "127.0.0.1:9153"})
        assert answer("a.shop.example") and answer("b.shop.example") and answer("a.other.example")
        sessions += [set(world.shop.sessions)]
        world.shop.sessions.clear()
        if number == 0:
            running.stop()
    (first,), (second,) = sessions
    assert first != second and all(len(one) == 12 and int(one, 16) for one in (first, second))
    world.shop.stop(), world.other.stop()
    ask("c.shop.example", port=PORT), ask("b.other.example", port=PORT)
    eventually(lambda: running.log_lines("shop .* fails") and running.log_lines("other .* fails"), "it is said that both fail")
    assert all(line.endswith(f" (sid {second})") for line in running.log_lines("shop .* fails")), running.log()
    assert not any("sid" in line for line in running.log_lines("other .* fails"))


def test_each_account_reports_for_itself(world):
    """`shop` reports to its collector with its own `appId`, `other` to the log; after a reload, `shop` uses the new collector."""
    first, second = Collector(), Collector()
    try:
        running = world.run({"enableReport": True, "reportUrl": first.url, "appId": "the-shop"},
                            {"enableReport": True, "appId": "the-other"})
        world.shop.stop(), world.other.stop()
        ask("a.shop.example", port=PORT), ask("a.other.example", port=PORT)
        eventually(lambda: first.reports, "reports are posted", 30)
        assert {(one["appId"], one["provider"], one["req_dn"]) for one in first.reports} == {
            ("the-shop", "alibaba", "a.shop.example")}
        logged = eventually(lambda: in_the_log(running), "the other reports to the log")
        assert {(one["appId"], one["req_dn"]) for one in logged} == {("the-other", "a.other.example")}
        world.reload(world.whole({"enableReport": True, "reportUrl": second.url, "appId": "moved"}))
        before = len(first.reports), len(in_the_log(running))
        ask("b.shop.example", port=PORT), ask("b.other.example", port=PORT)
        eventually(lambda: second.reports, "reports go elsewhere", 30)
        assert {one["appId"] for one in second.reports} == {"moved"}
        assert (len(first.reports), len(in_the_log(running))) == before
    finally:
        first.stop(), second.stop()


PROXIES = {  # variables, keys of `shop`; the server that is asked instead, and the text in the log
    "next group": ({"https_proxy": PROXY}, {"thenTry": ["other"]}, "other", "other answers its names"),
    "both bypassed": ({"https_proxy": PROXY}, {"thenTry": ["other", "fallback"]}, "local", "fallback answers"),
    "a wall": ({"https_proxy": PROXY}, {}, None, "upstreams.shop.thenTry names no other group to ask"),
    "no_proxy has the certificate's name": (
        {"https_proxy": PROXY, "no_proxy": "aliyuncs.com"}, {"thenTry": ["other"]}, None, None),
}


@pytest.mark.parametrize("case", PROXIES)
def test_a_proxy_in_the_environment(world, case):
    variables, keys, instead, said = PROXIES[case]
    other = {"proxy": "bypass" if case == "both bypassed" else "ignore"} | (
        {"httpOnly": False} if case == "both bypassed" else {})
    running = world.run(keys, other, variables=variables)
    names = ["a.shop.example", "b.shop.example"]
    if instead == "local":
        assert all(is_local(name) for name in names)
    else:
        assert [answer(name) for name in names] == [["203.0.113.1"], ["203.0.113.2"]]
    assert bool(world.shop.requests) == (instead is None)
    assert bool(world.other.requests) == (instead == "other")
    assert bool(world.local.questions) == (instead == "local")
    lines = running.log_lines("upstreams.shop")
    assert len(running.log_lines("_proxy is set")) == (
        0 if said is None else 2 if case == "both bypassed" else 1), running.log()
    assert said is None or said in lines[0], lines
    # `explain` follows the proxy settings in effect, and a reload does not change what the environment decides.
    world.reload()
    explained = world.command("explain", "c.shop.example", variables=variables).stdout
    assert ("Note: " in explained) == (said is not None), explained
    assert is_local("d.shop.example") == (instead == "local")


def test_httpdns_itself_is_bypassed_for_those_it_names(daemon, account, service, scripted_resolver, authority):
    """While `[httpdns]` is bypassed, the local resolver is asked only if `thenTry` names it."""
    first, second = service("aes", ZONE), account("baidu", zone=ZONE, address="127.0.0.4")
    local = scripted_resolver(answer_locally)
    whole = {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "httpdns": first.settings() | {"thenTry": ["second"]},
             "fallback": {"servers": [local.endpoint], "hosts": ""},
             "upstreams.second": second.settings() | {"caFile": str(authority.file)}}
    running = daemon(whole=whole, port=PORT, variables={"http_proxy": PROXY})
    assert answer("a.shop.example") == ["203.0.113.1"]
    assert not first.targets and not local.questions and second.names == ["a.shop.example"]
    assert 'httpdns.proxy is "bypass": HTTPDNS is not asked, second answers its names' in running.log()
    reply = ask("unknown.shop.example", port=PORT, edns=True)
    assert reply.rcode() == dns.rcode.NOERROR and not reply.answer and not extended_errors(reply)
    assert not local.questions
