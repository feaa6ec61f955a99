"""Programs as people use them: getent, curl, dig, dnspython, and the daemon's own commands."""

import http.server
import pathlib
import re
import signal
import subprocess
import tempfile
import threading

import dns.message
import dns.resolver
import pytest

import daemon as processes
from waiting import eventually


def output(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=True).stdout


def test_getent_and_dnspython(daemon, service):
    daemon(service("https"))
    lines = output("getent", "ahosts", "www.example.com")
    for address in ("203.0.113.20", "203.0.113.10", "203.0.113.30", "2001:db8:1::20", "2001:db8:1::10"):
        assert address in lines
    assert "198.51.100.81" in output("getent", "ahostsv4", "only-local.example.com")
    assert subprocess.run(["getent", "ahosts", "missing.example.com"], capture_output=True, timeout=60).returncode == 2
    resolver = dns.resolver.Resolver()
    assert resolver.nameservers == ["127.0.0.1"]
    assert [rdata.address for rdata in resolver.resolve("www.example.com", "A")][0] == "203.0.113.20"
    assert "10 mx1.example.com." in [rdata.to_text() for rdata in resolver.resolve("example.com", "MX")]
    with pytest.raises(dns.resolver.NXDOMAIN):
        resolver.resolve("missing.example.com", "A")


def test_curl(daemon, service):
    class Hello(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = f"hello from {self.headers['Host']}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    chosen = service("aes")
    daemon(chosen)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        url = f"http://service.example.com:{server.server_port}/"
        assert output("curl", "--silent", "--show-error", "--max-time", "30", url) == f"hello from {url[7:-1]}"
        server.shutdown()
    assert "service.example.com" in chosen.names


def test_dig(daemon, service):
    daemon(service("des"))
    assert output("dig", "+short", "www.example.com").split() == ["203.0.113.20", "203.0.113.10", "203.0.113.30"]
    assert output("dig", "+tcp", "+short", "www.example.com", "AAAA").split() == ["2001:db8:1::20", "2001:db8:1::10"]
    assert "10 mx1.example.com." in output("dig", "+short", "example.com", "MX").splitlines()
    full = output("dig", "+nocookie", "www.example.com")
    assert "status: NOERROR" in full and "udp: 1232" in full and "WARNING" not in full
    assert len(output("dig", "+short", "big.example.com", "TXT").splitlines()) == 30, "TC, then TCP"


@pytest.fixture
def machine_resolver():
    """Sets the content of the machine's resolv.conf while a test runs."""
    path = pathlib.Path("/etc/resolv.conf")
    before = path.read_text()
    yield path.write_text
    path.write_text(before)


@pytest.fixture
def demo(binary, tmp_path):
    """Starts `httpdnsd demo` and returns the file of its output."""
    started = []
    folder = pathlib.Path(tempfile.mkdtemp(prefix="d-", dir="/tmp"))

    def start(*arguments, port=5300):
        log = tmp_path / "demo.log"
        with log.open("w") as file:
            process = subprocess.Popen([binary, "demo", *arguments], stdin=subprocess.DEVNULL, stdout=file,
                                                 stderr=file, env=Typing(folder).environment)
        started.append(process)

        def answers():
            assert process.poll() is None, log.read_text()
            # The message of dig about a refused connection contains the address as well.
            return "127.0.0.1" in subprocess.run(
                ["dig", "@127.0.0.1", "-p", str(port), "+short", "+tries=1", "+time=1", "localhost"],
                capture_output=True, text=True).stdout.splitlines()
        eventually(answers, "the demo answers")
        return log

    start.folder = folder
    start.processes = started
    yield start
    for process in started:
        process.terminate()
        assert process.wait(20) == 0
    assert not list(start.folder.iterdir()), "it leaves nothing behind"
    start.folder.rmdir()


class Typing:
    """A person at a terminal of their own, on a machine without a running daemon."""

    def __init__(self, folder):
        self.environment = {key: value for key, value in processes.environment().items() if not key.startswith("HTTPDNSD_")}
        self.environment["XDG_RUNTIME_DIR"] = str(folder)
        self.begun = ""

    def __call__(self, line, code=0):
        if line.startswith("PATH="):
            self.begun = line + "\n"
            return ""
        command = self.begun + ("timeout --signal=INT --foreground 2 " if " watch" in line else "") + line
        ended = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                               env=self.environment, cwd="/")
        assert ended.returncode in ((0, 124) if " watch" in line else (code,)), (line, ended)
        return ended.stdout + ended.stderr


