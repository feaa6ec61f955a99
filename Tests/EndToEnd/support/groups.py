"""Groups of upstreams for tests: a fallback, HTTPDNS, and servers in the clear whose answers identify them."""

import pytest

from dns_client import addresses, ask
from httpdns_service import every_name
from resolvers import reply_to

PORT = 2053
LISTEN = {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}}


def says(last):
    """A script: 192.0.2.`last` for every name, and records of some other types."""
    records = {"A": f"60 IN A 192.0.2.{last}", "AAAA": f"60 IN AAAA 2001:db8::{last}", "PTR": f"60 IN PTR h{last}.example.",
               "MX": f"60 IN MX 10 m{last}.example.", "TXT": f'60 IN TXT "t{last}"'}
    return lambda asked, connection=None: reply_to(
        asked.message, *[record for kind, record in records.items() if kind == asked.kind])


def answers(code):
    return lambda asked, connection=None: reply_to(asked.message, rcode=code)


def last_of(name, kind="A", **options):
    """The servers that answered, by the last octet of the address."""
    reply = ask(name, kind, port=PORT, **options)
    return [int(address.rpartition(".")[2]) for address in addresses(reply)]


class Groups:
    """A fallback (answers 1), HTTPDNS that knows every name, and groups in the clear as tests choose them."""

    def __init__(self, start, scripted_resolver, chosen):
        self.start, self.scripted_resolver, self.chosen = start, scripted_resolver, chosen
        self.fallback = scripted_resolver(says(1), address="127.0.0.40")
        self.servers = {}

    def server(self, name, script=None):
        last = 41 + len(self.servers)
        self.servers[name] = self.scripted_resolver(script or says(last - 39), address=f"127.0.0.{last}")
        return self.servers[name]

    def run(self, ready=True, httpdns=True, **groups):
        """Starts a daemon. A group without `servers` gets a server that answers 2, 3, and so on in the order of the groups."""
        settings = LISTEN | {"fallback": {"servers": [self.fallback.endpoint]}}
        for name, keys in groups.items():
            if "servers" not in keys and "answer" not in keys and name not in ("fallback", "domains", "control", "cache"):
                server = self.servers.get(name) or self.server(name)
                keys = {"servers": [server.endpoint], "timeout": 3000} | keys
            section = name if name in ("fallback", "domains", "control", "httpdns", "cache") else f"upstreams.{name}"
            settings[section] = settings.get(section, {}) | keys
        return self.start(self.chosen if httpdns else None, settings, port=PORT, ready=ready)

    def names(self, group):
        server = self.fallback if group == "fallback" else self.servers[group]
        return {asked.name.to_text(omit_final_dot=True) for asked in server.questions}


@pytest.fixture
def groups(daemon, scripted_resolver, service):
    return Groups(daemon, scripted_resolver, service("aes", every_name))
