"""A failing store never delays answers, compared with a daemon without a store."""

import socket
import struct
import threading
import time

import dns.message
import pytest

from httpdns_service import every_name
from standard import measures_the_build
from waiting import eventually


def measure(ports, names, seconds=2.0, rate=150):
    """Asks each port in turn for new names at a steady rate; returns the seconds that each answer took, by port."""
    channels = {}
    for port in ports:
        channels[port] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        channels[port].connect(("127.0.0.1", port))
    asked, took = {}, {port: [] for port in ports}
    total_count = int(seconds * rate)

    def listen(port):
        channel = channels[port]
        channel.settimeout(5)
        while len(took[port]) < total_count:
            try:
                reply = channel.recv(4096)
            except TimeoutError:
                return
            number = struct.unpack("!H", reply[:2])[0]
            assert reply[3] & 15 == 0 and struct.unpack("!H", reply[6:8])[0] > 0, dns.message.from_wire(reply)
            took[port].append(time.monotonic() - asked[port, number])
    listeners = [threading.Thread(target=listen, args=(port,)) for port in ports]
    for listener in listeners:
        listener.start()
    begin = time.monotonic()
    for number in range(total_count):
        for port in ports:
            query = dns.message.make_query(next(names), "A", id=number).to_wire()
            asked[port, number] = time.monotonic()
            channels[port].send(query)
        time.sleep(max(0, begin + (number + 1) / rate - time.monotonic()))
    for listener in listeners:
        listener.join()
    for channel in channels.values():
        channel.close()
    return took


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def big_value(words):
    return b"$10485760\r\n" + bytes(10_485_760) + b"\r\n" if words[0] == b"GET" else b"+OK\r\n"


def works_then(bad):
    """Acts as an empty store until the daemon is connected, which takes two commands, and then as `bad`."""
    seen = []

    def reply(words):
        seen.append(words)
        if len(seen) > 2:
            return bad(words)
        return b"$-1\r\n" if words[0] == b"GET" else b"+OK\r\n"
    return reply


FAKES = {
    "loading": works_then(lambda words: b"-LOADING Redis is loading the dataset in memory\r\n"),
    "slow": works_then(lambda words: (1.0, b"$-1\r\n")),
    "ten-megabytes": works_then(big_value),
    "garbage": works_then(lambda words: b"HTTP/1.1 400 Bad Request\r\n\r\n"),
}
REAL = ["absent", "stopped", "out-of-memory", "certificate"]


@measures_the_build
@pytest.mark.parametrize("fault", [*REAL, *FAKES])
def test_a_store_that_fails_is_not_noticed(service, store, fake_store, member, authority, other_authority, fault):
    account = service("https", every_name)
    plain = member(account, None)
    numbers = iter(range(1 << 30))
    names = iter(lambda: f"{fault}{next(numbers)}.example.com", None)
    settings = {}
    if fault in FAKES:
        fake_store(FAKES[fault])
        server = "redis://127.0.0.10"
    elif fault == "certificate":
        certificate = other_authority.server_file(addresses=["127.0.0.9"])
        shared = store("--tls-cert-file", certificate, "--tls-key-file", certificate, "--tls-ca-cert-file", authority.file,
                       "--tls-auth-clients", "no", tls=True)
        server = "tls://127.0.0.9"
        settings = {"sharedCache": {"caFile": str(authority.file)}}
    else:
        options = ["--maxmemory", "1", "--maxmemory-policy", "noeviction"] if fault == "out-of-memory" else []
        shared = store(*options, running=fault != "absent")
        server = "redis://127.0.0.9"
    other = member(account, None, server=server, wait=False, settings=settings)
    if fault in ("stopped", "out-of-memory"):
        eventually(lambda: other.log_lines("shared cache: in use"), "the store is connected")
    if fault == "stopped":
        threading.Timer(0.5, shared.pause).start()
    # A quarter and 2 ms are noise; a question waits 5 ms more while the daemon detects the failure. Other work on the machine
    # disturbs a measurement and never improves one.
    for _ in range(6):
        took = measure([plain.port, other.port], names)
        without, beside = took[plain.port], took[other.port]
        assert len(without) == len(beside) == 300
        figures = {name: [round(1000 * percentile(values, share), 2) for values in (without, beside)]
                   for name, share in (("p50", 0.5), ("p99", 0.99))}
        print(fault, "milliseconds without and with:", figures)
        if figures["p50"][1] <= 1.25 * figures["p50"][0] + 2 and figures["p99"][1] <= 1.25 * figures["p99"][0] + 8:
            break
    else:
        raise AssertionError(f"it is noticed: {figures}")
    said = other.log_lines("shared cache")
    assert len([line for line in said if "not in use" in line]) <= 2, said
    if fault == "out-of-memory":
        assert other.log_lines(r"shared cache: it takes no answers, .*: .*\(OOM\)")
    if fault == "certificate":
        assert other.log_lines(f"shared cache: not in use, names are looked up without it: {server}.*: certificate")
