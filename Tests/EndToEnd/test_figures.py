"""The figures of `status --json`, the page and `/metrics` equal what clients, upstream servers and tcpdump have seen, in phases
with and without faults.

By default the run is short. HTTPDNSD_FIGURES_SECONDS=600 is its full size.
"""

import collections
import contextlib
import itertools
import json
import os
import re
import signal
import socket
import time

import dns.rcode

from clients import Clients
from control import fetch, metrics, total
from daemon import run
from dns_client import addresses, extended_errors
from httpdns_service import Fault, Record, address_of
from resolvers import answer_locally
from standard import TEST_SECONDS
from waiting import eventually
from wire import Wire

SECONDS = int(os.environ.get("HTTPDNSD_FIGURES_SECONDS", "5"))
PORT = 2053
STALE = 3
CLEAR = "10.9.8.7"  # an address of this machine that is not on loopback
SETTLED, HEEDED = 0.3, 1.5  # seconds without a change; the daemon reacts to a change of the network within HEEDED


def zone(name, request):
    """Names of `none` have no record, those of `brief` a short TTL; all others live longer than the test."""
    kind = name.split(".")[1]
    if kind == "none":
        return Record()
    return Record([address_of(name)], [address_of(name, 6)], 1 if kind == "brief" else 86400)


class World:
    """The daemon, its servers, its clients, and what all of these have seen."""

    def __init__(self, binary, machine, service, local, wire, control):
        self.binary, self.machine, self.service, self.local = binary, machine, service, local
        self.wire, self.control = wire, control
        self.clients = Clients(port=PORT)
        self.number = itertools.count()
        self.asked = []  # (transport, result)
        self.again = 0  # questions that the cache can answer
        self.streams = 0
        self.left = collections.Counter()  # lookups by the transport on which they left
        self.failed = 0  # failed requests that the daemon must have counted
        self.answered = 0  # questions that the fallback has answered
        self.raced = set()  # names that the account has answered while the fallback may have been asked, too
        self.late = collections.Counter()  # later answers of the fallback, by the group and the figure that does not count them
        self.marks = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def fresh(self, count, kind="any"):
        return [f"n{next(self.number)}.{kind}.example.com" for _ in range(count)]

    def ask(self, names, kind="A", transport="udp"):
        """Asks for all names at once."""
        self.streams += len(names) if transport == "tcp" else 0
        return [(transport, self.clients.ask(name, kind, transport=transport)) for name in names]

    def answers(self, waiting):
        done = [(transport, one.result()) for transport, one in waiting]
        lost = [f"{one.name} {one.kind}" for _, one in done if one.reply is None]
        assert not lost, f"no answer: {lost}"
        self.asked += done
        return [one for _, one in done]

    def answer(self, asked):
        self.answered += 1
        return answer_locally(asked)

    def recover(self):
        """Waits until the account answers again."""
        def does():
            [name] = self.fresh(1)
            is_back = addresses(self.answers(self.ask([name]))[0].reply) == [address_of(name)]
            self.raced |= {name} if is_back else set()
            return is_back
        eventually(does, "the account answers")

    def status(self):
        ended = run(self.binary, "status", "--json", "--socket", self.control)
        assert ended.returncode == 0, ended
        return json.loads(ended.stdout)

    def settle(self, seconds):
        """Waits until nothing is under way and no figure has changed for this time."""
        def figures():
            return {key: value for key, value in metrics().items() if not key[0].startswith("process_")}

        last, since = figures(), time.monotonic()

        def is_settled():
            nonlocal last, since
            now = figures()
            if now != last or total(now, "httpdnsd_lookups_in_flight"):
                last, since = now, time.monotonic()
            return time.monotonic() - since > seconds
        eventually(is_settled, "all has ended", 30)
        return last


# The phases. Each asks its questions and waits for the answers.


def well(world):
    names = world.fresh(20)
    world.answers(world.ask(names) + world.ask(world.fresh(5), transport="tcp"))
    world.answers(world.ask(names, "AAAA"))
    world.answers(world.ask(names) + world.ask(names[:5], transport="tcp"))
    world.again += 45  # the other family comes with a name
    world.answers(world.ask(world.fresh(5), "MX") + world.ask([f"n{next(world.number)}.corp.example" for _ in range(5)]))


def no_record(world):
    world.answers(world.ask(world.fresh(5, "none")))


def equal(world):
    """Several clients wait for one equal question."""
    world.service.hold()
    before = total(metrics(), "httpdnsd_lookups_joined_total")
    waiting = world.ask(world.fresh(3) * 4)
    eventually(lambda: total(metrics(), "httpdnsd_lookups_joined_total") == before + 9, "they wait")
    world.service.release()
    world.answers(waiting)


def slow(world):
    """The fallback is asked beside the account."""
    world.service.fault = Fault("delay", 0.6)
    world.answers(world.ask(world.fresh(6)))
    world.service.fault = None
    world.recover()


def failing(world):
    def fails(request):
        world.failed += 1
        return Fault("status", 503)
    world.service.fault = fails
    for name in world.fresh(5):
        world.answers(world.ask([name]))
    world.service.fault = None
    world.recover()


