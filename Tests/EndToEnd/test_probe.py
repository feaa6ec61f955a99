"""`httpdnsd probe`, for people who check a setup."""

import re
import time

import dns.rcode
import pytest

import daemon as processes
from httpdns_service import Fault, every_name
from relay import Relay
from resolvers import answer_locally, reply_to
from store import PASSWORD, Store

UNREACHABLE = 69
BAD_CERTIFICATES = {"another name": ({"addresses": ["127.0.0.99"]}, "name"), "expired": (
    {"addresses": ["127.0.0.3"], "since": -20, "until": -1}, "expired")}


@pytest.mark.parametrize("encryption", ["aes", "des", "https"])
def test_a_service_that_works(command, service, encryption):
    """Each step is reported: the server, its certificate, a lookup with its round trip, the local resolver."""
    chosen = service(encryption, every_name)
    shown = command("probe", settings=chosen.settings())
    assert shown.returncode == 0, shown
    text = shown.stdout.lower()
    for words in (re.escape(chosen.endpoint), r"\d ?ms\b", re.escape(command.local.address)):
        assert re.search(words, text), shown.stdout
    assert ("certificate" in text) == (encryption == "https")
    assert chosen.requests and command.local.questions, "both were asked"
    assert len(shown.stdout.splitlines()) >= 3 and not shown.stderr


def test_a_round_trip_that_is_long(command, service):
    """The reported round trip is a measured one."""
    chosen = service("aes", every_name)
    between = Relay(chosen)
    between.delay = 0.1
    try:
        begun = time.monotonic()
        shown = command("probe", settings=chosen.settings() | {"dnsIp": [between.endpoint]})
        took = time.monotonic() - begun
    finally:
        between.stop()
    assert shown.returncode == 0, shown
    assert any(180 <= float(found) <= 1000 * took for found in re.findall(r"(\d+(?:\.\d+)?) ?ms\b", shown.stdout)), shown.stdout


@pytest.mark.parametrize("trouble", ["refused", "silent", "frozen", "status"])
def test_a_service_that_cannot_be_reached(command, service, trouble):
    """The exit code is 69, and the failed step is named; the local resolver is checked as well."""
    chosen = service("aes", every_name)
    settings = chosen.settings() | ({"timeout": 500} if trouble in ("silent", "frozen") else {})
    between = None
    if trouble == "refused":
        chosen.stop()
    elif trouble == "frozen":
        between = Relay(chosen)
        between.freeze()
        settings["dnsIp"] = [between.endpoint]
    else:
        chosen.fault = Fault("silence") if trouble == "silent" else Fault("status", 503)
    shown = command("probe", settings=settings)
    if between:
        between.stop()
    assert shown.returncode == UNREACHABLE, shown
    assert settings["dnsIp"][0] in shown.stdout + shown.stderr
    assert command.local.questions and command.local.address in shown.stdout
    if trouble == "status":
        assert "503" in shown.stdout + shown.stderr


@pytest.mark.parametrize("case", BAD_CERTIFICATES)
def test_a_certificate_that_is_wrong(command, service, authority, case):
    options, word = BAD_CERTIFICATES[case]
    chosen = service("https", every_name, tls=authority.server(**options))
    shown = command("probe", settings=chosen.settings())
    assert shown.returncode == UNREACHABLE and not chosen.requests, shown
    lines = (shown.stdout + shown.stderr).lower().splitlines()
    assert any("certificate" in line and word in line for line in lines), shown


def test_an_account_that_is_refused(command, service):
    chosen = service("aes", every_name)
    shown = command("probe", settings=chosen.settings() | {"dnsId": 54321})
    assert shown.returncode != 0 and "401" in shown.stdout + shown.stderr, shown


def test_a_key_that_is_wrong(command, service):
    """A reply that cannot be decrypted is reported as a wrong key, and the exit code is 69."""
    chosen = service("aes", every_name)
    chosen.fault = Fault("garbage")
    shown = command("probe", settings=chosen.settings())
    assert shown.returncode == UNREACHABLE, shown
    assert re.search("key|decrypt", shown.stdout + shown.stderr, re.IGNORECASE), shown


def test_one_server_of_two_works(command, service):
    """HTTPDNS is usable, and both servers are reported."""
    broken, good = service("aes", every_name), service("aes", every_name)
    broken.stop()
    shown = command("probe", settings=good.settings() | {"dnsIp": [broken.endpoint, good.endpoint]})
    assert shown.returncode == 0, shown
    assert broken.endpoint in shown.stdout and good.endpoint in shown.stdout


