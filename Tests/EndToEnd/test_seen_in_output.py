"""`dnsKey`, `token` and passwords do not appear in anything that the daemon writes or shows."""

import base64
import pathlib
import subprocess
import tempfile
import urllib.parse
import urllib.request

import pytest

import daemon as processes
from collector import Collector
from control import metrics
from dns_client import ask
from httpdns_service import Fault, every_name
from providers import AES_KEY, SECRETS, Refused
from resolvers import answer_locally
from waiting import eventually

KEYS = {"aes": "q7Vx!z-Kp2#Lm9&W", "des": "z9!Kw#4q", "https": ""}
TOKEN = "918273645"
LONG = ".".join(["l" * 60] * 3)
FAULTS = [Fault("status", 401), Fault("status", 429), Fault("status", 500), Fault("garbage"), Fault("close-mid-body"),
          Fault("silence"), Fault("reset"), Fault("text", "<html>")]


def spellings(secret):
    """The secret itself, and other notations in which it could be written by mistake."""
    raw = secret.encode()
    return {raw, raw.hex().encode(), raw.hex().upper().encode(), base64.b64encode(raw).rstrip(b"="),
            urllib.parse.quote(secret).encode(), str(list(raw))[1:-1].encode()}


@pytest.mark.parametrize(("encryption", "report_to"), [("aes", "url"), ("des", "log"), ("https", "log")])
def test_no_secret_is_anywhere(daemon, service, scripted_resolver, tmp_path, binary, authority, encryption,
                                  report_to):
    """No secret appears anywhere, while all is logged and reported, and all requests fail at least once."""
    local, taker = scripted_resolver(answer_locally), Collector()
    chosen = service(encryption, every_name, key=KEYS[encryption] or None, token=TOKEN)
    secrets = [TOKEN] if encryption == "https" else [KEYS[encryption]]
    (tmp_path / "secret").write_text(secrets[0] + "\n")
    settings = chosen.settings()
    settings["tokenFile" if encryption == "https" else "dnsKeyFile"] = str(tmp_path / "secret")
    whole = {
        "listen": {"addresses": ["127.0.0.1:53"]}, "log": {"level": "debug"},
        "httpdns": {key: value for key, value in settings.items() if key not in ("token", "dnsKey")} | {
            "debug": True, "enableReport": True, "timeout": 1000, "appId": "secrets",
            "reportUrl": taker.url if report_to == "url" else ""},
        "fallback": {"servers": [local.endpoint]}, "cache": {"file": str(tmp_path / "answers")}}
    if encryption == "https":
        whole["tls"] = {"caFile": str(authority.file)}
    running = daemon(None, whole=whole)
    ask("good.example.com")
    chosen.fault = Fault("status", 500)
    for number in range(150 if report_to == "url" else 0):  # more than fit into one report
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
    for command in (["check"], ["check", "--all"], ["probe"], query, [*query, "--format", "json"]):
        ended = processes.run(binary, *command, "-c", configuration)
        seen[" ".join(command)] = (ended.stdout + ended.stderr).encode()
    taker.stop()
    seen |= {"the log": running.log().encode(), "reports": "".join(taker.bodies + taker.heads).encode(),
             "the cache file": (tmp_path / "answers").read_bytes()}
    assert seen["check"] and seen["check --all"] and seen["probe"] and seen["the cache file"]
    for place, data in seen.items():
        for secret in secrets:
            for spelling in spellings(secret):
                assert spelling not in data, f"{spelling} is in {place}"


WAYS = [*((provider, "https") for provider in sorted(SECRETS)), ("alibaba", "aes")]


@pytest.mark.parametrize(("provider", "way"), WAYS)
def test_no_secret_of_another_provider_is_anywhere(daemon, account, scripted_resolver, tmp_path, binary, authority, provider,
                                                   way):
    """No secret of an account in `[httpdns]` or in a group appears anywhere, while requests are refused in several ways."""
    chosen, local = account(provider, way, every_name), scripted_resolver(answer_locally)
    secrets = {"dnsKey": SECRETS[provider]} | ({"aesKey": AES_KEY} if way == "aes" else {})
    keys = {key: value for key, value in chosen.settings().items() if key not in secrets}
    for name, secret in secrets.items():
        (tmp_path / name).write_text(secret)
        keys[name + "File"] = str(tmp_path / name)
    keys |= {"debug": True, "enableReport": True, "appId": "secrets", "timeout": 2000, "thenTry": ["fallback"]}
    socket = tmp_path / "control.sock"
    running = daemon(whole={
        "log": {"level": "debug"}, "control": {"metrics": "127.0.0.1:9153", "socket": str(socket)}, "httpdns": keys,
        "tls": {"caFile": str(authority.file)}, "fallback": {"servers": [local.endpoint]},
        "upstreams.shop": keys | {"domains": ["shop.example"], "caFile": str(authority.file)},
        "cache": {"file": str(tmp_path / "answers")}})
    refusals = [None, *(Refused(*refusal) for refusal in (
        (400, "InvalidHost"), (403, "SignatureExpired"), (500, "InternalError"), (429, "x"), (403, "InvalidSignature")))]
    for number, refusal in enumerate(refusals):
        chosen.refusal = refusal
        ask(f"n{number}.example.com"), ask(f"n{number}.shop.example")
    configuration = str(running.directory / "httpdnsd.toml")
    here = {"HTTPDNSD_CONTROL_SOCKET": str(socket)}
    seen = {"the command line": pathlib.Path(f"/proc/{running.pid}/cmdline").read_bytes(),
            "the environment": pathlib.Path(f"/proc/{running.pid}/environ").read_bytes(),
            "the process list": subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, check=True).stdout,
            "metrics": urllib.request.urlopen("http://127.0.0.1:9153/metrics").read(),
            "the status page": urllib.request.urlopen("http://127.0.0.1:9153/").read()}
    for command in (["status"], ["status", "--json"], ["cache", "--json"], ["explain", "n9.shop.example", "--ask"],
                    ["explain", "n9.shop.example", "--json"], ["check"], ["query", "n8.example.com"],
                    ["query", "n8.shop.example", "--group", "shop", "--format", "json"], ["probe", "--group", "shop"]):
        ended = processes.run(binary, *command, "-c", configuration, variables=here)
        seen[" ".join(command)] = (ended.stdout + ended.stderr).encode()
    assert all(seen[command] for command in ("status", "check", "metrics")) and b"shop" in seen["status"]
    running.stop()
    seen |= {"the log": running.log().encode(), "the cache file": (tmp_path / "answers").read_bytes(),
             "requests": "\n".join(chosen.targets).encode()}
    assert b"abnormal lookup" in seen["the log"] and b"shop: lookup n0.shop.example" in seen["the log"]
    for place, data in seen.items():
        for secret in secrets.values():
            for spelling in spellings(secret):
                assert spelling not in data, f"{spelling} is in {place}"


