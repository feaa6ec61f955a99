"""Answers through the daemon and TLS or HTTPS, and of the same resolver directly: only what has to be is different."""

import random
import struct

import dns.name
import dns.rdatatype
import pytest

import test_comparison as comparison
from test_encrypted import ADDRESS, PORT, URLS, listening

MANY = 20_000


class Names:
    """A zone of many names that have one record each, or none; written by itself, as that is quicker."""

    def __init__(self, origin, count, chance):
        self.origin = dns.name.from_text(origin)
        self._lines = [f"{origin} 3000 IN SOA ns.{origin} hostmaster.{origin} 7 3600 600 86400 90",
                       f"{origin} 3000 IN NS ns.{origin}", f"ns.{origin} 3000 IN A 198.51.100.1"]
        self.questions = []
        kinds, others = [*comparison.HOST_KINDS, "CNAME"], comparison.KINDS + comparison.OTHER_KINDS
        for number in range(count):
            name = chance.choice([f"h{number}", f"H{number}", f"_sip{number}._tcp", f"a.b.c{number}",
                                  f"{number}.2.0.192"]) + "." + origin
            kind = kinds[number % len(kinds)]
            if number % 10:
                self._lines.append(f"{name} 300 IN {kind} {comparison.data(kind, chance, number, origin)}")
            self.questions.append((dns.name.from_text(name), others[number % len(others)] if number % 3 == 0 else kind))

    def write(self, path):
        path.write_text("\n".join(self._lines) + "\n")


def question(name, kind, variant=(comparison.RD, None)):
    flags, edns = variant
    opt = b"" if edns is None else b"\0" + struct.pack("!HHIH", 41, 1232, edns, 0)
    return (struct.pack("!5H", flags, 1, 0, 0, bool(opt)) + name.to_wire()
            + struct.pack("!HH", dns.rdatatype.from_text(kind), 1) + opt)


@pytest.fixture(scope="module")
def zones(tmp_path_factory, authority):
    """A validating unbound, questions for some hundred names, signed and wrongly signed ones among them, and for many.

    With each question goes the answer that unbound gives directly.
    """
    chance = random.Random(7)
    plain, signed, broken = (comparison.Zone(f"{name}.example.") for name in ("compare", "signed", "broken"))
    names = [(name, 2) for name in comparison.fill(plain, 200, chance)]
    names += [(name, 5) for name in comparison.fill(signed, 90, chance)]
    names += [(name, 5) for name in comparison.fill(broken, 20, chance)]
    other = comparison.Zone("broken.example.")
    for zone in (signed, broken, other):
        zone.sign()
    many = Names("many.example.", MANY, chance)
    resolver = comparison.Validator(
        tmp_path_factory.mktemp("validator"), [plain, signed, broken, many],
        [f"{zone.origin} DNSKEY {zone.key.to_text()}" for zone in (signed, other)],
        authority.server_file(addresses=[comparison.ADDRESS]))
    questions = []
    for number, (name, variants) in enumerate(names):
        kinds = comparison.KINDS + (comparison.OTHER_KINDS if number % 4 == 0 else [])
        for kind in kinds:
            questions.append(question(name, kind, comparison.VARIANTS[number % variants if variants == 5 else 0]))
    asked = [question(name, kind, comparison.VARIANTS[number % 3])
             for number, (name, kind) in enumerate(many.questions)]
    comparison.ask_all(questions, comparison.ADDRESS, 53)  # so that unbound has made up its mind
    few, many = ((asked, comparison.ask_all(asked, comparison.ADDRESS, 53)) for asked in (questions, asked))
    assert len(few[0]) > 3000 and len(many[0]) == MANY
    assert sum(reply[7] > 0 for reply in many[1]) > MANY / 2, "most have an answer"
    yield few, many
    resolver.stop()


@pytest.mark.parametrize("protocol", ["tls", "https"])
def test_no_answer_is_different(daemon, zones, authority, protocol):
    """What the resolver says directly and what it says through the daemon: the same but for TTLs and spelling."""
    url = URLS[protocol].replace(ADDRESS, comparison.ADDRESS)
    daemon(None, listening([url], authority, timeout=5000), port=PORT)
    few, many = zones
    for questions, direct in (few, few, many):  # asked anew, cached, and of each type a thousand
        through = comparison.ask_all(questions, "127.0.0.1", PORT)
        different, counted = comparison.differences(questions, direct, through, PORT)
        assert not different, f"{len(different)} of {len(questions)} differ:\n{comparison.shown(different)}"
        assert counted["asked again"] < 20
