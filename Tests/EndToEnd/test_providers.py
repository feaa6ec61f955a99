"""HTTPDNS of every provider: requests, answers, and the reaction to each error."""

import concurrent.futures
import json
import time

import dns.rcode
import pytest

import daemon as processes
from control import Control, metrics, total
from dns_client import addresses, ask, extended_errors, reasons
from httpdns_service import Record, every_name
from providers import CERTIFICATES, NAMES, SECRETS, Refused
from resolvers import answer_locally
from waiting import eventually, waited_since

PORT = 2053
SIGNED = sorted(NAMES)
WAYS = [*((provider, "https") for provider in SIGNED), ("alibaba", "aes")]
ZONE = {"www.shop.example": Record(["203.0.113.20", "203.0.113.10"], ["2001:db8:1::20"], 120),
        "only4.shop.example": Record(["203.0.113.40"]), "only6.shop.example": Record([], ["2001:db8:1::50"]),
        **{f"n{i}.shop.example": Record([f"203.0.113.{i}"], [f"2001:db8:1::{i:x}"], 600) for i in range(60)}}


@pytest.fixture
def account(account):
    """Starts services that know the shop's zone, unless `zone` is given. Baidu's accounts have six digits."""
    return lambda provider, *arguments, zone=ZONE, **options: account(provider, *arguments, zone=zone, **options)


@pytest.fixture
def shop(daemon, authority, scripted_resolver):
    """Starts a daemon whose group `shop` is an account at this service; other sections and groups are given by name."""
    def start(service, others=None, hedge=1000, **keys):
        group = service.settings() | {"domains": ["shop.example"], "caFile": str(authority.file)} | keys
        whole = {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "control": {"metrics": "127.0.0.1:9153"},
                 "fallback": {"servers": ["127.0.0.99"], "hosts": "", "hedgeAfter": hedge}, "upstreams.shop": group}
        return daemon(whole=whole | (others or {}), port=PORT)
    return start


def answer(name, kind="A"):
    return sorted(addresses(ask(name, kind, port=PORT), kind))


def at_once(count, name="n{}.shop.example"):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda number: ask(name.format(number), port=PORT), range(count)))


@pytest.mark.parametrize(("provider", "way"), WAYS)
def test_addresses_and_their_absence(account, shop, provider, way):
    service = account(provider, way)
    shop(service)
    assert answer("www.shop.example") == ["203.0.113.10", "203.0.113.20"]
    assert answer("www.shop.example", "AAAA") == ["2001:db8:1::20"]
    assert len(service.requests) == 1, "both families come with one request"
    assert answer("only4.shop.example") == ["203.0.113.40"]
    assert answer("only4.shop.example", "AAAA") == []
    assert answer("only6.shop.example", "AAAA") == ["2001:db8:1::50"]
    unknown = ask("none.shop.example", port=PORT, edns=True)
    if way == "https":
        assert unknown.rcode() == dns.rcode.NOERROR and not unknown.answer, "no record is no failure"
    else:
        assert unknown.rcode() == dns.rcode.SERVFAIL, "whoever is on the path can say that"
    if way == "https":
        assert set(service.hosts) == {f"{CERTIFICATES[provider]}:{service.port}"}
    else:
        assert "shop" not in " ".join(service.targets), "the name is nowhere on the wire"


@pytest.mark.parametrize("provider", ["alibaba", "volcengine"])
def test_as_many_names_as_the_provider_takes(account, shop, provider):
    service = account(provider)
    shop(service, timeout=20000)
    ask("www.shop.example", port=PORT)
    service.hold()
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        replies = [pool.submit(ask, f"n{number}.shop.example", port=PORT) for number in range(40)]
        time.sleep(0.5)
        service.release()
        assert [addresses(reply.result()) for reply in replies] == [[f"203.0.113.{number}"] for number in range(40)]
    assert max(len(request.names) for request in service.requests) <= NAMES[provider]
    assert set(service.names) == {f"n{number}.shop.example" for number in range(40)} | {"www.shop.example"}
    assert total(metrics(), "httpdnsd_group_names_total", group="shop") == len(service.names), "as the service bills them"


