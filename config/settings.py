"""Writes docs/settings.md: config/settings.py PROGRAM > docs/settings.md

The words are those of the manual page, defaults and valid values those of the program, and the keys that need a restart
those that the installed file names. A test compares the page with what this would write."""

import os
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).parents[1]
PAGE = TOP / "config/man/httpdnsd.toml.5"
# A token brings [httpdns] in, and a server a group; the account in a group is another provider's, which needs nothing else.
TOKEN = {"HTTPDNSD_HTTPDNS_TOKEN": "token"}
GROUP = {"HTTPDNSD_UPSTREAMS_NAME_SERVERS": "192.0.2.1", "HTTPDNSD_UPSTREAMS_NAME_DOMAINS": "example.com"}
ACCOUNT = {"HTTPDNSD_UPSTREAMS_NAME_PROVIDER": "tencent", "HTTPDNSD_UPSTREAMS_NAME_TOKEN": "token",
           "HTTPDNSD_UPSTREAMS_NAME_DOMAINS": "example.com"}
ALIAS = {"HTTPDNSD_UPSTREAMS_NAME_ALIAS": "www.example.net", "HTTPDNSD_UPSTREAMS_NAME_DOMAINS": "example.com"}
ANSWER = {"HTTPDNSD_UPSTREAMS_NAME_ANSWER": "nxdomain", "HTTPDNSD_UPSTREAMS_NAME_DOMAINS": "example.com"}
TRUST = ("caFile", "caOnly", "pins", "validateDomain", "clientCertificate", "clientCertificatePasswordFile", "whenClockUnset")
WAY = ("from", "device", "mark")
# Keys that mean in a section what they mean in another one, where they are described.
AS = {
    "fallback": {"httpdns": WAY, "tls": TRUST},
    "private": {"httpdns": WAY, "tls": TRUST, "fallback": ("thenTry", "thenTryOn", "timeout", "concurrency", "routeIp", "without", "bogusAddresses", "trustAD")},
    "upstreams.name": {"httpdns": WAY, "tls": TRUST, "fallback": ("thenTry", "timeout", "routeIp", "without", "bogusAddresses", "trustAD", "share")},
}
# The defaults of these in the page: without them there is no such section.
GIVEN = {"token": '""', "servers": "[]", "domains": "[]"}

INTRODUCTION = """# All settings

Every key of every section: what it does, which values it takes, its default, its environment variable, and whether a new
value needs a restart. To see what is in effect on a machine, type `httpdnsd check --all`; to apply a changed file without
losing a question, `systemctl reload httpdnsd`.

The file is `/etc/httpdnsd/httpdnsd.toml`, in TOML. Each key may be left out. A key that is not known, and a value that is not
valid, is an error that names line and key. A relative path starts from the folder of the file. An environment variable wins
over the file; the items of a list are between commas there, and a group that only the environment knows has its name in lower
case. How servers are written: [Servers](upstreams.md#servers). httpdnsd.toml(5) has the same text.
"""


def check(program, environment):
    """What `check` prints as in effect: section, key, value."""
    shown = subprocess.run([program, "check", "--all", "-c", "/dev/null"], env=environment, capture_output=True, text=True, check=True)
    section, found = None, []
    for line in shown.stdout.splitlines():
        if heading := re.fullmatch(r"\[([\w.]+)\]", line):
            section = heading[1]
        elif key := re.match(r'(\w+) *= (\[.*?\](?= |$)|"[^"]*"|\S+)', line):
            found.append((section, key[1], key[2]))
    return found


def variable(section, key):
    return f"HTTPDNSD_{section}_{key}".upper().replace(".", "_")


