"""Several HTTPDNS servers: which of them is asked, and when the first is asked again."""

import itertools

import dns.rcode
import pytest

from clients import Clients
from clocks import clocks, library
from dns_client import addresses, ask, extended_errors
from httpdns_service import Fault, address_of, every_name
from waiting import eventually

__all__ = ["clocks", "library"]  # fixtures

RETRY_TIMES = 2
MINUTE = 60
STRICT = {"httpOnly": True, "timeout": 1000, "retryTimesBeforeSwitchServer": RETRY_TIMES, "batch": 1}


def using(*services, **more):
    return {"httpdns": STRICT | {"dnsIp": [one.endpoint for one in services]} | more}


FAULTS = {"refuses": None, "silence": Fault("silence"), "status 500": Fault("status", 500),
          "status 404": Fault("status", 404),
          "does not decrypt": Fault("garbage"), "does not parse": Fault("text", "<html>captive portal</html>"),
          "cut short": Fault("close-mid-body"), "wrong certificate": None}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_second_answers_when_the_first_fails(daemon, service, other_authority, fault):
    """Each question is answered all the same; after so many failures the first is not asked any more."""
    encryption = "https" if fault == "wrong certificate" else "aes"
    options = {"tls": other_authority.server(addresses=["127.0.0.3"])} if fault == "wrong certificate" else {}
    first, second = service(encryption, every_name, **options), service(encryption, every_name)
    first.fault = FAULTS[fault]
    if fault == "refuses":
        first.stop()
    running = daemon(second, using(first, second))
    names = [f"name{number}.example.com" for number in range(RETRY_TIMES + 4)]
    for name in names:
        assert addresses(ask(name)) == [address_of(name)]
    assert running.log_lines(f"{first.endpoint} is given up: .*{second.endpoint} is asked"), running.log()
    assert len(running.log_lines(f"{first.endpoint} fails")) == 1, "said once, with a reason"
    assert set(second.names) == set(names)
    if first.requests:
        assert set(first.names) == set(names[:RETRY_TIMES])
    first.requests.clear()
    first.fault = None
    if fault == "refuses":
        first.start()
    assert addresses(ask("later.example.com")) == [address_of("later.example.com")]
    assert not first.requests, "not before minutesBeforeSwitchToMain"


def test_no_record_is_no_failure(daemon, service):
    """Every shape of it: the first stays the one that is asked."""
    first, second = service("https", {}), service("https", every_name)
    shapes = [None, Fault("empty-body"), Fault("text", ""), Fault("text", "shape.example.com.:0-0|203.0.113.7")]
    running = daemon(second, using(first, second))
    for number in range(8):
        first.fault = shapes[number % len(shapes)]
        name = "shape.example.com" if number % len(shapes) == 3 else f"none{number}.example.com"
        reply = ask(name)
        assert reply.rcode() == dns.rcode.NOERROR and not reply.answer
    assert not second.requests and not running.log_lines("fails")


def test_one_failure_in_between_does_not_switch(daemon, service):
    """They have to come in a row."""
    first, second = service("aes", every_name), service("aes", every_name)
    first.fault = lambda request: Fault("status", 500) if len(first.requests) % RETRY_TIMES == 0 else None
    daemon(second, using(first, second))
    for number in range(10):
        assert addresses(ask(name := f"name{number}.example.com")) == [address_of(name)]
    assert len(first.requests) == 10


def test_nobody_is_left_and_then_somebody_is(daemon, service):
    """All servers fail: told in time; once any of them answers again, it is found."""
    all_of_them = [service("aes", every_name) for _ in range(3)]
    for one in all_of_them:
        one.stop()
    daemon(all_of_them[0], using(*all_of_them))
    for number in range(8):
        reply = ask(f"name{number}.example.com", edns=True, timeout=4)
        assert reply.rcode() == dns.rcode.SERVFAIL and extended_errors(reply) in ([22], [23])
    all_of_them[1].start()
    eventually(lambda: addresses(ask("back.example.com")) == [address_of("back.example.com")], "the second is found")


def test_a_switch_in_the_middle_of_a_crowd(daemon, service):
    """Forty names at once while the first server hangs: each is answered, and the second is asked for each once."""
    first, second = service("aes", every_name), service("aes", every_name)
    first.fault = Fault("silence")
    daemon(second, using(first, second, batch=8))
    clients = Clients()
    for number in range(40):
        clients.ask(f"crowd{number}.example.com")
    for one in clients.all_answered():
        assert addresses(one.reply) == [address_of(one.name)] and one.waited < 2
    assert sorted(second.names) == sorted(set(second.names))


# --- Time passes ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("heals", [True, False])
def test_back_to_the_first_after_a_minute(daemon, service, clocks, heals):
    """By live traffic: it answers and takes over, or it fails, nobody notices, and the second goes on."""
    first, second = service("aes", every_name), service("aes", every_name)
    names = (f"name{number}.example.com" for number in itertools.count())

    def asked(count):
        """Asks for so many new names; says how many of them each server was asked for."""
        for one in (first, second):
            one.requests.clear()
        for _ in range(count):
            assert addresses(ask(name := next(names))) == [address_of(name)]
        return len(set(first.names)), len(set(second.names))  # a request may have been doubted and asked again
    patient = {"timeout": 10000, "minutesBeforeSwitchToMain": 1}
    daemon(second, using(first, second, **patient), variables=clocks.variables)
    first.fault = Fault("status", 500)
    assert asked(RETRY_TIMES) == (RETRY_TIMES, RETRY_TIMES), "until it is switched"
    if heals:
        first.fault = None
    # Of the daemon's minute some time has passed for real: this machine may have taken twenty seconds to come here.
    clocks.set(boot=MINUTE - 20)
    assert asked(4) == (0, 4), "not before the minute is over"
    clocks.set(boot=MINUTE)
    assert asked(1) == (1, 0 if heals else 1), "the first is tried"
    assert asked(4) == ((4, 0) if heals else (0, 4)), "and asked alone since, or given up again"
    clocks.set(boot=2 * MINUTE - 20)
    assert asked(2) == ((2, 0) if heals else (0, 2))
    clocks.set(boot=2 * MINUTE)
    assert asked(1) == ((1, 0) if heals else (1, 1)), "and is tried each minute"
