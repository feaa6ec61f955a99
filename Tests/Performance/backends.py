"""What stands behind the servers under test: name servers and HTTPDNS services that know every name under `bench`."""

import os
import struct
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
        self._started = {}

    def port(self, kind, number=0):
        """Of `plain` DNS, `nat64` (the same, of names without AAAA), `dot`, `doh` (HTTP/1.1), `doh2` (HTTP/2), or an HTTPDNS
        service: `aes`, `des`, `https`; with a number one of several of the kind."""
        return self._start(kind, number)[0]

    def counts(self, kind):
        """What one has been asked."""
        return self._start(kind)[1]

    def _start(self, kind, number=0):
        if (kind, number) not in self._started:
            port = free_port()
            counts = Counts(os.path.join(self.bench.directory, f"counts-{port}"))
            if kind in ("plain", "nat64"):
                program, arguments = "answer", ["--families", "ipv4"] if kind == "nat64" else []
            else:
                program = "service"
                arguments = ["--encryption", kind, *(ACCOUNTS[kind][1] if kind in ACCOUNTS else []), "--certificate",
                             self.bench.both, "--counts", counts.path]
            process = Process.start(f"{program} {port}", [self.bench.tool(program), *arguments, "--delay", str(self.delay),
                                                          "--listen", f"127.0.0.1:{port}"],
                                    self.bench.directory, self.bench.cores.backend, port)
            self.running.callback(process.stop)
            process.wait_until_it_listens()
            self._started[kind, number] = port, counts if program == "service" else None
        return self._started[kind, number]


class Counts:
    """The connections and requests of an encrypted back end, as it writes them into a file."""

    def __init__(self, path):
        self.path = path

    def read(self):
        with open(self.path, "rb") as file:
            return struct.unpack("=QQ", file.read(16))
