"""An upstream that says nothing: what clients get, and when."""

import concurrent.futures
import itertools
import time

import dns.rcode
import pytest

from clients import Clients, at_the_same_moment
from dns_client import addresses, ask, extended_errors
from httpdns_service import Fault, address_of, every_name
from networks import BlackHole
from relay import Relay
from resolvers import LOCAL_ADDRESS, ScriptedResolver, answer_locally
from waiting import eventually, waited_since

STALE_WITHIN, ANSWER_WITHIN = 1.8, 4.0  # seconds
HEDGE_AFTER, OWN_TIME = 0.3, 0.2  # of the local resolver
TOLERANCE = 0.25
# Nothing that is configured may keep a client waiting.
PATIENT = {"timeout": 20000}
SILENT_RESOLVER, LOCAL_RESOLVER = "127.0.0.10", "127.0.0.11"
KNOWN = "known.example.com"


def slowly(asked):
    time.sleep(OWN_TIME)
    return answer_locally(asked)


def is_stale(reply, name):
    return extended_errors(reply) == [3] and addresses(reply) == [address_of(name)] and reply.answer[0].ttl <= 7


class World:
    """A service and three daemons on it: for one the local resolver answers, for one it is silent as well, one may not
    ask it."""

    ROWS = ["resolver", "nobody", "strict"]
    ports = itertools.count(2100)

    def __init__(self, service, servers=1, through=None):
        self.services = [service("aes" if servers > 1 else "https", every_name) for _ in range(servers)]
        self.relay = through and through(self.services[0])
        self.row_ports = {row: next(self.ports) for row in self.ROWS}

    def start_daemons(self, module_daemon):
        front = [self.relay] if self.relay else self.services
        patience = PATIENT if len(front) == 1 else {"timeout": 1500}
        for row, port in self.row_ports.items():
            resolver = LOCAL_RESOLVER if row == "resolver" else SILENT_RESOLVER
            module_daemon(self.services[0], {
                "listen": {"addresses": [f"127.0.0.1:{port}"], "workers": 1},
                "httpdns": patience | {"httpOnly": row == "strict", "dnsIp": [one.endpoint for one in front]},
                "fallback": {"servers": [resolver], "timeout": 20000, "hedgeAfter": int(HEDGE_AFTER * 1000)},
                "cache": {"maxTTL": 1, "staleTTL": 7}}, port=port)

    def learn(self):
        """A round trip, and a name."""
        for port in self.row_ports.values():
            assert addresses(ask(KNOWN, port=port)) == [address_of(KNOWN)]

    def ask_everything(self, clients):
        """Names nobody knows, and one that was known; not so fast that the clients wait for each other."""
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
    """What came of all questions in all worlds; they are asked at the same time, as each has to wait for seconds."""
    relays = []

    def through(target):
        relays.append(Relay(target))
        return relays[-1]
    resolvers = [ScriptedResolver(slowly, address=LOCAL_RESOLVER),
                 ScriptedResolver(lambda asked: None, address=SILENT_RESOLVER)]
    worlds = {case: World(service, through=through) for case in CASES}
    start_together([world for (_, heard), world in worlds.items() if heard], module_daemon)
    for (_, heard), world in worlds.items():
        if heard:
            world.learn()
    time.sleep(1.1)  # the TTL of what was learned, by the clock
    for (silence, _), world in worlds.items():
        if silence == "handshakes":
            world.relay.freeze()
        elif silence == "requests":
            world.services[0].fault = Fault("silence")
    worlds["several"] = World(service, servers=4)
    for one in worlds["several"].services:
        one.fault = Fault("silence")
    with BlackHole([world.relay.port for case, world in worlds.items() if case[0] == "packets"]):
        start_together([world for case, world in worlds.items() if case == "several" or not case[1]], module_daemon)
        clients = Clients()
        asked = {case: world.ask_everything(clients) for case, world in worlds.items()}
        clients.done()
    for one in [*relays, *resolvers]:
        one.stop()
    return {case: {row: [question.result() for question in questions] for row, questions in rows.items()}
            for case, rows in asked.items()}


def check(rows, heard):
    """Every row of the table as it should be."""
    wrong = [f"{row}: {one.name} {one.kind} after {one.waited} s: {one.reply}"
             for row, questions in rows.items() for one in questions if not is_right(row, one, heard)]
    assert not wrong, "\n".join([f"{len(wrong)} answers are not what they should be"] + wrong[:5])


