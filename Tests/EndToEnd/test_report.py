"""`enableReport`: the content of reports on failed lookups, and their receivers."""

import pytest

from collector import in_the_log
from dns_client import addresses, ask
from httpdns_service import Fault, address_of, every_name
from resolvers import answer_locally
from waiting import eventually

FIELDS = {"appId", "encryptType", "dnsIp", "req_dn", "req_type", "spend", "errorCode", "statusCode"}
TIMED_OUT = 2  # the SDK's code


@pytest.fixture
def local(scripted_resolver):
    return scripted_resolver(answer_locally)


def reporting(local, **httpdns):
    return {"httpdns": {"enableReport": True, "appId": "app-4711", "timeout": 1000} | httpdns,
            "fallback": {"servers": [local.endpoint], "hedgeAfter": 1000}}


@pytest.mark.parametrize(("encryption", "case"), [("aes", "failed"), ("https", "timed out")])
def test_what_failed_and_what_fell_back_is_a_line_each(daemon, service, local, encryption, case):
    """A failed lookup and its fallback are reported with the SDK's fields; successful lookups are not reported."""
    chosen = service(encryption, every_name)
    running = daemon(chosen, reporting(local))
    assert addresses(ask("good.example.com")) == [address_of("good.example.com")]
    chosen.fault = Fault("status", 503) if case == "failed" else Fault("silence")
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
    assert str(report["statusCode"]) == {"failed": "503"}.get(case, "0")
    if case == "timed out":
        assert str(report["errorCode"]) == str(TIMED_OUT) and report["spend"] >= 250


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
    """Reports to a URL do not go to the log as well, as a log should have no names."""
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


def test_a_url_that_takes_nothing(daemon, service, local, collector):
    """When the URL refuses reports, clients do not notice, memory does not grow, and the log is not flooded."""
    taker = collector(status=500)
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
