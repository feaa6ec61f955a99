"""The servers under test. A rival is one function that writes its configuration and returns its command; `ways` says how it can
ask upstream: `plain` DNS, `nat64` (plain, and AAAA made of A), `dot`, `doh` (HTTP/1.1), `doh2` (HTTP/2). To add one, add a function here and its package to BENCH_PACKAGES in the Makefile."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field

from backends import ACCOUNTS

LIMIT = "limit"
NAT64 = "2001:db8:64::/96"
DAEMON = "httpdnsd"
_rivals = {}


@dataclass(frozen=True)
class Rival:
    name: str
    program: str
    package: str
    ways: tuple
    doors: tuple  # over what it can be asked beside plain DNS: `dot`, `doh`
    command: object  # from a Place to the command


@dataclass(frozen=True)
class Place:
    """Where a server is to run and whom it is to ask."""

    directory: str
    port: int
    upstream: int
    way: str
    certificate: str
    listeners: int = 1
    cache_file: str = ""
    cache_megabytes: int = 64
    cache_entries: int = 250_000  # of a rival
    control: str = ""  # path of the control socket; empty: none
    more: dict = field(default_factory=dict)  # further keys for httpdnsd, by section
    door: tuple = ()  # over what else it is to be asked, and at which port
    key: str = ""  # of the certificate

    def door_port(self, way):
        """Where it is to be asked over a way; 0: it is not."""
        return self.door[1] if self.door and self.door[0] == way else 0

    def write(self, suffix, text):
        path = os.path.join(self.directory, f"server-{self.port}{suffix}")
        with open(path, "w") as file:
            file.write(text)
        return path


def rival(*ways, package, program=None, doors=()):
    def register(function):
        name = function.__name__
        _rivals[name] = Rival(name, program or name, package, ways, doors, function)
        return function
    return register


def rivals(way, chosen):
    """Those for a way that are installed and chosen; and one line for each that is missing."""
    wanted = [one for one in _rivals.values() if way in one.ways and (chosen is None or one.name in chosen)]
    found = [one for one in wanted if shutil.which(one.program, path=os.pathsep.join(search_path()))]
    return found, [f"{one.name} is left out: install {one.package}" for one in wanted if one not in found]


def rival_names():
    return list(_rivals)


def search_path():
    """Where programs are looked for; daemons are not in everybody's PATH."""
    return [*os.environ.get("PATH", "").split(os.pathsep), "/usr/sbin", "/sbin"]


def version(name):
    """The version of a rival's package."""
    done = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", _rivals[name].package], capture_output=True,
                          text=True)
    return done.stdout.strip() or "?"


def limit(at, tools):
    """Answers by itself, or passes on over `dot` what it is asked."""
    if at.way:
        return [os.path.join(tools, "forward"), "--listen", f"127.0.0.1:{at.port}", "--to", f"127.0.0.1:{at.upstream}",
                "--certificate", at.certificate]
    return [os.path.join(tools, "answer"), "--listen", f"127.0.0.1:{at.port}", "--listeners", str(at.listeners)]


def httpdnsd(at, binary):
    """Ways: `aes`, `des`, `https`, or for the local resolver alone `plain`, `dot`, `doh2`."""
    settings = {
        "listen": {"addresses": [f"127.0.0.1:{at.port}"], "workers": at.listeners},
        "cache": {"megabytes": at.cache_megabytes, "file": at.cache_file},
        "control": {"socket": at.control},
        "fallback": {"hosts": ""},
    }
    resolver = {"plain": "{}", "nat64": "{}", "dot": "tls://{}", "doh2": "https://{}/dns-query"}.get(at.way)
    if resolver:
        settings["fallback"]["servers"] = [resolver.format(f"127.0.0.1:{at.upstream}")]
        if at.way == "nat64":
            settings["nat64"] = {"prefix": NAT64, "synthesize": "always"}
        elif at.way != "plain":
            # As many under way as the rivals may have.
            settings["fallback"] |= {"caFile": at.certificate, "concurrency": 1000}
    else:
        settings["httpdns"] = {"encryptType": at.way, "dnsIp": [f"127.0.0.1:{at.upstream}"], "addressType": "dual",
                               "httpOnly": True, **ACCOUNTS[at.way][0]}
    if at.way == "https":
        settings["tls"] = {"caFile": at.certificate}
    if at.door:
        # As many connections of one source as the measurement opens: loopback may have all.
        settings["listen"] |= {{"dot": "tls", "doh": "https"}[at.door[0]]: [f"127.0.0.1:{at.door[1]}"], "tcpClients": 10_000,
                               "certificateFile": at.certificate, "keyFile": at.key, "tcpIdleSeconds": 60}
    for section, keys in at.more.items():
        settings[section] = settings.get(section, {}) | keys
    text = ""
    for section, keys in settings.items():
        # JSON's strings, numbers, booleans and lists of those are TOML's as well.
        text += f"[{section}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    return [binary, "run", "-c", at.write(".toml", text)]


@rival("plain", "dot", "nat64", package="unbound", doors=("dot", "doh"))
def unbound(at):
    door = ""
    if at.door:
        port = {"dot": "tls-port", "doh": "https-port"}[at.door[0]]
        door = (f'interface: 127.0.0.1@{at.door[1]}\n  {port}: {at.door[1]}\n  tls-service-key: "{at.key}"\n'
                f'  tls-service-pem: "{at.certificate}"')
    secure = f'tls-cert-bundle: "{at.certificate}"' if at.way == "dot" else ""
    address = f"127.0.0.1@{at.upstream}" + ("#bench" if at.way == "dot" else "")
    return ["unbound", "-d", "-c", at.write(".conf", f"""server:
  interface: 127.0.0.1@{at.port}
  num-threads: 1
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  do-daemonize: no
  access-control: 127.0.0.0/8 allow
  do-not-query-localhost: no
  module-config: "{"dns64 " if at.way == "nat64" else ""}iterator"
  dns64-prefix: {NAT64}
  msg-cache-size: 256m
  rrset-cache-size: 256m
  outgoing-range: 8192
  num-queries-per-thread: 4096
  incoming-num-tcp: {2000 if at.door else 256}
  {secure}
  {door}
forward-zone:
  name: "."
  forward-addr: {address}
  forward-tls-upstream: {"yes" if at.way == "dot" else "no"}
remote-control:
  control-enable: no
""")]


