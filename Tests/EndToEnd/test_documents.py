"""The documents against the program: every link, command, file and setting that they name exists."""

import importlib.util
import json
import os
import plistlib
import re
import shlex
import subprocess
import sys
import tomllib

import pytest

from examples import TOP, blocks, check

DOCUMENTS = [TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))]
EXAMPLES = sorted([*(TOP / "config/examples").glob("*.toml"), *(TOP / "config/container").rglob("*.toml")])
# The most words of the README before the list of documents: a newcomer reads them in two minutes.
README_WORDS = 650
SECTIONS = ("listen", "httpdns", "tls", "domains", "fallback", "private", "nat64", "cache", "sharedCache", "control", "log")

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
# Pages of the tests to which documents have links.
NOTES = [TOP / f"Tests/{path}.md" for path in ("EndToEnd/ATTACKS", "Performance/README", "Performance/RESULTS", "Simulation/README")]
PAGES = [*DOCUMENTS, *NOTES]

each_document = pytest.mark.parametrize("document", PAGES, ids=lambda path: path.name)


def is_english(document):
    return not document.name.endswith(".zh-CN.md")


def prose(text):
    """A document without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def codes(text):
    """Texts between back quotes, and the lines of blocks of code; lines that a backslash continues are joined."""
    found = re.findall(r"`([^`\n]+)`", prose(text))
    for _, block in blocks(text):
        found += block.replace("\\\n", " ").splitlines()
    return found


def commands(text, program):
    """The arguments of each call of a program."""
    for code in codes(text):
        code = re.sub(r"\s#\s.*", "", re.sub(r"^[$#] ", "", code))
        for part in re.split(r"&&|\||;", code):
            if match := re.match(rf"\s*(?:sudo )?{program}(?: |$)", part):
                yield [word.strip("[]…") for word in shlex.split(part[match.end():])]


def anchors(text):
    """The anchors of a document: its headings in lower case, without punctuation, with hyphens for spaces."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL),
                                      re.MULTILINE)}


def settings():
    """`section.key` of every key; the installed configuration shows all of them."""
    section, found = None, set()
    for line in (TOP / "config/httpdnsd.toml").read_text().splitlines():
        if heading := re.fullmatch(r"#?\[(\w+)\]", line):
            section = heading[1]
        elif key := re.match(r"#(\w+) = ", line):
            found.add(f"{section}.{key[1]}")
    return found


def skeleton(document):
    """The parts that a translation shares with its original: levels of headings, code, tables, and targets of links."""
    text = document.read_text()
    bare = prose(text)
    # A comment in a block of code is translated, so it is removed.
    shown = [(language, [re.sub(r"\s*(?:#|//) .*", "", line) for line in block.splitlines()])
             for language, block in blocks(text) if language]
    tables = [[re.findall(r"`[^`]+`|\b\d[\d.:]*", row.replace("：", ":")) for row in table.splitlines() if "---" not in row]
              for table in re.findall(r"(?:^\|.*\n)+", bare, re.MULTILINE)]
    return {"headings": re.findall(r"^#+(?= )", bare, re.MULTILINE), "blocks": shown, "tables": tables,
            "columns": [row.count("|") for row in re.findall(r"^\|.*$", bare, re.MULTILINE)],
            "code": sorted(set(re.findall(r"`([^`\n]+)`", bare))),
            "links": sorted({path.replace(".zh-CN", "").removeprefix("../")
                             for path in re.findall(r"\]\(([^)#\s]+)", bare)}),
            "items": re.findall(r"^(?:-|\d+\.)(?= )", bare, re.MULTILINE)}


@pytest.mark.parametrize("page", ["hosts", "providers", "questions", "upstreams"])
def test_a_page_in_chinese_has_the_commands_keys_and_tables_of_the_english_one(page):
    english, chinese = (skeleton(TOP / f"docs/{page}{suffix}.md") for suffix in ("", ".zh-CN"))
    for part, content in english.items():
        for one, other in zip(content, chinese[part]):
            assert one == other, part
        assert len(content) == len(chinese[part]), part


