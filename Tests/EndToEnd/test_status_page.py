"""The status page, read by a parser and, where there is one, by a browser."""

import json
import os
import pathlib
import re
import socket
import time

import html5lib
import pytest

import chromium
from control import Control, fetch
from dns_client import addresses, ask
from httpdns_service import Fault
from resolvers import reply_to

CONTROL = {"control": {"metrics": "127.0.0.1:9153"}}
# A page that stands still: on a busy machine the browser takes longer than the page needs to reload itself.
URL = "http://127.0.0.1:9153/?still"
LINKS = ("/", "/?still", "/metrics", "/readyz", "/healthz")
# The folder for pictures that a person can look at: STATUS_PAGE_PICTURES=/tmp/pictures
PICTURES = os.environ.get("STATUS_PAGE_PICTURES")


def page():
    status, head, text = fetch("/")
    assert status == 200 and head["Content-Type"] == "text/html; charset=utf-8"
    return head, text


def heading(text):
    return re.search(r"<h1>(.*?)</h1>", text).group(1)


def healthy(daemon, service):
    daemon(service("https"), CONTROL)
    for i in range(40):
        for _ in range(1 + 400 // (i + 1) ** 2):
            ask(f"n{i}.example.com")
    ask("missing.example.com")


def degraded(daemon, service):
    """The first of two servers fails with an HTTP status, so it is given up and the second answers."""
    first, second = service("aes"), service("aes")
    first.fault = Fault("status", 503)
    daemon(first, CONTROL | {"httpdns": {"dnsIp": [f"127.0.0.3:{first.port}", f"127.0.0.3:{second.port}"],
                                         "retryTimesBeforeSwitchServer": 2, "batch": 1}})
    for i in range(12):
        ask(f"n{i}.example.com")
        ask(f"n{i}.example.com")


def down(daemon, service):
    chosen = service("aes")
    daemon(chosen, CONTROL | {"httpdns": {"httpOnly": True}})
    ask("n1.example.com")
    chosen.stop()
    for i in range(5):
        ask(f"n{i}.example.com")


CASES = {"healthy": (healthy, "Names resolve through HTTPDNS."),
         "degraded": (degraded, "The first HTTPDNS server is given up. The next answers."),
         "down": (down, "Names do not resolve.")}


@pytest.mark.parametrize("case", CASES)
def test_it_is_a_document_of_its_own(daemon, service, case):
    prepare, verdict = CASES[case]
    prepare(daemon, service)
    head, text = page()
    assert heading(text) == verdict
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    document = parser.parse(text)
    assert document.find("body").get("class") == case
    for element in document.iter():
        if not isinstance(element.tag, str):
            continue
        assert element.tag not in ("script", "iframe", "object", "embed", "img", "form")
        for name, value in element.attrib.items():
            assert not name.startswith("on") and name != "style", (element.tag, name)
            if name in ("src", "href", "action", "data", "srcset"):
                assert value.startswith("data:") or element.tag == "a" and value in LINKS, value
    assert "url(" not in text and "@import" not in text
    nonce = re.search(r'<style nonce="(\w+)">', text).group(1)
    policy = head["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ") and f"style-src 'nonce-{nonce}'" in policy
    assert "unsafe" not in policy and nonce not in page()[1]
    assert "example" not in text
    for picture in document.iter("{http://www.w3.org/2000/svg}svg"):
        assert picture.get("role") == "img" and picture.get("aria-label")
    assert len(list(document.iter("{http://www.w3.org/2000/svg}svg"))) + text.count("<svg") > 0


def test_it_says_who_failed_and_why(daemon, service):
    degraded(daemon, service)
    _, text = page()
    assert "the service failed (HTTP status 503)" in text and ">fails</p>" in text and ", in use</p>" in text


def test_it_says_what_went_elsewhere(daemon, service):
    chosen = service("aes")
    daemon(chosen, CONTROL)
    assert "No question for HTTPDNS had to go to fallback." in page()[1]
    assert heading(page()[1]) == "Ready to resolve names through HTTPDNS."
    ask("missing.example.com")
    assert "HTTPDNS has no record of the name" in page()[1]
    chosen.stop()
    ask("n1.example.com")
    assert heading(page()[1]) == "HTTPDNS fails. Names come from fallback."


def test_it_says_which_machine_it_is_and_when(daemon, service):
    """The page names its machine and its time, and reloads itself unless it is asked to stand still."""
    daemon(service("https"), CONTROL)
    _, text = page()
    name = f"httpdnsd on {socket.gethostname()}"
    assert f" {name}</title>" in text and f'<p class="name">{name} <span>as of 20' in text
    assert '<meta http-equiv="refresh" content="10">' in text and '<a href="/?still">stand still</a>' in text
    for path in LINKS:
        assert fetch(path)[0] == 200, path
    still = fetch("/?still")[2]
    assert "http-equiv" not in still and '<a href="/">every ten seconds</a>' in still


def looked_at(case, words, look=lambda browser, shown: None):
    """The browser has no complaint, the page asks no other server, and it fits a telephone."""
    browser = chromium.Chromium()
    try:
        for width in (375, 768, 1280):
            for dark in (False, True):
                shown = browser.open(URL, width, dark=dark)
                assert shown.complaints == []
                assert [one for one in shown.requests if not one.startswith("data:")] == [URL]
                assert shown.width <= width
                assert words in shown.text
                if PICTURES:
                    name = f"{case}-{width}-{'dark' if dark else 'light'}.png"
                    (pathlib.Path(PICTURES) / name).write_bytes(browser.picture())
                look(browser, shown)
    finally:
        browser.close()


def test_a_browser_would_say_so():
    """A bad page has every defect that `looked_at` checks for."""
    browser = chromium.Chromium()
    try:
        spoiled = ("data:text/html,<p style='width:2000px'>x</p><img src='http://127.0.0.1:9/picture'>"
                   "<script>console.error('a complaint')</script>")
        shown = browser.open(spoiled, 375)
        assert "http://127.0.0.1:9/picture" in shown.requests
        assert any("a complaint" in one for one in shown.complaints)
        assert shown.width > 375
    finally:
        browser.close()


# For each text in a list of servers, the number of its lines.
LINES = """JSON.stringify([...document.querySelectorAll('.server, .way, .state, .group h3, .group .facts')].map(one => {
    const lines = document.createRange(); lines.selectNodeContents(one);
    const edges = new Set([...lines.getClientRects()].map(box => Math.round(box.top)));
    return [one.textContent, edges.size]}))"""


def test_many_groups_with_long_addresses_keep_their_shape(daemon, service):
    """Healthy groups are folded; when all are unfolded, no text is broken into lines of a few letters."""
    groups = {f"upstreams.g{number}": {
        "servers": [f"https://{'a1b2c3d4e5' * 5}.gateway{number:02}.example.net/dns-query/{'x' * 8}#127.0.0.9"],
        "domains": [f"g{number}.example"]} for number in range(20)}
    daemon(service("https"), CONTROL | groups)
    assert ask("www.g7.example").rcode() == 2

    def look(browser, shown):
        assert browser.value("document.querySelectorAll('details.group[open] h3')[0].innerText").startswith("g7 ")
        assert browser.value("document.querySelectorAll('details.group[open]').length") == 1
        height = browser.value("document.documentElement.scrollHeight")
        assert height < (7000 if shown.viewport < 600 else 4500), height
        browser.value("document.querySelectorAll('details').forEach(one => { one.open = true }); 0")
        assert browser.value("document.documentElement.scrollWidth") <= shown.viewport
        for text, lines in json.loads(browser.value(LINES)):
            assert lines <= 2 + len(text) / 15, (text, lines)
    looked_at("groups", "https://a1b2c3d4e5", look)


@pytest.mark.parametrize("case", CASES)
def test_a_browser_likes_it(daemon, service, case):
    CASES[case][0](daemon, service)
    looked_at(case, CASES[case][1])


def test_the_last_hour(daemon, binary, tmp_path, service, clocks, scripted_resolver, encrypted_resolver, authority):
    """Forty minutes with an account that is away for two of them, a plain resolver elsewhere and an encrypted one."""
    account = service("https")
    plain = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.1"), address="10.53.53.53")
    office = encrypted_resolver("tls", tls=authority.server(addresses=["127.0.0.6"], until=5))
    running = daemon(account, {
        "control": CONTROL["control"] | {"socket": str(tmp_path / "socket")}, "httpdns": {"batch": 1},
        "fallback": {"servers": [plain.endpoint]},
        "upstreams.office": {"servers": [office.url], "domains": ["corp.example"], "caFile": str(authority.file)}},
        variables=clocks.variables)
    status = Control(binary, running)
    status.socket = tmp_path / "socket"
    before = status.json()["questions"]["asked"]  # questions of the fixture, which checks that the daemon answers
    asked, failed, begun = [], {20, 21}, time.monotonic()
    for minute in range(40):
        if minute in (20, 22):
            (account.stop if minute in failed else account.start)()
        names = [f"n{minute}.example.com", f"n{minute}.example.com"]
        names += [f"m{minute}x{number}.corp.example" for number in range(minute % 7)]
        for name in names:
            assert addresses(ask(name))
        asked.append(len(names) + (before if minute == 0 else 0))
        # The figures are read once a minute, since the kernel's own timers do not follow this clock.
        ahead = 60 * (minute + 1) - int(time.monotonic() - begun)  # the daemon's clock goes on meanwhile
        clocks.set(boot=ahead, day=ahead)
        shown = status.json()
        assert shown["questions"]["lastMinutes"] == asked
    # Questions that the account could not answer were asked in the clear; the rest left encrypted, or was in the cache.
    hour = shown["questions"]["lastHour"]
    assert hour == {"questions": sum(asked), "encrypted": sum(asked) - before - 40 - 2, "loopback": 0, "clear": 2,
                    "clearShare": 2 / sum(asked)}
    assert len(plain.questions) == 2
    groups = {group["name"]: group for group in shown["groups"]}
    assert {name: group["way"] for name, group in groups.items()} == {
        "httpdns": "encrypted", "fallback": "in the clear", "private": "in the clear", "office": "encrypted"}
    minutes = groups["httpdns"]["servers"][0]["lastHour"]
    assert {place for place, count in enumerate(minutes["failures"]) if count} == failed
    assert {place for place, trip in enumerate(minutes["roundTripMilliseconds"]) if trip is None} == failed | {40}
    assert groups["httpdns"]["counters"]["namesLastHour"] == groups["httpdns"]["counters"]["names"]
    # The certificate expires soon, so `status` and the page warn.
    clocks.set(boot=ahead + 1, day=ahead + 1)
    text = status("status")
    assert "; certificate expires in 4 d " in text and " left in the clear, " in text and "; billed for at most " in text, text
    looked_at("hour", "certificate expires in 4 d ")
