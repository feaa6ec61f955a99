"""Behaviour that users of the service's SDK expect: expiring requests, refused accounts, proxies, routes."""

import time

import pytest

import daemon as processes
from clients import Clients
from dns_client import addresses, ask
from httpdns_service import Fault, address_of, every_name
from resolvers import LOCAL_ADDRESS, answer_locally
from waiting import eventually

STRICT = {"httpOnly": True}
ENCRYPTIONS = ["aes", "des", "https"]


@pytest.fixture
def local(scripted_resolver):
    return scripted_resolver(answer_locally)


def by_service(name, **options):
    """True if HTTPDNS answered, false if the local resolver did."""
    found = addresses(ask(name, **options))
    assert found in ([address_of(name)], [LOCAL_ADDRESS]), found
    return found == [address_of(name)]


# --- authExpirySeconds ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("encryption", ENCRYPTIONS)
def test_requests_that_expire(daemon, service, encryption):
    """A batch has one suffix for all names, inside the encrypted part, with a time counted from now."""
    chosen = service(encryption, every_name, expiring=True)
    daemon(chosen, {"httpdns": STRICT | {"authExpirySeconds": 600}})
    clients = Clients()
    for number in range(10):
        clients.ask(f"late{number}.example.com")
    for one in clients.all_answered():
        assert addresses(one.reply) == [address_of(one.name)]
    now = time.time()
    assert all(540 <= request.expiry - now <= 601 for request in chosen.requests)
    if encryption != "https":
        assert not any(str(request.expiry) in target for request in chosen.requests for target in chosen.targets)


def test_requests_that_expire_by_the_query_command(binary, service, tmp_path):
    chosen = service("aes", every_name, expiring=True)
    file = tmp_path / "httpdnsd.toml"
    file.write_text(processes.toml({"httpdns": chosen.settings() | {"authExpirySeconds": 60}}))
    shown = processes.run(binary, "query", "a.example.com", "b.example.com", "-c", str(file), "--format", "pair")
    assert shown.returncode == 0, shown
    assert [request.names for request in chosen.requests] == [["a.example.com", "b.example.com"]]


# --- 401, 429 ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("encryption", ENCRYPTIONS)
def test_a_refused_account_is_named(daemon, service, local, encryption):
    """Status 401 is logged once as a refused account, and clients are still answered."""
    chosen = service(encryption, every_name)
    wrong = {"token": "111111111"} if encryption == "https" else {"dnsId": 54321}
    running = daemon(chosen, {"httpdns": wrong, "fallback": {"servers": [local.endpoint]}})
    for number in range(20):
        assert not by_service(f"refused{number}.example.com")
    assert not chosen.requests and chosen.targets
    told = running.log_lines("status 401")
    assert len(told) == 1, running.log()
    assert any(word in told[0].lower() for word in ("authori", "credential", "account", "dnsid", "token")), told


def test_too_many_requests_back_off(daemon, service, local):
    """After status 429 the service is not asked for a while, clients get the local resolver's answers at once, and then
    the service is asked again."""
    chosen = service("aes", every_name)
    chosen.fault = Fault("status", 429)
    running = daemon(chosen, {"fallback": {"servers": [local.endpoint]}})
    clients = Clients()
    clients.ask_steadily([f"often{number}.example.com" for number in range(40)], 0.025)
    for one in clients.all_answered():
        assert addresses(one.reply) == [LOCAL_ADDRESS] and one.waited < 2  # long before `hedgeAfter`
    assert 1 <= len(chosen.requests) <= 8, "of 40 lookups"
    assert 1 <= len(running.log_lines("status 429")) <= 2, running.log()
    chosen.fault = None
    fresh = (f"again{number}.example.com" for number in range(100_000))
    eventually(lambda: by_service(next(fresh)), "it is tried again")
    assert by_service(next(fresh))


# --- proxy ------------------------------------------------------------------------------------------------------------

PROXY = "http://127.0.0.9:3128"
ROUTED = "10.53.53.53"  # an address of this host that is not a loopback address
PROXIES = {  # encryption, environment, settings; whether HTTPDNS is used. The variables are those of ProxyEnvironmentTests.
    "http": ("aes", {"http_proxy": PROXY}, {}, False),
    "https": ("https", {"HTTPS_PROXY": PROXY}, {}, False),
    "of the other scheme": ("https", {"http_proxy": PROXY}, {}, True),
    "no_proxy names it": ("aes", {"http_proxy": PROXY, "no_proxy": "example.org, 10.53.53.53"}, {}, True),
    "ignored": ("aes", {"http_proxy": PROXY}, {"proxy": "ignore"}, True),
}


@pytest.mark.parametrize("case", PROXIES)
def test_a_proxy_in_the_environment(daemon, service, authority, local, case):
    """Where a proxy is set, the local resolver is used, as the SDK's guide advises; this is logged once."""
    encryption, variables, settings, used = PROXIES[case]
    options = {"tls": authority.server(addresses=[ROUTED])} if encryption == "https" else {}
    chosen = service(encryption, every_name, address=ROUTED, **options)
    running = daemon(chosen, {"httpdns": settings, "fallback": {"servers": [local.endpoint]}}, variables=variables)
    for number in range(5):
        assert by_service(f"proxy{number}.example.com") == used
    assert bool(chosen.targets) == used
    assert len(running.log_lines("proxy")) == (0 if used else 1), running.log()


# --- routeIp ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("encryption", "encrypted", "route"), [
    ("aes", False, "198.51.100.7"), ("des", True, "2001:db8::7"), ("https", True, "198.51.100.7")])
def test_the_route_in_both_spellings(daemon, service, encryption, encrypted, route):
    """The route is sent in the clear, or encrypted as the names are; over HTTPS there is no further encryption."""
    chosen = service(encryption, every_name)
    daemon(chosen, {"httpdns": STRICT | {"routeIp": route, "routeIpEncrypted": encrypted}})
    assert by_service("routed.example.com")
    sent = chosen.requests[0].parameters["ip"]
    assert (chosen.cipher.decrypt(sent) if encrypted else sent) == route
