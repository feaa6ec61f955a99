"""The wire shows no name of a request, and an answer outlives the service."""

import base64

import pytest

from capture import Capture
from dns_client import addresses, ask, labels
from providers import AES_KEY, SECRETS

NAMES = ["www.example.com", "n7.example.com", "only-v6.example.com", "unknown-to-all.example.com"]


@pytest.mark.parametrize("encryption", ["aes", "des", "https"])
def test_no_name_is_seen_on_the_wire_and_answers_are_kept(daemon, service, tmp_path, unbound, encryption):
    chosen = service(encryption)
    daemon(chosen, {"httpdns": {"httpOnly": True}})
    before = len(unbound.asked())
    with Capture(tmp_path, chosen.address, chosen.port) as capture:
        assert addresses(ask("www.example.com")) == ["203.0.113.20", "203.0.113.10", "203.0.113.30"]
        assert addresses(ask("www.example.com", "AAAA"), "AAAA") == ["2001:db8:1::20", "2001:db8:1::10"]
        assert addresses(ask("n7.example.com")) == ["203.0.113.7"]
        assert addresses(ask("only-v6.example.com", "AAAA"), "AAAA") == ["2001:db8:1::50"]
        assert not ask("unknown-to-all.example.com").answer
        seen = capture.bytes().lower()
    assert set(chosen.names) == set(NAMES)
    # The capture is working: it has a request line, or a TLS handshake record.
    assert (b"\x16\x03" in seen) if encryption == "https" else (b"get /d?" in seen)
    for name in NAMES:
        for form in (name.encode(), labels(name), name.encode().hex().encode(), labels(name).hex().encode(),
                     name.split(".")[0].encode() + b".", b"example"):
            assert form not in seen, f"{name} is on the wire as {form!r}"
    for secret in (chosen.token, chosen.key):
        assert not secret or secret.lower().encode() not in seen
    assert len(unbound.asked()) == before

    chosen.stop()
    assert addresses(ask("www.example.com")) == ["203.0.113.20", "203.0.113.10", "203.0.113.30"]
    assert addresses(ask("WWW.example.com", "AAAA", transport="tcp"), "AAAA") == ["2001:db8:1::20", "2001:db8:1::10"]
    assert ask("n8.example.com").rcode() == 2, "the service is stopped indeed"


def test_no_name_is_seen_on_the_wire_of_alibabas_aes(daemon, account, tmp_path):
    """The wire shows neither names, nor the client's subnet, nor addresses of an answer, nor a secret."""
    chosen = account("alibaba", "aes")
    daemon(whole={"httpdns": chosen.settings() | {"httpOnly": True, "routeIp": "198.51.100.77"}, "fallback": {"hosts": ""}})
    with Capture(tmp_path, chosen.address, chosen.port) as capture:
        assert addresses(ask("www.example.com")) == ["203.0.113.20", "203.0.113.10", "203.0.113.30"]
        assert addresses(ask("only-v6.example.com", "AAAA"), "AAAA") == ["2001:db8:1::50"]
        ask("unknown-to-all.example.com")
        seen = capture.bytes().lower()
    assert b"get /v2/d?enc=" in seen and b'"mode": 1' in seen, "the capture did see this traffic"
    secret = SECRETS["alibaba"]
    for text in (*NAMES, "example", "198.51.100.77", "203.0.113.20", "2001:db8:1::50", secret, AES_KEY):
        raw = text.encode()
        for form in (raw, raw.hex().encode(), base64.b64encode(raw).rstrip(b"=").lower()):
            assert form not in seen, f"{text} is on the wire as {form!r}"
    for name in NAMES:
        assert labels(name) not in seen and labels(name).hex().encode() not in seen
    for key in (secret, AES_KEY):
        assert bytes.fromhex(key) not in seen


def test_every_aes_request_has_an_initial_vector_of_its_own(daemon, service):
    chosen = service("aes")
    daemon(chosen)
    for i in range(20):
        ask(f"n{i}.example.com")
    vectors = {target.partition("dn=")[2][:32] for target in chosen.targets}
    assert len(vectors) == len(chosen.targets) >= 20


def test_questions_share_a_connection(daemon, service):
    for encryption in ("aes", "https"):
        chosen = service(encryption)
        one = daemon(chosen)
        for i in range(20):
            assert addresses(ask(f"n{i}.example.com")) == [f"203.0.113.{i}"]
        assert chosen.connections == 1
        chosen.drop_connections()
        assert addresses(ask("n21.example.com")) == ["203.0.113.21"]
        one.stop()
