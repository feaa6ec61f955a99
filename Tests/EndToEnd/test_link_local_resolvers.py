"""Local resolvers that a router announces by its link-local address, which can be asked only with the name of the link."""

import socket

import dns.flags
import dns.rcode
import pytest

from dns_client import addresses, ask
from networks import needs_ipv6
from resolvers import reply_to
from waiting import eventually

pytestmark = needs_ipv6
PORT = 2053
ROUTER = "fe80::53"


@pytest.fixture
def home(network):
    """A machine and its router, with a link-local address each."""
    machine, router = network(), network()
    machine.link(router, ours="10.77.0.1/24 fe80::1/64", theirs=f"10.77.0.2/24 {ROUTER}/64")
    return machine, router


def answer(asked):
    reply = reply_to(asked.message, *([] if asked.name.to_text().startswith("big") and asked.transport == "udp"
                                      else ["60 IN A 192.0.2.1"]))
    if not reply.answer:
        reply.flags |= dns.flags.TC
    return reply


def settings(**fallback):
    return {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "fallback": fallback}


@pytest.mark.parametrize("way", ["by name", "by number", "with a port", "resolv.conf"])
def test_it_is_asked_on_its_link(daemon, scripted_resolver, home, tmp_path, way):
    machine, router = home
    with router:
        scripted_resolver(answer, address=f"{ROUTER}%cable")
    with machine:
        zone = str(socket.if_nametoindex("cable")) if way == "by number" else "cable"
        (tmp_path / "resolv.conf").write_text(f"nameserver {ROUTER}%{zone}\n")
        fallback = {"by name": {"servers": [f"{ROUTER}%{zone}"]}, "by number": {"servers": [f"{ROUTER}%{zone}"]},
                    "with a port": {"servers": [f"[{ROUTER}%{zone}]:53"]},
                    "resolv.conf": {"servers": [], "resolvConf": [str(tmp_path / "resolv.conf")]}}[way]
        running = daemon(None, settings(**fallback), port=PORT)
        reply = ask("small.example.net", port=PORT)
        assert addresses(reply) == ["192.0.2.1"], (reply, running.log_lines(""))
        assert addresses(ask("big.example.net", port=PORT)) == ["192.0.2.1"], "over TCP"
        assert running.log_lines(f"fallback \\[{ROUTER}%{zone}\\]:53")


def test_a_link_that_goes_and_comes_back(daemon, scripted_resolver, home):
    machine, router = home
    with router:
        resolver = scripted_resolver(answer, address="::")
    with machine:
        running = daemon(None, settings(servers=[f"{ROUTER}%cable"]), port=PORT)
        assert addresses(ask("one.example.net", port=PORT)) == ["192.0.2.1"]
        machine.ip("link delete cable")
        assert ask("two.example.net", port=PORT).rcode() == dns.rcode.SERVFAIL
        eventually(lambda: running.log_lines("fails: .*cable: No such device"), "it says why")
        machine.ip("link add other type veth peer name end")  # the new cable has another number
        machine.link(router, ours="fe80::1/64", theirs=f"{ROUTER}/64")
        eventually(lambda: addresses(ask(f"n{len(resolver.questions)}.example.net", port=PORT)) == ["192.0.2.1"],
                   "it is asked again")
