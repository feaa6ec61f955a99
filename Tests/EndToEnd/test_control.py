"""The operator's commands, and the requests that a daemon answers on its control socket and its metrics address."""

import contextlib
import json
import os
import pathlib
import pty
import re
import resource
import signal
import socket
import stat
import subprocess
import termios
import time

import pytest

import daemon as processes
from control import Control, fetch, metrics
from dns_client import addresses, ask
from encrypted import address_reply
from waiting import eventually, waited_since


@pytest.fixture
def controlled(daemon, binary, place):
    """Starts a daemon with a control socket and the metrics address."""
    def start(service, settings=None, **options):
        settings = settings or {}
        control = {"socket": str(place / "control.sock"), "metrics": "127.0.0.1:9153"} | settings.get("control", {})
        running = daemon(service, settings | {"control": control}, **options)
        operator = Control(binary, running)
        operator.socket = pathlib.Path(control["socket"])
        return running, operator
    return start


def test_status_says_how_it_is(controlled, service):
    _, operator = controlled(service("https"))
    assert "Ready to resolve names through HTTPDNS." in operator("status")
    for _ in range(3):
        assert addresses(ask("www.example.com"))
    ask("www.example.com", transport="tcp")
    ask("nothing.invalid")
    overview = operator.json()
    assert overview["state"] == "healthy" and overview["ready"] is True
    assert overview["verdict"] == "Names resolve through HTTPDNS."
    account, fallback, private = overview["groups"]
    assert private["name"] == "private"
    [server] = account["servers"]
    assert server["state"] == "answers" and server["answers"] == 1 and server["lastFailure"] is None
    assert account["name"] == "httpdns" and account["kind"] == "httpdns" and account["protocols"] == ["httpdns-https"]
    assert account["thenTry"] == ["fallback"] and account["wall"] is False
    assert account["counters"] == {"questions": 1, "queries": 1, "names": 1, "namesLastHour": 1, "repeats": 0, "failures": 0}
    assert server["inUse"] and server["protocol"] == "httpdns-https" and server["resumed"] is False
    assert 0 < server["p50Milliseconds"] == server["p95Milliseconds"] < 3000 and server["secondsUntilNextTry"] is None
    assert fallback["name"] == "fallback" and fallback["protocols"] == ["plain"]
    assert overview["cache"]["hits"] == 3 and overview["cache"]["answers"] == 2
    # One of these questions is the test's own, which checks that the daemon is ready.
    assert overview["questions"]["asked"] == 6
    assert overview["questions"]["responses"] == {"NOERROR": 5, "NXDOMAIN": 1}
    text = operator("status")
    assert overview["headline"].startswith("serving; HTTPDNS 127.0.0.3")
    assert overview["headline"].split(" ms")[0] in text and "cache 2 answers, 50 % hits" in text, text
    assert "\nHTTPDNS: encrypted; then fallback; 1 question; billed for at most 1 name, 1 in the last hour\n  127.0.0.3:" in text, text
    assert "  HTTPDNS by https, encrypted " in text and "  DNS over UDP and TCP, in the clear " in text, text
    assert "example.com" not in text + str(overview)


def test_status_says_who_fails_and_why(controlled, service):
    chosen = service("aes")
    _, operator = controlled(chosen)
    chosen.stop()
    ask("service.example.com")
    overview = operator.json()
    assert overview["state"] == "degraded" and overview["ready"] is True
    assert overview["verdict"] == "HTTPDNS fails. Names come from fallback."
    [server] = overview["groups"][0]["servers"]
    assert server["state"] == "fails" and server["lastFailure"]["reason"] == "connect: Connection refused"
    assert server["lastFailure"]["kind"] == "unreachable" and server["lastFailure"]["secondsAgo"] < 10
    assert overview["fallbacks"] == {"unreachable": 1}
    chosen.start()
    eventually(lambda: ask("www.example.com").answer and operator.json()["state"] == "healthy", "it answers again")


def test_a_group_nobody_asks_is_not_shown(controlled, service):
    _, operator = controlled(service("aes"), {"httpdns": {"httpOnly": True}})
    overview = operator.json()
    assert [group["name"] for group in overview["groups"]] == ["httpdns"] and overview["groups"][0]["wall"] is True
    assert "HTTPDNS: encrypted; no other server is asked" in operator("status")