def test_a_secret_on_the_command_line_is_not_possible(binary):
    """No option takes a secret."""
    for command in ("run", "check", "query", "probe", "demo"):
        shown = processes.run(binary, command, "--help").stdout.lower()
        assert "key" not in shown and "token" not in shown and "password" not in shown, shown


@pytest.fixture
def open_folder():
    """A folder that every user can look into, unlike those of pytest."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        folder = pathlib.Path(folder)
        folder.chmod(0o755)
        yield folder


def test_a_secret_that_everybody_can_read_is_remarked_on(binary, open_folder, authority):
    """`check` and a start print a line for each such file, with the right mode."""
    token, settings = open_folder / "token", open_folder / "httpdnsd.toml"
    token.write_text("1234567")
    settings.write_text('[httpdns]\ntokenFile = "token"\n[fallback]\nservers = ["127.0.0.2"]\n')

    def remarks(command="check"):
        options = ["-c", str(settings)]
        if command == "check":
            ended = processes.run(binary, "check", "--all", *options)
            assert ended.returncode == 0
            return [line for line in ended.stderr.splitlines() if "can read it" in line]
        with subprocess.Popen([binary, "run", *options, "--listen", "127.0.0.1:2053"], stderr=subprocess.PIPE,
                              text=True, env=processes.environment()) as running:
            said = []
            for line in running.stderr:
                said.append(line)
                if "listening on" in line:
                    running.terminate()
        assert running.returncode == 0, said
        return [line for line in said if "can read it" in line]
    for mode, is_open in ((0o644, True), (0o604, True), (0o640, False), (0o600, False), (0o666, True)):
        token.chmod(mode)
        for command in ("check", "run"):
            found = remarks(command)
            assert len(found) == is_open, (oct(mode), found)
            assert not found or str(token) in found[0] and f"mode {mode:04o}" in found[0] and "chmod 640" in found[0]
    # A closed folder protects the file.
    open_folder.chmod(0o700)
    token.chmod(0o644)
    assert remarks() == []
    open_folder.chmod(0o755)
    # The settings are checked when a secret is in them.
    settings.chmod(0o644)
    token.chmod(0o600)
    assert remarks() == []
    settings.write_text('[httpdns]\ntoken = "1234567"\n[fallback]\nservers = ["127.0.0.2"]\n')
    found, = remarks()
    assert str(settings) in found and "1234567" not in found
    # Certificates of authorities are no secret.
    settings.write_text(f'[tls]\ncaFile = "{authority.file}"\n[fallback]\nservers = ["127.0.0.2"]\n')
    assert remarks() == []


def test_no_other_program_of_the_same_user_looks_into_it(binary, open_folder):
    """Other programs of the same user can read neither memory nor environment; the daemon still reads its own figures."""
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    program = open_folder / "httpdnsd"
    program.write_bytes(pathlib.Path(binary).read_bytes())
    program.chmod(0o755)
    running = processes.Daemon(program, open_folder, {}, prefix=as_nobody, port=2053, variables={
        "HTTPDNSD_LISTEN_ADDRESSES": "127.0.0.1:2053", "HTTPDNSD_HTTPDNS_TOKEN": TOKEN,
        "HTTPDNSD_CONTROL_METRICS": "127.0.0.1:9153"}).wait_until_ready()
    try:
        # Usually a user can read these files of all own programs.
        for file in ("environ", "mem", "maps"):
            ended = subprocess.run([*as_nobody, "head", "-c1", f"/proc/{running.pid}/{file}"], capture_output=True, text=True)
            assert ended.returncode != 0 and "Permission denied" in ended.stderr, file
        figures = metrics()
        assert abs(figures["process_open_fds", ()] - running.descriptors()) <= 2
        assert figures["process_resident_memory_bytes", ()] > 0
    finally:
        running.stop()
