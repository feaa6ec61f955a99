"""The metrics, compared with what a client saw."""

import pathlib
import re
import socket

import prometheus_client.parser

from control import fetch, metrics, total
from dns_client import addresses, ask
from waiting import eventually

DOCUMENT = pathlib.Path(__file__).parents[2] / "docs/metrics.md"
CONTROL = {"control": {"metrics": "127.0.0.1:9153"}}


def changes(before, after, name, **labels):
    return total(after, name, **labels) - total(before, name, **labels)


def test_they_are_what_a_client_saw(daemon, service):
    chosen = service("https")
    daemon(chosen, CONTROL)
    before = metrics()
    for name in ("n1.example.com", "n1.example.com", "N1.EXAMPLE.com", "n2.example.com"):
        assert addresses(ask(name))
    assert addresses(ask("n1.example.com", "AAAA"), "AAAA")
    assert addresses(ask("n1.example.com", transport="tcp"))
    assert ask("nothing.invalid").rcode() == 3
    assert ask("www.example.com", "MX").rcode() in (0, 2, 3)
    after = metrics()
    seen = {"A": 6, "AAAA": 1, "MX": 1}
    for kind, count in seen.items():
        assert changes(before, after, "httpdnsd_dns_requests_total", type=kind, family="1") == count, kind
    assert changes(before, after, "httpdnsd_dns_requests_total") == 8
    assert changes(before, after, "httpdnsd_dns_requests_total", proto="tcp") == 1
    assert changes(before, after, "httpdnsd_dns_responses_total") == 8
    assert changes(before, after, "httpdnsd_dns_responses_total", rcode="NXDOMAIN") >= 1
    assert changes(before, after, "httpdnsd_dns_request_duration_seconds_count") == 8
    assert after["httpdnsd_dns_request_duration_seconds_sum", ()] < 80
    # Hits: n1 twice, as AAAA and over TCP. Misses: n1, n2, nothing and the MX.
    assert changes(before, after, "httpdnsd_cache_hits_total") == 4
    assert changes(before, after, "httpdnsd_cache_misses_total") == 4
    assert after["httpdnsd_cache_entries", ()] >= 4 and after["httpdnsd_cache_bytes", ()] > 0
    server = {"group": "httpdns", "server": f"{chosen.address}:{chosen.port}", "protocol": "httpdns-https"}
    assert total(after, "httpdnsd_server_request_duration_seconds_count", rcode="NOERROR", **server) == 2
    assert total(after, "httpdnsd_server_requests_total", connection="new", **server) == 1
    assert total(after, "httpdnsd_server_requests_total", connection="open", **server) == 1
    assert total(after, "httpdnsd_server_up", **server) == 1
    assert total(after, "httpdnsd_server_in_use", **server) == 1
    # n1, whose AAAA records came with the A records, and n2.
    assert changes(before, after, "httpdnsd_group_questions_total", group="httpdns") == 2
    assert changes(before, after, "httpdnsd_group_questions_total", group="fallback") == 1
    assert total(after, "httpdnsd_group_queries_total", group="httpdns") == len(chosen.requests)
    assert total(after, "httpdnsd_group_names_total", group="httpdns") == len(chosen.names)
    assert total(after, "httpdnsd_group_failures_total", group="httpdns") == 0
    assert total(after, "httpdnsd_group_queries_total", group="fallback") >= 1
    assert "example" not in fetch("/metrics")[2]


def test_a_server_of_two_groups_is_counted_in_each(daemon, encrypted_resolver, authority):
    shared = encrypted_resolver("tls", tls=authority.server(addresses=["127.0.0.6"]))
    group = {"servers": [shared.url], "caFile": str(authority.file)}
    daemon(None, CONTROL | {"fallback": {"servers": ["127.0.0.2"]},
                            "upstreams.asked": group | {"domains": ["asked.example"]},
                            "upstreams.idle": group | {"domains": ["idle.example"]}})
    assert addresses(ask("www.asked.example"))
    samples = metrics()
    for name in ("httpdnsd_server_requests_total", "httpdnsd_server_request_duration_seconds_count",
                 "httpdnsd_server_certificate_expiry_seconds"):
        assert total(samples, name, group="asked") > 0 and total(samples, name, group="idle") == 0, name
    assert total(samples, "httpdnsd_server_requests_total", group="asked") == 1


def test_what_no_network_takes_has_not_left(daemon):
    """Lookups that no network accepts are not counted as sent: there is no route to either server."""
    daemon(None, CONTROL | {"fallback": {"servers": ["198.51.100.53"]},
                            "upstreams.office": {"servers": ["https://198.51.100.54/dns-query"], "domains": ["corp.example"]}})
    for name in ("www.example.com", "www.corp.example"):
        assert ask(name).rcode() == 2
    samples = metrics()
    assert total(samples, "httpdnsd_server_failing", reason="unreachable") == 2 and samples["httpdnsd_main_up", ()] == 0
    assert total(samples, "httpdnsd_lookups_sent_total") == 0


