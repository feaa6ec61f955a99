"""Other programs, as clients over TLS and HTTPS, lose no answer while the settings are read again and the certificate changes.

HTTPDNSD_PROGRAMS_SECONDS=600 runs for ten minutes instead of a few seconds.
"""

import base64
import contextlib
import json
import os
import pathlib
import signal
import ssl
import subprocess
import threading
import time

import dns.exception
import dns.name
import pytest

import chromium
import daemon as processes
from control import METRICS
from dns_client import addresses, ask
from resolvers import reply_to
from standard import TEST_SECONDS
from waiting import eventually
from ways import HTTPS, PORT, TLS

SECONDS = float(os.environ.get("HTTPDNSD_PROGRAMS_SECONDS", "6"))
NAME = "dns.example"
RESOLVER, FIRST = 5499, 5500  # the port of the resolver, and of the first program
# The resolver has a process of its own: in this process eleven threads ask, and an answer could be seconds late.
BEHIND = f"""
server:
  interface: 127.0.0.1@{RESOLVER}
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  local-zone: "example.com." redirect
  local-data: "example.com. 60 IN A 192.0.2.1"
remote-control:
  control-enable: no
"""

UNBOUND = f"""
server:
  interface: 127.0.0.1
  port: {{port}}
  do-daemonize: no
  chroot: ""
  username: ""
  directory: "{{folder}}"
  pidfile: ""
  use-syslog: no
  do-not-query-localhost: no
  module-config: "iterator"
  tls-cert-bundle: "{{authority}}"
forward-zone:
  name: "."
  forward-addr: 127.0.0.1@{TLS}#{NAME}
  forward-tls-upstream: yes
"""
DNSDIST = f"""
setLocal("127.0.0.1:{{port}}")
newServer({{{{address="127.0.0.1:%d", tls="openssl", caStore="{{authority}}", subjectName="{NAME}", validateCertificates=true%s}}}}):setUp()
"""
KRESD = f"""
net.listen('127.0.0.1', {{port}}, {{{{ kind = 'dns' }}}})
trust_anchors.remove('.')
modules.unload('priming')
cache.size = 10 * MB
policy.add(policy.all(policy.TLS_FORWARD({{{{ {{{{'127.0.0.1@{TLS}', hostname='{NAME}', ca_file='{{authority}}'}}}} }}}})))
"""
STUBBY = f"""
resolution_type: GETDNS_RESOLUTION_STUB
dns_transport_list: [GETDNS_TRANSPORT_TLS]
tls_authentication: GETDNS_AUTHENTICATION_REQUIRED
tls_ca_file: "{{authority}}"
idle_timeout: 9000
listen_addresses:
  - 127.0.0.1@{{port}}
upstream_recursive_servers:
  - address_data: 127.0.0.1
    tls_port: {TLS}
    tls_auth_name: "{NAME}"
"""
# SmartDNS checks only the subject of a certificate for the name.
SMARTDNS = f"""
bind 127.0.0.1:{{port}}
cache-size 0
speed-check-mode none
cache-persist no
log-level fatal
dualstack-ip-selection no
ca-file {{authority}}
%s -host-name {NAME} -tls-host-verify service
"""
HTTPDNSD = """
[listen]
addresses = ["127.0.0.1:{port}"]
[control]
socket = ""
[fallback]
resolvConf = []
servers = ["%s"]
caFile = "{authority}"
"""
# Configuration and command of each program; {file} is the configuration.
PROGRAMS = {
    "unbound": (UNBOUND, ["unbound", "-d", "-c", "{file}"]),
    "dnsdist, TLS": (DNSDIST % (TLS, ""), ["dnsdist", "--supervised", "--disable-syslog", "-C", "{file}"]),
    "dnsdist, HTTPS": (DNSDIST % (HTTPS, ', dohPath="/dns-query"'), ["dnsdist", "--supervised", "--disable-syslog", "-C", "{file}"]),
    "kresd": (KRESD, ["kresd", "-n", "-c", "{file}", "{folder}"]),
    "stubby": (STUBBY, ["stubby", "-C", "{file}"]),
    "smartdns, TLS": (SMARTDNS % f"server-tls 127.0.0.1:{TLS}", ["smartdns", "-f", "-p", "-", "-c", "{file}"]),
    "smartdns, HTTPS": (SMARTDNS % f"server-https https://127.0.0.1:{HTTPS}/dns-query",
                        ["smartdns", "-f", "-p", "-", "-c", "{file}"]),
    "httpdnsd, TLS": (HTTPDNSD % f"tls://127.0.0.1:{TLS}#{NAME}", ["{binary}", "run", "-c", "{file}"]),
    "httpdnsd, HTTPS": (HTTPDNSD % f"https://{NAME}:{HTTPS}/dns-query#127.0.0.1", ["{binary}", "run", "-c", "{file}"]),
}


def answers(port):
    with contextlib.suppress(OSError, dns.exception.DNSException):
        return addresses(ask("first.example.com", port=port, timeout=1)) == ["192.0.2.1"]


