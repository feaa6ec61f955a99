"""`dnsKey`, `token` and passwords: wherever the daemon writes or shows anything, they are not there."""

import base64
import pathlib
import urllib.parse

import pytest

import daemon as processes
from dns_client import ask
from httpdns_service import Fault, every_name
from resolvers import answer_locally
from test_report import Collector
from waiting import eventually

KEYS = {"aes": "q7Vx!z-Kp2#Lm9&W", "des": "z9!Kw#4q", "https": ""}
TOKEN = "918273645"
LONG = ".".join(["l" * 60] * 3)
FAULTS = [Fault("status", 401), Fault("status", 429), Fault("status", 500), Fault("garbage"), Fault("close-mid-body"),
          Fault("silence"), Fault("reset"), Fault("text", "<html>")]


def spellings(secret):
    """As it is, and as somebody might write it who did not want to write it."""
    raw = secret.encode()
    return {raw, raw.hex().encode(), raw.hex().upper().encode(), base64.b64encode(raw).rstrip(b"="),
            urllib.parse.quote(secret).encode(), str(list(raw))[1:-1].encode()}


@pytest.mark.parametrize(("encryption", "report_to"), [("aes", "url"), ("des", "log"), ("https", "log")])
def test_no_secret_is_anywhere(daemon, service, scripted_resolver, tmp_path, binary, authority, encryption,
                                  report_to):
    """Everything is logged, everything is reported, and everything goes wrong at least once."""
    local, taker = scripted_resolver(answer_locally), Collector()
    chosen = service(encryption, every_name, key=KEYS[encryption] or None, token=TOKEN)
    secrets = [TOKEN] if encryption == "https" else [KEYS[encryption]]
    (tmp_path / "secret").write_text(secrets[0] + "\n")
    settings = chosen.settings()
    settings["tokenFile" if encryption == "https" else "dnsKeyFile"] = str(tmp_path / "secret")
    whole = {
        "listen": {"addresses": ["127.0.0.1:53"]}, "log": {"level": "debug"},
        "httpdns": {key: value for key, value in settings.items() if key not in ("token", "dnsKey")} | {
            "debug": True, "enableReport": True, "timeout": 200, "appId": "secrets",
            "reportUrl": taker.url if report_to == "url" else ""},
        "fallback": {"servers": [local.endpoint]}, "cache": {"file": str(tmp_path / "answers")}}
    if encryption == "https":
        whole["tls"] = {"caFile": str(authority.file)}
    running = daemon(None, whole=whole)
    ask("good.example.com")
    chosen.fault = Fault("status", 500)
    for number in range(150 if report_to == "url" else 0):  # more than wait for company
        ask(f"{number}.{LONG}")
    for number, fault in enumerate(FAULTS):
        chosen.fault = fault
        ask(f"bad{number}.example.com")
    chosen.fault = None
    chosen.stop()
    ask("refused.example.com")
    assert "good.example.com" in running.log(), "it did log what it was told to"
    seen = {"the command line": pathlib.Path(f"/proc/{running.pid}/cmdline").read_bytes(),
            "the environment": pathlib.Path(f"/proc/{running.pid}/environ").read_bytes()}
    if report_to == "url":
        eventually(lambda: taker.bodies, "something is reported", 30)
    running.stop()
    configuration = str(running.directory / "httpdnsd.toml")
    query = ["query", "www.example.com"]
    for command in (["check"], ["probe"], query, [*query, "--format", "json"]):
        ended = processes.run(binary, *command, "-c", configuration, timeout=30)
        seen[" ".join(command)] = (ended.stdout + ended.stderr).encode()
    taker.stop()
    seen |= {"the log": running.log().encode(), "reports": "".join(taker.bodies + taker.heads).encode(),
             "the cache file": (tmp_path / "answers").read_bytes()}
    assert seen["check"] and seen["probe"] and seen["the cache file"]
    for place, data in seen.items():
        for secret in secrets:
            for spelling in spellings(secret):
                assert spelling not in data, f"{spelling} is in {place}"


def test_a_secret_on_the_command_line_is_not_possible(binary):
    """There is no option that takes one."""
    for command in ("run", "check", "query", "probe", "demo"):
        shown = processes.run(binary, command, "--help").stdout.lower()
        assert "key" not in shown and "token" not in shown and "password" not in shown, shown
