"""The files of config/prometheus under a Prometheus: the dashboard's queries and the alerts."""

import contextlib
import itertools
import json
import pathlib
import re
import signal
import subprocess
import urllib.parse

import pytest
import yaml

from control import Control, fetch
from dns_client import addresses, ask, extended_errors
from fleet import KEY
from httpdns_service import Fault, Record, every_name
from resolvers import reply_to
from waiting import eventually

HERE = pathlib.Path(__file__).parent
SHIPPED = HERE.parents[1] / "config/prometheus"
RULES = SHIPPED / "httpdnsd.rules.yml"
DASHBOARD = SHIPPED / "httpdnsd.dashboard.json"
PROMETHEUS = ("127.0.0.1", 9090)
CONTROL = {"control": {"metrics": "127.0.0.1:9153"}}
# An address of this network that is not a loopback one: packets to it count as leaving the machine.
ELSEWHERE = "10.53.53.53"


def promtool(*arguments):
    return subprocess.run(["promtool", *arguments], cwd=HERE, capture_output=True, text=True)


def rules():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


ALERTS = [rule["alert"] for rule in rules() if "alert" in rule]


def test_the_rules_load_and_do_what_they_say():
    checked = promtool("check", "rules", str(RULES))
    assert checked.returncode == 0 and "SUCCESS" in checked.stdout and not checked.stderr, checked
    tested = promtool("test", "rules", "alerts.yml")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    told = {one["alertname"] for test in yaml.safe_load((HERE / "alerts.yml").read_text())["tests"]
            for one in test["alert_rule_test"] if one.get("exp_alerts")}
    assert told == set(ALERTS)


def test_each_alert_leads_to_what_to_do():
    """Each alert has a section in troubleshooting.md."""
    page = (HERE.parents[1] / "docs/troubleshooting.md").read_text()
    for rule in rules():
        if "alert" in rule:
            address, anchor = rule["annotations"]["runbook_url"].split("#")
            assert address.endswith("/docs/troubleshooting.md") and anchor == rule["alert"].lower()
            assert f"\n### {rule['alert']}\n" in page
    assert re.findall(r"^### (Httpdnsd\w+)$", page, re.MULTILINE) == ALERTS


# MARK: The dashboard

def panels():
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def test_the_dashboard_is_whole():
    """The dashboard has no errors that Grafana accepts silently: overlapping panels and duplicate names."""
    board = json.loads(DASHBOARD.read_text())
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    taken = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = set(itertools.product(range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])))
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
    variables = {variable["name"] for variable in board["templating"]["list"]}
    for panel in panels():
        assert panel["description"] and panel["datasource"]["uid"] == "${datasource}", panel["title"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]), panel["title"]
        for target in panel["targets"]:
            assert set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"} <= variables, target["expr"]


@contextlib.contextmanager
def prometheus(directory):
    """A Prometheus that asks the daemon each second, with the shipped rules."""
    configuration = directory / "prometheus.yml"
    hasty = directory / "rules.yml"
    hasty.write_text(RULES.read_text().replace("interval: 1m", "interval: 1s"))
    configuration.write_text(yaml.safe_dump({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "rule_files": [str(hasty)],
        "scrape_configs": [{"job_name": "httpdnsd", "static_configs": [{"targets": ["127.0.0.1:9153"]}]}]}))
    with open(directory / "log", "w") as log:
        process = subprocess.Popen(
            ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={directory}/data",
             f"--web.listen-address={PROMETHEUS[0]}:{PROMETHEUS[1]}"], stdout=log, stderr=log)
    try:
        eventually(ready, "prometheus is ready", 30)
        yield
        lines = (directory / "log").read_text().splitlines()
        complaints = [line for line in lines if "level=warn" in line or "level=error" in line]
        assert complaints == []
    finally:
        process.kill()
        process.wait()


def ready():
    with contextlib.suppress(OSError):
        return fetch("/-/ready", address=PROMETHEUS)[0] == 200


def api(path, **parameters):
    text = fetch(f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}", address=PROMETHEUS)[2]
    answer = json.loads(text)
    assert answer["status"] == "success" and "warnings" not in answer, answer
    return answer["data"]


def query(expression):
    for name, value in (("$__rate_interval", "5s"), ("$job", ".*"), ("$instance", ".*")):
        expression = expression.replace(name, value)
    return api("query", query=expression)["result"]


# Queries that return nothing while all is well.
SILENT = {"Why servers fail", "Asked elsewhere instead of HTTPDNS", "Refused"}