def is_right(row, one, heard):
    if one.reply is None:
        return False
    if one.name == KNOWN and one.kind == "A" and heard:
        is_local = row == "resolver" and addresses(one.reply) == [LOCAL_ADDRESS]
        return one.waited <= STALE_WITHIN and (is_local or is_stale(one.reply, KNOWN))
    if one.name == KNOWN and heard:
        return one.waited <= STALE_WITHIN and one.reply.rcode() == dns.rcode.NOERROR and len(one.reply.answer) == 1
    if row == "resolver":
        in_time = HEDGE_AFTER <= one.took and one.waited <= HEDGE_AFTER + OWN_TIME + TOLERANCE
        return in_time and one.reply.rcode() == dns.rcode.NOERROR and len(one.reply.answer) == 1
    is_told = one.reply.rcode() == dns.rcode.SERVFAIL and extended_errors(one.reply) == [22]
    return is_told and one.waited <= ANSWER_WITHIN


@pytest.mark.parametrize("silence", SILENCES)
def test_a_service_that_falls_silent(outcomes, silence):
    """It answered a moment ago. Then it reads requests and says nothing, or freezes, or its packets vanish."""
    check(outcomes[silence, True], True)


@pytest.mark.parametrize("silence", SILENCES)
def test_a_service_that_was_never_heard(outcomes, silence):
    """The same when the daemon has known it in no other way."""
    check(outcomes[silence, False], False)


def test_several_silent_servers(outcomes):
    """However many there are to be tried, one after the other."""
    check(outcomes["several"], False)


def test_a_crowd_before_a_silent_service(daemon, service):
    """A thousand names at once, more than are ever under way: each is answered in time."""
    chosen = service("aes", every_name)
    chosen.fault = Fault("silence")
    running = daemon(chosen, {"httpdns": PATIENT | {"httpOnly": True}})
    begun = time.monotonic()
    names = [f"crowd{number}.example.com" for number in range(1000)]
    replies = at_the_same_moment(running, [(name, "A") for name in names], sockets=20)
    assert waited_since(begun) <= ANSWER_WITHIN + TOLERANCE
    assert {reply.rcode() for reply in replies} <= {dns.rcode.SERVFAIL, dns.rcode.REFUSED}


def test_the_lookup_goes_on_behind_a_stale_answer(daemon, service):
    """Nobody waits for it any more; when it is answered at last, the cache has it."""
    chosen = service("aes", every_name)
    daemon(chosen, {"httpdns": PATIENT | {"httpOnly": True}, "cache": {"maxTTL": 2, "staleTTL": 7}})
    name = "known.example.com"
    assert addresses(ask(name)) == [address_of(name)]
    time.sleep(2.1)  # its TTL, by the clock
    chosen.hold()
    assert is_stale(ask(name, edns=True), name)
    chosen.release()
    eventually(lambda: not extended_errors(reply := ask(name, edns=True)) and addresses(reply), "it is fresh again", 3)
    # Once at first, once for the stale answer, and once more because the silent connection was doubted.
    assert 2 <= chosen.names.count(name) <= 3, chosen.names


@pytest.mark.parametrize("hedge_after", [0, 700])
def test_hedge_after(daemon, service, scripted_resolver, hedge_after):
    """The local resolver is asked so many milliseconds after HTTPDNS, and not when that has answered before."""
    local = scripted_resolver(answer_locally)
    chosen = service("aes", every_name)
    daemon(chosen, {"fallback": {"servers": [local.endpoint], "hedgeAfter": hedge_after}, "httpdns": PATIENT})
    assert addresses(ask("prompt.example.com")) in ([address_of("prompt.example.com")], [LOCAL_ADDRESS])
    if hedge_after:
        assert not local.questions, "HTTPDNS had answered"
    chosen.hold()
    begun = time.monotonic()
    assert addresses(ask("late.example.com")) == [LOCAL_ADDRESS]
    assert hedge_after / 1000 <= time.monotonic() - begun and waited_since(begun) <= hedge_after / 1000 + TOLERANCE
    eventually(lambda: "late.example.com" in chosen.names, "HTTPDNS was asked as well")
    chosen.release()


def test_before_there_is_any_network(daemon, service, network, scripted_resolver):
    """Started with loopback alone: everyone is answered, and when the network comes, it is used."""
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
            assert one.waited <= ANSWER_WITHIN and one.reply.rcode() == dns.rcode.SERVFAIL, one
            assert extended_errors(one.reply) in ([22], [23]), one.reply
        assert len(running.log().splitlines()) < 12, "no flood in the log while there is no network"
        here.link(there)
        eventually(lambda: addresses(ask("early.example.com")) == [address_of("early.example.com")],
                   "HTTPDNS is used as soon as it can be reached", 3)
        eventually(lambda: ask("early.example.com", "MX").answer, "and so is the local resolver", 3)
        assert addresses(ask("late.example.com", transport="tcp")) == [address_of("late.example.com")]