def test_it_is_said_that_nobody_answers_any_more(controlled, service):
    """The log names the local resolver as the substitute for HTTPDNS only while it answers."""
    chosen = service("aes")
    running, operator = controlled(chosen, {"httpdns": {"batch": 1}, "fallback": {"servers": ["127.0.0.9"]}})
    chosen.stop()
    for i in range(4):
        ask(f"n{i}.example.com")
    lines = [line for line in running.log().splitlines() if "out of use" in line]
    assert len(lines) == 2, lines
    assert "HTTPDNS is out of use" in lines[0] + lines[1] and "is asked in its place" not in lines[1], lines
    assert "and so is" in lines[1] and lines[1].endswith("questions get SERVFAIL, or what is cached, even if stale"), lines
    assert operator.json()["verdict"] == "Names do not resolve."
    chosen.start()
    eventually(lambda: ask("n9.example.com").answer and running.log_lines("HTTPDNS is in use again"), "it is back")


def test_readiness(controlled, service):
    """The daemon is not ready once questions for three names got no answer from any server; one name is not enough."""
    chosen = service("aes")
    running, operator = controlled(chosen, {"httpdns": {"httpOnly": True}})
    assert operator("status", "--ready") == ""
    assert fetch("/readyz")[0] == 200
    chosen.stop()
    for _ in range(2):
        assert ask("www.example.com").rcode() == 2
    assert operator("status", "--ready") == "" and fetch("/readyz")[0] == 200
    assert "No server answered the last question." in operator("status")
    for name in ("n3.example.com", "n4.example.com"):
        assert ask(name).rcode() == 2
    line = operator("status", "--ready", code=69)
    assert line.startswith("not ready: serving from the cache alone; HTTPDNS 127.0.0.3") and "fails" in line
    assert len(line.splitlines()) == 1
    status, _, body = fetch("/readyz")
    assert status == 503 and body in line
    assert fetch("/healthz")[0] == 200
    chosen.start()
    eventually(lambda: ask("n2.example.com").answer, "it answers again")
    assert operator("status", "--ready") == "" and fetch("/readyz")[0] == 200
    assert running.log_lines("warning") and "\nCache: 2 answers" in operator("status")


def test_flush(controlled, service, tmp_path):
    chosen = service("aes")
    file = tmp_path / "cache"
    running, operator = controlled(chosen, {"cache": {"file": str(file)}})
    names = [f"n{i}.example.com" for i in range(3)]
    for name in [*names, "missing.example.com"]:
        ask(name)
    asked = len(chosen.names)
    eventually(lambda: file.exists() and b"\x02n1\x07example" in file.read_bytes(), "the cache is in its file")
    assert operator("flush", "N1.example.com.") == "2 answers forgotten\n"
    assert operator("flush", "n1.example.com") == "0 answers forgotten\n"
    assert b"\x02n1\x07example" not in file.read_bytes(), "it is forgotten in the file, too"
    for name in names:
        ask(name)
    assert chosen.names[asked:] == ["n1.example.com"]
    # The absence of a name's record is flushed, too.
    operator("flush", "missing.example.com")
    ask("missing.example.com")
    assert chosen.names[asked:] == ["n1.example.com", "missing.example.com"]
    ask("n1.other.example")
    assert operator("flush", "--under", "example.com") == "7 answers forgotten\n"
    ask(names[0])
    assert chosen.names[asked + 2:] == ["n1.other.example", names[0]]
    assert "say which names" in operator("flush", code=64) and "one or the other" in operator("flush", "--all", "a", code=64)
    count = operator.json("status")["cache"]["answers"]
    assert operator("flush", "--all") == f"{count} answers forgotten\n"
    assert operator.json("status")["cache"]["answers"] == 0
    assert "n1" not in running.log() and len(running.log_lines("forgotten")) == 5
    for name in names:
        ask(name)
    others = [f"other{number}.example.com" for number in range(4)]
    assert operator("flush", names[0], *others, names[1]) == "4 answers forgotten\n", "more names than fit into a request"
    for wrong, said in (
            ("a..b", "a..b is not a domain name"),
            ("192.0.2.7", "192.0.2.7 is an address; its reverse name is 7.2.0.192.in-addr.arpa"),
            ("https://www.example.com:8443/a?b", "is a URL; give the name in it, www.example.com"),
            ("bücher.example", "has letters that are not ASCII; give the name as DNS has it, xn--")):
        assert said in operator("flush", wrong, code=64).replace("\n", " ")
    operator("flush", "--all")
    running.process.kill()
    running.process.wait()
    assert b"example" not in file.read_bytes()
    running.process.returncode = 0


