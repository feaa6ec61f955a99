"""Programs as people use them: getent, curl, dig, dnspython, and the daemon's own commands."""

import http.server
import pathlib
import re
import subprocess
import threading

import dns.message
import dns.resolver
import pytest

import daemon as processes
from waiting import eventually


def output(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20,
                          check=True).stdout


def test_getent_and_dnspython(daemon, service):
    daemon(service("https"))
    lines = output("getent", "ahosts", "www.example.com")
    for address in ("203.0.113.20", "203.0.113.10", "203.0.113.30", "2001:db8:1::20", "2001:db8:1::10"):
        assert address in lines
    assert "198.51.100.81" in output("getent", "ahostsv4", "only-local.example.com")
    assert subprocess.run(["getent", "ahosts", "missing.example.com"], capture_output=True, timeout=20).returncode == 2
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
        assert output("curl", "--silent", "--show-error", "--max-time", "10", url) == f"hello from {url[7:-1]}"
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
    """What the machine's resolv.conf says while a test runs."""
    path = pathlib.Path("/etc/resolv.conf")
    before = path.read_text()
    yield path.write_text
    path.write_text(before)


@pytest.fixture
def demo(binary, tmp_path):
    """Starts `httpdnsd demo` and gives what it has printed."""
    started = []

    def start(*arguments, port=5300):
        log = tmp_path / "demo.log"
        with log.open("w") as file:
            process = subprocess.Popen([binary, "demo", *arguments], stdin=subprocess.DEVNULL, stdout=file,
                                                 stderr=file, env=processes.environment())
        started.append(process)

        def answers():
            assert process.poll() is None, log.read_text()
            # What dig says of a refused connection has the address in it as well.
            return "127.0.0.1" in subprocess.run(
                ["dig", "@127.0.0.1", "-p", str(port), "+short", "+tries=1", "+time=1", "localhost"],
                capture_output=True, text=True).stdout.splitlines()
        eventually(answers, "the demo answers", 15)
        return log

    yield start
    for process in started:
        process.terminate()
        assert process.wait(5) == 0


@pytest.mark.parametrize("resolv_conf", ["nameserver 127.0.0.2\n", ""])
def test_demo(demo, machine_resolver, unbound, resolv_conf):
    """No account, no network: addresses from the demo's own service and resolver; all else from the machine's resolver."""
    machine_resolver(resolv_conf)
    log = demo()
    at = ["dig", "@127.0.0.1", "-p", "5300", "+short", "+tries=1", "+time=5", "example.com"]
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
    """As its metrics say; and the resolver answers other clients, by TLS and by HTTPS."""
    machine_resolver("nameserver 127.0.0.2\n")
    said = demo().read_text()
    tls, https = re.search(r"tls://127\.0\.0\.1:(\d+) and https://127\.0\.0\.1:(\d+)/dns-query", said).groups()
    at = ["dig", "@127.0.0.1", "-p", "5300", "+short", "+tries=1", "+time=5"]
    assert output(*at, "example.net").strip() == "192.0.2.9"
    page = re.search(r"http://127\.0\.0\.1:\d+/", said).group()
    counts = re.findall(r'^httpdnsd_server_request_duration_seconds_count{group="[^"]*",server="([^"]+)"[^}]*} (\d+)$',
                        output("curl", "--silent", "--fail", page + "metrics"), re.MULTILINE)
    assert sum(int(count) for to, count in counts if to == f"tls://127.0.0.1:{tls}") == 1, counts
    assert not [to for to, count in counts if int(count) and not to.startswith("tls://")]
    kdig = ["kdig", "@127.0.0.1", "+short", "+retry=0", "+timeout=5"]
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