def test_a_local_resolver_that_is_silent(command, service):
    """HTTPDNS is usable, and the silent local resolver is reported."""
    shown = command("probe", settings=service("aes", every_name).settings(), local_resolver="127.0.0.9")
    assert "127.0.0.9" in shown.stdout, shown
    rest = shown.stdout.split("127.0.0.9")[1].lower()
    assert re.search("no answer|refused|cannot|fail|unreach|does not", rest), shown


@pytest.mark.parametrize(("resolver", "code"), [("127.0.0.4", 0), ("127.0.0.9", UNREACHABLE)])
def test_probe_without_a_service(command, binary, tmp_path, resolver, code):
    """Without HTTPDNS, the result depends on the local resolver."""
    file = tmp_path / "none.toml"
    file.write_text(processes.toml({"fallback": {"servers": [resolver], "timeout": 2000}}))
    assert command.local.address == "127.0.0.4"
    shown = processes.run(binary, "probe", "-c", str(file))
    assert shown.returncode == code and resolver in shown.stdout, shown


@pytest.mark.parametrize("code", ["REFUSED", "SERVFAIL"])
@pytest.mark.parametrize("group", [[], ["--group", "fallback"], ["--group", "office"]], ids=["usual", "fallback", "office"])
def test_a_resolver_that_refuses(command, scripted_resolver, code, group):
    """Its reply is no answer, unless it is about a name that no route leads to it."""
    refusing = scripted_resolver(lambda asked: reply_to(asked.message, rcode=dns.rcode.from_text(code)), address="127.0.0.5")
    shown = command("probe", *group, whole={
        "fallback": {"servers": [refusing.endpoint]}, "private": {"servers": [refusing.endpoint]},
        "upstreams.office": {"servers": [refusing.endpoint], "domains": ["corp.example"]}})
    assert shown.returncode == UNREACHABLE and f"{code} for" in shown.stdout and "does not work" in shown.stderr, shown
    assert command("probe", "--group", "private", whole={"private": {"servers": [refusing.endpoint]}}).returncode == 0


@pytest.mark.parametrize("key", ["domains", "domainsFile"])
@pytest.mark.parametrize(("works", "broken"), [("main", "fallback"), ("fallback", "main")])
def test_probe_with_a_group_for_all_names(command, tmp_path, works, broken, key):
    """Without HTTPDNS, the result depends on the group that takes every name, and on no fallback that no name goes to."""
    address = {works: "127.0.0.4", broken: "127.0.0.9"}
    assert command.local.address == address[works]
    every = tmp_path / "every.list"
    every.write_text(".\n")
    names = {"domains": ["."], "domainsFile": str(every)}[key]
    settings = {"upstreams.main": {"servers": [address["main"]], key: names}, "fallback": {"servers": [address["fallback"]]}}
    shown = command("probe", whole=settings)
    assert shown.returncode == (0 if works == "main" else UNREACHABLE), shown
    last = "main works" if works == "main" else "main does not work, so clients would get SERVFAIL"
    assert last in shown.stdout + shown.stderr, shown


@pytest.mark.parametrize("arguments", [["probe"], ["query", "www.ads.example"]], ids=["probe", "query"])
def test_a_group_that_asks_no_server(command, tmp_path, arguments):
    """That is said at the section of the group, and the command ends in order."""
    groups = {"upstreams.one": {"servers": ["192.0.2.1"], "domains": ["one.example"]},
              "upstreams.ads": {"answer": "nxdomain", "domains": ["ads.example"]}}
    for _ in range(5):
        shown = command(*arguments, "--group", "ads", whole=groups)
        assert shown.returncode == 78, shown
        line = (tmp_path / "httpdnsd.toml").read_text().splitlines().index("[upstreams.ads]") + 1
        assert f"httpdnsd.toml:{line}: upstreams.ads: it answers" in shown.stderr, shown


def test_help_of_probe(binary):
    shown = processes.run(binary, "probe", "--help")
    assert shown.returncode == 0 and shown.stdout and not shown.stderr


