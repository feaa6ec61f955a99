"""Files of the names that a group, or HTTPDNS, is asked for."""

import itertools
import os

import pytest

import daemon as processes
from daemon import toml
from dns_client import ask
from groups import LISTEN, PORT, groups, last_of
from waiting import eventually

__all__ = ["groups"]  # a fixture


def replace(file, text):
    new = file.with_name("new")
    new.write_text(text)
    os.rename(new, file)


def test_a_file_of_names_is_followed(groups, tmp_path):
    """In place and replaced; of a wrong one the line is said and the names of before stay, as when it goes."""
    file = tmp_path / "names"
    file.write_text("# the company's\ncorp.example  # and below\n\n*.lab.example\n10.0.0.0/8\n")
    running = groups.run(httpdns=False, office={"domains": ["own.example"], "domainsFile": str(file)})
    fresh = (f"f{number}" for number in itertools.count())

    def takes(domain):
        return last_of(f"{next(fresh)}.{domain}") == [2]
    assert takes("own.example") and takes("corp.example") and takes("lab.example") and not takes("new.example")
    assert last_of("lab.example") == [1]
    file.write_text("new.example\n")
    eventually(lambda: takes("new.example"), "the file written in place is followed")
    assert not takes("corp.example") and takes("own.example")
    replace(file, "corp.example\n")
    eventually(lambda: takes("corp.example"), "the file renamed into place is followed")
    assert not takes("new.example")
    replace(file, "new.example\n\nnot a name!..\n")
    eventually(lambda: running.log_lines(rf"{file}:3\b"), "what is wrong is said with file and line")
    assert takes("corp.example") and not takes("new.example")
    lines = len(running.log_lines(str(file)))
    os.remove(file)
    eventually(lambda: len(running.log_lines(str(file))) > lines, "that it is gone is said")
    assert takes("corp.example")
    replace(file, "new.example\n")
    eventually(lambda: takes("new.example"), "the file that is there again is followed")


def test_a_relative_file_of_names_stands_beside_the_configuration(groups, binary, tmp_path):
    (tmp_path / "names").write_text("corp.example\n")
    (tmp_path / "own.toml").write_text(toml({"fallback": {"servers": ["127.0.0.2"]}, "upstreams.office": {
        "servers": ["127.0.0.3"], "domainsFile": "names"}}))
    assert processes.run(binary, "check", "-c", str(tmp_path / "own.toml"), cwd="/").returncode == 0


@pytest.mark.parametrize("wrong", ["not there", "wrong line"])
def test_a_wrong_file_of_names_at_start(binary, tmp_path, wrong):
    names = tmp_path / "names"
    if wrong == "wrong line":
        names.write_text("corp.example\na..b\n")
    file = tmp_path / "own.toml"
    file.write_text(toml(LISTEN | {"fallback": {"servers": ["127.0.0.2"]},
                                   "upstreams.office": {"servers": ["127.0.0.3"], "domainsFile": str(names)}}))
    for command in ("run", "check"):
        ended = processes.run(binary, command, "-c", str(file))
        assert ended.returncode == 78 and len(ended.stderr.splitlines()) == 1, ended
        place = f"{names}:2" if wrong == "wrong line" else "upstreams.office.domainsFile"
        assert place in ended.stderr, ended


def test_names_that_httpdns_gets_by_files(groups, tmp_path):
    (tmp_path / "intercept").write_text("shop.example\n")
    (tmp_path / "bypass").write_text("local.shop.example\n")
    groups.run(domains={"interceptFile": str(tmp_path / "intercept"), "bypassFile": str(tmp_path / "bypass")})
    assert last_of("x.local.shop.example") == [1] and last_of("www.example.net") == [1]
    assert groups.chosen.names == []
    assert ask("www.shop.example", port=PORT).answer
    assert groups.chosen.names == ["www.shop.example"]
    replace(tmp_path / "intercept", "net.example\n")
    eventually(lambda: last_of("a.net.example") != [1] or None, "the file is followed")


def test_a_file_of_a_hundred_thousand_names(groups, tmp_path):
    file = tmp_path / "names"
    file.write_text("".join(f"n{number}.big.example\n" for number in range(100_000)))
    groups.run(httpdns=False, office={"domainsFile": str(file)})
    assert last_of("n0.big.example") == [2] and last_of("x.n99999.big.example") == [2]
    assert last_of("n100000.big.example") == [1]
