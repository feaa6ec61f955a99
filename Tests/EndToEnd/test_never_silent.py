"""A silent upstream: the answers that clients get, and when."""

import concurrent.futures
import itertools
import time

import dns.rcode
import pytest

from clients import Clients
from dns_client import addresses, ask, extended_errors
from httpdns_service import Fault, address_of, every_name
from networks import BlackHole
from relay import Relay
from resolvers import LOCAL_ADDRESS, ScriptedResolver, answer_locally
from waiting import eventually

STALE_WITHIN, ANSWER_WITHIN = 1.8, 4.0  # seconds
HEDGE_AFTER, OWN_TIME = 0.3, 0.2  # seconds of the local resolver
SLACK = 0.9  # the delay of a busy machine: less than the distance of any two of these times
# No configured time-out may keep a client waiting.
PATIENT = {"timeout": 20000}
SILENT_RESOLVER, LOCAL_RESOLVER = "127.0.0.10", "127.0.0.11"
KNOWN = "known.example.com"


def slowly(asked):
    time.sleep(OWN_TIME)
    return answer_locally(asked)


def is_stale(reply, name):
    return extended_errors(reply) == [3] and addresses(reply) == [address_of(name)] and reply.answer[0].ttl <= 7


class World:
    """A service with three daemons: for one the local resolver answers, for one it is silent, the third must not ask it."""

    ROWS = ["resolver", "nobody", "strict"]
    ports = itertools.count(2100)

    def __init__(self, service, through):
        self.service = service("https", every_name)
        self.relay = through(self.service)
        self.row_ports = {row: next(self.ports) for row in self.ROWS}

    def start_daemons(self, module_daemon):
        for row, port in self.row_ports.items():
            resolver = LOCAL_RESOLVER if row == "resolver" else SILENT_RESOLVER
            module_daemon(self.service, {
                "listen": {"addresses": [f"127.0.0.1:{port}"], "workers": 1},
                "httpdns": PATIENT | {"httpOnly": row == "strict", "dnsIp": [self.relay.endpoint]},
                "fallback": {"servers": [resolver], "timeout": 20000, "hedgeAfter": int(HEDGE_AFTER * 1000)},
                "cache": {"maxTTL": 1, "staleTTL": 7}}, port=port)

    def learn(self):
        """Has each daemon learn a round trip, and cache a name."""
        for port in self.row_ports.values():
            assert addresses(ask(KNOWN, port=port)) == [address_of(KNOWN)]

    def ask_everything(self, clients):
        """Asks for unknown names and a cached one, so slowly that clients do not wait for each other."""
        asked = {row: [] for row in self.ROWS}
        for row, port in self.row_ports.items():
            for name in (KNOWN, *(f"unknown{number}.example.com" for number in range(3))):
                for kind, transport in (("A", "udp"), ("AAAA", "tcp")):
                    asked[row].append(clients.ask(name, kind, port=port, transport=transport))
                    time.sleep(0.005)
        return asked


def start_together(worlds, module_daemon):
    with concurrent.futures.ThreadPoolExecutor(len(worlds)) as pool:
        list(pool.map(lambda world: world.start_daemons(module_daemon), worlds))


SILENCES = ["requests", "handshakes", "packets"]
CASES = [(silence, heard) for silence in SILENCES for heard in (True, False)]


