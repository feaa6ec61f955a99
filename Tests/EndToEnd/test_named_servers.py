"""Encrypted servers whose host is a name: it is looked up like any other name, but never through the server itself."""

import signal

import dns.message
import dns.rcode
import pytest

import daemon as processes
from control import Control
from daemon import toml
from dns_client import Stream, addresses, ask, extended_errors, reasons
from httpdns_service import Record
from networks import PlainDNS
from resolvers import reply_to
from waiting import eventually

PORT = 2053
NAME = "dns.example.net"
OURS = ["192.0.2.7"]


class World:
    """A resolver in resolv.conf that knows the server's address, and a daemon that has to ask it."""

    def __init__(self, daemon, scripted_resolver, authority, directory):
        self.daemon, self.authority = daemon, authority
        self.addresses = ["127.0.0.6"]
        self.resolver = scripted_resolver(self._say, address="127.0.0.30")
        self.file = directory / "resolv.conf"
        self.file.write_text(f"nameserver {self.resolver.address}\n")

    def _say(self, asked):
        if self.addresses is None or asked.kind != "A":
            return reply_to(asked.message)
        return reply_to(asked.message, *(f"60 IN A {address}" for address in self.addresses))

    def run(self, *servers, service=None, settings=None, **fallback):
        return self.daemon(service, {
            "listen": {"addresses": [f"127.0.0.1:{PORT}"]},
            "fallback": {"servers": list(servers), "resolvConf": [str(self.file)], "timeout": 8000,
                         "caFile": str(self.authority.file)} | fallback} | (settings or {}), port=PORT)

    @property
    def asked(self):
        return {asked.name.to_text(omit_final_dot=True) for asked in self.resolver.questions}


@pytest.fixture
def world(daemon, scripted_resolver, authority, tmp_path):
    return World(daemon, scripted_resolver, authority, tmp_path)


@pytest.fixture
def named(encrypted_resolver, authority):
    """A server that has a certificate for its name alone."""
    def start(protocol, name=NAME, **options):
        server = encrypted_resolver(protocol, tls=authority.server(names=[name]), **options)
        scheme, _, rest = server.url.partition("://")
        server.name_url = f"{scheme}://" + rest.replace(server.address, NAME)
        return server
    return start


@pytest.mark.parametrize("protocol", ["tls", "https"])
def test_the_resolver_of_resolv_conf_is_asked_for_that_name_alone(world, named, protocol):
    server = named(protocol)
    world.run(server.name_url)
    for number in range(5):
        assert addresses(ask(f"n{number}.example.org", port=PORT)) == OURS
    ask("n0.example.org", "MX", port=PORT)
    assert world.asked == {NAME}
    assert {asked.name.to_text() for asked in server.questions} >= {"n0.example.org."}
    if protocol == "https":
        assert dict(server.headers[0])[":authority"] == f"{NAME}:{server.port}"


@pytest.mark.parametrize("protocol", ["tls", "https"])
def test_a_forged_answer_leads_to_no_answer(world, named, protocol):
    """A server at a forged address gets no question, as it has no certificate for the name."""
    server = named(protocol, name="other.example.net")
    world.run(server.name_url)
    reply = ask("one.example.org", port=PORT, edns=True)
    assert reply.rcode() == dns.rcode.SERVFAIL and extended_errors(reply) in ([22], [23])
    assert "another name" in reasons(reply) and server.questions == []
    assert world.asked == {NAME}


def test_httpdns_is_asked_where_the_server_is(world, named, service):
    """HTTPDNS is asked for the server's name, so not even this name is sent in the clear."""
    chosen = service("aes", {NAME: Record(["127.0.0.6"], [], 60)})
    server = named("tls")
    world.run(server.name_url, service=chosen)
    with PlainDNS() as plain:
        assert ask("example.org", "MX", port=PORT).rcode() == dns.rcode.NOERROR
        assert addresses(ask("unknown.example.org", port=PORT)) == OURS
        assert plain.packets == 0
    assert NAME in chosen.names and world.asked == set()


def test_a_server_that_moves_is_found(world, named):
    server = named("tls")
    world.run(server.name_url)
    assert addresses(ask("one.example.org", port=PORT)) == OURS
    server.away()
    server.address = "127.0.0.7"
    server.start()
    world.addresses = ["127.0.0.7"]
    fresh = iter(range(1000))
    eventually(lambda: addresses(ask(f"m{next(fresh)}.example.org", port=PORT)) == OURS, "it is found")