def test_everything_the_demo_prints_is_typed(demo, machine_resolver, unbound):
    """Every printed command is typed in order, and its output has the expected text."""
    machine_resolver("nameserver 127.0.0.2\n")
    text = demo().read_text()
    assert all(len(line) <= 80 or "httpdnsd.toml" in line or "PATH=" in line or " notice " in line for line in text.splitlines()), text
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    person, said = Typing(demo.folder), {}
    for line in lines:
        said[line.split("  #")[0].strip()] = person(line)
    assert len(lines) == 18 and lines[0] == "dig @127.0.0.1 -p 5300 example.com             # HTTPDNS", lines
    assert "http://127.0.0.1:5380/" in text and "127.0.0.1:5343" in text
    for start, words in (("httpdnsd status", "Names resolve through HTTPDNS."), ("httpdnsd explain", "127.0.0.1:5343"),
                         ("httpdnsd flush", "answers forgotten"), ("curl", "httpdnsd_build_info"),
                         ("httpdnsd probe", "HTTPDNS works"), ("httpdnsd query", "example.com A "), ("kdig", "NOERROR"), ("example.net", "192.0.2.9")):
        found = [output for line, output in said.items() if line.startswith(start) or line.endswith(start)]
        assert found and all(words in output for output in found), (start, found)
    assert "([httpdns] at " in said["httpdnsd explain example.com"] and "httpdnsd.toml:" in said["httpdnsd explain example.com"]
    assert "no configuration that could be read again" in person("httpdnsd reload", code=69)


def test_two_demos(demo, machine_resolver):
    """A second demo uses other ports where the usual ones are taken, and another folder; its commands name its file."""
    machine_resolver("nameserver 127.0.0.2\n")
    first = demo().read_text()
    second = demo(port=5301).read_text()
    for text, port in ((first, "5300"), (second, "5301")):
        assert f"dig @127.0.0.1 -p {port} example.com" in text, text
    assert "127.0.0.1:5343" in first and "127.0.0.1:5343" not in second and "http://127.0.0.1:5381/" in second
    file = re.search(r"check -c (\S+)", second).group(1)
    assert file.endswith("/httpdnsd-demo-2/httpdnsd.toml") and "127.0.0.1:5301" in pathlib.Path(file).read_text()
    assert pathlib.Path(file).stat().st_mode & 0o777 == 0o600
    person = Typing(demo.folder)
    person(re.search(r"PATH=\S+", second).group())
    for text, option in ((first, ""), (second, f" -c {file}")):
        for command in ("status", "explain", "watch", "flush"):
            assert re.search(rf"^ +httpdnsd {command}{option}(  | example|$)", text, re.MULTILINE), (command, text)
    assert "127.0.0.1:5343" in person("httpdnsd status") and "127.0.0.1:5343" not in person(f"httpdnsd status -c {file}")


def test_a_demo_whose_service_fails(demo, machine_resolver, unbound):
    """The demo's service fails until the first Ctrl-C; the second one ends the demo."""
    machine_resolver("nameserver 127.0.0.2\n")
    log = demo("--fail")
    person = Typing(demo.folder)
    person(next(line.strip() for line in log.read_text().splitlines() if "PATH=" in line))
    at = ["dig", "@127.0.0.1", "-p", "5300", "+short", "+tries=1", "+time=20", "example.com"]
    asked = unbound.asked().count(("example.com", "A"))
    output(*at)
    assert unbound.asked().count(("example.com", "A")) > asked, "the resolver of this machine is asked"
    eventually(lambda: "HTTPDNS fails." in person("httpdnsd status"), "it is said that it fails")
    assert f"httpdnsd probe -c {demo.folder}/httpdnsd-demo/httpdnsd.toml\n" in person("httpdnsd status")
    demo.processes[0].send_signal(signal.SIGINT)
    eventually(lambda: "The service answers again." in log.read_text(), "it says so")
    person("httpdnsd flush --all")
    eventually(lambda: output(*at) and "Names resolve through HTTPDNS." in person("httpdnsd status"), "it answers again")
    assert demo.processes[0].poll() is None
    demo.processes[0].send_signal(signal.SIGINT)
    assert demo.processes[0].wait(20) == 0