def test_reload(controlled, service, binary):
    """`reload` does the same as HUP, and reports the result once it is in effect."""
    chosen = service("aes")
    running, operator = controlled(chosen)
    file = running.directory / "httpdnsd.toml"
    text = file.read_text()
    assert operator("reload") == "the configuration was read again, nothing has changed\n"
    file.write_text(text + "\n[cache]\nmaxTTL = 7\nmegabytes = 9\n")
    lines = operator("reload").splitlines()
    assert lines == ["the configuration was read again: cache.maxTTL",
                     "cache.megabytes needs a restart; until then it stays as it was"]
    assert ask("www.example.com").answer[0].ttl <= 7
    file.write_text(text + "\n[cache]\nmaxTTL = -7\n")
    said = operator("reload", code=78)
    assert said.startswith(f"the configuration stays as it was: {file}:") and "cache.maxTTL" in said
    assert len(said.splitlines()) == 1 and running.log_lines(re.escape(said.strip()))
    assert metrics()["httpdnsd_config_last_reload_successful", ()] == 0
    # A file that is not TOML cannot name the socket either, but the daemon must still report and count the mistake.
    file.write_text("no TOML")
    ended = processes.run(binary, "reload", "-c", str(file), variables={"HTTPDNSD_CONTROL_SOCKET": str(operator.socket)})
    assert ended.returncode == 78 and f"{file}:1" in ended.stderr and len(ended.stderr.splitlines()) == 1, ended
    file.unlink()
    assert f"open {file}: No such file" in operator("reload", code=78)
    file.write_text(text)
    operator("reload")
    assert metrics()["httpdnsd_config_last_reload_successful", ()] == 1 and addresses(ask("n1.example.com"))
    assert fetch("/reload", "POST")[0] == 404


def test_reload_without_a_control_socket(daemon, binary):
    """`reload` signals the process in MAINPID, by which systemd names the daemon to its ExecReload."""
    running = daemon(None, {"control": {"socket": ""}})
    ended = processes.run(binary, "reload", variables={"MAINPID": str(running.pid)})
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", ""), ended
    eventually(lambda: running.log_lines("was read again"), "it has read its configuration again")
    ended = processes.run(binary, "reload", variables={"MAINPID": "1x"})
    assert ended.returncode == 69 and "control.socket is off" in ended.stderr, ended


@pytest.mark.parametrize(("rows_and_columns", "variables", "width"), [
    ((24, 64), {}, 64), ((24, 64), {"COLUMNS": "50"}, 50), ((0, 0), {}, 80), ((24, 64), {"COLUMNS": "wide"}, 64)])
def test_text_fits_the_terminal(controlled, service, binary, rows_and_columns, variables, width):
    """Text on a terminal is broken between words at its width; text in a pipe is not broken."""
    _, operator = controlled(service("https"), {"upstreams.office": {"servers": ["tls://10.1.0.53#dns.corp.example"],
                                                                     "domains": ["corp.example"]}})
    assert addresses(ask("www.example.com"))
    for command in (["status"], ["explain", "www.example.com"]):
        whole = operator(*command)
        reading, writing = pty.openpty()
        termios.tcsetwinsize(writing, rows_and_columns)
        subprocess.run([binary, *command, "--socket", str(operator.socket)], stdin=subprocess.DEVNULL, stdout=writing,
                       env=processes.environment(variables), check=True, timeout=20)
        os.close(writing)
        shown = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while octets := os.read(reading, 1 << 16):
                shown += octets
        os.close(reading)
        lines = shown.decode().replace("\r", "").splitlines()
        assert all(len(line) <= width or " " not in line.strip() for line in lines), lines
        assert max(map(len, whole.splitlines())) > 80 and len(lines) > len(whole.splitlines())
        words = re.compile(r"[A-Za-z]+")
        assert words.findall(" ".join(lines))[:20] == words.findall(whole)[:20]