class Asking(threading.Thread):
    """Asks a program for one new name after another, or has a command ask."""

    def __init__(self, program, once):
        super().__init__(daemon=True)
        self.program, self.once, self.asked, self.lost, self.ends = program, once, 0, [], False
        self.start()

    def run(self):
        while not self.ends:
            name = f"n{self.asked}.{''.join(filter(str.isalnum, self.program))}.example.com"
            self.asked += 1
            try:
                got = self.once(name)
            except Exception as error:
                got = error
            if got != ["192.0.2.1"]:
                self.lost.append((name, got))
            time.sleep(0.02)


def kdig(authority, *way):
    def once(name):
        shown = subprocess.run(["kdig", "@127.0.0.1", *way, f"+tls-ca={authority.file}", f"+tls-hostname={NAME}", "+short",
                                "+timeout=20", "+retry=0", name, "A"], capture_output=True, text=True)
        return shown.stdout.split() or shown.stderr
    return once


@pytest.fixture
def behind(serving, authority, tmp_path):
    """Starts a daemon that serves all transports, with a certificate that can be changed."""
    file = tmp_path / "server.pem"

    def renew():
        with open(tmp_path / "next.pem", "wb") as next_file:
            next_file.write(authority.server_file(names=[NAME], addresses=["127.0.0.1"]).read_bytes())
        os.replace(tmp_path / "next.pem", file)
    renew()

    def start(**settings):
        running = serving(file=file, listen={"https": [f"127.0.0.1:{HTTPS}"]}, **settings)
        running.renew = renew
        return running
    return start


@pytest.fixture
def resolver(tmp_path):
    (tmp_path / "resolver.conf").write_text(BEHIND)
    resolver = subprocess.Popen(["unbound", "-d", "-c", tmp_path / "resolver.conf"], stdin=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
    eventually(lambda: answers(RESOLVER), "the resolver answers")
    yield f"127.0.0.1:{RESOLVER}"
    resolver.kill()
    resolver.wait()


def test_programs_lose_nothing(behind, resolver, binary, authority, tmp_path):
    signal.alarm(TEST_SECONDS + round(SECONDS))
    behind = behind(fallback={"servers": [resolver]})

    def once(port):
        return lambda name: addresses(ask(name, port=port))

    with contextlib.ExitStack() as stack:
        logs = {}
        for port, (program, (text, command)) in enumerate(PROGRAMS.items(), FIRST):
            folder = tmp_path / f"program-{port}"
            folder.mkdir()
            values = {"port": port, "folder": folder, "authority": authority.file, "binary": binary,
                      "file": folder / "configuration.yml"}  # stubby requires the suffix
            values["file"].write_text(text.format(**values))
            logs[port] = folder / "log"
            log = stack.enter_context(logs[port].open("w"))
            process = subprocess.Popen([word.format(**values) for word in command], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, env=processes.environment({}))
            stack.callback(process.wait)
            stack.callback(process.kill)
        for port, program in enumerate(PROGRAMS, FIRST):
            try:
                eventually(lambda port=port: answers(port), f"{program} answers")
            except AssertionError as error:
                raise AssertionError(logs[port].read_text()[-2000:]) from error
        askers = [Asking(program, once(port)) for port, program in enumerate(PROGRAMS, FIRST)]
        askers.append(Asking("kdig, TLS", kdig(authority, "-p", str(TLS), "+tls")))
        askers.append(Asking("kdig, HTTPS", kdig(authority, "-p", str(HTTPS), "+https")))
        end = time.monotonic() + SECONDS
        while time.monotonic() < end or any(asker.asked <= SECONDS for asker in askers):
            time.sleep(0.7)
            behind.process.send_signal(signal.SIGHUP)
            behind.renew()
        for asker in askers:
            asker.ends = True
        for asker in askers:
            asker.join(60)
        print({asker.program: asker.asked for asker in askers})
        assert {asker.program: asker.lost[:3] for asker in askers if asker.lost} == {}
    assert behind.log_lines("new TLS clients are shown")


def test_chromium_asks_over_https_alone(behind, authority, tmp_path):
    """Chromium with secure DNS by policy asks the daemon for a name that no other resolver knows."""
    behind = behind()
    subprocess.run(["mount", "-t", "tmpfs", "none", "/etc/chromium"], check=True)
    try:
        managed = pathlib.Path("/etc/chromium/policies/managed")
        managed.mkdir(parents=True)
        root = ssl.PEM_cert_to_DER_cert(pathlib.Path(authority.file).read_text())
        (managed / "dns.json").write_text(json.dumps({
            "DnsOverHttpsMode": "secure", "DnsOverHttpsTemplates": f"https://127.0.0.1:{HTTPS}/dns-query",
            "CACertificates": [base64.b64encode(root).decode()]}))
        behind.resolver.script = lambda asked: reply_to(
            asked.message, *([f"60 IN A {METRICS[0]}"] if asked.kind == "A" else []))
        browser = chromium.Chromium()
        try:
            browser.go(f"http://www.example.com:{METRICS[1]}/")
            eventually(lambda: any(question.name == dns.name.from_text("www.example.com")
                                   for question in behind.resolver.questions), "chromium asks for the name")
        finally:
            browser.close()
    finally:
        subprocess.run(["umount", "/etc/chromium"], check=True)
    assert addresses(ask("localhost", port=PORT)) == ["127.0.0.1"]
