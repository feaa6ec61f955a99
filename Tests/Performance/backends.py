"""What stands behind the servers under test: name servers and HTTPDNS services that know every name under `bench`."""

import os
import subprocess

from processes import Process, free_port

ACCOUNTS = {  # how a daemon is known to the service; what the service has to be told
    "https": ({"token": "678905432"}, []),
    "aes": ({"dnsId": 12345, "dnsKey": "Swift-HTTPDNS-16"}, ["--key", "Swift-HTTPDNS-16"]),
    "des": ({"dnsId": 12345, "dnsKey": "Swift!01"}, ["--key", "Swift!01"]),
}


def make_certificate(directory):
    """Certificate, key, and both in one file, for 127.0.0.1 and the name `bench`."""
    certificate, key, both = (os.path.join(directory, name) for name in ("certificate.pem", "key.pem", "both.pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                    "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1,DNS:bench", "-keyout", key, "-out",
                    certificate], check=True, capture_output=True)
    with open(both, "w") as whole:
        for part in (key, certificate):
            with open(part) as text:
                whole.write(text.read())
    os.chmod(directory, 0o755)
    return certificate, key, both


class Backends:
    """Started when first asked for, and stopped together with all else by `running`, an ExitStack."""

    def __init__(self, bench, running, delay=0):
        self.bench = bench
        self.running = running
        self.delay = delay
        self._ports = {}

    def port(self, kind):
        """Of `plain` DNS, `dot`, `doh` (HTTP/1.1), `doh2` (HTTP/2), or an HTTPDNS service: `aes`, `des`, `https`.

        `doh2-relayed` is for a client that sends a request in two writes: without the relay's acknowledgements it and
        unbound wait 40 ms for each other.
        """
        if kind not in self._ports:
            if kind == "plain":
                self._ports["plain"] = self._start("answer", ["--listen"])
            elif kind == "doh2":
                self._ports[kind] = self._relay(self._unbound()) if self.delay else self._unbound()
            elif kind == "doh2-relayed":
                self._ports[kind] = self._relay(self._unbound())
            else:
                key = ACCOUNTS[kind][1] if kind in ACCOUNTS else []
                self._ports[kind] = self._start("service", ["--encryption", kind, *key, "--certificate", self.bench.both,
                                                            "--delay", str(self.delay), "--listen"])
        return self._ports[kind]

    def _start(self, program, arguments):
        port = free_port()
        process = Process.start(f"{program} {port}", [self.bench.tool(program), *arguments, f"127.0.0.1:{port}"],
                                self.bench.directory, self.bench.cores.backend, port)
        self.running.callback(process.stop)
        process.wait_until_it_listens()
        return port

    def _relay(self, port):
        return self._start("relay", ["--to", f"127.0.0.1:{port}", "--delay", str(self.delay), "--listen"])

    def _unbound(self):
        """It speaks HTTP/2, which is all that is wanted of it; for a delay it needs a relay."""
        if "unbound" in self._ports:
            return self._ports["unbound"]
        plain, doh = free_port(), free_port()
        path = os.path.join(self.bench.directory, f"upstream-{plain}.conf")
        with open(path, "w") as file:
            file.write(f"""server:
  interface: 127.0.0.1@{plain}
  interface: 127.0.0.1@{doh}
  https-port: {doh}
  tls-service-key: "{self.bench.key}"
  tls-service-pem: "{self.bench.certificate}"
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  do-daemonize: no
  access-control: 127.0.0.0/8 allow
  module-config: "iterator"
  num-threads: 1
  incoming-num-tcp: 100
  http-max-streams: 1000
  local-zone: "bench." redirect
  local-data: "bench. 3600 IN A 198.18.0.1"
  local-data: "bench. 3600 IN AAAA 2001:db8::1"
remote-control:
  control-enable: no
""")
        process = Process.start(f"upstream {plain}", ["unbound", "-d", "-c", path], self.bench.directory,
                                self.bench.cores.backend, plain)
        self.running.callback(process.stop)
        process.wait_until_it_answers()
        self._ports["unbound"] = doh
        return doh
