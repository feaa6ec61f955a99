"""The configuration from outside: refused settings, the output of `check`, and the sources of values."""

import os
import re
import tomllib

import pytest

import daemon as processes
from dns_client import addresses, ask, synthetic_soa
from waiting import eventually

AES = '[httpdns]\nencryptType = "aes"\ndnsId = 12345\ndnsKey = "Swift-HTTPDNS-16"\n'

PROGRAM = os.path.abspath(__file__)  # a file that may be read and holds no certificate

# The content of the file; the line and the key that the message must name. ConfigurationTests test the values of each key.
WRONG = {
    "unknown key": ("[listen]\naddreses = []\n", 2, "listen.addreses"),
    "aes key missing": ('[httpdns]\nencryptType = "aes"\ndnsId = 1\n', None, "httpdns.dnsKey"),
    "a secret that is wrong": (AES.replace("-16", "-1"), 4, "httpdns.dnsKey"),
    "key file that is not there": (AES.replace('dnsKey = "Swift-HTTPDNS-16"', 'dnsKeyFile = "not-there"'), 4,
                                   "httpdns.dnsKeyFile"),
    "authority file that is not there": ('[tls]\ncaFile = "/not/there.pem"\n', 2, "tls.caFile"),
    "password file that is not there": (
        f'[tls]\nclientCertificate = "{PROGRAM}"\nclientCertificatePasswordFile = "not-there"\n', 3,
        "tls.clientCertificatePasswordFile"),
    "not TOML": ("[listen]\naddresses = [\n", None, "\\S+"),
}


@pytest.mark.parametrize("command", ["check", "run", "query"])
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_configuration(binary, tmp_path, case, command):
    text, line, key = WRONG[case]
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    names = ["www.example.com"] if command == "query" else []
    ended = processes.run(binary, command, *names, "-c", str(file))
    assert ended.returncode == 78, ended
    assert ended.stdout == ""
    place = re.escape(str(file)) + f":{line or '[0-9]+'}: "
    assert re.fullmatch(f"{place}{key}: .+\n", ended.stderr), ended.stderr
    assert "Swift-HTTPDNS" not in ended.stderr


@pytest.mark.parametrize("command", ["check", "run"])
@pytest.mark.parametrize(("section", "key", "others"), [
    ("fallback", "caFile", 'servers = ["tls://192.0.2.53"]'),
    ("fallback", "clientCertificate", 'servers = ["tls://192.0.2.53"]'),
    ("sharedCache", "caFile", f'server = "tls://192.0.2.53"\nkeyFile = "{PROGRAM}"'),
])
def test_a_file_that_holds_no_certificate(binary, tmp_path, section, key, others, command):
    """A useless certificate file shows only when it is used: `check` uses the file as `run` does."""
    file = tmp_path / "wrong.toml"
    file.write_text(f'[{section}]\n{key} = "{PROGRAM}"\n{others}\n')
    ended = processes.run(binary, command, "-c", str(file))
    assert ended.returncode == 78 and ended.stderr.startswith(f"{file}:2: {section}.{key}: "), ended
    assert ended.stderr.count("\n") == 1, "warnings are for who gets it to run"


@pytest.mark.parametrize(("arguments", "said"), [
    (["staus"], 'unknown command "staus"; did you mean "status"?'), (["cach"], 'unknown command "cach"; did you mean "watch"?'),
    (["help", "flsh"], 'unknown command "flsh"; did you mean "flush"?'),
    (["version", "--help"], 'unknown command "version"; did you mean "--version"?'),
    (["resolve"], 'unknown command "resolve"; there are run, check, '), ([""], 'unknown command ""; there are ')])
def test_unknown_commands(binary, arguments, said):
    ended = processes.run(binary, *arguments)
    assert ended.returncode == 64 and ended.stderr.startswith(said) and len(ended.stderr.splitlines()) == 1, ended
    assert ended.stdout == ""


@pytest.mark.parametrize("arguments", [["--nonsense"], ["nonsense"], ["query"], ["run", "--listen"],
                                       ["query", "a.example", "--type", "mx"],
                                       ["query", "a.example", "--format", "xml"], ["check", "surplus", "more"],
                                       ["run", "--listen", "nowhere:53"], ["flush", "a..b"], ["flush"]])
