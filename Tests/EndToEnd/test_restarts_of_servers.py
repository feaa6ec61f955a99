"""Real servers, and real proxies before them, that are restarted repeatedly under a steady load.

By default the run is short. HTTPDNSD_RESTARTS_SECONDS=600 is its full size.
"""

import concurrent.futures
import os
import pathlib
import select
import signal
import socket
import struct
import subprocess
import time

import pytest

from control import metrics, total
from dns_client import labels
from standard import TEST_SECONDS
from waiting import eventually

SECONDS = int(os.environ.get("HTTPDNSD_RESTARTS_SECONDS", "2"))
IS_LONG = SECONDS >= 60
EVERY = 20 if IS_LONG else 2  # seconds from one restart to the next
QUIET = 60 if IS_LONG else 1  # seconds without restarts, before the first and after the last
RATE = 200  # questions a second to each group
PATIENCE = 6  # seconds for an answer
PORT = 2053
OTHER = "127.0.0.37"
BEHIND = "127.0.0.38"
DOH = "127.0.0.39"  # asked by nginx
GROUPS = ["alone", "pair"]


class Server:
    """A program that serves at `address` and can be restarted; its output is in a file beside its configuration."""

    def __init__(self, directory, command, configuration, address, *ports):
        self.directory, self.address, self.ports = pathlib.Path(directory), address, ports
        path = self.directory / "configuration"
        path.write_text(configuration)
        self.command = [str(path) if word == "CONFIGURATION" else word for word in command]
        self.process = None
        self.start()

    def start(self):
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        eventually(self._listens, f"{self.command[0]} listens")

    def _listens(self):
        assert self.process.poll() is None, (self.directory / "log").read_text()
        try:  # a program opens its ports one after another
            for port in self.ports:
                socket.create_connection((self.address, port), 2).close()
            return True
        except OSError:
            return False

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def restart(self):
        """Returns the longest possible interval in which no program listened."""
        begun = time.monotonic()
        self.stop()
        self.start()
        return begun, time.monotonic()


def unbound(directory, address, certificate):
    return Server(directory, ["unbound", "-d", "-c", "CONFIGURATION"], f"""server:
  interface: {address}
  interface: {address}@853
  interface: {address}@443
  tls-port: 853
  https-port: 443
  tls-service-pem: "{certificate}"
  tls-service-key: "{certificate}"
  chroot: ""
  username: ""
  pidfile: ""
  directory: "{directory}"
  use-syslog: no
  do-daemonize: no
  access-control: 127.0.0.0/8 allow
  module-config: "iterator"
  num-threads: 1
  incoming-num-tcp: 100
  local-zone: "example." redirect
  local-data: "example. 60 IN A 192.0.2.7"
remote-control:
  control-enable: no
""", address, 853, 443)


def dnsdist(directory, address, certificate):
    return Server(directory, ["dnsdist", "--supervised", "--disable-syslog", "-C", "CONFIGURATION"], f"""
setLocal("{address}:53")
addTLSLocal("{address}:853", "{certificate}", "{certificate}")
addDOHLocal("{address}:443", "{certificate}", "{certificate}", "/dns-query")
setSecurityPollSuffix("")
newServer("{BEHIND}"):setUp()
""", address, 853, 443)


def nginx(directory, address, certificate):
    return Server(directory, ["nginx", "-c", "CONFIGURATION", "-e", f"{directory}/errors"], f"""
daemon off;
user root;
pid {directory}/pid;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  upstream doh {{ server {DOH}:443; keepalive 16; }}
  server {{
    listen {address}:443 ssl http2;
    ssl_certificate {certificate};
    ssl_certificate_key {certificate};
    location /dns-query {{
      proxy_pass https://doh;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }}
  }}
}}
""", address, 443)


def haproxy(directory, address, certificate):
    return Server(directory, ["haproxy", "-db", "-f", "CONFIGURATION"], f"""
defaults
  mode tcp
  timeout connect 1s
  timeout client 30s
  timeout server 30s
listen dot
  bind {address}:853 ssl crt {certificate}
  server behind {BEHIND}:53
""", address, 853)


KINDS = {"unbound-tls": (unbound, "tls://{}"), "unbound-https": (unbound, "https://{}/dns-query"),
         "dnsdist-tls": (dnsdist, "tls://{}"), "dnsdist-https": (dnsdist, "https://{}/dns-query"),
         "nginx-https": (nginx, "https://{}/dns-query"), "haproxy-tls": (haproxy, "tls://{}")}