def test_failures_show(daemon, service):
    chosen = service("aes")
    daemon(chosen, CONTROL | {"httpdns": {"httpOnly": False, "batch": 1}})
    chosen.stop()
    for i in range(3):
        ask(f"n{i}.example.com")
    server = {"group": "httpdns", "server": f"{chosen.address}:{chosen.port}", "protocol": "httpdns-aes"}
    failed = metrics()
    assert total(failed, "httpdnsd_server_failures_total", **server) == 3
    assert total(failed, "httpdnsd_server_up", **server) == 0
    assert total(failed, "httpdnsd_server_failing", reason="unreachable", **server) == 1
    assert total(failed, "httpdnsd_group_failures_total", group="httpdns") == 3
    assert total(failed, "httpdnsd_fallbacks_total", reason="unreachable") == 3
    assert total(failed, "httpdnsd_fallbacks_total") == 3
    # None of the three requests was written.
    assert total(failed, "httpdnsd_group_names_total", group="httpdns") == 0
    assert total(failed, "httpdnsd_lookups_sent_total", way="encrypted") == 0
    assert failed["httpdnsd_ready", ()] == failed["httpdnsd_main_up", ()] == 1, "the local resolver answers"
    chosen.start()
    eventually(lambda: addresses(ask("n9.example.com")) == ["203.0.113.9"] and
               total(metrics(), "httpdnsd_server_up", **server) == 1, "it is healthy again")


def test_refusals_and_what_cannot_be_read(daemon):
    daemon(None, CONTROL | {"listen": {"addresses": ["127.0.0.1:53"], "allow": ["127.0.0.1"]}})
    before = metrics()
    assert ask("localhost", source="127.0.0.2").rcode() == 5
    message = bytes.fromhex("1234 0100 0002 0000 0000 0000")

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.settimeout(20)
        channel.connect(("127.0.0.1", 53))
        channel.send(message)
        assert channel.recv(512)[3] & 15 == 1
    after = metrics()
    assert changes(before, after, "httpdnsd_dns_responses_total", rcode="REFUSED") == 1
    assert changes(before, after, "httpdnsd_dns_responses_total", rcode="FORMERR") == 1
    assert changes(before, after, "httpdnsd_dns_requests_total", type="other") == 1


def test_the_format(daemon, service, tmp_path):
    """An independent parser accepts the text, and no series is there twice or has two types."""
    key = tmp_path / "fleet-key"
    key.write_text("0123456789abcdef" * 4)
    daemon(service("https"), CONTROL | {"sharedCache": {"server": "redis://127.0.0.1:9", "keyFile": str(key)}})
    ask("www.example.com")
    status, head, text = fetch("/metrics")
    assert status == 200 and head["Content-Type"].startswith("text/plain; version=0.0.4")
    assert int(head["Content-Length"]) == len(text.encode())
    families = {family.name: family for family in prometheus_client.parser.text_string_to_metric_families(text)}
    for family in families.values():
        assert family.documentation and family.type in ("counter", "gauge", "histogram"), family
        assert family.type != "counter" or all(one.name.endswith("_total") for one in family.samples)
        if family.type != "histogram":
            continue
        series = {}
        for one in family.samples:
            if one.name.endswith("_bucket"):
                labels = tuple(sorted((k, v) for k, v in one.labels.items() if k != "le"))
                series.setdefault(labels, []).append((float(one.labels["le"]), one.value))
        for labels, buckets in series.items():
            assert buckets == sorted(buckets) and [v for _, v in buckets] == sorted(v for _, v in buckets)
            count = [one.value for one in family.samples
                     if one.name.endswith("_count") and tuple(sorted(one.labels.items())) == labels]
            assert count == [buckets[-1][1]] and buckets[-1][0] == float("inf")
    # The table of the document has every series, with its labels and its words, and no other.
    listed = {}
    row = r"^\| `((?:httpdnsd|process)_\w+)` \| (\w+) \| (.*?) \| (.*) \|$"
    for name, kind, labels, words in re.findall(row, DOCUMENT.read_text(), re.MULTILINE):
        listed[name] = (kind, set(re.findall(r"`(\w+)`", labels)), words)
    shown = {}
    for name, words, kind in re.findall(r"^# HELP (\w+) (.*)\.\n# TYPE \1 (\w+)$", text, re.MULTILINE):
        found = {label for (one, pairs) in metrics(text) for label, _ in pairs if re.sub(r"_(bucket|sum|count)$", "", one) == name or one == name}
        shown[name] = (kind, found - {"le"}, words)
    # No client can ask over TLS, so this family has no series.
    handshakes = "httpdnsd_tls_handshakes_failed_total"
    assert shown[handshakes] == ("counter", set(), listed[handshakes][2])
    shown[handshakes] = listed[handshakes]
    assert listed == shown


def test_the_process(daemon):
    running = daemon(None, CONTROL)
    samples = metrics()
    resident = running.resident_kilobytes() * 1024
    assert 0.7 < samples["process_resident_memory_bytes", ()] / resident < 1.3
    assert abs(samples["process_open_fds", ()] - running.descriptors()) <= 2
    assert samples["process_cpu_seconds_total", ()] > 0