@pytest.fixture(scope="module")
def outcomes(module_daemon, service):
    """The results of all questions in all worlds, asked at the same time, as each takes seconds."""
    relays = []

    def through(target):
        relays.append(Relay(target))
        return relays[-1]
    resolvers = [ScriptedResolver(slowly, address=LOCAL_RESOLVER),
                 ScriptedResolver(lambda asked: None, address=SILENT_RESOLVER)]
    worlds = {case: World(service, through) for case in CASES}
    start_together([world for (_, heard), world in worlds.items() if heard], module_daemon)
    for (_, heard), world in worlds.items():
        if heard:
            world.learn()
    time.sleep(1.1)  # the TTL of the cached name, by the clock
    for (silence, _), world in worlds.items():
        if silence == "handshakes":
            world.relay.freeze()
        elif silence == "requests":
            world.service.fault = Fault("silence")
    with BlackHole([world.relay.port for (silence, _), world in worlds.items() if silence == "packets"]):
        start_together([world for (_, heard), world in worlds.items() if not heard], module_daemon)
        clients = Clients()
        asked = {case: world.ask_everything(clients) for case, world in worlds.items()}
        clients.done()
    for one in [*relays, *resolvers]:
        one.stop()
    return {case: {row: [question.result() for question in questions] for row, questions in rows.items()}
            for case, rows in asked.items()}


def check(rows, heard):
    """Checks every row of the table."""
    wrong = [f"{row}: {one.name} {one.kind} after {one.waited} s: {one.reply}"
             for row, questions in rows.items() for one in questions if not is_right(row, one, heard)]
    assert not wrong, "\n".join([f"{len(wrong)} answers are not what they should be"] + wrong[:5])


def is_right(row, one, heard):
    if one.reply is None:
        return False
    if one.name == KNOWN and one.kind == "A" and heard:
        is_local = row == "resolver" and addresses(one.reply) == [LOCAL_ADDRESS]
        return one.waited <= STALE_WITHIN + SLACK and (is_local or is_stale(one.reply, KNOWN))
    if one.name == KNOWN and heard:
        return one.waited <= STALE_WITHIN + SLACK and one.reply.rcode() == dns.rcode.NOERROR and len(one.reply.answer) == 1
    if row == "resolver":
        in_time = HEDGE_AFTER <= one.took and one.waited <= HEDGE_AFTER + OWN_TIME + SLACK
        return in_time and one.reply.rcode() == dns.rcode.NOERROR and len(one.reply.answer) == 1
    is_told = one.reply.rcode() == dns.rcode.SERVFAIL and extended_errors(one.reply) == [22]
    return is_told and one.waited <= ANSWER_WITHIN + SLACK


@pytest.mark.parametrize("silence", SILENCES)
def test_a_service_that_falls_silent(outcomes, silence):
    """A service that has answered before stops answering, or freezes, or its packets vanish."""
    check(outcomes[silence, True], True)


@pytest.mark.parametrize("silence", SILENCES)
def test_a_service_that_was_never_heard(outcomes, silence):
    """A service is silent from the start of the daemon."""
    check(outcomes[silence, False], False)


def test_before_there_is_any_network(daemon, service, network, scripted_resolver):
    """A daemon that starts with loopback alone answers every client, and uses the network once it comes up."""
    here, there = network(), network()
    with there:
        chosen = service("aes", every_name, address="0.0.0.0")
        local = scripted_resolver(answer_locally, address="0.0.0.0")
    with here:
        running = daemon(chosen, {
            "httpdns": PATIENT | {"dnsIp": [f"10.77.0.2:{chosen.port}"]},
            "fallback": {"servers": [f"10.77.0.2:{local.port}"], "timeout": 20000}})
        clients = Clients()
        for transport in ("udp", "tcp"):
            clients.ask("early.example.com", transport=transport)
            clients.ask("early.example.com", "MX", transport=transport)
        for one in clients.all_answered():
            assert one.waited <= ANSWER_WITHIN + SLACK and one.reply.rcode() == dns.rcode.SERVFAIL, one
            assert extended_errors(one.reply) in ([22], [23]), one.reply
        assert len(running.log().splitlines()) < 12, "no flood in the log while there is no network"
        here.link(there)
        eventually(lambda: addresses(ask("early.example.com")) == [address_of("early.example.com")],
                   "HTTPDNS is used as soon as it can be reached")
        eventually(lambda: ask("early.example.com", "MX").answer, "and so is the local resolver")
        assert addresses(ask("late.example.com", transport="tcp")) == [address_of("late.example.com")]