def test_wrong_usage(binary, arguments):
    ended = processes.run(binary, *arguments)
    assert ended.returncode == 64, ended
    assert ended.stderr and not ended.stdout


def test_a_file_that_cannot_be_read(binary, tmp_path):
    for path in (tmp_path / "not-there.toml", tmp_path):
        for command in ("check", "run"):
            ended = processes.run(binary, command, "-c", str(path))
            assert ended.returncode == 78, ended
            assert len(ended.stderr.splitlines()) == 1 and str(path) in ended.stderr


def test_check_prints_every_setting_and_no_secret(binary, tmp_path):
    file = tmp_path / "httpdnsd.toml"
    file.write_text(AES + 'token = "678905432"\nrouteIp = "198.51.100.7"\n[cache]\nmegabytes = 3\n')
    shown = processes.run(binary, "check", "--all", "-c", str(file))
    assert shown.returncode == 0, shown
    assert "Swift-HTTPDNS-16" not in shown.stdout + shown.stderr
    assert "678905432" not in shown.stdout + shown.stderr
    settings = tomllib.loads(shown.stdout)
    assert settings["cache"] == {"megabytes": 3, "minTTL": 0, "negativeMinTTL": 0, "maxTTL": 86400, "negativeTTL": 30,
                                 "staleSeconds": 86400, "staleTTL": 30, "prefetchAt": 75, "keepAliveDomains": [],
                                 "preResolve": [], "rank": [], "file": ""}
    assert settings["httpdns"]["minutesBeforeSwitchToMain"] == 10
    assert settings["fallback"]["hedgeAfter"] == 1000
    assert settings["httpdns"]["routeIp"] == "198.51.100.7"
    assert settings["httpdns"]["dnsIp"] in (["119.29.29.98"], ["119.29.29.98:80"])
    assert settings["listen"]["addresses"] == ["127.0.0.1:53", "[::1]:53"]
    assert settings["fallback"]["resolvConf"][-1] == "/etc/resolv.conf"
    assert settings["domains"]["bypass"] == []


def test_check_says_what_differs_and_where_it_was_given(binary, tmp_path):
    file = tmp_path / "httpdnsd.toml"
    file.write_text('[httpdns]\ntoken = "678905432"\n\n[upstreams.office]\nservers = ["10.1.0.53"]\ndomains = ["corp.example"]\n')
    shown = processes.run(binary, "check", str(file), variables={"HTTPDNSD_CACHE_MEGABYTES": "3"})
    assert shown.returncode == 0 and "678905432" not in shown.stdout, shown
    lines = shown.stdout.splitlines()
    assert lines[0] == f"# {file} is right"
    assert f"  # {file}:2" in shown.stdout and "megabytes = 3  # HTTPDNSD_CACHE_MEGABYTES" in lines, lines
    assert f'domains = ["corp.example"]  # {file}:6' in lines and "maxTTL" not in shown.stdout, lines
    assert set(tomllib.loads(shown.stdout)) == {"httpdns", "upstreams", "cache", "control"}, lines
    whole = processes.run(binary, "check", "--all", str(file))
    assert whole.stdout.startswith(f"# {file} is right\n") and "maxTTL" in whole.stdout
    assert processes.run(binary, "check", str(file), "-c", str(file)).returncode == 64
    shown = processes.run(binary, "check", "-c", "/dev/null", variables={"HTTPDNSD_CONTROL_SOCKET": "/run/httpdnsd/control.sock"})
    assert shown.stdout == "# /dev/null is right\n# Every key has its default; --all shows them.\n", shown


@pytest.mark.parametrize("command", ["check", "run", "probe"])
def test_a_file_that_is_not_utf8(binary, tmp_path, command):
    """A path in Latin-1, read as another encoding, would be another path, so the file is refused."""
    file = tmp_path / "httpdnsd.toml"
    file.write_bytes('[fallback]\nhosts = "/etc/h\xf6sts"\n'.encode("latin-1"))
    ended = processes.run(binary, command, "-c", str(file))
    assert ended.returncode == 78 and ended.stderr.startswith(f"{file}:2: syntax: a character that is not UTF-8; "), ended