def test_text_that_is_lost_is_a_failure(controlled, service, binary):
    """On a full disk, standard output loses what a command says. A reader that ends is no failure."""
    running, operator = controlled(service("https"))
    file = str(running.directory / "httpdnsd.toml")
    at = ["--socket", str(operator.socket)]
    for command in (["status", "--json", *at], ["explain", "www.example.com", "--json", *at], ["check", "--all", "-c", file],
                    ["query", "www.example.com", "--format", "json", "-c", file]):
        with open("/dev/full", "wb") as full:
            ended = subprocess.run([binary, *command], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True,
                                   env=processes.environment(None), timeout=60)
        assert ended.returncode == 71 and ended.stderr.endswith("standard output: No space left on device\n"), ended
        reading, writing = os.pipe()
        os.close(reading)
        ended = subprocess.run([binary, *command], stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE, text=True,
                               env=processes.environment(None), timeout=60)
        os.close(writing)
        assert "standard output" not in ended.stderr and ended.returncode != 71, ended


def test_who_may_connect(controlled):
    _, operator = controlled(None, {"control": {"metrics": ""}})
    mode = operator.socket.stat()
    assert stat.S_ISSOCK(mode.st_mode) and stat.S_IMODE(mode.st_mode) == 0o660
    with pytest.raises(ConnectionRefusedError):
        fetch("/metrics")


def test_the_folder_is_made_and_the_socket_goes_with_the_daemon(controlled, place):
    running, operator = controlled(None, {"control": {"socket": str(place / "run" / "control.sock")}})
    assert stat.S_IMODE(operator.socket.parent.stat().st_mode) == 0o750
    running.stop()
    assert not operator.socket.exists()


def test_a_live_socket_is_nobody_elses_and_a_dead_one_is_replaced(controlled, daemon):
    first, operator = controlled(None)
    settings = {"listen": {"addresses": ["127.0.0.1:2053"]}, "control": {"socket": str(operator.socket)}}
    second = daemon(None, settings, port=2053)
    assert len(second.log_lines("no control socket")) == 1 and "Address already in use" in second.log()
    second.stop()
    assert operator.json()["state"] == "healthy"
    os.kill(first.pid, signal.SIGKILL)
    first.process.wait()
    first.process.returncode = 0
    assert operator.socket.exists()
    assert "Connection refused" in operator("status", code=69)
    daemon(None, settings, port=2053)
    assert operator.json()["state"] == "healthy"


def test_what_is_no_socket_is_left_alone(daemon, place):
    file = place / "mine"
    file.write_text("mine")
    running = daemon(None, {"control": {"socket": str(file)}})
    assert len(running.log_lines("no control socket")) == 1
    assert file.read_text() == "mine"


def test_no_daemon(binary, tmp_path):
    for command in (["status"], ["flush", "--all"], ["reload"]):
        ended = processes.run(binary, *command, "--socket", str(tmp_path / "none"))
        assert ended.returncode == 69 and len(ended.stderr.splitlines()) == 1 and str(tmp_path / "none") in ended.stderr
    ended = processes.run(binary, "status", variables={"HTTPDNSD_CONTROL_SOCKET": ""})
    assert ended.returncode == 69 and "control.socket is off" in ended.stderr


def test_the_socket_is_found_by_the_configuration(controlled, binary, tmp_path):
    """`status` works for a user who may not read the secrets."""
    _, operator = controlled(None)
    file = tmp_path / "other.toml"
    file.write_text('[httpdns]\ntokenFile = "nowhere"\n')
    ended = processes.run(binary, "status", "-c", str(file),
                          variables={"HTTPDNSD_CONTROL_SOCKET": str(operator.socket)})
    assert ended.returncode == 0, ended


def test_a_metrics_address_that_cannot_be_had(binary, tmp_path):
    file = tmp_path / "httpdnsd.toml"
    file.write_text('[fallback]\nservers = ["127.0.0.2"]\n[control]\nmetrics = "192.0.2.1:9153"\n')
    ended = processes.run(binary, "run", "-c", str(file), "--listen", "127.0.0.1:2053")
    assert ended.returncode == 71 and len(ended.stderr.splitlines()) == 1 and "192.0.2.1:9153" in ended.stderr, ended


