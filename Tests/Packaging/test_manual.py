"""The manual pages: complete, and true."""

import re
import subprocess

import pytest

PAGES = ["httpdnsd.8", "httpdnsd.toml.5"]


@pytest.fixture(scope="module")
def settings_page(top):
    """For each `[section]`, its keys with their descriptions."""
    text = (top / "config/man/httpdnsd.toml.5").read_text()
    sections = {}
    for heading, body in re.findall(r"^\.Sh \[(\w+)\]$(.*?)(?=^\.Sh )", text, re.MULTILINE | re.DOTALL):
        items = re.split(r"^\.It Ic (\w+)$", body, flags=re.MULTILINE)
        sections[heading] = dict(zip(items[1::2], items[2::2]))
    return sections


@pytest.fixture(scope="module")
def effective(binary, tmp_path_factory):
    """The output of `check` without a file: section, key, default. A token adds [httpdns]."""
    shown = subprocess.run([binary, "check", "--all"], env={"HTTPDNSD_HTTPDNS_TOKEN": "t"}, capture_output=True, text=True,
                           check=True).stdout
    section, found = None, []
    for line in shown.splitlines():
        if heading := re.fullmatch(r"\[(\w+)\]", line):
            section = heading[1]
        elif key := re.match(r'(\w+) *= (\[.*?\](?= )|"[^"]*"|\S+)', line):
            found.append((section, key[1], key[2]))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_the_formatter_has_no_complaint(top, page):
    done = subprocess.run(["man", "--warnings", "--encoding=UTF-8", "--local-file", top / "config/man" / page],
                          env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80"},
                          capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    # A macro in a wrong position would be printed as a word.
    words = set(re.sub(r".\x08", "", done.stdout).split())
    assert not words & {"Ar", "Ns", "Pa", "Ic", "Fl", "Li", "Ev", "Xr", "Cm", "Dv"}


def test_every_key_is_described_with_its_default(settings_page, effective):
    described = [(section, key) for section, keys in settings_page.items() for key in keys]
    assert described == [(section, key) for section, key, _ in effective] != []
    for section, key, default in effective:
        said = re.search(r"^Default:\n\.Li (.*?)(?: [.,])?$", settings_page[section][key], re.MULTILINE)
        assert said, f"{section}.{key} has no default in httpdnsd.toml(5)"
        if key == "token":
            default = '""'  # the test gave a token
        assert said[1].replace(r"\(dq", '"') == default.replace('.99:443"', '.99"'), f"{section}.{key}"


def test_every_key_of_the_shipped_file_is_described(top, settings_page):
    section = None
    for line in (top / "config/httpdnsd.toml").read_text().splitlines():
        if heading := re.fullmatch(r"#?\[(\w+)\]", line):
            section = heading[1]
        elif key := re.match(r"#(\w+) = ", line):
            assert key[1] in settings_page[section], f"{section}.{key[1]}"


def test_every_command_and_option_is_described(top, binary):
    text = (top / "config/man/httpdnsd.8").read_text()
    commands = re.split(r"^\.It Ic (\w+)", text, flags=re.MULTILINE)
    described = dict(zip(commands[1::2], commands[2::2]))
    overview = subprocess.run([binary, "--help"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^  (\w+)(?: \(default\))?  ", overview.split("SUBCOMMANDS:")[1], re.MULTILINE)
    assert {"run", "check", "query", "probe", "demo"} <= set(found)
    synopsis = text.split(".Sh DESCRIPTION")[0]
    usage = dict(re.findall(r"^\.(?:Op )?Ic (\w+)\n(.*?)(?=^\.Nm|\Z)", synopsis, re.MULTILINE | re.DOTALL))
    common = text.split(".Sh COMMANDS")[1].split("The commands:")[0]
    for command in found:
        assert command in described, f"{command} is not in httpdnsd(8)"
        assert f"Ic {command}\n" in synopsis, f"{command} is not in the synopsis of httpdnsd(8)"
        help_text = subprocess.run([binary, "help", command], capture_output=True, text=True, check=True).stdout
        options = set(re.findall(r"--([a-z-]+)", help_text))
        items = " ".join(re.findall(r"^\.It .*Fl .*$", described[command], re.MULTILINE))
        gone = set(re.findall(r" -([a-z-]+)", items + usage[command])) - options
        assert not gone, f"{command} has no {gone}, which are in httpdnsd(8)"
        for option in options:
            said = common if option in ("config", "socket", "version", "help") else described[command]
            assert re.search(rf"^\.It .*Fl -{option}\b", said, re.MULTILINE), f"{command} --{option} is not in httpdnsd(8)"
            if option not in ("config", "version", "help"):
                assert re.search(rf" -{option}\b", usage[command]), f"{command} --{option} is not in the synopsis of httpdnsd(8)"


def test_the_examples_are_right(top, binary, tmp_path):
    text = (top / "config/man/httpdnsd.toml.5").read_text().split(".Sh EXAMPLES")[1]
    examples = re.findall(r"^\.Bd -literal -offset indent\n(\[.*?)\.Ed$", text, re.MULTILINE | re.DOTALL)
    assert len(examples) == 6
    (tmp_path / "token").write_text("1234567")
    (tmp_path / "dnsKey").write_text("0123456789abcdef")
    for example in examples:
        file = tmp_path / "httpdnsd.toml"
        file.write_text(example)
        done = subprocess.run([binary, "check", "--all", "-c", file], env={}, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stderr}{example}"


def test_exit_codes_are_those_of_the_program(top, binary, tmp_path):
    (tmp_path / "wrong.toml").write_text("[nonsense]\n")
    commands = [["check", "--all", "-c", "/dev/null"], ["check", "--nonsense"], ["check", "--all", "-c", tmp_path / "wrong.toml"],
                ["status", "--socket", tmp_path / "none"], ["run", "-c", "/dev/null", "--listen", "192.0.2.1:53"]]
    codes = {subprocess.run([binary, *command], env={}, capture_output=True).returncode for command in commands}
    page = (top / "config/man/httpdnsd.8").read_text().split(".Sh EXIT STATUS")[1].split(".Sh")[0]
    assert re.findall(r"^\.It (\d+)$", page, re.MULTILINE) == [str(code) for code in sorted(codes)]
