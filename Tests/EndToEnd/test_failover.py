"""Several HTTPDNS servers: which server is asked. `failover*.scenario` test the rest in simulated time."""

from dns_client import addresses, ask
from httpdns_service import Fault, address_of, every_name

RETRY_TIMES = 2


def test_the_second_answers_when_the_first_fails(daemon, service):
    """Each question is answered; after the configured number of failures, the first server is not asked any more."""
    first, second = service("aes", every_name), service("aes", every_name)
    first.fault = Fault("status", 500)
    running = daemon(second, {"httpdns": {
        "httpOnly": True, "timeout": 3000, "retryTimesBeforeSwitchServer": RETRY_TIMES, "batch": 1,
        "dnsIp": [first.endpoint, second.endpoint]}})
    names = [f"name{number}.example.com" for number in range(RETRY_TIMES + 4)]
    for name in names:
        assert addresses(ask(name)) == [address_of(name)]
    assert running.log_lines(f"{first.endpoint} is given up: .*{second.endpoint} is asked"), running.log()
    assert len(running.log_lines(f"{first.endpoint} fails")) == 1, "said once, with a reason"
    assert set(second.names) == set(names) and first.names == names[:RETRY_TIMES]
    first.fault = None
    assert addresses(ask("later.example.com")) == [address_of("later.example.com")]
    assert first.names == names[:RETRY_TIMES], "not before minutesBeforeSwitchToMain"