def test_what_there_is_to_ask(controlled):
    _, operator = controlled(None)
    # A client of the metrics address sees no control path, and a GET changes nothing.
    for path in ("/status", "/cache", "/flush", "/reload", "/nothing", "/status/", "//"):
        assert fetch(path)[0] == 404, path
    for path, method, allowed, over in (("/flush", "GET", "POST", operator.socket),
                                        ("/status", "POST", "GET, HEAD", operator.socket),
                                        ("/healthz", "DELETE", "GET, HEAD", None)):
        status, head, _ = fetch(path, method, over=over)
        assert status == 405 and head["Allow"] == allowed, path
    status, head, body = fetch("/healthz", "HEAD")
    assert status == 200 and body == "" and head["Content-Length"] == "6"
    assert fetch("/status?format=json", over=operator.socket)[1]["Content-Type"] == "application/json"
    assert fetch("/%73tatus", over=operator.socket)[0] == 200


@pytest.mark.parametrize("sent", [
    b"\x16\x03\x01\x02\x00\x01", b"GET /healthz HTTP/2.0\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\0" * 9000,
    b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", b"x" * 9000,
])
def test_what_is_no_request(controlled, sent):
    controlled(None)
    with socket.create_connection(("127.0.0.1", 9153), timeout=20) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        received = client.recv(4096)
        assert received == b"" or received.startswith(b"HTTP/1.1 400 "), received
    assert fetch("/healthz")[0] == 200


def test_many_servers_are_shown_whole(controlled):
    """A response is as long as the settings require: here for the maximum of groups and servers."""
    groups = {f"upstreams.group{number}": {"domains": [f"d{number}.example"],
                                           "servers": [f"tls://192.0.2.{server}#dns{server}.example" for server in range(1, 65)]}
              for number in range(62)}
    _, operator = controlled(None, groups)
    every = {(f"group{number}", f"tls://192.0.2.{server}") for number in range(62) for server in range(1, 65)}
    status, _, text = fetch("/metrics", timeout=60)
    samples = [dict(labels) for name, labels in metrics(text) if name == "httpdnsd_server_up"]
    assert status == 200 and {(one["group"], one["server"]) for one in samples} >= every
    page = fetch("/", timeout=60)[2]
    assert page.endswith("</html>\n") and page.count('<p class="server">tls://192.0.2.') == len(every)
    overview = json.loads(fetch("/status?format=json", over=operator.socket, timeout=60)[2])  # a command waits for 5 s
    shown = {(group["name"], server["address"].partition("#")[0]) for group in overview["groups"] for server in group["servers"]}
    assert shown >= every


def test_slow_clients_are_nobodys_affair(controlled, service):
    """A hundred silent clients at sixteen places delay no operator, no watcher and no question."""
    running, operator = controlled(service("aes"))
    before = running.descriptors()
    silent = [socket.create_connection(("127.0.0.1", 9153)) for _ in range(100)]
    for client in silent:
        try:
            client.send(b"GET /metrics HTTP/1.1\r\nX: ")
        except OSError:
            pass
    begun = time.monotonic()
    for _ in range(5):
        assert fetch("/healthz")[0] == 200
    assert operator.json()["state"] == "healthy" and addresses(ask("www.example.com"))
    assert waited_since(begun) < 8, "less than one of them may stay"
    eventually(lambda: running.descriptors() <= before + 20, "no more than sixteen stay")
    for client in silent:
        client.close()


def test_a_stuck_queue_is_found(controlled, service):
    """When the whole daemon is stopped, the command reports in time that no answer comes."""
    running, operator = controlled(service("aes"))
    os.kill(running.pid, signal.SIGSTOP)
    try:
        assert "no answer within 5 s" in operator("status", code=69)
    finally:
        os.kill(running.pid, signal.SIGCONT)
    assert operator("status", "--ready") == ""


def test_it_stops_with_clients_connected(controlled):
    running, operator = controlled(None)
    with socket.create_connection(("127.0.0.1", 9153)), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(operator.socket))
        begun = time.monotonic()
        running.stop()
        assert waited_since(begun) < 5, "less than they may stay"


def test_a_request_is_answered_although_many_say_nothing(controlled):
    """A complete request is served before incomplete ones, even when all clients connect between two polls of the daemon."""
    running, operator = controlled(None)
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    os.kill(running.pid, signal.SIGSTOP)
    silent = [socket.create_connection(("127.0.0.1", 9153)) for _ in range(20)]
    asking = socket.create_connection(("127.0.0.1", 9153), timeout=20)
    asking.sendall(request)
    over = socket.socket(socket.AF_UNIX)
    over.settimeout(20)
    over.connect(str(operator.socket))
    over.sendall(request)
    silent += [socket.create_connection(("127.0.0.1", 9153)) for _ in range(100)]
    os.kill(running.pid, signal.SIGCONT)
    for client in (asking, over):
        assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
    for client in (*silent, asking, over):
        client.close()


