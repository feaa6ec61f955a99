"""Several HTTPDNS servers: which of them is asked, and when the first is asked again."""

import time

import dns.rcode
import pytest

from clients import Clients
from dns_client import addresses, ask, extended_errors
from httpdns_service import Fault, HTTPDNSService, address_of, every_name
from waiting import eventually

RETRY_TIMES = 2
STRICT = {"httpOnly": True, "timeout": 200, "retryTimesBeforeSwitchServer": RETRY_TIMES, "batch": 1}


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
    for number in range(RETRY_TIMES + 4):
        assert addresses(ask(name := f"name{number}.example.com")) == [address_of(name)]
    assert running.log_lines(f"{first.endpoint}.* for .*{second.endpoint}"), running.log()
    assert len(running.log_lines(f"{first.endpoint} fails")) == 1, "said once, with a reason"
    assert len(second.requests) == RETRY_TIMES + 4
    if first.requests:
        assert len(first.requests) == RETRY_TIMES
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


# --- By the clock -----------------------------------------------------------------------------------------------------

MINUTE = 60


def servers(count):
    return [HTTPDNSService("aes", every_name, address=f"127.0.0.{30 + place}").start() for place in range(count)]


def back_to_the_first(daemon):
    """Two pairs of servers. Of the first pair the first comes back at once, of the other it stays broken.

    Returns for each pair: when it was switched, and the requests of both servers from then on.
    """
    clients, pairs = Clients(), []
    for pair, port in ((servers(2), 53), (servers(2), 1053)):
        daemon(pair[1], {"listen": {"addresses": [f"127.0.0.1:{port}"]}, "httpdns": STRICT | {
            "dnsIp": [one.endpoint for one in pair], "minutesBeforeSwitchToMain": 1}}, port=port)
        pair[0].fault = Fault("status", 500)
        for number in range(RETRY_TIMES + 1):
            ask(f"first{number}.example.com", port=port)
        pairs.append((time.monotonic(), pair))
    for _, pair in pairs:
        for one in pair:
            one.requests.clear()
    pairs[0][1][0].fault = None
    begun, number = time.monotonic(), 0
    while time.monotonic() - begun < MINUTE + 4:
        for port in (53, 1053):
            clients.ask(f"steady{number}.example.com", port=port)
        number += 1
        time.sleep(0.5)
    asked = clients.all_answered()
    for _, pair in pairs:
        for one in pair:
            one.stop()
    return asked, [(switched, list(pair[0].requests), list(pair[1].requests)) for switched, pair in pairs]


@pytest.mark.real_time(scenario=back_to_the_first)
def test_back_to_the_first_after_a_minute(real_time):
    """By live traffic: it answers and takes over, or it fails, nobody notices, and the second goes on."""
    asked, (healed, broken) = real_time(back_to_the_first)
    for one in asked:
        assert addresses(one.reply) == [address_of(one.name)]
    switched, first, second = healed
    assert second, "the second has answered for a minute"
    assert MINUTE - 1 <= first[0].at - switched <= MINUTE + 2, "and then the first was tried"
    assert len(first) >= 4 and second[-1].at <= first[1].at, "and asked alone since"
    switched, first, second = broken
    assert 1 <= len(first) <= 2 and MINUTE - 1 <= first[0].at - switched <= MINUTE + 2, "tried once"
    assert second[-1].at > first[-1].at + 1, "and given up again"