def test_no_paragraph_in_chinese_ends_in_the_middle_of_a_sentence():
    for document in DOCUMENTS:
        if not is_english(document):
            assert not re.findall(r".*[，、；：]\n(?:\Z|\n(?!```|\||- |\d+\. ))", document.read_text()), document


def test_the_page_in_chinese_for_operators_says_what_the_english_ones_say():
    """The Chinese page has the most needed half of these pages: each command and code in it is in an English one."""
    pages = ("systemd", "clients", "troubleshooting", "metrics", "hosts", "log", "settings")
    english = "".join((TOP / f"docs/{page}.md").read_text() for page in pages)
    chinese = (TOP / "docs/operating.zh-CN.md").read_text()
    commands = [re.sub(r"\s+#[^#]*$", "", line) for _, block in blocks(chinese) for line in block.splitlines()]
    for text in commands + re.findall(r"`([^`\n]+)`", prose(chinese)):
        assert text.removeprefix("# ").removeprefix("httpdnsd ") in english, text


def rows(path, heading):
    """The code in each row of the first table under a heading."""
    part = re.split(rf"^#+ {heading}$", (TOP / path).read_text(), maxsplit=1, flags=re.MULTILINE)[1]
    table = re.search(r"(?:^\|.*\n)+", part, re.MULTILINE)[0]
    return [re.findall(r"`[^`]+`", row) for row in table.splitlines()[2:]]


def test_both_languages_have_the_same_first_screen_and_the_same_commands(options):
    assert rows("docs/troubleshooting.md", "Trouble-shooting") == rows("docs/operating.zh-CN.md", "先看什么")
    commands = rows("README.md", "Commands")
    assert sorted(command.strip("`").split()[1] for command, *_ in commands) == sorted(options)
    assert commands == rows("docs/README.zh-CN.md", "命令")


def test_the_listing_of_a_house_is_the_same_in_both_languages():
    english, chinese = ([block for language, block in blocks((TOP / f"docs/{page}.md").read_text()) if language in ("toml", "sh")][:2]
                        for page in ("clients", "operating.zh-CN"))
    assert english[0] == chinese[0]
    assert english[1].startswith(chinese[1])


def test_the_chinese_readme_has_the_commands_and_tables_of_the_english_one():
    """The part before the list of documents is compared."""
    english, chinese = (re.split(r"^## (?:Documents|文档)$", (TOP / path).read_text(), flags=re.MULTILINE)[0]
                        for path in ("README.md", "docs/README.zh-CN.md"))
    assert [re.sub(r"\s*# .*", "", block) for _, block in blocks(english)[1:]] == \
        [re.sub(r"\s*# .*", "", block) for _, block in blocks(chinese)[1:]]
    assert sorted(set(re.findall(r"`([^`\n]+)`", prose(english)))) == sorted(set(re.findall(r"`([^`\n]+)`", prose(chinese))))
    for mark in (r"^#+ ", r"^\|", r"^- ", r"^\d\. "):
        assert len(re.findall(mark, english, re.MULTILINE)) == len(re.findall(mark, chinese, re.MULTILINE)), mark


@pytest.fixture(scope="module")
def options(binary):
    """The options of each command of the daemon, from its help."""
    def help_of(*arguments):
        return subprocess.run([binary, *arguments], capture_output=True, text=True, check=True).stdout

    found = {name: set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", help_of("help", name)))
             for name in re.findall(r"^  (\w+)(?: \(default\))?  ", help_of("--help"), re.MULTILINE)}
    assert "run" in found
    return found


def test_the_readme_is_short():
    assert len((TOP / "README.md").read_text().split("\n## Documents\n")[0].split()) <= README_WORDS


