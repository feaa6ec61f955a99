"""Whom the daemon does not ask."""

import dns.flags
import dns.message
import dns.rcode
import pytest

from dns_client import addresses, ask, extended_errors
from resolvers import reply_to


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_without_rd_nobody_is_asked(daemon, service, scripted_resolver, transport):
    local = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.1"))
    asked_service = service("aes")
    daemon(asked_service, {"fallback": {"servers": [local.endpoint]}})

    def asked(name, kind="A"):
        return ask(None, transport=transport, message=dns.message.make_query(name, kind, flags=0, use_edns=0))
    for name, kind in (("www.example.com", "A"), ("example.com", "MX"), ("nas.lan", "A")):
        reply = asked(name, kind)
        assert reply.rcode() == dns.rcode.REFUSED and not reply.answer and extended_errors(reply) == [20]
        assert not reply.flags & dns.flags.RD
    assert asked_service.names == [] and local.questions == []
    assert addresses(ask("www.example.com"))
    assert addresses(asked("www.example.com")), "it is known now"
    assert addresses(asked("localhost")) == ["127.0.0.1"]
    assert asked("a.onion").rcode() == dns.rcode.NXDOMAIN