class Load:
    """Asks each group steadily, each name once, and records the result of every question."""

    def __init__(self):
        self._channel = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._channel.connect(("127.0.0.1", PORT))
        self._waiting = {}
        self._number = 0
        # The time at which each question was asked and the time at which it ended; questions in `lost` got no address.
        self.lost = {group: [] for group in GROUPS}
        self.answered = {group: [] for group in GROUPS}

    def ask_until(self, end):
        next_at = time.monotonic()
        while (now := time.monotonic()) < end:
            if next_at <= now:
                next_at += 1 / RATE
                for group in GROUPS:
                    self._ask(group, now)
            self._read(max(0, min(next_at, end) - time.monotonic()))

    def quiet(self):
        """Asks without restarts; returns how many questions needed a new connection meanwhile."""
        before = opened()
        self.ask_until(time.monotonic() + QUIET)
        return opened() - before

    def finish(self):
        """Waits for outstanding replies."""
        end = time.monotonic() + PATIENCE
        while self._waiting and time.monotonic() < end:
            self._read(0.05)
        for group, at in self._waiting.values():
            self.lost[group].append((at, end))
        self._channel.close()

    def _ask(self, group, now):
        self._number += 1
        name = labels(f"n{self._number}.{group}.example")
        key = self._number % 65536
        if key in self._waiting:
            group_of_old, at = self._waiting.pop(key)
            self.lost[group_of_old].append((at, now))
        self._waiting[key] = (group, now)
        self._channel.send(struct.pack("!6H", key, 0x100, 1, 0, 0, 0) + name + b"\0\1\0\1")

    def _read(self, seconds):
        if not select.select([self._channel], [], [], seconds)[0]:
            return
        try:
            while True:
                reply = self._channel.recv(4096, socket.MSG_DONTWAIT)
                group, at = self._waiting.pop(int.from_bytes(reply[:2]), (None, None))
                if group:
                    is_good = reply[3] & 15 == 0 and reply[7] > 0
                    (self.answered if is_good else self.lost)[group].append((at, time.monotonic()))
        except BlockingIOError:
            return


def opened():
    """The number of questions so far that needed a new connection."""
    return total(metrics(), "httpdnsd_server_requests_total", connection="new")


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_is_restarted_under_load(daemon, authority, tmp_path_factory, kind):
    """With a second server no question is lost; without one, at most those under way while no program listened. After the last
    restart, connections are reused as before the first."""
    signal.alarm(TEST_SECONDS + SECONDS + 3 * QUIET + PATIENCE)
    start, url = KINDS[kind]
    programs = {BEHIND: unbound, OTHER: unbound, "127.0.0.36": start}
    if start is nginx:
        programs = {DOH: dnsdist} | programs
    made = [program(tmp_path_factory.mktemp("server"), address, authority.server_file(addresses=[address]))
            for address, program in programs.items()]
    server = made[-1]
    encrypted = {"caFile": str(authority.file), "timeout": 2000}
    groups = {"alone": {"servers": [url.format(server.address)]},
              "pair": {"servers": [url.format(server.address), f"tls://{OTHER}"]}}
    daemon(None, {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "control": {"metrics": "127.0.0.1:9153"},
                  "fallback": {"servers": [BEHIND]}} | {
                      f"upstreams.{group}": {"domains": [f"{group}.example"]} | encrypted | keys
                      for group, keys in groups.items()}, port=PORT)
    load, down = Load(), []
    try:
        load.ask_until(time.monotonic() + 1)
        before = load.quiet()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                restarted = pool.submit(server.restart)
                load.ask_until(min(end, time.monotonic() + EVERY))
                down.append(restarted.result())
        load.ask_until(time.monotonic() + 1)
        settled = time.monotonic()
        after = load.quiet()
        # A server that is tried again only now has its queries wait for a first connection.
        while after > before + 2 and time.monotonic() < settled + PATIENCE + QUIET:
            after = load.quiet()
        load.finish()
    finally:
        for one in made:
            one.stop()
    alone = load.lost["alone"] + load.answered["alone"]
    meanwhile = sum(any(asked <= until and over >= begun for begun, until in down) for asked, over in alone)
    lost = {group: [round(at - down[0][0], 3) for at, _ in sorted(load.lost[group])] for group in GROUPS}
    print(kind, {"restarts": len(down), "asked": len(alone), "meanwhile": meanwhile, "before": before, "after": after,
                 "lost": {group: len(all) for group, all in lost.items()}})
    assert not lost["pair"], lost["pair"]
    assert len(lost["alone"]) <= meanwhile, lost["alone"]
    assert all(at <= settled for at, _ in load.lost["alone"]), lost["alone"]
    assert after <= before + 2
