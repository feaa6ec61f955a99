"""`confIp`: the list of service addresses that the service itself publishes."""

import pytest

from dns_client import addresses, ask
from httpdns_service import address_of, every_name
from waiting import eventually

START, BROKEN, FIRST, SECOND, NOBODY = (f"127.0.0.{last}" for last in (30, 31, 32, 33, 39))
PORTS = {"aes": 80, "des": 80, "https": 443}
CONF = "log:0|domain:0|ip:{};|ttl:60"


@pytest.fixture
def listed(service, authority):
    """Starts a service on the port that the list implies."""
    def start(encryption, address, conf=None):
        options = {"tls": authority.server(addresses=[address])} if encryption == "https" else {}
        return service(encryption, every_name, address=address, port=PORTS[encryption], conf=conf, **options)
    yield start
    for one in service.started:  # the next test wants their ports
        one.stop()


def using(start, **more):
    return {"httpdns": {"httpOnly": True, "timeout": 3000, "dnsIp": [NOBODY], "confIp": start} | more}


def uses(one, names=iter(range(1_000_000))):
    """Whether this service is asked for a new name."""
    before = len(one.requests)
    name = f"list{next(names)}.example.com"
    return addresses(ask(name)) == [address_of(name)] and len(one.requests) > before


@pytest.mark.parametrize("encryption", PORTS)
def test_the_list_is_asked_for_and_used(daemon, listed, encryption):
    start, first = listed(encryption, START, CONF.format(FIRST)), listed(encryption, FIRST)
    running = daemon(start, using([START]))
    eventually(lambda: uses(first), "the server of the list is used")
    assert not start.requests and 1 <= len(start.conf_requests) <= 2
    credentials = {"token": start.token} if encryption == "https" else {"id": str(start.dns_id), "alg": encryption}
    assert credentials.items() <= start.conf_requests[0].items()
    assert running.log_lines(FIRST), "the log says who is asked now"


def test_the_next_start_server_when_one_fails(daemon, listed):
    start, broken = listed("aes", START, CONF.format(FIRST)), listed("aes", BROKEN, "nonsense")
    first = listed("aes", FIRST)
    daemon(start, using([NOBODY, BROKEN, START]))
    eventually(lambda: uses(first), "the server of the list is used")
    assert broken.conf_requests and start.conf_requests


USELESS = {"empty": "", "nonsense": "nonsense", "no address": CONF.format(""),
           "a name": CONF.format("evil.example.com"),
           "no machine's addresses": CONF.format("0.0.0.0;999.1.1.1"), "too long": CONF.format("1.2.3.4;" * 10_000)}


@pytest.mark.parametrize("conf", USELESS.values(), ids=USELESS)
def test_a_list_that_is_of_no_use(daemon, listed, conf):
    """After a useless list, the configured servers are still asked."""
    start, first = listed("aes", START, conf), listed("aes", FIRST)
    daemon(start, using([START], dnsIp=[FIRST]))
    eventually(lambda: start.conf_requests, "the list is asked for")
    for _ in range(5):
        assert uses(first)


def test_several_addresses_are_servers_in_order(daemon, listed):
    start = listed("aes", START, CONF.format(f"{FIRST};{SECOND}"))
    first, second = listed("aes", FIRST), listed("aes", SECOND)
    daemon(start, using([START], retryTimesBeforeSwitchServer=1))
    eventually(lambda: uses(first), "the first is used")
    assert not second.requests
    first.stop()
    eventually(lambda: uses(second), "then the second")


def test_a_list_that_does_not_work_here_leaves_the_configured_servers(daemon, listed):
    start, first = listed("aes", START, CONF.format(NOBODY)), listed("aes", FIRST)
    running = daemon(start, using([START], dnsIp=[FIRST]))
    eventually(lambda: running.log_lines(f"at {NOBODY}:80, {FIRST}:80"), "the list is taken")
    for _ in range(5):
        assert uses(first)


def test_the_list_is_refreshed_as_it_says(daemon, listed, clocks):
    """A list is fetched again after its time to live of a minute, by the daemon's clock."""
    conf = "log:0|domain:0|ip:{}|ttl:1"
    start, first, second = listed("aes", START, conf.format(FIRST)), listed("aes", FIRST), listed("aes", SECOND)
    daemon(start, using([START]), variables=clocks.variables)
    eventually(lambda: uses(first), "the server of the list is used")
    fetched, start.conf = len(start.conf_requests), conf.format(SECOND)
    clocks.set(boot=40)
    assert uses(first) and len(start.conf_requests) == fetched
    clocks.set(boot=60)
    eventually(lambda: uses(second), "the server of the new list is used")
    assert len(start.conf_requests) == fetched + 1


def test_the_list_is_asked_for_when_its_servers_are_silent(daemon, listed, clocks):
    """Addresses that were given up give no answer, and mostly refuse nothing either."""
    start, first, second = listed("aes", START, CONF.format(FIRST)), listed("aes", FIRST), listed("aes", SECOND)
    daemon(start, using([START], dnsIp=[FIRST], timeout=500), variables=clocks.variables)
    eventually(lambda: start.conf_requests and uses(first), "the server of the list is used")
    start.conf = CONF.format(SECOND)
    first.hold()
    clocks.set(boot=40)  # the list may be asked for again
    eventually(lambda: uses(second), "the server of the new list is used")
