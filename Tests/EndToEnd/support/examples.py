"""The settings in documents, tried with the program: a folder with the files that they name, and the output of `check`."""

import pathlib
import re
import subprocess

import pytest

from certificates import Authority

TOP = pathlib.Path(__file__).parents[3]


def blocks(text):
    """The blocks of code: language, content."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """A folder with the files that examples name."""
    folder = tmp_path_factory.mktemp("beside")
    (folder / "token").write_text("1234567")
    for name in ("dnsKey", "alibaba-dnsKey", "baidu-dnsKey", "key"):
        (folder / name).write_text("0123456789abcdef")
    (folder / "aesKey").write_text("0123456789abcdef" * 2)
    (folder / "names.txt").write_text("# names of ours\nshop.example\n*.pay.example\n")
    (folder / "ads.txt").write_text("||ads.example^\n0.0.0.0 tracker.example\n")
    (folder / "more.txt").write_text("malware.example\n")
    (folder / "china.txt").write_text("server=/bank.example/114.114.114.114\nserver=/map.example/114.114.114.114\n")
    (folder / "fleet-key").write_text("0123456789abcdef" * 2)
    (folder / "valkey-password").write_text("password")
    for name in ("corp-ca", "valkey-ca"):
        Authority(folder, name)
    server = Authority(folder, "server-ca").server_file(names=["dns.example"]).read_bytes()
    for name in ("server.pem", "server.key"):
        (folder / name).write_bytes(server)
    for file in folder.iterdir():
        file.chmod(0o640)
    return folder


def check(binary, beside, example):
    """The result of `check` for settings beside those files."""
    file = beside / "httpdnsd.toml"
    file.write_text(example)
    file.chmod(0o640)
    return subprocess.run([binary, "check", "--all", "-c", file], env={}, capture_output=True, text=True)