@pytest.mark.parametrize(("provider", "way", "skew"), [*((provider, way, 3600) for provider, way in WAYS), ("baidu", "https", -3600)])
def test_one_request_at_most_fails_by_the_clock(account, shop, provider, way, skew):
    """A wrong clock makes one request fail, which is repeated at once, so no client notices."""
    service = account(provider, way, skew=skew)
    shop(service)
    assert answer("www.shop.example") == ["203.0.113.10", "203.0.113.20"]
    assert [addresses(reply) for reply in at_once(20)] == [[f"203.0.113.{number}"] for number in range(20)]
    # By a slow clock, a request is valid for longer, so none fails.
    assert len(service.refused) == (1 if skew > 0 else 0), service.refused


@pytest.mark.parametrize("encryption", ["aes", "https"])
def test_the_clock_of_requests_that_expire_at_tencent(daemon, service, authority, encryption):
    late = service(encryption, ZONE, expiring=True, skew=3600)
    whole = {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "tls": {"caFile": str(authority.file)},
             "httpdns": late.settings() | {"authExpirySeconds": 60, "httpOnly": True}, "fallback": {"hosts": ""}}
    daemon(whole=whole, port=PORT)
    assert [addresses(reply) for reply in at_once(10)] == [[f"203.0.113.{number}"] for number in range(10)]


@pytest.mark.parametrize("provider", SIGNED)
def test_a_wrong_secret_is_said_once_and_the_service_is_left_alone(account, shop, provider):
    service = account(provider)
    other = "ffeeddccbbaa99887766554433221100"
    running = shop(service, dnsKey=other)
    for number in range(5):
        assert ask(f"n{number}.shop.example", port=PORT).rcode() == dns.rcode.SERVFAIL
    assert len(service.refused) <= 2, service.refused
    said = running.log_lines("fails: the service refused")
    assert len(said) == 1 and "dnsKey" in said[0]
    assert other not in running.log() and SECRETS[provider] not in running.log()


OTHER = "ffeeddccbbaa99887766554433221100"
WRONG = [*((provider, "https", {"dnsKey": OTHER}, "is SECTION.dnsKey right?") for provider in SIGNED),
         *((provider, "https", {"dnsId": 654321}, "is SECTION.dnsId right?") for provider in ("alibaba-v1", "baidu", "volcengine")),
         ("alibaba", "aes", {"dnsKey": OTHER}, "is SECTION.dnsKey right?"),
         ("alibaba", "aes", {"aesKey": OTHER}, "are SECTION.aesKey and SECTION.provider right?"),
         ("tencent", "https", {"token": "999000999"}, "is SECTION.token right?"),
         ("tencent", "aes", {"dnsKey": "fedcba9876543210"}, "are SECTION.dnsId and SECTION.dnsKey right?"),
         ("tencent", "des", {"dnsKey": "76543210"}, "are SECTION.dnsId and SECTION.dnsKey right?"),
         ("tencent", "aes", {"dnsId": 7}, "are SECTION.dnsId and SECTION.dnsKey right?")]