def test_a_reload_that_corrects_a_name_loses_no_question(world, named, scripted_resolver):
    """A question that waits for the address of a server with a wrong name is asked of the server with the right name."""
    wrong = "wrong.example.net"
    resolver = scripted_resolver(
        lambda asked: None if asked.name.to_text(omit_final_dot=True) == wrong else world._say(asked), address="127.0.0.31")
    world.file.write_text(f"nameserver {resolver.address}\n")
    url = named("tls").name_url
    running = world.run(url.replace(NAME, wrong))
    with Stream(port=PORT) as client:
        client.send(dns.message.make_query("one.example.org", "A"))
        eventually(lambda: resolver.questions, "the name is looked up")
        file = running.directory / "httpdnsd.toml"
        file.write_text(file.read_text().replace(wrong, NAME))
        running.process.send_signal(signal.SIGHUP)
        assert addresses(client.receive()) == OURS


def test_addresses_that_worked_are_kept_over_a_restart(world, named, tmp_path):
    """Addresses that worked are saved beside the cache, so no resolver is asked after a restart."""
    server = named("tls")
    settings = {"cache": {"file": str(tmp_path / "cache")}}
    running = world.run(server.name_url, settings=settings)
    assert addresses(ask("one.example.org", port=PORT)) == OURS
    running.stop()
    before = len(world.resolver.questions)
    world.addresses = None
    world.file.write_text("nameserver 127.0.0.99\n")
    world.run(server.name_url, settings=settings)
    assert addresses(ask("two.example.org", port=PORT)) == OURS
    assert len(world.resolver.questions) == before


def test_the_servers_of_resolv_conf_as_a_group(world, named):
    """A group with `resolvConf` in its list asks these servers, in the clear, for its own names alone."""
    server = named("tls")
    world.run(server.name_url, settings={"upstreams.portal": {"servers": ["resolvConf"],
                                                              "domains": ["portal.example"]}})
    assert addresses(ask("login.portal.example", port=PORT)) == ["127.0.0.6"]
    assert addresses(ask("one.example.org", port=PORT)) == OURS
    assert world.asked == {NAME, "login.portal.example"}


def test_a_name_that_a_group_takes_is_asked_of_that_group_alone(world, named, scripted_resolver):
    """The name of a server behind a wall is asked only behind the wall."""
    server = named("tls")
    inside = scripted_resolver(world._say, address="127.0.0.31")
    world.run(server.name_url, settings={"upstreams.inside": {"servers": [inside.address],
                                                              "domains": ["example.net"]}})
    assert addresses(ask("one.example.org", port=PORT)) == OURS
    assert world.asked == set()
    assert {asked.name.to_text(omit_final_dot=True) for asked in inside.questions} == {NAME}


def test_explain_does_not_ask_a_server_that_no_question_needed_yet(world, named, binary):
    running = world.run(named("tls").name_url, "tls://other.example.net", settings={"control": {"socket": "control.sock"}})
    assert addresses(ask("one.example.org", port=PORT)) == OURS
    explained = Control(binary, running)("explain", "two.example.org")
    assert OURS[0] in explained and "fails" not in explained, explained
    assert "\n    not asked: its address was not looked up yet\n" in explained, explained


CIRCLE = {"upstreams.inside": {"servers": [f"tls://{NAME}"], "domains": ["example.net"]}}


def test_a_server_that_only_its_own_group_could_find_is_refused(binary, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(toml(CIRCLE))
    ended = processes.run(binary, "check", "--all", "-c", str(file))
    assert ended.returncode == 78 and len(ended.stderr.splitlines()) == 1, ended
    assert f"{file}:2: upstreams.inside.servers: " in ended.stderr, ended
    assert f"tls://{NAME} cannot be found: {NAME} is a name that this group takes itself" in ended.stderr, ended


def test_probe_finds_it_in_the_same_way(world, named, binary, tmp_path):
    server = named("tls")
    file = tmp_path / "own.toml"
    file.write_text(toml({"fallback": {"servers": [server.name_url], "resolvConf": [str(world.file)],
                                       "caFile": str(world.authority.file)}}))
    ended = processes.run(binary, "probe", "-c", str(file))
    assert ended.returncode == 0 and "certificate accepted" in ended.stdout, ended
    assert world.asked == {NAME}
