"""The daemon from start to stop."""

import signal
import socket
import struct
import subprocess
import time

import dns.message
import pytest

import daemon as processes
from dns_client import Stream, addresses, ask, exchange
from httpdns_service import Fault
from resolvers import reply_to
from waiting import eventually, waited_since


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_question_in_flight_is_answered_before_the_end(daemon, service, number):
    chosen = service("aes")
    running = daemon(chosen)
    chosen.fault = Fault("delay", 0.4)
    message = dns.message.make_query("www.example.com", "A")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel, Stream() as stream:
        channel.settimeout(20)
        channel.connect(("127.0.0.1", 53))
        channel.send(message.to_wire())
        stream.send(dns.message.make_query("n1.example.com", "A"))
        eventually(lambda: {"www.example.com", "n1.example.com"} <= set(chosen.names), "both names are asked for")
        begun = time.monotonic()
        running.process.send_signal(number)
        assert addresses(dns.message.from_wire(channel.recv(4096)))[0] == "203.0.113.20"
        assert addresses(stream.receive()) == ["203.0.113.1"]
        assert running.process.wait(20) == 0
        assert waited_since(begun) < 8


def test_what_never_answers_does_not_keep_it(daemon, service):
    chosen = service("aes")
    running = daemon(chosen, {"httpdns": {"timeout": 60000}, "fallback": {"servers": ["127.0.0.9"], "timeout": 60000}})
    chosen.fault = Fault("silence")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.connect(("127.0.0.1", 53))
        channel.send(dns.message.make_query("www.example.com", "A").to_wire())
        eventually(lambda: chosen.names, "the name is asked for")
        begun = time.monotonic()
        running.process.terminate()
        assert running.process.wait(20) == 0
        assert waited_since(begun) < 8


def test_it_stops_at_once_when_idle(daemon):
    took = []
    for _ in range(3):
        running = daemon(None)
        begun = time.monotonic()
        running.process.terminate()
        assert running.process.wait(20) == 0
        took.append(waited_since(begun))
    assert min(took) < 1, took


def test_it_can_be_started_again_at_once(daemon):
    for _ in range(3):
        running = daemon(None)
        assert addresses(ask("localhost", transport="tcp"))
        running.stop()


def test_it_starts_without_any_upstream(daemon, service):
    """The daemon starts without any upstream, and uses an upstream as soon as it is there."""
    chosen = service("aes")
    chosen.stop()
    daemon(chosen, {"httpdns": {"httpOnly": True}})
    assert ask("www.example.com").rcode() == 2
    chosen.start()
    eventually(lambda: addresses(ask("www.example.com")), "it uses the service now")


def test_a_port_in_use(binary, tmp_path):
    file = tmp_path / "httpdnsd.toml"
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        with socket.socket(socket.AF_INET, kind) as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, kind == socket.SOCK_STREAM)
            taken.bind(("127.0.0.1", 2053))
            if kind == socket.SOCK_STREAM:
                taken.listen()
            file.write_text('[listen]\naddresses = ["127.0.0.1:2053"]\n[fallback]\nservers = ["127.0.0.2"]\n')
            ended = processes.run(binary, "run", "-c", str(file))
            assert ended.returncode == 71
            assert len(ended.stderr.splitlines()) == 1 and "127.0.0.1:2053" in ended.stderr, ended.stderr


def test_two_daemons_on_one_port(daemon, binary, tmp_path):
    """SO_REUSEPORT shares a port among the workers of one daemon, never with another daemon."""
    daemon(None)
    file = tmp_path / "httpdnsd.toml"
    file.write_text('[fallback]\nservers = ["127.0.0.2"]\n')
    ended = processes.run(binary, "-c", str(file), "--listen", "127.0.0.1:53")
    assert ended.returncode == 71 and len(ended.stderr.splitlines()) == 1, ended


def test_an_address_that_is_not_ours(binary, tmp_path):
    file = tmp_path / "httpdnsd.toml"
    file.write_text('[fallback]\nservers = ["127.0.0.2"]\n')
    ended = processes.run(binary, "run", "-c", str(file), "--listen", "192.0.2.1:53")
    assert ended.returncode == 71 and len(ended.stderr.splitlines()) == 1, ended


def test_a_start_without_enough_descriptors(binary, tmp_path):
    """The last line says which limit to raise."""
    file = tmp_path / "httpdnsd.toml"
    file.write_text('[fallback]\nservers = ["127.0.0.2"]\n')
    for most in (8, 16, 24):
        ended = processes.run("prlimit", f"--nofile={most}:{most}", str(binary), "run", "-c", str(file),
                              "--listen", "127.0.0.1:2053")
        assert ended.returncode == 71, ended
        last = ended.stderr.splitlines()[-1]
        assert "Too many open files" in last and "LimitNOFILE=" in last and "ulimit -n" in last, ended.stderr


def test_the_listen_option_replaces_the_file(daemon):
    daemon(None, {"listen": {"addresses": ["127.0.0.1:2053"]}},
           arguments=["--listen", "127.0.0.1:2054", "--listen", "127.0.0.1:2055"], port=2054)
    assert addresses(ask("localhost", port=2055, transport="tcp"))
    with pytest.raises(ConnectionRefusedError):
        exchange(dns.message.make_query("localhost", "A").to_wire(), port=2053)


@pytest.mark.parametrize(("arguments", "said"), [
    (["--version"], "0."), (["--help"], "USAGE:"), (["check", "--all", "-c", "/dev/null"], "[listen]"),
])
def test_arguments_need_no_proc(binary, arguments, said):
    """These arguments work without /proc, as in the chroot of an image that is being built."""
    without = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$0" "$@"', str(binary), *arguments]
    ended = subprocess.run(without, capture_output=True, text=True, timeout=60, env=processes.environment())
    assert ended.returncode == 0 and said in ended.stdout, ended


def test_nothing_is_logged_for_each_question_and_no_name_at_info(daemon, service):
    chosen = service("aes")
    running = daemon(chosen)
    started = len(running.log().splitlines())
    for i in range(30):
        ask(f"n{i}.example.com")
    assert len(running.log().splitlines()) == started, running.log()
    assert "example.com" not in running.log()


def test_lookups_are_logged_when_asked_for(daemon, service):
    for encryption in ("https", "aes"):
        chosen = service(encryption)
        running = daemon(chosen, {"httpdns": {"debug": True}, "log": {"level": "debug"}})
        ask("www.example.com")
        eventually(lambda running=running: "www.example.com" in running.log(), "the lookup is logged")
        running.stop()  # checks that the log has neither the key nor the token
