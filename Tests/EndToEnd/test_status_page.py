"""The status page, read by a parser and, where there is one, by a browser."""

import os
import pathlib
import re

import html5lib
import pytest

import chromium
from control import fetch
from dns_client import ask
from httpdns_service import Fault

CONTROL = {"control": {"metrics": "127.0.0.1:9153"}}
URL = "http://127.0.0.1:9153/"
# Where to leave pictures, for who wants to look: STATUS_PAGE_PICTURES=/tmp/pictures
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
    """The first server of two fails with a word that is none of ours, then all do."""
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
                assert value.startswith("data:"), value
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
    assert "No question for HTTPDNS had to go to a local resolver." in page()[1]
    assert heading(page()[1]) == "Ready to resolve names through HTTPDNS."
    ask("missing.example.com")
    assert "HTTPDNS has no record of the name" in page()[1]
    chosen.stop()
    ask("n1.example.com")
    assert heading(page()[1]) == "HTTPDNS fails. Names come from the local resolver."


@pytest.mark.parametrize("case", CASES)
def test_a_browser_likes_it(daemon, service, case):
    """No word of complaint, nothing asked of anybody else, and it fits a telephone."""
    CASES[case][0](daemon, service)
    browser = chromium.Chromium()
    try:
        for width in (375, 1200):
            for dark in (False, True):
                shown = browser.open(URL, width, dark=dark)
                assert shown.complaints == []
                assert [one for one in shown.requests if not one.startswith("data:")] == [URL]
                assert shown.width <= width
                assert CASES[case][1] in shown.text
                if PICTURES:
                    name = f"{case}-{width}-{'dark' if dark else 'light'}.png"
                    (pathlib.Path(PICTURES) / name).write_bytes(shown.picture)
    finally:
        browser.close()