@each_document
def test_it_opens_with_what_it_is_for(document):
    title, _, opening = document.read_text().split("\n")[:3]
    assert title.startswith("# ")
    assert re.match(r"[A-Z]" if is_english(document) else r"[A-Z\u4e00-\u9fff]|httpdnsd ", opening), opening


@each_document
def test_every_link_leads_somewhere(document):
    for text, target in re.findall(r"\[([^\]]+)\]\(([^)\s]+)\)", prose(document.read_text())):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        there = (document.parent / path).resolve() if path else document
        assert there.is_relative_to(TOP) and there.exists(), f"{text}: there is no {path}"
        if anchor:
            assert anchor in anchors(there.read_text()), f"{text}: {there.name} has no heading #{anchor}"


def links(document):
    """The documents to which a document has links."""
    found = {(document.parent / path).resolve()
             for path in re.findall(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)", prose(document.read_text()))
             if not re.match(r"https?://", path)}
    return found - {document}


def test_the_readme_leads_to_every_document():
    """The README has a link to each English document; a Chinese one is at most one more link away."""
    first = links(TOP / "README.md")
    assert {path for path in DOCUMENTS[1:] if is_english(path)} <= first
    assert first.union(*map(links, first)) >= set(DOCUMENTS[1:])


def test_every_command_of_the_daemon_is_one(options):
    seen = set()
    for document in PAGES:
        for words in commands(document.read_text(), "httpdnsd"):
            command = words[0] if words and re.fullmatch(r"[a-z]+", words[0]) else "run"
            if words == ["--version"]:
                continue
            assert command in options, f"{document.name}: httpdnsd {' '.join(words)}"
            seen.add(command)
            for word in words:
                if word.startswith("-"):
                    assert word in options[command], f"{document.name}: httpdnsd {command} has no {word}"
    assert {"check", "probe", "query", "status", "flush", "run"} <= seen


def test_every_target_of_make_is_one():
    makefiles = "".join((TOP / path).read_text() for path in ("Makefile", "config/packaging.mk"))
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", makefiles, re.MULTILINE))
    variables = set(re.findall(r"^([A-Z_]+) *[?:+]?=", makefiles, re.MULTILINE))
    seen = set()
    for document in PAGES:
        for words in commands(document.read_text(), "make"):
            for word in words:
                name, is_variable, _ = word.partition("=")
                if is_variable:
                    assert name in variables, f"{document.name}: make does not know {name}="
                elif not re.search(r"[^a-z0-9-]", word):
                    assert word in targets, f"{document.name}: make has no target {word}"
                    seen.add(word)
    assert {"run", "test", "bench", "install"} <= seen


