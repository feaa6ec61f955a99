"""The page for users of other programs: its configurations do the same as the other program's, and its timer damages no list."""

import http.server
import json
import re
import subprocess
import threading

import pytest

from examples import TOP, blocks, check

TEXT = (TOP / "docs/migrating.md").read_text()
SECTIONS = dict(re.findall(r"^## (.*)\n((?:(?!^## ).*\n)*)", TEXT, re.MULTILINE))
# For each configuration in turn, the group that is asked for a name or answers it.
ROUTES = {
    "dnsmasq": [{"www.example.com": "fallback", "git.corp.example": "corp", "printer.lan": "house", "www.page.example": "page",
                 "x.ads.example": "ads", "malware.example": "ads", "www.shop.example": "alias",
                 "9.1.168.192.in-addr.arpa": "house"}],
    "smartdns": [{"www.example.com": "fallback", "www.bank.example": "cn", "git.corp.example": "office", "ads.example": "ads"}],
    "dnscrypt-proxy": [{"www.example.com": "fallback", "nas.fritz.box": "router", "captive.apple.com": "portal",
                        "www.google.com": "safe", "x.ads.example": "blocked", "good.ads.example": "fallback"}],
    "AdGuard Home and dnsproxy": [
        {"www.example.com": "fallback", "nas.fritz.box": "router", "x.ads.example": "filters", "malware.example": "filters",
         "www.shop.example": "rewrite", "9.1.168.192.in-addr.arpa": "private"},
        {"host.example": "fallback", "www.host.example": "host", "maps.host.example": "fallback"}],
    "unbound and stubby": [{"www.example.com": "fallback", "git.corp.example": "corp", "x.ads.example": "null"},
                           {"www.example.com": "fallback"}],
    "cloudflared and nextdns": [{"www.example.com": "fallback"}, {"www.example.com": "fallback", "git.corp.example": "office"}],
    "systemd-resolved and NetworkManager": [{"www.example.com": "fallback", "git.corp.example": "vpn"},
                                            {"www.example.com": "fallback", "git.corp.example": "corp"}],
    "CoreDNS": [{"www.example.com": "fallback", "db.default.svc.cluster.local": "cluster"}],
    "An SDK in an application": [{"api.shop.example": "httpdns", "www.example.com": "fallback"}],
}


def route(binary, beside, name):
    """The group that takes a name, by the settings that `check` read last."""
    kind = "PTR" if name.endswith(".arpa") else "A"
    done = subprocess.run([binary, "explain", name, kind, "--json", "-c", beside / "httpdnsd.toml"], env={}, capture_output=True,
                          text=True, check=True)
    explained = json.loads(done.stdout)
    if explained["aliases"]:
        return explained["aliases"][0]["group"]
    return explained["groups"][0]["name"] if explained["groups"] else explained["rule"]["group"]


@pytest.mark.parametrize("program", ROUTES)
def test_its_configurations_are_whole_and_ask_whom_the_other_program_asked(binary, beside, program):
    examples = [text for language, text in blocks(SECTIONS[program]) if language == "toml"]
    assert len(examples) == len(ROUTES[program])
    for example, routes in zip(examples, ROUTES[program]):
        done = check(binary, beside, example)
        assert done.returncode == 0, done.stderr
        assert {name: route(binary, beside, name) for name in routes} == routes


def test_each_program_has_a_table_that_also_says_no():
    assert set(ROUTES) == set(SECTIONS) - {"Lists that renew themselves"}
    for program in ROUTES:
        rows = re.findall(r"^\| (.+) \| (.+) \|$", SECTIONS[program], re.MULTILINE)
        assert len(rows) > 10, program
        assert any("*no*" in ours.lower() for _, ours in rows), program


def test_the_house_in_china(binary, beside):
    done = check(binary, beside, (TOP / "config/examples/china.toml").read_text())
    assert done.returncode == 0, done.stderr
    routes = {"www.shop.example": "httpdns", "www.bank.example": "cn", "www.example.com": "fallback", "x.ads.example": "ads",
              "good.ads.example": "fallback", "nas.lan": "private", "printer": "private"}
    assert {name: route(binary, beside, name) for name in routes} == routes


# A list as a server sends it: the octets, and the announced length.
OLD = "".join(f"server=/name{number}.example/114.114.114.114\n" for number in range(1000)).encode()
NEW = OLD.replace(b"name", b"other")
RENEWALS = {
    "whole": (200, NEW, len(NEW), True),
    "cut off in the middle of a transfer": (200, NEW[:len(NEW) - 500], len(NEW), False),
    "cut off within a line, without a length": (200, NEW[:len(NEW) - 7], None, False),
    "cut off after a line, by more than half": (200, b"".join(NEW.splitlines(keepends=True)[:400]), None, False),
    "empty": (200, b"", 0, False),
    "an error": (503, b"<html>busy</html>\n", 18, False),
    "an error page as a list": (200, b"<html>\nbusy\n</html>\n", 20, False),
}


CURL = {"PATH": "/usr/bin:/bin", "no_proxy": "127.0.0.1"}


def listing(language):
    """The first listing of this language in the section on lists."""
    return next(text for of, text in blocks(SECTIONS["Lists that renew themselves"]) if of == language)


def with_server(answer, work):
    """Does work with the URL of a server that has an answer, as in RENEWALS, for each path."""
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, content, length = answer(self.path)
            self.send_response(status)
            if length is not None:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            return work(f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()


def test_a_list_that_fails_stops_no_other(tmp_path):
    unit, program = listing("ini"), tmp_path / "renew"
    program.write_text(listing("sh"))
    program.chmod(0o755)
    for name in ("china.txt", "ads.txt"):
        (tmp_path / name).write_bytes(OLD)
    given = "".join(re.findall(r"^StandardInputText=(.*\n)", unit, re.MULTILINE))
    command = re.search("^ExecStart=(.*)$", unit, re.MULTILINE)[1].replace("/usr/local/sbin/httpdnsd-lists", str(program))
    answers = {"/hosts.txt": (200, NEW, len(NEW))}
    done = with_server(lambda path: answers.get(path, (404, b"gone\n", 5)), lambda url: subprocess.run(
        command.split(), input=given.replace("https://lists.example", url), cwd=tmp_path, capture_output=True, text=True, env=CURL))
    assert done.returncode != 0 and "404" in done.stderr, done
    assert [(tmp_path / name).read_bytes() for name in ("china.txt", "ads.txt")] == [OLD, NEW]


@pytest.mark.parametrize("renewal", RENEWALS)
def test_the_timers_program_takes_a_list_whole_or_not_at_all(tmp_path, renewal):
    *answer, is_taken = RENEWALS[renewal]
    (tmp_path / "renew").write_text(listing("sh"))
    (tmp_path / "china.txt").write_bytes(OLD)
    done = with_server(lambda path: answer, lambda url: subprocess.run(
        ["sh", tmp_path / "renew", "china.txt", f"{url}/china.conf"], cwd=tmp_path, capture_output=True, text=True, env=CURL))
    assert (done.returncode == 0) == is_taken, done.stderr
    assert (tmp_path / "china.txt").read_bytes() == (NEW if is_taken else OLD)
    assert (tmp_path / "china.txt").stat().st_mode & 0o044 == 0o044, "the daemon's user can read it"
    assert {path.name for path in tmp_path.iterdir()} == {"renew", "china.txt"}, "nothing is left behind"