def values(program, section, key, default):
    """Which values a key takes, by the message that a wrong one gets."""
    environment = TOKEN | (GROUP if section.startswith("upstreams") else {}) | {variable(section, key): "\x7f"}
    said = subprocess.run([program, "check", "--all", "-c", "/dev/null"], env=environment, capture_output=True, text=True).stderr
    if number := re.search(r"a whole number(?: of (\w+))? from (\d+) to (\d+)", said):
        return f"{number[2]} to {number[3]}" + (f" {number[1]}" if number[1] else "")
    assert not default.isdecimal(), f"{section}.{key}: a number without a range: {said}"
    several = default.startswith("[")
    if choice := re.search(r"one of (\"[^;\n]*\")", said):
        words = "list of " if several else ""
        return words + ", ".join(f"`{word}`" for word in choice[1].split(", "))
    if several or default in ("true", "false"):
        return "list" if several else "`true` or `false`"
    if re.search(r"^(domains|intercept|bypass)File$|^hosts$", key):
        return "path, or list of paths"
    return "path" if re.search(r"[Ff]ile$|^(socket|clientCertificate)$", key) else "text"


def is_restart_needed():
    text = " ".join((TOP / "config/httpdnsd.toml").read_text().replace("#", " ").split())
    return set(re.findall(r"\w+\.\w+", text.split("These need a restart:")[1].split("Any key")[0]))


# The manual page ------------------------------------------------------------------------------------------------------

CODE = {"Ic", "Li", "Ql", "Ev", "Pa", "Ar", "Cm", "Fl", "Dv", "Sy"}
ENCLOSED = {"Pq": ("(", ")"), "Dq": ("\u201c", "\u201d")}
OTHERS = {"Em", "Xr", "Sx", "No", "Ns"}


def plain(text):
    return text.replace(r"\(dq", '"').replace(r"\&", "")


def words(line):
    """The words of a line of macros: text, whether it is code, whether it is close to the one before."""
    tokens = re.findall(r'"([^"]*)"|(\S+)', line)
    tokens = [quoted or bare for quoted, bare in tokens]
    found, style, close, ends = [], None, False, []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token in CODE | OTHERS | set(ENCLOSED):
            if token == "Ns":
                close = True
            elif token in ENCLOSED:
                found.append((ENCLOSED[token][0], False, close))
                ends.append(ENCLOSED[token][1])
                close = True
            elif token == "Xr":
                found.append((f"{tokens[index + 1]}({tokens[index + 2]})", False, close))
                close, index = False, index + 2
            elif token == "Sx":
                style, close = "Sy", close
            elif token == "Fl":
                style, close = "Fl", close
            else:
                style = token
        elif token in (".", ",", ":", ";", ")"):
            found.append((token, False, True))
            close = False
        elif token == "(":
            found.append((token, False, close))
            close = True
        else:
            code = style in CODE
            found.append((("-" if style == "Fl" else "") + plain(token), code, close))
            close = False
        index += 1
    for end in reversed(ends):
        # What ends a sentence is behind the brackets.
        last = found.pop() if found[-1][0] in (".", ",", ":", ";") else None
        found.append((end, False, True))
        if last:
            found.append(last)
    return found


def joined(pieces):
    """The text; what is code and close together is one piece of code."""
    merged = []
    for text, code, close in pieces:
        if merged and close and code and merged[-1][1]:
            merged[-1] = (merged[-1][0] + text, True, merged[-1][2])
        elif len(merged) > 1 and close and code and merged[-1][0] in (":", "/", "+") and merged[-2][1]:
            sign = merged.pop()[0]
            merged[-1] = (merged[-1][0] + sign + text, True, merged[-1][2])
        elif merged and code and merged[-1][1] and not close:
            merged[-1] = (merged[-1][0] + " " + text, True, merged[-1][2])
        else:
            merged.append((text, code, close))
    result = ""
    for text, code, close in merged:
        result += ("" if close or not result else " ") + (f"`{text}`" if code else text)
    return result