@pytest.mark.parametrize("section", ["httpdns", "upstreams.shop"])
@pytest.mark.parametrize(("provider", "way", "wrong", "question"), WRONG)
def test_which_key_is_wrong_is_said(daemon, binary, account, service, authority, tmp_path, section, provider, way, wrong,
                                    question):
    """The log, `status`, `probe` and the client's EDE name the wrong key with its section, and never a secret."""
    chosen = service(way, ZONE) if provider == "tencent" else account(provider, way)
    keys = {"provider": provider} | chosen.settings() | wrong
    secrets = [str(value) for key in ("token", "dnsKey", "aesKey") for value in (keys.get(key), chosen.settings().get(key)) if value]
    file = tmp_path / "secret"
    is_file = section != "httpdns" and not wrong.keys() & {"dnsId"}
    if is_file:  # then the message names the key of the file
        [(key, value)] = wrong.items()
        file.write_text(value)
        del keys[key]
        keys |= {f"{key}File": str(file)}
        question = question.replace(f".{key}", f".{key}File")
    own = {} if section == "httpdns" else {"domains": ["shop.example"], "caFile": str(authority.file)}
    socket = str(tmp_path / "control.sock")
    whole = {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "control": {"socket": socket}, "tls": {"caFile": str(authority.file)},
             "fallback": {"servers": ["127.0.0.99"], "hosts": "", "timeout": 300}, section: keys | own}
    if section == "httpdns":
        whole["httpdns"]["httpOnly"] = True
    running = daemon(whole=whole, port=PORT)
    reply = ask("n1.shop.example", port=PORT, edns=True)
    shown = [processes.run(binary, *words, "-c", str(running.directory / "httpdnsd.toml"), variables={"HTTPDNSD_CONTROL_SOCKET": socket})
             for words in (["status"], ["probe", "--group", section.removeprefix("upstreams.")])]
    question = question.replace("SECTION", section)
    texts = [running.log(), reasons(reply), *(one.stdout + one.stderr for one in shown)]
    for text in texts:
        assert question in text and not any(secret in text for secret in secrets), (question, text)
    chosen.violations.clear()  # violations that another key causes


@pytest.mark.parametrize(("provider", "status", "code", "word"), [
    ("alibaba", 403, "InvalidAccount", "dnsId"), ("baidu", 403, "InvalidDuration", "authExpirySeconds"),
    ("volcengine", 405, "MethodNotAllowed", "provider"), ("alibaba-v1", 403, "SignatureExpired", "clock")])
def test_what_only_the_operator_can_mend(account, shop, provider, status, code, word):
    """An error that only operators can correct is logged once with the key's name; the service is paused. The clock is fine."""
    service = account(provider)
    service.refusal = Refused(status, code)
    running = shop(service)
    for number in range(4):
        assert ask(f"n{number}.shop.example", port=PORT).rcode() == dns.rcode.SERVFAIL
    assert len(service.requests) == 1
    said = running.log_lines("fails: the service refused")
    assert len(said) == 1 and word in said[0] and code in said[0]


@pytest.mark.parametrize(("provider", "status", "code"), [
    ("alibaba", 403, "ServiceLevelDeny"), ("baidu", 500, "InternalError"), ("volcengine", 429, "")])
def test_what_another_server_may_answer(account, shop, provider, status, code):
    first, second = account(provider), account(provider, address="127.0.0.4")
    first.refusal = Refused(status, code)
    shop(first, dnsIp=[first.endpoint, second.endpoint])
    replies = at_once(5)
    assert [addresses(reply) for reply in replies] == [[f"203.0.113.{number}"] for number in range(5)]
    assert set(first.names) <= set(second.names)
    if NAMES[provider] > 1:
        # Names that came after the first server's failure went to the second alone.
        again = [request for request in second.requests if set(request.names) & set(first.names)]
        assert len(again) <= len(first.requests) + (5 if status == 429 else 0), "not one by one"


def test_too_many_names_are_asked_one_by_one(account, shop):
    service = account("alibaba")
    service.refusal = lambda request: Refused(400, "TooManyHosts") if len(request.names) > 1 else None
    running = shop(service, timeout=20000)
    ask("www.shop.example", port=PORT)
    service.hold()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = [pool.submit(ask, f"n{number}.shop.example", port=PORT) for number in range(8)]
        eventually(lambda: service.refused or len(service.requests) > 2, "names are asked together")
        service.release()
        assert [addresses(reply.result()) for reply in replies] == [[f"203.0.113.{number}"] for number in range(8)]
    if service.refused:
        assert running.log_lines("give a smaller upstreams.shop.batch")