@rival("plain", package="dnsmasq")
def dnsmasq(at):
    return ["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--user=", "--group=",
            "--pid-file=", "--listen-address=127.0.0.1", "--bind-interfaces", f"--port={at.port}",
            f"--server=127.0.0.1#{at.upstream}", f"--cache-size={at.cache_entries}", "--dns-forward-max=4000"]


@rival("plain", "doh2", package="dnsdist", doors=("dot", "doh"))
def dnsdist(at):
    server = f'address="127.0.0.1:{at.upstream}"'
    if at.way == "doh2":
        server = (f'address="127.0.0.1:{at.upstream}", tls="openssl", subjectName="bench", caStore="{at.certificate}", '
                  'dohPath="/dns-query"')
    pem = f'"{at.certificate}", "{at.key}"'
    door = {"": "", "dot": f'addTLSLocal("127.0.0.1:{at.door_port("dot")}", {pem})',
            "doh": f'addDOHLocal("127.0.0.1:{at.door_port("doh")}", {pem}, "/dns-query")'}[at.door[0] if at.door else ""]
    return ["dnsdist", "--supervised", "--disable-syslog", "-C", at.write(".conf", f"""setLocal("127.0.0.1:{at.port}")
setACL("127.0.0.0/8")
setSecurityPollSuffix("")
setUDPMultipleMessagesVectorSize(64)
setOutgoingDoHWorkerThreads(1)
{door}
newServer({{{server}}}):setUp()
getPool(""):setCache(newPacketCache({at.cache_entries}, {{}}))
""")]


@rival("plain", "dot", "doh", package="smartdns")
def smartdns(at):
    server = f"server 127.0.0.1:{at.upstream}"
    if at.way == "dot":
        server = f"server-tls 127.0.0.1:{at.upstream} -host-name bench -tls-host-verify bench"
    if at.way == "doh":
        server = f"server-https https://127.0.0.1:{at.upstream}/dns-query -host-name bench -tls-host-verify bench"
    return ["smartdns", "-f", "-p", "-", "-c", at.write(".conf", f"""bind 127.0.0.1:{at.port}
bind-tcp 127.0.0.1:{at.port}
ca-file {at.certificate}
{server}
speed-check-mode none
response-mode fastest-response
dualstack-ip-selection no
prefetch-domain no
serve-expired no
cache-persist no
cache-size {at.cache_entries}
log-level fatal
log-file {os.path.join(at.directory, f"server-{at.port}-smartdns.log")}
""")]


@rival("plain", "dot", "nat64", package="knot-resolver", program="kresd", doors=("dot", "doh"))
def kresd(at):
    directory = os.path.join(at.directory, f"server-{at.port}.kresd")
    os.makedirs(directory, exist_ok=True)
    # What a stub is told is not translated.
    upstream = f"policy.{'FORWARD' if at.way == 'nat64' else 'STUB'}('127.0.0.1@{at.upstream}')"
    if at.way == "dot":
        upstream = f"policy.TLS_FORWARD({{{{'127.0.0.1@{at.upstream}', hostname='bench', ca_file='{at.certificate}'}}}})"
    translated = f"modules.load('dns64')\ndns64.config('{NAT64.partition('/')[0]}')" if at.way == "nat64" else ""
    door = ""
    if at.door:
        kind = {"dot": "tls", "doh": "doh2"}[at.door[0]]
        door = f"net.tls('{at.certificate}', '{at.key}')\nnet.listen('127.0.0.1', {at.door[1]}, {{ kind = '{kind}' }})"
    return ["kresd", "-n", "-c", at.write(".conf", f"""net.ipv6 = false
net.listen('127.0.0.1', {at.port}, {{ kind = 'dns' }})
{door}
log_level('crit')
net.tcp_pipeline(60000)  -- the queries under way on its one connection upstream; past 100 it answers SERVFAIL
for _, name in ipairs({{'ta_update', 'ta_signal_query', 'priming', 'detect_time_skew', 'detect_time_jump'}}) do
  pcall(modules.unload, name)
end
trust_anchors.remove('.')
modules.load('policy')
cache.size = 256 * MB
policy.add(policy.all({upstream}))
{translated}
"""), directory]


@rival("doh2", package="dnss")
def dnss(at):
    return ["dnss", "-enable_dns_to_https", f"-dns_listen_addr=127.0.0.1:{at.port}", "-dns_unqualified_upstream=",
            f"-https_upstream=https://127.0.0.1:{at.upstream}/dns-query", f"-https_client_cafile={at.certificate}"]


@rival("dot", package="stubby")
def stubby(at):
    return ["stubby", "-C", at.write(".yml", f"""resolution_type: GETDNS_RESOLUTION_STUB
dns_transport_list: [GETDNS_TRANSPORT_TLS]
tls_authentication: GETDNS_AUTHENTICATION_REQUIRED
tls_ca_file: "{at.certificate}"
idle_timeout: 10000
listen_addresses:
  - 127.0.0.1@{at.port}
upstream_recursive_servers:
  - address_data: 127.0.0.1
    tls_port: {at.upstream}
    tls_auth_name: "bench"
""")]
