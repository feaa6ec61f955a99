"""The case of a name's letters: a secret that an off-path forger of the local resolver's answers has to guess (0x20)."""

import struct
import time

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

from control import metrics, total
from dns_client import addresses, ask, extended_errors
from resolvers import reply_to
from waiting import waited_since

PORT = 2053


def start(daemon, resolver, **fallback):
    daemon(None, {"listen": {"addresses": [f"127.0.0.1:{PORT}"]}, "control": {"metrics": "127.0.0.1:9153"},
                  "fallback": {"servers": [resolver.endpoint], "timeout": 3000} | fallback}, port=PORT)


def spelled(asked):
    return asked.message.question[0].name.to_text()


def lower(asked, address):
    """An answer that is right in everything but the letters' case."""
    query = dns.message.make_query(asked.name.canonicalize(), "A", id=asked.message.id, use_edns=0)
    return reply_to(query, f"60 IN A {address}")


def test_names_are_spelled_by_chance_and_answers_come_back_as_asked(daemon, scripted_resolver):
    resolver = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.1"))
    start(daemon, resolver)
    for number in range(30):
        reply = ask(f"Host{number}.Example.net", port=PORT)
        assert addresses(reply) == ["192.0.2.1"] and reply.question[0].name.to_text() == f"Host{number}.Example.net."
    seen = [spelled(asked).split(".", 1)[1] for asked in resolver.questions]
    assert len(set(seen)) > 25
    letters = "".join(seen).replace(".", "")
    assert 0.35 < sum(letter.isupper() for letter in letters) / len(letters) < 0.65


def test_a_forged_answer_in_another_case_is_not_believed_and_counted(daemon, scripted_resolver):
    """A forger with the right id and port does not know the spelling, so the answer is not believed."""
    resolver = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.1"))
    start(daemon, resolver)
    assert addresses(ask("first.example.net", port=PORT)) == ["192.0.2.1"]  # now the daemon knows that letters are repeated
    # The question is also asked over TCP at once, and there no answer is forged.
    resolver.script = lambda asked: ([lower(asked, "192.0.2.66"), lower(asked, "192.0.2.67")]
                                     if asked.transport == "udp" else []) + [reply_to(asked.message, "60 IN A 192.0.2.1")]
    for number in range(20):
        assert addresses(ask(f"forged{number}.example.net", port=PORT)) == ["192.0.2.1"]
    # The second forged answer may arrive after the answer over TCP.
    assert 20 <= total(metrics(), "httpdnsd_mismatches_total", reason="other_case") <= 40


def test_a_server_that_does_not_repeat_letters_is_asked_without(daemon, scripted_resolver):
    resolver = scripted_resolver(lambda asked: lower(asked, "192.0.2.2"))
    start(daemon, resolver)
    for number in range(10):
        assert addresses(ask(f"plain{number}.example.net", port=PORT)) == ["192.0.2.2"]
    assert not spelled(resolver.questions[0]).islower()
    assert all(spelled(asked).islower() for asked in resolver.questions[1:])


def test_another_server_at_the_same_address_is_learnt_anew(daemon, scripted_resolver):
    """A known server's answers in another case are not believed; without any other answer, the server counts as a new one."""
    resolver = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.1"))
    start(daemon, resolver, timeout=1500)
    assert addresses(ask("one.example.net", port=PORT)) == ["192.0.2.1"]
    resolver.script = lambda asked: lower(asked, "192.0.2.2")
    ask("two.example.net", port=PORT, edns=True)  # for the forwarder, no answer came in time
    assert addresses(ask("three.example.net", port=PORT)) == ["192.0.2.2"]
    assert addresses(ask("four.example.net", port=PORT)) == ["192.0.2.2"]
    assert spelled(resolver.questions[-1]).islower()


def test_a_refusal_without_a_question_needs_no_spelling(daemon, scripted_resolver):
    resolver = scripted_resolver(lambda asked: reply_to(asked.message, "60 IN A 192.0.2.1"))
    start(daemon, resolver, timeout=20000)
    assert addresses(ask("one.example.net", port=PORT)) == ["192.0.2.1"]
    resolver.script = lambda asked: asked.wire[:2] + b"\x81\x85" + bytes(8)
    begun = time.monotonic()
    assert ask("two.example.net", port=PORT).rcode() == dns.rcode.REFUSED
    assert waited_since(begun) < 3.5


def test_the_spelling_does_not_show_in_an_answer(daemon, scripted_resolver):
    """A name in the answer has only spellings of the client, of the zone, or in lower case, also in a CNAME made from a DNAME."""
    def below(asked):
        host = spelled(asked).split(".")[0]
        zone = spelled(asked).split(".", 1)[1]
        reply = reply_to(asked.message)
        for owner, kind, data in ((zone, "DNAME", "New.Elsewhere.org."), (spelled(asked), "CNAME", f"{host}.New.Elsewhere.org."),
                                  (f"{host}.New.Elsewhere.org.", "A", "192.0.2.1")):
            reply.answer.append(dns.rrset.from_text(owner, 60, "IN", kind, data))
        reply.authority.append(dns.rrset.from_text(zone, 60, "IN", "NS", f"Ns.{zone}"))
        wire = reply.to_wire()
        # The same answer without compression.
        return wire if asked.kind == "A" else uncompressed(reply)
    resolver = scripted_resolver(below)
    start(daemon, resolver)
    for kind in ("A", "TXT"):
        for number in range(10):
            reply = ask(f"Host{number}.Old.example.net", kind, port=PORT)
            text = reply.to_text()
            assert f"host{number}.New.Elsewhere.org." in text and f"Host{number}.Old.example.net." in text
            names = [name for line in text.splitlines() if " IN " in line for name in line.split() if "." in name]
            for name in names:
                assert name in {f"Host{number}.Old.example.net.", f"host{number}.old.example.net.", "Old.example.net.",
                                "old.example.net.", "New.Elsewhere.org.", f"host{number}.New.Elsewhere.org.",
                                f"host{number}.new.elsewhere.org.", "Ns.Old.example.net.", "Ns.old.example.net.",
                                "192.0.2.1"}, text


def uncompressed(reply):
    records = [record for section in (reply.answer, reply.authority) for record in section]
    question = reply.question[0]
    body = question.name.to_wire() + struct.pack("!HH", question.rdtype, 1)
    for rrset in records:
        data = rrset[0].to_wire()
        body += rrset.name.to_wire() + struct.pack("!HHIH", rrset.rdtype, 1, 60, len(data)) + data
    return struct.pack("!6H", reply.id, 0x8180, 1, len(reply.answer), len(reply.authority), 0) + body


def test_over_tcp_letters_are_no_matter(daemon, scripted_resolver):
    def answer(asked):
        reply = reply_to(asked.message, "60 IN A 192.0.2.3")
        if asked.transport == "udp":
            reply.answer = []
            reply.flags |= dns.flags.TC
        return reply if asked.transport == "udp" else lower(asked, "192.0.2.3")
    resolver = scripted_resolver(answer)
    start(daemon, resolver)
    for number in range(3):
        assert addresses(ask(f"big{number}.example.net", port=PORT)) == ["192.0.2.3"]
    assert extended_errors(ask("big9.example.net", port=PORT, edns=True)) == []