@pytest.mark.parametrize("resolv_conf", ["nameserver 127.0.0.2\n", ""])
def test_demo(demo, machine_resolver, unbound, resolv_conf):
    """Without account and network, addresses come from the demo's service and resolver, all else from the machine's resolver."""
    machine_resolver(resolv_conf)
    log = demo()
    at = ["dig", "@127.0.0.1", "-p", "5300", "+short", "+tries=1", "+time=20", "example.com"]
    before = unbound.asked().count(("example.com", "A"))
    four, six = output(*at), output(*at, "AAAA")
    assert four and all(len(line.split(".")) == 4 for line in four.split())
    assert six and all(":" in line for line in six.split())
    assert output(*at, "+tcp") == four
    assert unbound.asked().count(("example.com", "A")) == before
    assert output(*at[:-1], "example.net").strip() == "192.0.2.9", "which its encrypted resolver alone knows"
    if resolv_conf:
        assert "10 mx1.example.com." in output(*at, "MX").splitlines()
        assert output(*at[:-1], "only-local.example.com").strip() == "198.51.100.81"
    else:
        assert "status: SERVFAIL" in output(*[part for part in at if part != "+short"], "MX")
    assert "dig @127.0.0.1 -p 5300" in log.read_text(), "it says what to type next"


def test_the_demo_asks_its_resolver_by_tls(demo, machine_resolver, unbound):
    """The metrics show that the demo asks its resolver by TLS; the resolver answers other clients by TLS and HTTPS."""
    machine_resolver("nameserver 127.0.0.2\n")
    said = demo().read_text()
    tls, https = re.search(r"tls://127\.0\.0\.1:(\d+) and https://127\.0\.0\.1:(\d+)/dns-query", said).groups()
    at = ["dig", "@127.0.0.1", "-p", "5300", "+short", "+tries=1", "+time=20"]
    assert output(*at, "example.net").strip() == "192.0.2.9"
    page = re.search(r"http://127\.0\.0\.1:\d+/", said).group()
    counts = re.findall(r'^httpdnsd_server_request_duration_seconds_count{group="[^"]*",server="([^"]+)"[^}]*} (\d+)$',
                        output("curl", "--silent", "--fail", page + "metrics"), re.MULTILINE)
    assert sum(int(count) for to, count in counts if to == f"tls://127.0.0.1:{tls}") == 1, counts
    assert not [to for to, count in counts if int(count) and not to.startswith("tls://")]
    kdig = ["kdig", "@127.0.0.1", "+short", "+retry=0", "+timeout=20"]
    ways = [["-p", tls, "+tls"], ["-p", https, "+https=/dns-query"], ["-p", https, "+https-get=/dns-query"]]
    for way in ways:
        assert output(*kdig, *way, "example.net").strip() == "192.0.2.9"
    query = dns.message.make_query("example.net", "AAAA", id=0).to_wire()
    answer = subprocess.run(
        ["curl", "--silent", "--fail", "--insecure", "--http2", "--data-binary", "@-", "--header",
         "content-type: application/dns-message", f"https://127.0.0.1:{https}/dns-query"],
        input=query, capture_output=True, check=True).stdout
    assert dns.message.from_wire(answer).answer[0][0].address == "2001:db8::9"


def test_demo_elsewhere(demo):
    demo("--listen", "127.0.0.1:5399", port=5399)


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["check", "--help"], ["query", "--help"],
                                       ["demo", "--help"], ["--version"]])
def test_help(binary, arguments):
    shown = processes.run(binary, *arguments)
    assert shown.returncode == 0 and shown.stdout and not shown.stderr