def resets(world):
    """Connections end while requests are under way, so the requests are sent again."""
    world.answers(world.ask(world.fresh(8)))
    seen = set()

    def once(request):
        first = not seen.issuperset(request.names)
        seen.update(request.names)
        return Fault("reset") if first else None
    world.service.fault = once
    for name in world.fresh(6):
        world.answers(world.ask([name]))
    world.service.fault = None


def silent(world):
    world.service.fault = Fault("silence", 3)
    world.answers(world.ask(world.fresh(4)))
    world.service.fault = None
    world.recover()


def dead(world):
    world.service.stop()
    for name in world.fresh(5):
        world.answers(world.ask([name]))
    world.service.start()
    world.recover()


def brief(world):
    world.brief = world.fresh(5, "brief")
    world.answers(world.ask(world.brief))
    world.brief_until = time.monotonic() + 2


def stale(world):
    """The answers of the phase before have expired."""
    names = world.brief
    time.sleep(max(0, world.brief_until - time.monotonic()))
    world.service.stop()
    world.local.script = lambda asked: None
    world.answers(world.ask(names))
    world.answers(world.ask(world.fresh(2), "MX"))
    world.local.script = world.answer
    world.service.start()
    world.recover()


def network_changes(world):
    """Requests under way are sent again, on new connections."""
    world.answers(world.ask(world.fresh(4)))
    world.service.hold()
    waiting = world.ask(world.fresh(6))
    eventually(lambda: total(metrics(), "httpdnsd_lookups_in_flight") == 6, "they are under way")
    before = total(metrics(), "httpdnsd_group_repeats_total", group="httpdns")
    address = f"10.9.7.{1 + next(world.number) % 250}/32"
    world.machine.ip(f"address add {address} dev other")
    eventually(lambda: total(metrics(), "httpdnsd_group_repeats_total", group="httpdns") > before, "they are sent again")
    world.service.release()
    world.answers(waiting)
    world.machine.ip(f"address delete {address} dev other")


PHASES = [well, no_record, equal, slow, failing, resets, silent, dead, brief, stale, network_changes]
# Phases with failed requests that the service has not received, or has answered.
UNSEEN = {silent, dead, stale}
# Phases in which the daemon probes the account, for no client.
ASKED_AGAIN = {failing, *UNSEEN}