@pytest.mark.parametrize(("text", "is_remarked"), [
    ('[tls]\nserverName = "dns.example"\n[fallback]\nservers = ["tls://192.0.2.1"]\n', True), ("[tls]\n#serverName = \"\"\n", False),
    ('[tls]\nserverName = "dns.example"\n[httpdns]\ntoken = "678905432"\n', False),
    ('[fallback]\nservers = ["tls://192.0.2.1#dns.example"]\n', False)])
def test_tls_without_an_account_is_remarked_on(binary, tmp_path, text, is_remarked):
    file = tmp_path / "httpdnsd.toml"
    file.write_text(text)
    file.chmod(0o600)
    shown = processes.run(binary, "check", str(file))
    assert shown.returncode == 0 and ("[tls] has no effect without [httpdns]" in shown.stderr) == is_remarked, shown


def test_check_says_all_mistakes(binary, tmp_path):
    """`check` reports all mistakes in the order of lines, then those of variables, then their number."""
    file = tmp_path / "httpdnsd.toml"
    file.write_text('[cache]\nmegabytes = 0\nmaxTLL = 3\n\n[lissten]\nallow = 7\n\n[log]\nlevel = "loud"\n')
    shown = processes.run(binary, "check", str(file), variables={"HTTPDNSD_CACHE_MINTTL": "x"})
    assert shown.returncode == 78 and shown.stdout == "", shown
    starts = [f"{file}:2: cache.megabytes", f"{file}:3: cache.maxTLL", f"{file}:5: lissten", f"{file}:9: log.level",
              "environment: HTTPDNSD_CACHE_MINTTL", f"{file}: 5 mistakes"]
    lines = shown.stderr.splitlines()
    assert len(lines) == len(starts) and all(map(str.startswith, lines, starts)), lines
    # `run` reports the first mistake.
    ended = processes.run(binary, "run", "-c", str(file))
    assert ended.returncode == 78 and ended.stderr.splitlines() == lines[:1], ended


@pytest.mark.parametrize(("listen", "remarks"), [
    ('addresses = ["0.0.0.0:2053"]\nallow = ["0.0.0.0/0", "::/0", "10.0.0.0/8"]', ["0.0.0.0/0", "::/0"]),
    ('addresses = ["127.0.0.1:2053"]\nallow = ["0.0.0.0/0"]', []),
    ('addresses = ["0.0.0.0:2053"]\nallow = ["10.0.0.0/8", "fc00::/7"]', []),
])
def test_an_open_resolver_is_remarked_on(binary, tmp_path, listen, remarks):
    file = tmp_path / "httpdnsd.toml"
    file.write_text(f'[listen]\n{listen}\n[fallback]\nservers = ["127.0.0.2"]\n')
    shown = processes.run(binary, "check", str(file))
    assert shown.returncode == 0, shown
    said = [line for line in shown.stderr.splitlines() if "everyone who reaches it is answered" in line]
    assert [line.split()[2].rstrip(",") for line in said] == remarks, shown


def test_check_says_that_nobody_can_be_asked(binary, tmp_path):
    """`check` warns, without an error, when resolv.conf names the daemon alone."""
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    file = tmp_path / "httpdnsd.toml"
    file.write_text(f'[fallback]\nresolvConf = ["{tmp_path}/resolv.conf"]\n')
    shown = processes.run(binary, "check", "--all", "-c", str(file))
    assert shown.returncode == 0
    assert len([line for line in shown.stderr.splitlines() if re.search("resolv", line)]) == 1, shown


def test_check_says_which_hosts_files_are_not_read(binary, tmp_path):
    (tmp_path / "folder").mkdir()
    file = tmp_path / "httpdnsd.toml"
    file.write_text('[fallback]\nservers = ["127.0.0.2"]\nhosts = ["/etc/hosts", "mistyped", "folder"]\n')
    shown = processes.run(binary, "check", "-c", str(file))
    said = [line for line in shown.stderr.splitlines() if "cannot be read, so nothing is answered from it" in line]
    assert shown.returncode == 0 and len(said) == 2 and "mistyped" in said[0] and "folder" in said[1], shown