def markdown(source):
    """A part of the page as Markdown."""
    result, pieces, item, fence = [], [], False, False

    def end():
        nonlocal pieces, item
        if pieces:
            text = joined(pieces)
            result.append(("- " if item else "") + text)
        pieces, item = [], False

    for line in source.strip().splitlines():
        if fence:
            if line == ".Ed":
                result.append("```\n")
                fence = False
            else:
                result.append(line)
        elif line.startswith(".Bd"):
            end()
            language = "toml" if "offset" in line else "console"
            result.append(f"\n```{language}")
            fence = True
        elif line.startswith((".Bl", ".El")):
            end()
            if result and result[-1]:
                result.append("")
        elif line in (".Pp", ".br"):
            end()
            if line == ".Pp" and result and result[-1]:
                result.append("")
        elif line.startswith(".It "):
            end()
            item = True
            pieces += words(line[4:])
        elif line.startswith("."):
            pieces += words(line[1:])
        else:
            pieces += [(plain(word), False, False) for word in line.split()]
    end()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(result)).strip()


def wrapped(text):
    """Paragraphs in lines of a readable length."""
    lines, is_code = [], False
    for line in text.splitlines():
        is_code ^= line.startswith("```")
        if is_code or line.startswith("```"):
            lines.append(line)
            continue
        indent = "  " if line.startswith("- ") else ""
        rest = line
        while len(rest) > 120:
            cut = rest.rfind(" ", 0, 121)
            if rest[:cut].count("`") % 2:
                # Not within a piece of code.
                cut = rest.rfind(" ", 0, rest.rfind("`", 0, cut))
            lines.append(rest[:cut])
            rest = indent + rest[cut + 1:]
        lines.append(rest)
    return "\n".join(lines)


def page():
    """Of each section what is before its keys, and the keys with what is said of them."""
    text = PAGE.read_text()
    sections = {}
    for name, body in re.findall(r"^\.Sh \[([\w.]+)\]$(.*?)(?=^\.Sh )", text, re.MULTILINE | re.DOTALL):
        opening, *items = re.split(r"^\.It Ic (\w+)$", body, flags=re.MULTILINE)
        opening = re.sub(r"^\.Bl .*\Z", "", opening.strip(), flags=re.MULTILINE)
        keys = dict(zip(items[::2], items[1::2]))
        last = items[-2]
        keys[last] = keys[last].rsplit(".El", 1)[0]
        sections[name] = opening, keys
    return sections


def sentence(source):
    """What is said of a key without its default, which the program says, but with what is said about the default."""
    before, _, default = source.rpartition("Default:\n")
    about = default.strip().splitlines()[1:]
    if about == ["which is none."]:
        about = []
    if before.rstrip().endswith(".br"):
        before = before.rstrip().removesuffix(".br")
    text = markdown(before)
    if about:
        text += f"\n\nThe default: {markdown(default)}"
    return text


def document(program):
    servers, account = check(program, TOKEN | GROUP), check(program, TOKEN | ACCOUNT)
    restart, described = is_restart_needed(), page()
    order = list(dict.fromkeys(section for section, *_ in servers))
    result = [INTRODUCTION]
    shown = {section: "upstreams.NAME" if section == "upstreams.name" else section for section in order}
    result.append("Sections: " + " · ".join(
        f"[`[{shown[section]}]`](#{shown[section].lower().replace('.', '')})" for section in order) + "\n")
    for section in order:
        name = shown[section]
        opening, keys = described[name]
        result.append(f"## [{name}]\n\n{wrapped(markdown(opening))}\n" if markdown(opening) else f"## [{name}]\n")
        assert list(keys) == [key for there, key, _ in servers if there == section], name
        for there, key, default in servers:
            if there != section or described_at(section, key):
                continue
            if key in GIVEN and section in ("httpdns", "upstreams.name"):
                default = GIVEN[key]
            if key == "dnsIp":
                default = default.replace(":443", "")
            facts = [values(program, section, key, default), f"default `{default}`",
                     f"`{variable(name, key)}`", "needs a restart" if f"{section}.{key}" in restart else ""]
            result.append(f"### {name}.{key}\n\n{'; '.join(filter(None, facts))}\n\n{wrapped(sentence(keys[key]))}\n")
        result += of_others(servers, section, name)
        if section == "upstreams.name":
            result.append(of_accounts(servers, account))
            result.append(of_answers(program))
    return "\n".join(result).rstrip() + "\n"