def test_the_name_to_look_up(command, service):
    """With --name, the account is asked for this name."""
    chosen = service("aes", every_name)
    shown = command("probe", "--name", "www.my.example", settings=chosen.settings())
    assert shown.returncode == 0 and chosen.names == ["www.my.example"] and "of www.my.example" in shown.stdout, shown
    for wrong in ("a..b", "a*b.my.example"):
        assert command("probe", "--name", wrong, settings=chosen.settings()).returncode == 64
    assert chosen.names == ["www.my.example"]


@pytest.mark.parametrize("keys", [{"thenTry": ["other"]}, {"httpOnly": True}], ids=["thenTry", "httpOnly"])
@pytest.mark.parametrize("arguments", [[], ["--name", "secret.shop.example"]], ids=["usual", "named"])
def test_a_fallback_beside_the_route_is_asked_for_no_name_of_the_account(command, service, scripted_resolver, keys, arguments):
    """The groups of `thenTry` are tried for the name, and the first that works is said to answer."""
    other = scripted_resolver(answer_locally, address="127.0.0.5")
    groups = {"httpdns": service("aes", every_name).settings() | keys | {"dnsIp": ["127.0.0.1:9"]},
              "domains": {"intercept": ["secret.shop.example"]},
              "upstreams.other": {"servers": [other.endpoint], "domains": ["other.example"], "thenTry": ["fallback"]}}
    shown = command("probe", *arguments, whole=groups)
    assert shown.returncode == UNREACHABLE and command.local.address in shown.stdout, shown
    assert {asked.name.to_text() for asked in command.local.questions} == {"example.com."}
    assert "httpOnly" not in shown.stdout
    last = "so other would answer its names" if "thenTry" in keys else "so clients would get SERVFAIL"
    assert last in shown.stderr and ("thenTry" in keys) == bool(other.questions), shown


@pytest.mark.parametrize("group", ["fallback", "private", "other"])
def test_a_group_is_asked_for_no_name_of_the_account(command, service, scripted_resolver, group):
    """Not even with --group, if no route leads to it."""
    other = scripted_resolver(answer_locally, address="127.0.0.5")
    asked = command.local if group == "fallback" else other
    command("probe", "--group", group, whole={
        "httpdns": service("aes", every_name).settings() | {"thenTry": ["spare"]},
        "domains": {"intercept": ["secret.shop.example"]}, "private": {"servers": [other.endpoint]},
        "upstreams.spare": {"servers": ["127.0.0.9"]},
        "upstreams.other": {"servers": [other.endpoint], "domains": ["*.other.example"]}})
    assert {question.name.to_text() for question in asked.questions} == {"example.com."}


STORES = {
    "works": ([], None, r"takes and gives answers, after \d+ ms"),
    "needs a password": (["--requirepass", PASSWORD], None, "it asks for a password"),
    "has another password": (["--requirepass", PASSWORD], "another", "it refuses user or password"),
    "has this password": (["--requirepass", PASSWORD], PASSWORD, "takes and gives answers"),
    "is not there": (None, None, "Connection refused"),
    "may not be written": (["--aclfile", "-set"], None, "its access list does not permit it"),
    "may not be read": (["--aclfile", "-get"], None, "its access list does not permit it")}


@pytest.mark.parametrize("what", STORES)
def test_the_store_of_the_shared_cache(command, service, tmp_path, what):
    options, password, words = STORES[what]
    if options and options[0] == "--aclfile":
        (tmp_path / "acl").write_text(f"user default on nopass ~* +@all {options[1]}\n")
        options = ["--aclfile", tmp_path / "acl"]
    shared = Store(tmp_path, *options).start() if options is not None else None
    (tmp_path / "fleet").write_text("0123456789abcdef" * 4)
    settings = {"server": "redis://127.0.0.9", "keyFile": "fleet"}
    if password:
        (tmp_path / "password").write_text(password)
        settings["passwordFile"] = "password"
    try:
        shown = command("probe", whole={"httpdns": service("aes", every_name).settings(), "sharedCache": settings})
    finally:
        if shared:
            shared.kill()
    assert shown.returncode == 0, "names are looked up without it"
    line, = re.findall("^shared cache: (.*)$", shown.stdout, re.MULTILINE)
    assert re.search(words, line), shown.stdout
    assert ("not in use" in line) == ("takes and gives" not in words) and PASSWORD not in shown.stdout
    one_group = command("probe", "--group", "fallback", whole={"sharedCache": settings})
    assert "shared cache" not in one_group.stdout
