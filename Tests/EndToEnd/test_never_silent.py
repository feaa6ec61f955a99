"""An upstream that says nothing: what clients get, and when."""

import time

import dns.rcode
import pytest

from clients import Clients
from dns_client import addresses, ask, extended_errors
from httpdns_service import Fault, address_of, every_name
from networks import BlackHole, needs_nft
from resolvers import LOCAL_ADDRESS, answer_locally
from waiting import eventually

STALE_WITHIN, ANSWER_WITHIN = 1.8, 4.0  # seconds
HEDGE_AFTER, OWN_TIME = 0.3, 0.2  # of the local resolver
TOLERANCE = 0.25
# Nothing that is configured may keep a client waiting.
PATIENT = {"timeout": 20000}
ROWS = {"resolver": 2053, "nobody": 2054, "strict": 2055}  # ports of three daemons
SILENT_RESOLVER = "127.0.0.10"


def slowly(asked):
    time.sleep(OWN_TIME)
    return answer_locally(asked)


@pytest.fixture
def three(daemon, scripted_resolver):
    """Starts three daemons on one service: the local resolver answers, is silent as well, or may not be asked."""
    local = scripted_resolver(slowly)
    dead = scripted_resolver(lambda asked: None, address=SILENT_RESOLVER)

    def start(chosen, **httpdns):
        fallback = {"servers": [dead.endpoint], "timeout": 20000, "hedgeAfter": int(HEDGE_AFTER * 1000)}
        for row, port in ROWS.items():
            daemon(chosen, {
                "listen": {"addresses": [f"127.0.0.1:{port}"]}, "cache": {"maxTTL": 1, "staleTTL": 7},
                "httpdns": PATIENT | {"httpOnly": row == "strict"} | httpdns,
                "fallback": fallback | ({"servers": [local.endpoint]} if row == "resolver" else {})}, port=port)
    return start


def is_stale(reply, name):
    return extended_errors(reply) == [3] and addresses(reply) == [address_of(name)] and reply.answer[0].ttl <= 7


def check_rows(known):
    """Asks all three daemons at once for names nobody knows, and for one they knew a second ago."""
    clients = Clients()
    for port in ROWS.values():
        for number in range(5):
            clients.ask(f"unknown{number}.example.com", port=port)
            clients.ask(f"unknown{number}.example.com", "AAAA", port=port, transport="tcp")
        if known:
            clients.ask(known, port=port)
            clients.ask(known, port=port, transport="tcp")
    asked = clients.all_answered()
    share = len(asked) // len(ROWS)
    rows = [row for row in ROWS for _ in range(share)]
    wrong = [f"{row}: {one.name} {one.kind} after {one.waited:.2f} s: {one.reply}"
             for row, one in zip(rows, asked, strict=True) if not is_right(row, one, known)]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(asked)} answers are not what they should be"] + wrong[:5])


def is_right(row, one, known):
    if one.name == known:
        is_local = row == "resolver" and addresses(one.reply) == [LOCAL_ADDRESS]
        return one.waited <= STALE_WITHIN and (is_local or is_stale(one.reply, known))
    if row == "resolver":
        in_time = HEDGE_AFTER <= one.waited <= HEDGE_AFTER + OWN_TIME + TOLERANCE
        return in_time and one.reply.rcode() == dns.rcode.NOERROR and len(one.reply.answer) == 1
    is_told = one.reply.rcode() == dns.rcode.SERVFAIL and extended_errors(one.reply) == [22]
    return is_told and one.waited <= ANSWER_WITHIN


def expired(name, ports):
    """The name is known to the daemons behind these ports, and no longer fresh."""
    replies = [ask(name, port=port) for port in ports]
    assert all(addresses(reply) == [address_of(name)] for reply in replies)
    time.sleep(1.1)  # its TTL, by the clock


SILENCES = ["requests", "handshakes", pytest.param("packets", marks=needs_nft)]


@pytest.mark.parametrize("silence", SILENCES)
def test_a_service_that_falls_silent(three, service, relay, silence):
    """It answered a moment ago. Then it reads requests and says nothing, or freezes, or its packets vanish."""
    chosen = service("https", every_name)
    between = relay(chosen)
    three(chosen, dnsIp=[between.endpoint])
    expired("known.example.com", ROWS.values())
    if silence == "packets":
        with BlackHole(between.port):
            check_rows("known.example.com")
    elif silence == "handshakes":
        between.freeze()
        check_rows("known.example.com")
    else:
        chosen.fault = Fault("silence")
        check_rows("known.example.com")


@pytest.mark.parametrize("silence", SILENCES)
def test_a_service_that_was_never_heard(three, service, relay, silence):
    """The same when the daemon has known it in no other way."""
    chosen = service("https", every_name)
    between = relay(chosen)
    if silence == "packets":
        with BlackHole(between.port):
            three(chosen, dnsIp=[between.endpoint])
            check_rows(None)
        return
    if silence == "handshakes":
        between.freeze()
    else:
        chosen.fault = Fault("silence")
    three(chosen, dnsIp=[between.endpoint])
    check_rows(None)


def test_several_silent_servers(three, service):
    """However many there are to be tried, one after the other."""
    silent = [service("aes", every_name) for _ in range(4)]
    for one in silent:
        one.fault = Fault("silence")
    three(silent[0], dnsIp=[one.endpoint for one in silent], timeout=1500)
    check_rows(None)


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
    assert hedge_after / 1000 <= time.monotonic() - begun <= hedge_after / 1000 + TOLERANCE
    assert "late.example.com" in chosen.names, "HTTPDNS was asked as well"
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
