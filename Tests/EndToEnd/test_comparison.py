"""Answers of the local resolver, direct and through the daemon, differ only where they must.

There are 2,000 names of three zones: one plain, one signed, one signed by the wrong key. unbound validates and
caches, as a local resolver does. Then fewer of these and many other names are asked by TLS and HTTPS.
"""

import random
import time

import dns.name
import pytest

from comparison import (
    ADDRESS, HOST_KINDS, KINDS, OTHER_KINDS, VARIANTS, Validator, Zone, ask_all, data, differences, fill, question, shown)

PORT = 2053
PLAIN_NAMES, SIGNED_NAMES, BROKEN_NAMES = 1500, 450, 50
MANY = 20_000


@pytest.fixture
def world(tmp_path, chance):
    """unbound, and the questions: every name with every type, a plain name in two variants, a signed name in all."""
    plain, signed, broken = Zone("compare.example."), Zone("signed.example."), Zone("broken.example.")
    names = [(name, 2) for name in fill(plain, PLAIN_NAMES, chance)]
    names += [(name, len(VARIANTS)) for name in fill(signed, SIGNED_NAMES, chance)]
    names += [(name, len(VARIANTS)) for name in fill(broken, BROKEN_NAMES, chance)]
    other = Zone("broken.example.")
    for zone in (signed, broken, other):
        zone.sign()
    resolver = Validator(tmp_path, [plain, signed, broken], [
        f"{zone.origin} DNSKEY {zone.key.to_text()}" for zone in (signed, other)])
    questions = []
    for number, (name, variants) in enumerate(names):
        for place, kind in enumerate(KINDS + (OTHER_KINDS if number % 4 == 0 else [])):
            for variant in range(variants):
                # A plain name is asked as the simplest client asks, and in one of the other variants.
                step = variant if variants > 2 or variant == 0 else 1 + (number + place) % (len(VARIANTS) - 1)
                questions.append(question(name, kind, VARIANTS[step]))
    assert len(names) == 2000 and len(questions) >= 2000 * 11 * 2
    yield questions
    resolver.stop()


def test_no_answer_is_different(world, daemon, service):
    fallback = {"servers": [ADDRESS], "timeout": 5000}
    daemon(None, {"listen": {"addresses": ["127.0.0.1:2053"]}, "fallback": fallback}, port=2053)
    chosen = service("aes")
    daemon(chosen, {"listen": {"addresses": ["127.0.0.1:2054"]}, "fallback": fallback,
                    "domains": {"bypass": ["example"]}}, port=2054)
    ask_all(world, ADDRESS, 53)  # so that unbound has all validated and cached
    for port, what in ((2053, "asked anew"), (2053, "cached"), (2054, "asked anew")):
        begun = time.monotonic()
        through = ask_all(world, "127.0.0.1", port)
        direct = ask_all(world, ADDRESS, 53)
        different, counted = differences(world, direct, through, port)
        print(f"port {port}, {what}: {len(world)} answers, {counted}, {len(different)} different, "
              f"{time.monotonic() - begun:.1f} s")
        assert not different, f"{len(different)} of {len(world)} answers differ:\n{shown(different)}"
        assert counted["asked again"] < len(world) / 1000
        assert counted["AD"] > 1000 and counted["SERVFAIL with EDE"] > 100 and counted["over TCP"] > 10
    assert chosen.names == []


class Names:
    """A zone of many names with one record each, or none; the test writes its text itself, which is faster."""

    def __init__(self, origin, count, chance):
        self.origin = dns.name.from_text(origin)
        self._lines = [f"{origin} 3000 IN SOA ns.{origin} hostmaster.{origin} 7 3600 600 86400 90",
                       f"{origin} 3000 IN NS ns.{origin}", f"ns.{origin} 3000 IN A 198.51.100.1"]
        self.questions = []
        kinds, others = [*HOST_KINDS, "CNAME"], KINDS + OTHER_KINDS
        for number in range(count):
            name = chance.choice([f"h{number}", f"H{number}", f"_sip{number}._tcp", f"a.b.c{number}",
                                  f"{number}.2.0.192"]) + "." + origin
            kind = kinds[number % len(kinds)]
            if number % 10:
                self._lines.append(f"{name} 300 IN {kind} {data(kind, chance, number, origin)}")
            self.questions.append((dns.name.from_text(name), others[number % len(others)] if number % 3 == 0 else kind))

    def write(self, path):
        path.write_text("\n".join(self._lines) + "\n")


@pytest.fixture(scope="module")
def zones(tmp_path_factory, authority):
    """A validating unbound, questions for some hundred names, signed and wrongly signed ones among them, and for many.

    With each question goes the answer that unbound gives directly.
    """
    chance = random.Random(7)
    plain, signed, broken = (Zone(f"{name}.example.") for name in ("compare", "signed", "broken"))
    names = [(name, 2) for name in fill(plain, 200, chance)]
    names += [(name, 5) for name in fill(signed, 90, chance)]
    names += [(name, 5) for name in fill(broken, 20, chance)]
    other = Zone("broken.example.")
    for zone in (signed, broken, other):
        zone.sign()
    many = Names("many.example.", MANY, chance)
    resolver = Validator(
        tmp_path_factory.mktemp("validator"), [plain, signed, broken, many],
        [f"{zone.origin} DNSKEY {zone.key.to_text()}" for zone in (signed, other)],
        authority.server_file(addresses=[ADDRESS]))
    questions = []
    for number, (name, variants) in enumerate(names):
        kinds = KINDS + (OTHER_KINDS if number % 4 == 0 else [])
        for kind in kinds:
            questions.append(question(name, kind, VARIANTS[number % variants if variants == 5 else 0]))
    asked = [question(name, kind, VARIANTS[number % 3])
             for number, (name, kind) in enumerate(many.questions)]
    ask_all(questions, ADDRESS, 53)  # so that unbound has all validated and cached
    few, many = ((asked, ask_all(asked, ADDRESS, 53)) for asked in (questions, asked))
    assert len(few[0]) > 3000 and len(many[0]) == MANY
    assert sum(reply[7] > 0 for reply in many[1]) > MANY / 2, "most have an answer"
    yield few, many
    resolver.stop()


@pytest.mark.parametrize("protocol", ["tls", "https"])
def test_none_is_different_of_an_encrypted_resolver(daemon, zones, authority, protocol):
    """A direct reply and one through the daemon differ in TTLs and spelling alone."""
    url = f"{protocol}://{ADDRESS}" + ("/dns-query" if protocol == "https" else "")
    daemon(None, {"listen": {"addresses": [f"127.0.0.1:{PORT}"]},
                  "fallback": {"servers": [url], "caFile": str(authority.file), "timeout": 5000}}, port=PORT)
    few, many = zones
    for questions, direct in (few, few, many):  # from the server, from the cache, and a thousand names of each type
        through = ask_all(questions, "127.0.0.1", PORT)
        different, counted = differences(questions, direct, through, PORT)
        assert not different, f"{len(different)} of {len(questions)} differ:\n{shown(different)}"
        assert counted["asked again"] < 20
