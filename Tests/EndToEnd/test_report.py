"""`enableReport`: what is told of lookups that did not go as they should, to whom, and what is never told."""

import http.server
import json
import threading

import pytest

from dns_client import addresses, ask
from httpdns_service import Fault, address_of, every_name
from resolvers import answer_locally
from waiting import eventually

FIELDS = {"appId", "encryptType", "dnsIp", "req_dn", "req_type", "spend", "errorCode", "statusCode"}
TIMED_OUT = 2  # the SDK's code


class Collector:
    """Takes what is posted to it, for `reportUrl`."""

    def __init__(self, status=200, port=0):
        self.bodies = []
        self.heads = []
        outer = self

        class Take(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                outer.heads.append(f"{self.command} {self.path}\n{self.headers}")
                outer.bodies.append(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.8", port), Take)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def port(self):
        return self._server.server_port

    @property
    def url(self):
        return f"http://127.0.0.8:{self.port}/reports"

    @property
    def reports(self):
        return [json.loads(line) for body in list(self.bodies) for line in body.splitlines() if line.strip()]

    def stop(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def collector():
    started = []

    def start(**options):
        started.append(Collector(**options))
        return started[-1]
    yield start
    for one in started:
        one.stop()  # twice is as good as once


@pytest.fixture
def local(scripted_resolver):
    return scripted_resolver(answer_locally)


def in_the_log(running):
    """The JSON objects among the log's lines, whatever stands before them."""
    found = []
    for line in running.log().splitlines():
        start = line.find("{")
        if start >= 0 and '"req_dn"' in line:
            found.append(json.loads(line[start:]))
    return found


def reporting(local, **httpdns):
    return {"httpdns": {"enableReport": True, "appId": "app-4711", "timeout": 1000} | httpdns,
            "fallback": {"servers": [local.endpoint]}}


FAULTS = {"failed": Fault("status", 503), "timed out": Fault("silence"), "decrypt error": Fault("garbage"),
          "refused": None}


@pytest.mark.parametrize("encryption", ["aes", "https"])
@pytest.mark.parametrize("case", FAULTS)
def test_what_failed_and_what_fell_back_is_a_line_each(daemon, service, local, encryption, case):
    """With the SDK's names of what it says; and nothing of lookups that went well."""
    chosen = service(encryption, every_name)
    running = daemon(chosen, reporting(local))
    assert addresses(ask("good.example.com")) == [address_of("good.example.com")]
    chosen.stop() if case == "refused" else setattr(chosen, "fault", FAULTS[case])
    assert ask("bad.example.com").answer
    reports = eventually(lambda: len(lines := in_the_log(running)) >= 2 and lines, "it is reported")
    assert len(reports) == 2
    for report in reports:
        assert set(report) >= FIELDS and report["req_dn"].rstrip(".") == "bad.example.com", report
        assert report["appId"] == "app-4711"
    report, fallback = reports
    assert fallback["fellBack"] is True and not report["fellBack"]
    assert encryption in str(report["encryptType"]).lower()
    assert chosen.address in report["dnsIp"]
    assert report.get("dnsId") == (12345 if encryption == "aes" else None), "over HTTPS there is none"
    assert isinstance(report["spend"], int | float) and 0 <= report["spend"] < 5000
    assert str(report["errorCode"]) != "0"
    assert str(report["statusCode"]) == {"failed": "503", "decrypt error": "200"}.get(case, "0")
    if case == "timed out":
        assert str(report["errorCode"]) == str(TIMED_OUT) and report["spend"] >= 250


def test_no_record_is_not_abnormal(daemon, service, local):
    running = daemon(service("aes", {}), reporting(local))
    for number in range(5):
        assert ask(f"none{number}.example.com").answer
    ask("localhost")
    assert not in_the_log(running)


def test_nothing_falls_back_with_http_only(daemon, service, local):
    running = daemon(service("aes", every_name), reporting(local, httpOnly=True, dnsIp=["127.0.0.9:9"]))
    ask("bad.example.com")
    eventually(lambda: in_the_log(running), "it is reported")
    assert not local.questions and not any(report["fellBack"] for report in in_the_log(running))


def test_past_the_plan_is_reported(daemon, service, local):
    """`queriesPerSecond`: what went to the local resolver because of it."""
    running = daemon(service("aes", every_name), reporting(local, queriesPerSecond=1))
    names = [f"plan{number}.example.com" for number in range(5)]
    for name in names:
        ask(name)
    reports = eventually(lambda: len(lines := in_the_log(running)) >= 4 and lines, "it is reported")
    assert {report["req_dn"].rstrip(".") for report in reports} <= set(names)
    assert all(report["fellBack"] and report["errorCode"] for report in reports)


def test_nothing_is_reported_unless_it_is_asked_for(daemon, service, local, collector):
    taker = collector()
    chosen = service("aes", every_name)
    chosen.fault = Fault("status", 500)
    running = daemon(chosen, reporting(local, enableReport=False, reportUrl=taker.url))
    for number in range(5):
        ask(f"bad{number}.example.com")
    assert "bad0" not in running.log()
    running.stop()
    assert not taker.bodies and "bad0" not in running.log()


def test_reports_go_to_the_url_in_batches(daemon, service, local, collector):
    """And not to the log as well: names have no business there."""
    taker = collector()
    chosen = service("aes", every_name)
    chosen.fault = Fault("status", 500)
    running = daemon(chosen, reporting(local, reportUrl=taker.url))
    names = [f"bad{number}.example.com" for number in range(60)]  # fewer than are sent at once
    for name in names:
        assert ask(name).answer
    eventually(lambda: {report["req_dn"].rstrip(".") for report in taker.reports} == set(names),
               "everything is reported", 30)
    assert all(set(report) >= FIELDS for report in taker.reports)
    assert len(taker.bodies) <= 30, "in batches"
    assert taker.heads[0].startswith("POST /reports\n")
    assert "bad0" not in running.log()


@pytest.mark.parametrize("trouble", ["nobody listens", "it fails"])
def test_a_url_that_takes_nothing(daemon, service, local, collector, trouble):
    """Clients do not notice, memory does not grow, the log is not flooded."""
    taker = collector(status=500 if trouble == "it fails" else 200)
    if trouble == "nobody listens":
        taker.stop()
    chosen = service("aes", every_name)
    chosen.fault = Fault("status", 500)
    running = daemon(chosen, reporting(local, reportUrl=taker.url))
    for number in range(300):
        assert ask(f"bad{number}.example.com").answer
    before = running.held_kilobytes()
    for number in range(2000):
        assert ask(f"more{number}.example.com").answer
    assert running.held_kilobytes() - before < 4000
    assert len(running.log().splitlines()) < 20, running.log()
    assert "bad0.example.com" not in running.log()


def test_the_names_of_a_report_are_json_whatever_they_are(daemon, service, local):
    """Labels with a quotation mark never go to HTTPDNS, so they are in no report; the longest name is, whole."""
    chosen = service("aes", every_name)
    chosen.fault = Fault("status", 500)
    running = daemon(chosen, reporting(local))
    long_name = ".".join(["a" * 60] * 4)
    ask(long_name)
    ask('quote\\".example.com')
    reports = eventually(lambda: in_the_log(running), "it is reported")
    assert {report["req_dn"].rstrip(".") for report in reports} == {long_name}