def test_a_name_that_is_refused_costs_the_others_nothing(account, shop):
    service = account("alibaba")
    service.refusal = lambda request: Refused(400, "InvalidHost") if "n3.shop.example" in request.names else None
    running = shop(service)
    ask("www.shop.example", port=PORT)
    replies = at_once(5)
    for number, reply in enumerate(replies):
        assert addresses(reply) == ([] if number == 3 else [f"203.0.113.{number}"])
    if any(len(request.names) > 1 and "n3.shop.example" in request.names for request in service.requests):
        assert running.log_lines("domains registered")


def test_names_that_are_refused_leave_the_account_in_use(account, shop, scripted_resolver):
    """Refused names have no record: the account still answers its own, and the plain resolver does not see those."""
    service, local = account("alibaba"), scripted_resolver(answer_locally)
    service.refusal = lambda request: Refused(400, "InvalidHost") if request.names[0].startswith("bad") else None
    shop(service, {"fallback": {"servers": [local.endpoint], "hosts": ""}}, thenTry=["fallback"])
    for number in range(4):
        assert answer(f"bad{number}.shop.example") == ["192.0.2.1"], "the plain resolver's"
    assert answer("n1.shop.example") == ["203.0.113.1"]
    assert not any(b"\2n1" in asked.message.to_wire() for asked in local.questions)


def test_the_second_account_answers_when_the_first_is_silent(account, shop, authority, scripted_resolver):
    """The second account answers within `hedgeAfter` and its own time; the local resolver, the last group, is not asked."""
    first, second = account("volcengine"), account("baidu", address="127.0.0.4")
    local = scripted_resolver(answer_locally)
    first.hold()
    others = {"upstreams.second": second.settings() | {"caFile": str(authority.file)},
              "fallback": {"servers": [local.endpoint], "hosts": "", "hedgeAfter": 400}}
    shop(first, others, thenTry=["second", "fallback"])
    began = time.monotonic()
    assert answer("www.shop.example") == ["203.0.113.10", "203.0.113.20"]
    assert 0.35 < time.monotonic() - began and waited_since(began) < 2.8, "before the first one's time is over"
    first.stop()
    began = time.monotonic()
    assert answer("n1.shop.example") == ["203.0.113.1"]
    assert waited_since(began) < 2.8
    assert second.names[-1] == "n1.shop.example"
    assert local.questions == []
    second.stop()
    assert ask("n2.shop.example", port=PORT).answer and local.questions, "the resolver would have been asked"


def test_certificates_have_the_providers_name_or_address(account, shop, authority):
    """At Alibaba, a certificate for an address of the provider is accepted as well as one for its name."""
    good = account("alibaba", tls=authority.server(addresses=["203.107.1.1"]))
    shop(good)
    assert answer("www.shop.example") == ["203.0.113.10", "203.0.113.20"]


@pytest.mark.parametrize("provider", SIGNED)
def test_a_certificate_for_the_address_dialled_is_refused(account, shop, authority, provider):
    service = account(provider, tls=authority.server(addresses=["127.0.0.3"]))
    running = shop(service)
    assert ask("www.shop.example", port=PORT).rcode() == dns.rcode.SERVFAIL
    assert not service.requests
    eventually(lambda: running.log_lines(CERTIFICATES[provider]), "it is said which name is missing")


@pytest.mark.parametrize("provider", SIGNED)
def test_lists_of_addresses(account, shop, provider):
    first = account(provider, listed=["127.0.0.4"])
    second = account(provider, address="127.0.0.4", port=first.port)
    shop(first, confIp=[first.endpoint])
    eventually(lambda: first.list_requests, "the list is asked for")
    eventually(lambda: ask(f"n{time.monotonic_ns() % 60}.shop.example", port=PORT) and second.requests,
               "the servers of the list are asked")