def described_at(section, key):
    """The section in which a key is described, if it is another one."""
    return next((other for other, keys in AS.get(section, {}).items() if key in keys), None)


def rows_as(section, name, keys):
    """Key, default, and the section in which it is described, put together by that section; a default that is another is named."""
    rows = {}
    for key, default, at, usual in keys:
        rows.setdefault(at, []).append(f"`{key}`" + (f" (default `{default}`)" if default != usual else ""))
    start = variable(name, "").removesuffix("_")
    return [f"{start}_", *["| keys | as |", "| --- | --- |"],
            *[f"| {', '.join(found)} | [`[{at}]`](#{at}) |" for at, found in rows.items()]]


def of_others(servers, section, name):
    """The keys of a section that are described in others."""
    defaults = {(there, key): default for there, key, default in servers}
    keys = [(key, default, at, defaults[at, key]) for there, key, default in servers
            if there == section and (at := described_at(section, key))]
    if not keys:
        return []
    start, *rows = rows_as(section, name, keys)
    return [f"For the servers of this group, these are as in other sections; their variables begin with `{start}`:\n",
            "\n".join(rows) + "\n"]


def of_answers(program):
    """The keys that make a group answer by itself."""
    rows = []
    for environment in (ANSWER, ALIAS):
        keys = [key for section, key, _ in check(program, TOKEN | environment) if section == "upstreams.name"]
        (key,), others = ([key for key in keys if (key in GIVEN or key.startswith(("domains", "except"))) == is_common]
                          for is_common in (False, True))
        wrong = TOKEN | environment | {variable("upstreams.name", key): "\x7f"}
        said = subprocess.run([program, "check", "-c", "/dev/null"], env=wrong, capture_output=True, text=True).stderr
        given = re.sub(r'"([\w.]+)"', r'`"\1"`', said.rsplit("; give ", 1)[1].strip().removesuffix(', or "" for none'))
        rows.append(f"| `{key}` | {given} | `{variable('upstreams.NAME', key)}` |")
    return "\n".join([
        "### With an answer\n", "A group with an `answer` or an `alias` asks no server, and of the keys above it has"
        f" {', '.join(f'`{other}`' for other in others)} alone."
        " What clients\nget then: [Groups that answer](upstreams.md#groups-that-answer).\n",
        "| key | values | variable |", "| --- | --- | --- |", *rows, ""])


def of_accounts(servers, account):
    """The keys that a group has with a provider alone."""
    section = "upstreams.name"
    common = {key for there, key, _ in servers if there == section}
    httpdns = {key for there, key, _ in account if there == "httpdns"}
    usual = {(there, key): value for there, key, value in account}
    keys = [(key, {"token": '""'}.get(key, default), at, {"token": '""'}.get(key, usual[at, key]))
            for there, key, default in account if there == section and key not in common
            if (at := "httpdns" if key in httpdns else "tls")]
    start, *rows = rows_as(section, "upstreams.NAME", keys)
    lines = ["### With a provider\n", "A group with a `provider` also has these keys, and no `servers` and `trustAD`. Their variables begin"
             f" with\n`{start}`.\n", *rows]
    defaults = dict((key, value) for there, key, value in account if there == section)
    differing = [(key, defaults[key]) for there, key, value in servers
                 if there == section and key in defaults and key not in GIVEN and defaults[key] != value]
    assert differing == [("thenTryOn", '["failure", "norecord"]')], differing
    lines.append('\nWith a provider the default of `thenTryOn` is `["failure", "norecord"]`.\n')
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(document(os.path.abspath(sys.argv[1])))