def test_every_panel_shows_something_under_load(daemon, service, scripted_resolver, encrypted_resolver, authority, store,
                                                tmp_path):
    plain = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN TXT x"), address=ELSEWHERE)
    office = encrypted_resolver("tls")
    running = daemon(service("https", every_name), CONTROL | shared_by(store(), tmp_path) | {
        "fallback": {"servers": [plain.endpoint]},
        "upstreams.office": {"servers": [office.url], "domains": ["corp.example"], "caFile": str(authority.file)}})
    names = itertools.count()

    def load():
        for _ in range(5):
            number = next(names)
            for name, kind in ((f"n{number}.example.com", "A"), (f"n{number}.example.com", "A"),
                               (f"n{number}.example.com", "TXT"), (f"n{number}.corp.example", "A")):
                assert ask(name, kind).rcode() == 0

    def missing():
        load()
        return [(panel["title"], target["expr"]) for panel in panels() for target in panel["targets"]
                if panel["title"] not in SILENT and not query(target["expr"])]

    with prometheus(tmp_path):
        eventually(lambda: not missing(), "every panel shows something", 60)
        for annotation in json.loads(DASHBOARD.read_text())["annotations"]["list"]:
            query(annotation["expr"])
        running.process.send_signal(signal.SIGHUP)
        eventually(lambda: [one for one in json.loads(DASHBOARD.read_text())["annotations"]["list"]
                            if one["name"] == "Reloads" and query(one["expr"])], "the reload is marked")
        state = [rule for group in api("rules")["groups"] for rule in group["rules"]]
        assert len(state) == len(rules())
        for rule in state:
            assert rule["health"] == "ok" and not rule.get("lastError"), rule
        assert [alert for alert in api("alerts")["alerts"] if alert["state"] == "firing"] == []


# MARK: The alerts, by metrics of a daemon that has met each fault

def shared_by(store, directory):
    (directory / "fleet-key").write_text(KEY)
    return {"sharedCache": {"server": f"redis://{store.address}:{store.port}", "keyFile": str(directory / "fleet-key")}}


class World:
    """A daemon with an account, a plain resolver elsewhere, an encrypted one for corp.example, a store, and its clients."""

    def __init__(self, daemon, service, scripted_resolver, encrypted_resolver, authority, store, directory):
        self.account = service("aes", self._record)
        self.store = store()
        self.is_answered = True  # whether a new name of the account is answered
        self.unknown = False  # whether the account has no record of any name
        self.authority = authority
        self.plain = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.1"), address=ELSEWHERE)
        self.silent = set()  # names that the office does not answer
        self.office = encrypted_resolver("tls", self._of_office)
        self.daemon = daemon(self.account, CONTROL | shared_by(self.store, directory) | {
            "listen": {"addresses": ["127.0.0.1:53"], "allow": ["127.0.0.1"]}, "fallback": {"servers": [self.plain.endpoint]},
            "upstreams.office": {"servers": [self.office.url], "domains": ["corp.example"], "caFile": str(authority.file),
                                 "timeout": 1000}})
        self._names = itertools.count()

    def _record(self, name, request):
        return Record([], [], 60) if self.unknown else every_name(name, request)

    def _of_office(self, asked, connection):
        name = str(asked.message.question[0].name)
        return None if name in self.silent else reply_to(asked.message, "1 IN A 192.0.2.7")

    def asks(self, times=40):
        """Asks for new names of the account, and for some of the office."""
        if self.daemon.process.poll() is not None:
            return
        for number in itertools.islice(self._names, times):
            assert addresses(ask(f"n{number}.example.com")) or not self.is_answered
            ask(f"n{number % 4}.corp.example")


def down(world):
    world.daemon.stop()


def not_ready(world):
    world.account.stop()
    world.plain.stop()
    world.is_answered = False


def wrong_file(world):
    file = world.daemon.directory / "httpdnsd.toml"
    file.write_text(file.read_text() + "\n[logs]\n")
    world.daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: world.daemon.log_lines("the configuration stays as it was"), "it was read again")


def without_store(world):
    world.store.stop()

    def is_off():
        ask(f"n{next(world._names)}.example.com")
        return "httpdnsd_shared_cache_up 0\n" in fetch("/metrics")[2]
    eventually(is_off, "the shared cache is not in use")


def office_away(world):
    """The office's server goes, so its names get stale answers, or none."""
    world.office.away()
    eventually(lambda: 3 in extended_errors(ask("n1.corp.example", edns=True)), "a stale answer")


def out_of_use(world):
    world.account.stop()


def refused_account(world):
    world.account.fault = Fault("status", 401)


def slower(world):
    world.account.fault = Fault("delay", 0.3)