@pytest.mark.parametrize("way", ["https", "aes"])
def test_why_alibaba_has_no_address(account, shop, binary, tmp_path, way):
    """Alibaba's reason goes to clients without an answer and to `explain`; `aes` proves none, so it is not believed there."""
    service = account("alibaba", way)
    operator = Control(binary, shop(service, {"control": {"socket": str(tmp_path / "s")}}))
    operator.socket = tmp_path / "s"
    reply = ask("none.shop.example", port=PORT, edns=True)
    if way == "aes":
        assert reply.rcode() == dns.rcode.SERVFAIL
    else:
        assert (extended_errors(reply), reasons(reply)) == ([0], "shop: NODATA")
    only4 = ask("only4.shop.example", "AAAA", port=PORT, edns=True)
    assert not only4.answer and reasons(only4) == "shop: NODATA"
    assert "it has no record of the name (NODATA), as was found lately" in operator("explain", "none.shop.example")
    shown = json.loads(operator("explain", "none.shop.example", "--json"))
    assert [group["reason"] for group in shown["groups"]] == ["NODATA"]
    asked = json.loads(operator("explain", "only4.shop.example", "AAAA", "--json", "--ask"))
    said = [server["says"] for group in asked["groups"] for server in group["servers"]]
    assert (said[0]["result"], said[0]["reason"]) == ("addresses", None), asked
    asked = json.loads(operator("explain", "none.shop.example", "--json", "--ask"))
    said = [server["says"] for group in asked["groups"] for server in group["servers"]]
    assert (said[0]["result"], said[0]["reason"]) == ("noRecord", "NODATA"), asked


@pytest.mark.parametrize(("timeout", "told"), [(400, 1000), (2000, 2000), (60000, 5000)])
def test_tencent_is_told_when_to_give_up(daemon, service, timeout, told):
    asked = service("https", every_name)
    daemon(asked, {"httpdns": {"timeout": timeout}})
    assert addresses(ask("www.example.com"))
    assert {request.parameters["timeout"] for request in asked.requests} == {f"{told}"}


@pytest.mark.parametrize(("provider", "way"), WAYS)
def test_the_client_subnet(account, shop, provider, way):
    service = account(provider, way)
    shop(service, routeIp="198.51.100.7")
    assert answer("www.shop.example") == ["203.0.113.10", "203.0.113.20"]
    if way == "https":
        assert "198.51.100.7" in service.requests[0].parameters.values()
    else:
        assert "198.51.100.7" not in service.targets[0]


def test_a_query_for_several_names_of_which_one_is_refused(command, account, authority):
    service = account("alibaba")
    service.refusal = lambda request: Refused(400, "InvalidHost") if "bad.shop.example" in request.names else None
    settings = {"upstreams.shop": service.settings() | {"domains": ["shop.example"], "caFile": str(authority.file)}}
    shown = command("query", "n1.shop.example", "bad.shop.example", "--group", "shop", "--format", "pair", whole=settings)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout == "n1.shop.example 203.0.113.1 2001:db8:1::1\nbad.shop.example 0 0\n"


@pytest.mark.parametrize(("provider", "way"), WAYS)
def test_commands(command, account, authority, provider, way):
    service = account(provider, way)
    settings = {"upstreams.shop": service.settings() | {"domains": ["shop.example"], "caFile": str(authority.file)}}
    shown = command("query", "www.shop.example", "none.shop.example", "--group", "shop", "--format", "pair", "--first",
                    whole=settings)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout == "www.shop.example 203.0.113.20 2001:db8:1::20\nnone.shop.example 0 0\n"
    probed = command("probe", "--group", "shop", whole=settings)
    assert probed.returncode == 0 and f"shop 127.0.0.3:{service.port} answers" in probed.stdout, probed.stdout
    checked = command("check", "--all", whole=settings)
    for shown in (shown, probed, checked):
        assert SECRETS[provider] not in shown.stdout + shown.stderr