def test_make_says_what_it_would_do_in_a_fresh_checkout(tmp_path):
    """`make test` checks the packages of the tests first: without them some tests would be skipped."""
    for name in ("Makefile", "config/packaging.mk", "Sources/Base/Version.swift"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((TOP / name).read_bytes())
    clean = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    for target in ("test", "reproducible"):
        said = subprocess.run(["make", "--dry-run", target], cwd=tmp_path, env=clean, capture_output=True, text=True)
        assert said.returncode == 0, said.stderr
        if target == "test":
            assert 0 < said.stdout.index("python3-h2") < said.stdout.index("swift build --build-tests")
    assert {path.name for path in tmp_path.iterdir()} <= {"Makefile", "Sources", "config", ".build"}
    assert not any(path.is_dir() for path in (tmp_path / ".build").iterdir())


def test_every_file_is_there():
    count = 0
    for document in PAGES:
        for code in codes(document.read_text()):
            for path in re.findall(r"(?<![\w/.-])(?:config|systemd|Tests|Sources|docs)/[\w./-]*", code):
                count += 1
                assert (TOP / path).exists(), f"{document.name}: there is no {path}"
            for path in source_files(code):
                assert (TOP / "Sources" / path).exists(), f"{document.name}: there is no {path}"
            for name in re.findall(r"(?<![\w/])(test_\w+\.py)", code):
                assert list((TOP / "Tests").glob(f"*/{name}")), f"{document.name}: there is no {name}"
    assert count > 10


def source_files(text):
    """The sources that a text names by module and file."""
    return re.findall(r"(?<![\w/])(?!Tests/|Sources/)\w+/[\w+/]+\.swift\b", text)


def test_the_way_of_a_question_names_each_file_once():
    text = (TOP / "docs/architecture.md").read_text()
    walks = text.split("\n### A hit\n")[1].split("\n## ")[0].split("\n### ")
    walks.append(text.split("\n## Other settings\n")[1].split("\n## ")[0])
    assert len(walks) > 3
    for files in map(source_files, walks):
        assert sorted(files) == sorted(set(files))
    assert 4 < len(source_files(walks[-1])) <= 9


def test_all_pages_together_are_short():
    """The English documents without CHANGELOG.md are counted. Texts that no user needs are beside sources and tests."""
    assert sum(len(path.read_text().split()) for path in DOCUMENTS if is_english(path) and path.name != "CHANGELOG.md") <= 45000


def test_the_latest_version_with_a_date_is_that_of_the_program(binary):
    latest = re.search(r"^## ([\d.]+) - \d{4}-\d\d-\d\d$", (TOP / "docs/CHANGELOG.md").read_text(), re.MULTILINE)
    assert subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip() == latest[1]


def test_the_architecture_is_read_in_ten_minutes():
    text = (TOP / "docs/architecture.md").read_text()
    assert len(text.split()) <= 2500


def test_no_two_headings_of_a_document_are_alike():
    """A link to one of two equal headings would lead to the first."""
    for document in PAGES:
        if document.name != "CHANGELOG.md":
            headings = re.findall(r"^#+ (.*)$", prose(document.read_text()), re.MULTILINE)
            assert sorted(headings) == sorted(set(headings)), document.name


def test_every_option_of_a_script_is_one():
    count = 0
    for document in PAGES:
        for code in codes(document.read_text()):
            for path, arguments in re.findall(r"(Tests/\S+\.py)((?: \S+)* --\S+(?: \S+)*)", code):
                shown = subprocess.run([sys.executable, "-B", TOP / path, "--help"], capture_output=True, text=True,
                                       check=True).stdout
                for option in re.findall(r"(?<= )--[a-z-]+", arguments):
                    count += 1
                    assert re.search(rf"{option}\b(?!-)", shown), f"{document.name}: {path} has no {option}"
    assert count > 3


def test_the_results_of_the_bench_are_as_it_writes_them(tmp_path):
    """RESULTS.md has the headings and title rows that bench.py writes; its figures are not compared."""
    (tmp_path / "results.json").write_text(json.dumps({"cells": [], "command": "make bench", "rounds": 3, "date": "2026-01-01 00:00",
                                                       "commit": "0", "machine": "one", "versions": {}}))
    written = subprocess.run([sys.executable, "-B", TOP / "Tests/Performance/bench.py", "--table", tmp_path / "results.json"],
                             capture_output=True, text=True, check=True).stdout.splitlines()
    page = (TOP / "Tests/Performance/RESULTS.md").read_text().splitlines()
    assert len(written) > 40
    for line in written:
        if not line.startswith(("`make bench`,", "| hits", "| miss")) and "| not measured" not in line:
            assert line in page, line


def test_the_five_figures_are_those_of_the_results():
    """The figures in performance.md are rounded. Lookups at HTTPDNS are compared with those over DNS over TLS and HTTPS."""
    results = (TOP / "Tests/Performance/RESULTS.md").read_text()
    cells = {}
    for table in re.findall(r"(?:^\|.*\n)+", results, re.MULTILINE):
        titles, _, *rows = [[cell.strip().strip("*") for cell in row.split("|")[1:-1]] for row in table.splitlines()]
        for row in rows:
            for title, value in zip(titles[1:], row[1:]):
                if number := re.match(r"[\d,.]+", value):
                    cells[title, row[0]] = float(number[0].replace(",", ""))

    def others(title, encrypted):
        return [value for (of, server), value in cells.items()
                if of == title and not server.startswith(("httpdnsd", "limit")) and (" do" in server or not encrypted)]
    page = (TOP / "docs/performance.md").read_text()
    figures = [[float(value.replace(",", "")) for value in re.findall(r"\| ([\d,.]+) ", row)]
               for row in re.search(r"\| what \|.*\n.*\n((?:\|.*\n)+)", page)[1].splitlines()]
    expected = [
        ("hits, 1,000 names: µs", "httpdnsd", min, 0.05), ("encrypted misses: µs", "httpdnsd https", min, 0.05),
        ("a second", "httpdnsd https", max, 500), ("idle MB", "httpdnsd", min, 0.5),
        ("exec to first lookup: ms", "httpdnsd", min, 0.06),
    ]
    assert len(figures) == len(expected)
    for (ours, best), (title, server, choose, near) in zip(figures, expected):
        assert abs(cells[title, server] - ours) <= near, title
        assert abs(choose(others(title, encrypted=" https" in server)) - best) <= near, title


def test_there_are_thirty_questions_with_answers():
    text = (TOP / "docs/questions.md").read_text()
    parts = re.split(r"^### (\d+)\. (.*)$", text, flags=re.MULTILINE)[1:]
    assert [int(number) for number in parts[::3]] == list(range(1, 31))
    for question, answer in zip(parts[1::3], parts[2::3]):
        assert question.endswith("?")
        assert "](" in answer or "`" in answer or "*No" in answer, f"{question} leads nowhere"
    assert TOP / "docs/questions.md" in links(TOP / "README.md")


def test_every_example_of_settings_is_right(binary, beside):
    examples = [(document.name, block) for document in DOCUMENTS for language, block in blocks(document.read_text())
                if language == "toml"]
    assert len(examples) >= 3
    for name, example in examples:
        done = check(binary, beside, example)
        assert done.returncode == 0, f"{name}: {done.stderr}{example}"


@each_example
def test_every_example_file_is_right(binary, beside, example):
    """Each value of each section is in effect as the file has it."""
    done = check(binary, beside, example.read_text())
    assert done.returncode == 0, done.stderr
    effective = dict(values(tomllib.loads(done.stdout)))
    for path, value in values(tomllib.loads(example.read_text())):
        if path[-1] in ("tokenFile", "dnsKeyFile"):
            assert effective[*path[:-1], path[-1].removesuffix("File")], "what is in it is in effect, masked"
        else:
            assert same(effective[path], value), path


PRIVATE_ADDRESS = re.compile(r"\b(10|127|192\.168|172\.(1[6-9]|2\d|3[01]))\.")
PRIVATE_NAMES = ("printer", "router.lan", "foo.local", "nas.home.arpa", "foo.internal", "2.1.168.192.in-addr.arpa",
                 "1.0.0.10.in-addr.arpa", "1.0.16.172.in-addr.arpa")


@each_example
def test_no_example_tells_a_public_server_a_private_name(binary, beside, example):
    """Each server that would be asked has an address of a private network."""
    assert check(binary, beside, example.read_text()).returncode == 0
    for name in PRIVATE_NAMES:
        kind = "PTR" if name.endswith(".arpa") and name[0].isdigit() else "A"
        done = subprocess.run([binary, "explain", name, kind, "--json", "-c", beside / "httpdnsd.toml"], env={},
                              capture_output=True, text=True, check=True)
        for group in json.loads(done.stdout)["groups"]:
            for server in group["servers"]:
                assert PRIVATE_ADDRESS.search(server["address"]), (name, group["name"], server)


def test_the_examples_are_told_of():
    text = "".join((TOP / "docs" / page).read_text() for page in ("upstreams.md", "providers.md"))
    examples = [path for path in EXAMPLES if path.parent.name == "examples"]
    assert len(examples) == 13 and len(EXAMPLES) == 16
    for path in examples:
        assert f"](../config/examples/{path.name})" in text, path.name


def values(table, path=()):
    """Each value of a table, by the keys that lead to it."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from values(value, (*path, key))
        else:
            yield (*path, key), value


def same(effective, written):
    """Whether two values are equal, apart from the default port of a plain server and the folder of a file."""
    if isinstance(written, list):
        return len(effective) == len(written) and all(map(same, effective, written))
    if isinstance(written, str):
        return effective in (written, f"{written}:53") or effective.endswith(f"/{written}")
    return effective == written


def test_the_page_of_settings_is_what_the_program_and_its_manual_say(binary):
    """Every key of every section: what it does, its values, default, variable, and whether it needs a restart."""
    spec = importlib.util.spec_from_file_location("settings_page", TOP / "config/settings.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert (TOP / "docs/settings.md").read_text() == made.document(binary), "make settings writes it"


@each_document
def test_every_setting_is_one(document):
    known = settings()
    variables = {f"HTTPDNSD_{key.upper().replace('.', '_')}" for key in known}
    sections = "|".join(SECTIONS)
    for code in codes(document.read_text()):
        for key in re.findall(rf"(?<![\w/.-])((?:{sections})\.[a-z]\w+)", code):
            assert key in known, f"there is no {key}"
        for variable in re.findall(rf"\bHTTPDNSD_(?:{sections.upper()})_\w+", code):
            assert variable in variables, f"{variable} sets no key"


def test_every_event_is_listed_as_it_is_said():
    source = "".join(path.read_text() for path in (TOP / "Sources").rglob("*.swift"))
    listed = (TOP / "docs/log.md").read_text().split("\n## Events\n")[1].split("\n| event |")[1]
    rows = re.findall(r"^\| `([\w-]+)` \| .* \| `([0-9a-f]{32})` \|$", listed, re.MULTILINE)
    assert sorted(rows) == sorted(re.findall(r'"([a-z-]+) ([0-9a-f]{32})"', source)) != []


def block_under(document, heading, language):
    part = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ \w|\Z)", (TOP / document).read_text(), re.MULTILINE | re.DOTALL)
    return next(block for found, block in blocks(part[1]) if found == language)


def test_the_certificate_recipe(tmp_path):
    """The recipe makes a certificate for the name and the address. Its authority has another certificate, and strict
    clients accept it."""
    recipe = block_under("docs/clients.md", "An authority of the house", "sh")
    made = re.sub("^install .*\n", "", recipe, flags=re.MULTILINE)
    subprocess.run(["sh", "-ec", made], cwd=tmp_path, check=True, capture_output=True)
    for option in ("-verify_hostname", "dns.example.com"), ("-verify_ip", "192.168.1.2"):
        subprocess.run(["openssl", "verify", "-x509_strict", "-purpose", "sslserver", *option, "-CAfile", "authority.pem",
                        "server.pem"], cwd=tmp_path, check=True, capture_output=True)
    text = subprocess.run(["openssl", "x509", "-in", "server.pem", "-noout", "-text"], cwd=tmp_path, check=True,
                          capture_output=True, text=True).stdout
    assert "CA:TRUE" not in text and "TLS Web Server Authentication" in text


def test_apples_profile():
    """The profile has the scope that macOS 26 requires; outside the house the device uses its usual DNS."""
    profile = plistlib.loads(block_under("docs/clients.md", "Apple's profile", "xml").encode())
    assert profile["PayloadScope"] == "System"
    settings, = profile["PayloadContent"]
    assert settings["DNSSettings"]["DNSProtocol"] == "HTTPS"
    inside, elsewhere = settings["OnDemandRules"]
    assert inside == {"Action": "Connect", "SSIDMatch": ["House"]} and elsewhere == {"Action": "Disconnect"}