def stale(world):
    """The office does not answer one name, whose cached answer has expired."""
    world.silent.add("n1.corp.example.")
    eventually(lambda: 3 in extended_errors(ask("n1.corp.example", edns=True)), "a stale answer")


def expiring(world):
    world.office.away()
    world.office.renew(world.authority.server(addresses=["127.0.0.6"], until=3))
    world.office.start()
    eventually(lambda: addresses(ask(f"n{next(world._names)}.corp.example")), "the office is back")


def stranger(world):
    for _ in range(20):
        assert ask("www.example.com", source="127.0.0.9").rcode() == 5


def unknown(world):
    world.unknown = True


FAULTS = {"HttpdnsdDown": down, "HttpdnsdNotReady": not_ready, "HttpdnsdGroupDown": office_away,
          "HttpdnsdReloadFailed": wrong_file, "HttpdnsdSharedCacheOff": without_store, "HttpdnsdOutOfUse": out_of_use, "HttpdnsdAccountRefused": refused_account, "HttpdnsdAnswersSlower": slower,
          "HttpdnsdStaleAnswers": stale, "HttpdnsdCertificateExpiring": expiring, "HttpdnsdQuestionsRefused": stranger,
          "HttpdnsdMoreInTheClear": unknown}
USUAL, FAULTY = 120, 60  # minutes


def scraped():
    """The samples of the text, each with whether it is of a counter or a histogram; and the `up` of Prometheus."""
    try:
        text = fetch("/metrics")[2]
    except OSError:
        return {'up{job="dns",instance="a"}': (0.0, False)}
    gauges = set(re.findall(r"^# TYPE (\w+) gauge$", text, re.MULTILINE))
    samples = {'up{job="dns",instance="a"}': (1.0, False)}
    for name, labels, value in re.findall(r"^(\w+)(?:\{(.*)\})? (\S+)$", text, re.MULTILINE):
        series = f'{name}{{{labels + "," if labels else ""}job="dns",instance="a"}}'
        samples[series] = (float(value), name not in gauges)
    return samples


def scraped_in_use():
    """The samples while the shared cache is in use: on a machine that stands still it is out of use for a moment."""
    def in_use():
        samples = scraped()
        return samples if samples['httpdnsd_shared_cache_up{job="dns",instance="a"}'][0] == 1 else None

    return eventually(in_use, "the shared cache is in use", 30)


def series(before, usual, faulty):
    """For two hours counters grow as before the fault, then for an hour as in the fault; gauges jump, or end."""
    for name, (value, grows) in usual.items():
        if name not in faulty and not grows:
            yield {"series": name, "values": f"{value:.9f}x{USUAL} _x{FAULTY - 1}".replace("--", "")}
    for name, (value, grows) in faulty.items():
        first, second = (samples.get(name, (0.0, grows))[0] for samples in (before, usual))
        if grows:
            # The load repeats every ten minutes.
            slow, fast = (second - first) / 10, (value - second) / 10
            values = f"0+{slow:.9f}x{USUAL} {slow * USUAL + fast:.9f}+{fast:.9f}x{FAULTY - 1}"
        else:
            values = f"{second:.9f}x{USUAL} {value:.9f}x{FAULTY - 1}".replace("--", "")
        yield {"series": name, "values": values}


@pytest.mark.parametrize("alert", FAULTS)
def test_each_fault_raises_its_alert_and_no_other(daemon, service, scripted_resolver, encrypted_resolver, authority, store,
                                                  tmp_path, alert):
    assert set(FAULTS) == set(ALERTS)
    world = World(daemon, service, scripted_resolver, encrypted_resolver, authority, store, tmp_path)
    world.asks(4)
    before = scraped()
    world.asks()
    usual = scraped_in_use()
    FAULTS[alert](world)
    world.asks()
    faulty = scraped() if alert in ("HttpdnsdDown", "HttpdnsdSharedCacheOff") else scraped_in_use()

    def firing(minute, *alerts):
        samples = [{"labels": f'{{alertname="{one}"}}', "value": 1} for one in alerts]
        return {"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": f"{minute}m", "exp_samples": samples}

    # No other alert fires, even for a moment.
    others = {"expr": f'max_over_time(ALERTS{{alertstate="firing",alertname!="{alert}"}}[{USUAL + FAULTY}m])',
              "eval_time": f"{USUAL + FAULTY - 1}m", "exp_samples": []}
    test = tmp_path / "test.yml"
    test.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [{
        "interval": "1m", "input_series": list(series(before, usual, faulty)),
        "promql_expr_test": [firing(USUAL - 1), firing(USUAL + 35, alert), others]}]}))
    tested = promtool("test", "rules", str(test))
    assert tested.returncode == 0, tested.stdout + tested.stderr
