"""Groups that answer by themselves: replies to clients, no questions to servers, and changing lists of other authors."""

import json
import os
import re
import select
import subprocess

import pytest

import daemon as processes
from control import metrics, total
from daemon import toml
from dns_client import ask
from groups import LISTEN, PORT, last_of
from waiting import eventually

LIST = """[Adblock Plus 2.0]
! Title: a list
||ads.example^
||ad*.example^
@@||free.ads.example^|
127.0.0.1 localhost
0.0.0.0 0.0.0.0
0.0.0.0 www.tracker.example cdn.tracker.example
plain.example
b.example##.banner
"""


def dig(*arguments):
    """The output of dig for one question."""
    return subprocess.run(["dig", "@127.0.0.1", "-p", str(PORT), "+tries=1", "+time=20", *arguments],
                          capture_output=True, text=True, check=True).stdout


def replace(file, text):
    new = file.with_name("new")
    new.write_text(text)
    os.rename(new, file)


@pytest.fixture
def ads(groups, tmp_path):
    """A daemon with a list, and a group that answers with addresses."""
    (tmp_path / "ads.txt").write_text(LIST)
    groups.running = groups.run(
        ads={"answer": "nxdomain", "domainsFile": str(tmp_path / "ads.txt"), "except": ["good.ads.example"]},
        pages={"answer": ["192.168.1.9", "fd12:3456::9"], "domains": ["pages.example"]},
        control={"socket": str(tmp_path / "s"), "metrics": "127.0.0.1:9153"})
    return groups


def test_clients_get_the_answer_and_nobody_is_asked(ads):
    for name, kind in (("ads.example", "A"), ("x.ads.example", "AAAA"), ("www.tracker.example", "MX"), ("plain.example", "HTTPS"),
                       ("x.plain.example", "TXT"), ("cdn.tracker.example", "ANY")):
        shown = dig(name, kind)
        assert "status: NXDOMAIN" in shown and re.search(r"EDE: 15 \(Blocked\): \(ads\)", shown), shown
        assert re.search(r"^\S+\s+30\s+IN\s+SOA\s+httpdnsd\.invalid\.", shown, re.MULTILINE), shown
    assert "status: NXDOMAIN" in dig("+tcp", "ads.example")
    assert dig("+short", "www.pages.example").split() == ["192.168.1.9"]
    assert dig("+short", "www.pages.example", "AAAA").split() == ["fd12:3456::9"]
    shown = dig("www.pages.example", "MX")
    assert "status: NOERROR" in shown and "ANSWER: 0" in shown and "EDE" not in shown, shown
    assert ads.fallback.questions == [] and ads.chosen.names == []
    # Names not taken: by `except`, by an exception of the list, below a name of a hosts file, by a rule that is left out.
    for name in ("good.ads.example", "free.ads.example", "x.www.tracker.example", "tracker.example", "b.example", "ad1.example"):
        assert "status: NOERROR" in dig(name), name
    said, = ads.running.log_lines("ads.domainsFile")
    assert "ads.txt has 4 names and 1 exception; 2 rules of it that a DNS server cannot follow are left out, the first on line 4" in said