def test_a_secret_from_a_file(binary, daemon, service, tmp_path, tmp_path_factory):
    """A secret is read from a file beside the configuration, at an absolute path, or first of all in $CREDENTIALS_DIRECTORY."""
    chosen = service("aes")
    good, bad = chosen.key + "\n", "wrong-wrong-16-b\n"
    credentials = tmp_path_factory.mktemp("credentials")
    (credentials / "key").write_text(good)
    absolute = tmp_path / "absolute"
    absolute.write_text(good)
    section = {key: value for key, value in chosen.settings().items() if key != "dnsKey"}
    for port, name, variables in ((2053, "key", {"CREDENTIALS_DIRECTORY": str(credentials)}),
                                  (2054, str(absolute), {"CREDENTIALS_DIRECTORY": str(credentials)})):
        whole = {"listen": {"addresses": [f"127.0.0.1:{port}"]},
                 "httpdns": section | {"dnsKeyFile": name, "httpOnly": True}}
        daemon(whole=whole, variables=variables, port=port)
        assert addresses(ask("www.example.com", port=port))[0] == "203.0.113.20"
    file = tmp_path / "httpdnsd.toml"
    file.write_text(processes.toml({"httpdns": section | {"dnsKeyFile": "key"}}))
    for text, code in ((good, 0), (bad, 0), ("short\n", 78)):
        (tmp_path / "key").write_text(text)
        ended = processes.run(binary, "check", "--all", "-c", str(file))
        assert ended.returncode == code and text.strip() not in ended.stdout + ended.stderr
    (tmp_path / "key").write_text(good)
    asked = processes.run(binary, "query", "www.example.com", "-c", str(file), "--type", "a")
    assert "203.0.113.20" in asked.stdout, asked


def test_the_environment_wins_over_the_file(daemon, service):
    chosen = service("https")
    daemon(chosen, {"httpdns": {"httpOnly": False, "token": "wrong"}, "cache": {"negativeTTL": 30}},
           variables={"HTTPDNSD_HTTPDNS_HTTPONLY": "true", "HTTPDNSD_HTTPDNS_TOKEN": chosen.token,
                      "HTTPDNSD_CACHE_NEGATIVETTL": "77", "HTTPDNSD_LISTEN_ADDRESSES": "127.0.0.1:2053,127.0.0.1:2054"},
           port=2053)
    assert addresses(ask("www.example.com", port=2053))[0] == "203.0.113.20"
    assert synthetic_soa(ask("only-local.example.com", port=2054))[1] == 77


def test_the_environment_alone(daemon, service, authority):
    """The daemon runs by variables alone, as in a container without a file."""
    chosen = service("https")
    daemon(whole={}, variables={"HTTPDNSD_HTTPDNS_ENCRYPTTYPE": "https", "HTTPDNSD_HTTPDNS_TOKEN": chosen.token,
                                "HTTPDNSD_HTTPDNS_DNSIP": chosen.endpoint, "HTTPDNSD_TLS_CAFILE": str(authority.file),
                                "HTTPDNSD_FALLBACK_SERVERS": "127.0.0.2", "HTTPDNSD_LISTEN_ADDRESSES": "127.0.0.1:53"})
    assert addresses(ask("www.example.com"))[0] == "203.0.113.20"
    assert addresses(ask("only-local.example.com")) == ["198.51.100.81"]


@pytest.mark.parametrize(("variable", "value"), [
    ("HTTPDNSD_CACHE_MEGABYTES", "much"), ("HTTPDNSD_CACHE_MEGABITES", "3"), ("HTTPDNSD_LISTEN_ALLOW", "10.0.0.0/8,x"),
])
def test_a_wrong_environment(binary, tmp_path, variable, value):
    file = tmp_path / "httpdnsd.toml"
    file.write_text(AES)
    ended = processes.run(binary, "check", "--all", "-c", str(file), variables={variable: value})
    assert ended.returncode == 78 and ended.stdout == ""
    assert len(ended.stderr.splitlines()) == 1 and variable in ended.stderr, ended.stderr


def test_no_file_and_nothing_in_the_environment(daemon):
    """Without a file at the default path, the defaults apply."""
    assert not os.path.exists("/etc/httpdnsd/httpdnsd.toml")
    running = daemon(whole={}, arguments=["--listen", "127.0.0.1:2053"], port=2053)
    eventually(lambda: running.log() is not None, "it runs")