def test_one_silent_name_is_no_outage(controlled, scripted_resolver):
    """The daemon's own question distinguishes a resolver that is silent about one name from one that is silent about all."""
    names, silent = [], {"silent.example.com."}

    def answer(asked):
        names.append(asked.name.to_text())
        return None if names[-1] in silent or "." in silent else address_reply(asked)
    resolver = scripted_resolver(answer)
    _, operator = controlled(None, {"fallback": {"servers": [resolver.endpoint], "timeout": 2000}})
    assert ask("www.example.com").answer
    assert ask("silent.example.com").rcode() == 2
    for _ in range(3):
        assert operator("status", "--ready") == ""
        time.sleep(0.5)
    eventually(lambda: "." in names, "the daemon asks a question of its own")
    silent.add(".")
    assert ask("other.example.com").rcode() == 2
    eventually(lambda: fetch("/readyz")[0] == 503, "its own question fails, too")
    silent.clear()
    eventually(lambda: fetch("/readyz")[0] == 200, "its own question is answered", 60)


def test_alive(controlled, service, binary, place):
    """`status --alive` succeeds and prints nothing while every queue runs, even if no server can be asked."""
    chosen = service("aes")
    running, operator = controlled(chosen, {"httpdns": {"httpOnly": True}})
    chosen.stop()
    for name in ("www.example.com", "n1.example.com", "n2.example.com"):
        assert ask(name).rcode() == 2
    operator("status", "--ready", code=69)
    assert operator("status", "--alive") == ""
    ended = processes.run(binary, "status", "--alive", "--ready", "--socket", str(operator.socket))
    assert ended.returncode == 64 and "--alive" in ended.stderr
    running.stop()
    assert "no daemon answers" in operator("status", "--alive", code=69)


def test_a_daemon_without_descriptors_is_alive(controlled, service):
    running, operator = controlled(service("https"))
    assert operator("status", "--alive") == ""
    opened = max(int(number) for number in os.listdir(f"/proc/{running.pid}/fd"))
    resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (opened + 3, opened + 3))
    with contextlib.ExitStack() as stack:
        def connect(number):
            client = stack.enter_context(socket.create_connection(
                ("127.0.0.1", 53), timeout=20, source_address=(f"127.0.0.{number + 2}", 0)))
            client.settimeout(2)
            with contextlib.suppress(TimeoutError):
                return client.recv(1) != b""
            return True
        stays = [connect(number) for number in range(24)]
        assert not any(stays[-8:]), "each further client is turned away"
        for _ in range(8):
            assert operator("status", "--alive") == ""
        assert operator.json()["state"] == "healthy" or operator.json()["remarks"]
        assert not connect(100)
    assert "a command was turned away" not in running.log()


def test_only_who_means_this_machine_is_answered(controlled):
    """A page whose hostile name leads to this machine sends that name as Host, and gets nothing (DNS rebinding)."""
    def status(host, path="/metrics", version="1.1"):
        with socket.create_connection(("127.0.0.1", 9153), timeout=20) as client:
            field = b"" if host is None else b"Host: " + host.encode() + b"\r\n"
            client.sendall(f"GET {path} HTTP/{version}\r\n".encode() + field + b"\r\n")
            return int(client.makefile("rb").readline().split()[1])
    _, operator = controlled(None, {"control": {"host": "dns.example.com"}})
    for host in ("127.0.0.1:9153", "[::1]", "localhost:9153", "LocalHost.", "dns.example.com", "DNS.Example.com.:9153"):
        assert status(host) == 200, host
    for path in ("/", "/metrics", "/healthz", "/readyz", "/nothing"):
        for host in ("attacker.example:9153", "dns.example.com.attacker.example", ""):
            assert status(host, path) == 421, (host, path)
    assert status(None) == 400 and status(None, version="1.0") == 200
    assert status("attacker.example", version="1.0") == 421
    # No web page can send requests over the unix socket.
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(operator.socket))
        client.sendall(b"GET /status HTTP/1.1\r\nHost: anything\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