def test_it_is_shown(ads, binary, tmp_path):
    at = ["--socket", str(tmp_path / "s")]

    def run(*arguments):
        return processes.run(binary, *arguments)
    assert total(metrics(), "httpdnsd_group_questions_total", group="ads") == 0
    with subprocess.Popen([binary, "watch", *at, "--json", "--by", "ads"], stdout=subprocess.PIPE, text=True,
                          env=processes.environment()) as watch:
        def asked():
            ask("www.tracker.example", port=PORT)
            ask("www.pages.example", port=PORT)
            return select.select([watch.stdout], [], [], 0)[0]
        eventually(asked, "the group's answers are shown")
        line = json.loads(watch.stdout.readline())
        watch.terminate()
    assert (line["by"], line["group"], line["server"], line["rcode"], line["way"], line["reason"]) == \
        ("group", "ads", None, "NXDOMAIN", "cache", "ads"), line
    assert total(metrics(), "httpdnsd_group_questions_total", group="ads") > 0
    status = run("status", *at).stdout
    assert re.search(r"^ads: answers nxdomain itself, asks no server; \d+ questions$", status, re.MULTILINE), status
    group, = [group for group in json.loads(run("status", "--json", *at).stdout)["groups"] if group["name"] == "ads"]
    assert (group["kind"], group["answer"], group["servers"]) == ("answer", "nxdomain", []) and group["counters"]["questions"] > 0
    shown = run("explain", *at, "cdn.tracker.example").stdout
    assert f"cdn.tracker.example alone, in upstreams.ads.domainsFile ({tmp_path}/ads.txt:8)" in shown, shown
    assert "[upstreams.ads] answers nxdomain itself, and asks no server" in shown and "Asked: nobody" in shown, shown
    shown = run("explain", *at, "x.free.ads.example").stdout
    assert f"free.ads.example, in upstreams.ads.domainsFile ({tmp_path}/ads.txt:5), leaves it to others" in shown, shown
    (tmp_path / "own.toml").write_text(toml(LISTEN | {"upstreams.ads": {"answer": "nxdomain", "domains": ["ads.example"]}}))
    for command in (["query", "--group", "ads", "ads.example"], ["probe", "--group", "ads"]):
        ended = run(*command, "-c", str(tmp_path / "own.toml"))
        assert ended.returncode == 78 and 'answers "nxdomain" itself and asks no server' in ended.stderr, ended


def test_a_list_that_changes(ads, tmp_path):
    """A cached answer is dropped once a list has its name; a wrong line is logged, and the former names stay in effect."""
    file = tmp_path / "ads.txt"
    assert last_of("new.example") != [] and "status: NXDOMAIN" in dig("ads.example")
    replace(file, "0.0.0.0 new.example\n")
    eventually(lambda: "status: NXDOMAIN" in dig("new.example"), "the list is followed")
    assert last_of("ads.example") != []
    for wrong in ("", "<html>\n" * 20 + "ads.example\n", "192.0.2.1 ads.example\n"):
        lines = len(ads.running.log_lines("of before stay"))
        replace(file, wrong)
        eventually(lambda: len(ads.running.log_lines("of before stay")) > lines, "what is wrong is said")
        assert "status: NXDOMAIN" in dig("new.example") and last_of("ads.example") != []
    replace(file, "ads.example\n")
    eventually(lambda: "status: NXDOMAIN" in dig("ads.example"), "the list is right again")
    assert last_of("new.example") != []


def test_odd_lists_at_start(groups, binary, tmp_path):
    """The daemon serves with a faulty list; the log, `check` and `status` report the lines left out."""
    listed, file = tmp_path / "ads.txt", tmp_path / "own.toml"
    file.write_text(toml(LISTEN | {"upstreams.ads": {"answer": "refused", "domainsFile": "ads.txt"}}))
    listed.write_text("||ads.example^\n\n203.0.113.9\nads,example\n/regular/\n*.www.example\n.\nbücher.example\n")
    words = "ads.txt has 3 names; 1 rule of it that a DNS server cannot follow is left out, the first on line 5; " \
        "3 lines of it are left out, the first on line 3: 203.0.113.9"
    ended = processes.run(binary, "check", "-c", str(file))
    assert ended.returncode == 0 and words in ended.stderr, ended
    control = {"socket": str(tmp_path / "s")}
    running = groups.run(ads={"answer": "refused", "domainsFile": str(listed)}, control=control)
    assert running.log_lines(words) and words in processes.run(binary, "status", "--socket", control["socket"]).stdout
    for name in ("x.ads.example", "www.example", "xn--bcher-kva.example"):
        assert "status: REFUSED" in dig(name), name
    assert "status: NOERROR" in dig("other.example")
    running.stop()
    listed.unlink()
    ended = processes.run(binary, "check", "-c", str(file))
    assert ended.returncode == 0 and "no name is taken from the list: " in ended.stderr, ended
    running = groups.run(ads={"answer": "refused", "domainsFile": str(listed)}, control=control)
    assert running.log_lines("error .*no name is taken from the list") and "status: NOERROR" in dig("x.ads.example")