def check(world, phase, samples):
    """Compares the daemon's figures with those of all others."""
    status, page = world.status(), fetch("/")[2]
    groups = {group["name"]: group["counters"] for group in status["groups"]}
    figures = dict(re.findall(r"<dt>([^<]*)</dt><dd[^>]*>([^<]*)</dd>", page))
    differ = []

    def same(what, said, seen):
        if said != seen:
            differ.append(f"{what}: the daemon says {said}, it was {seen}")

    def metric(name, **labels):
        return total(samples, name, **labels)

    def number(label):
        return int(figures[label].replace(",", ""))

    # Figures that clients can see.
    replies = [one.reply for _, one in world.asked]
    same("questions", status["questions"]["asked"], len(replies))
    same("questions on the page", number("questions in the last hour"), len(replies))
    same("questions of the hour", status["questions"]["lastHour"]["questions"], len(replies))
    same("durations", metric("httpdnsd_dns_request_duration_seconds_count"), len(replies))
    same("durations of status", sum(bar["count"] for bar in status["questions"]["durations"]), len(replies))
    for (proto, kind), count in collections.Counter((transport, one.kind) for transport, one in world.asked).items():
        same(f"{kind} over {proto}", metric("httpdnsd_dns_requests_total", proto=proto, type=kind), count)
    codes = collections.Counter(dns.rcode.to_text(reply.rcode()) for reply in replies)
    for code in {*codes, "SERVFAIL", "NXDOMAIN"}:
        same(code, metric("httpdnsd_dns_responses_total", rcode=code), codes[code])
        same(f"{code} of status", status["questions"]["responses"].get(code, 0), codes[code])
    for course in status["history"]:
        same(f"questions of the past by {course['stepSeconds']} s", sum(course["questions"]), len(replies))
        same(f"failures of the past by {course['stepSeconds']} s", sum(course["failed"]), codes["SERVFAIL"])
    was_stale = sum(STALE in extended_errors(reply) for reply in replies)
    same("stale", metric("httpdnsd_cache_served_stale_total"), was_stale)
    same("stale of status", status["cache"]["servedStale"], was_stale)
    same("hits", metric("httpdnsd_cache_hits_total"), world.again)
    same("hits of status", status["cache"]["hits"], world.again)
    same("misses", metric("httpdnsd_cache_misses_total"), len(replies) - world.again)
    same("TCP clients", metric("httpdnsd_tcp_accepted_total"), world.streams)

    # Figures of questions to servers, which tcpdump can see.
    wire = world.wire
    before = (len(wire.names), *(len(wire.questions.get(address, [])) for address in (world.local.address, CLEAR)))
    wire.catch_up(world.marks)
    local, office = wire.questions.get(world.local.address, []), wire.questions.get(CLEAR, [])
    for place, said in {"metrics": metric("httpdnsd_group_names_total", group="httpdns"), "status": groups["httpdns"]["names"],
                        "the hour": groups["httpdns"]["namesLastHour"],
                        "the page": number("names billed in the last hour, at most")}.items():
        same(f"names billed by {place}", said, len(wire.names))
    for course in status["history"]:
        same(f"names billed of the past by {course['stepSeconds']} s", sum(course["billed"]), len(wire.names))
    for group, questions in (("fallback", local), ("office", office)):
        counters, different = groups[group], len(set(questions))
        same(f"datagrams to {group}", metric("httpdnsd_group_queries_total", group=group), len(questions))
        same(f"datagrams to {group} by status", counters["queries"] + counters["repeats"], len(questions))
        same(f"repeats to {group}", metric("httpdnsd_group_repeats_total", group=group), len(questions) - different)
        same(f"questions to {group}", metric("httpdnsd_group_questions_total", group=group), different)
        same(f"questions to {group} by status", counters["questions"], different)
    # No client waits for an answer of the fallback that comes after the account's: it need not be counted. It can also come while
    # the account is asked again.
    both = {name for name, _ in local[before[1]:]}
    both &= world.raced | (set(wire.names[before[0]:]) if phase in UNSEEN else set())
    world.raced.clear()
    for group, answers in (("fallback", world.answered), ("office", len(office))):
        [server] = next(one for one in status["groups"] if one["name"] == group)["servers"]
        for place, said in {"metrics": metric("httpdnsd_server_request_duration_seconds_count", group=group),
                            "status": server["answers"]}.items():
            late = answers - world.late[group, place] - said
            if group == "fallback" and 0 < late <= len(both):
                world.late[group, place] += late
            same(f"answers of {group} by {place}", said, answers - world.late[group, place])
    failed = metric("httpdnsd_group_failures_total", group="httpdns")
    if phase in UNSEEN:
        world.failed = failed  # no other party has seen these failures
    same("failed requests", failed, world.failed)
    same("failed requests by status", groups["httpdns"]["failures"], world.failed)
    same("failed requests by server", metric("httpdnsd_server_failures_total", group="httpdns"), world.failed)
    fell_back = {one for one in local if one[1] in ("A", "AAAA")}
    same("fallbacks", metric("httpdnsd_fallbacks_total"), len(fell_back))
    same("fallbacks of status", sum(status["fallbacks"].values()), len(fell_back))

    # The least protected transport by which each lookup of the phase has left: no attacker reads packets within this machine.
    names, local, office = set(wire.names[before[0]:]), set(local[before[1]:]), set(office[before[2]:])
    encrypted = {(name, "A") for name in names}
    for way, seen in (("encrypted", encrypted), ("loopback", local - encrypted), ("clear", office)):
        said = metric("httpdnsd_lookups_sent_total", way=way)
        world.left[way] = said if way == "encrypted" and phase in ASKED_AGAIN else world.left[way] + len(seen)
        same(f"lookups that left, {way}", said, world.left[way])
        same(f"the same of the hour, {way}", status["questions"]["lastHour"][way], world.left[way])
        for course in status["history"]:
            same(f"the same of the past by {course['stepSeconds']} s, {way}", sum(course[way]), world.left[way])
    for course in status["history"]:
        same(f"what stayed here by {course['stepSeconds']} s", sum(course["cache"]), len(replies) - world.left.total())
    assert not differ, f"{phase.__name__}:\n" + "\n".join(differ)


def is_ready():
    with contextlib.suppress(OSError):
        return fetch("/readyz")[0] == 200


def test_no_figure_differs_from_what_others_have_seen(binary, network, daemon, service, scripted_resolver, tmp_path):
    signal.alarm(TEST_SECONDS + 2 * SECONDS)
    machine = network()
    machine.ip("link add other type veth peer name end")
    for device in ("other", "end"):
        machine.ip(f"link set {device} up")
    machine.ip(f"address add {CLEAR}/24 dev other")
    with machine:
        chosen, local = service("aes", zone), scripted_resolver(answer_locally)
        scripted_resolver(answer_locally, address=CLEAR)
        control = str(tmp_path / "control.sock")
        with Wire(tmp_path, chosen) as wire, contextlib.ExitStack() as closing:
            daemon(whole={
                "listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "log": {"level": "info"},
                "control": {"metrics": "127.0.0.1:9153", "socket": control}, "httpdns": chosen.settings() | {"timeout": 2000},
                "fallback": {"servers": [local.address], "hosts": "", "hedgeAfter": 300, "timeout": 1000},
                "upstreams.office": {"servers": [CLEAR], "domains": ["corp.example"]},
                "cache": {"prefetchAt": 0, "minTTL": 1}}, port=PORT, ready=False)
            eventually(is_ready, "the daemon is ready")
            world, begun = World(binary, machine, chosen, local, wire, control), time.monotonic()
            closing.enter_context(world.marks)
            local.script = world.answer
            while True:
                for phase in PHASES:
                    phase(world)
                    check(world, phase, world.settle(HEEDED if phase is network_changes else SETTLED))
                if time.monotonic() - begun > SECONDS:
                    break
