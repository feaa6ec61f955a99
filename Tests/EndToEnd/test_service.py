"""The tests' own service is checked against the protocol's published vectors before it judges the daemon."""

import pytest
from httpdns_service import AES, DES


@pytest.mark.parametrize(("key", "text", "expected"), [
    ("dnspodpa", "www.dnspod.cn", "87ae992c1321f299da3c0210a9900ae7"),
    ("weijianl", "www.google.com", "cd52888ecabcac455a14ddbac7f03d97"),
    ("Swift!01", "a.example,b.example", "54d4bbee79df5bc2da5de7f474f661250caa44d40dac4c09"),
    ("Swift!01", "", "d9abf7f615f4600f"),
])
def test_des_vectors(key, text, expected):
    assert DES(key).encrypt(text) == expected
    assert DES(key).decrypt(expected) == text


def test_aes_vector():
    initial = "f0e1d2c3b4a5968778695a4b3c2d1e0f"
    ciphertext = "3610ecd4d8f448c7a2a2555a7e65b22b99b7427c3719db9d09737bf671583c31"
    assert AES("Swift-HTTPDNS-16").decrypt(initial + ciphertext) == "192.0.2.1;192.0.2.2,120"


def test_unbound_is_ready_to_judge(unbound):
    from dns_client import addresses, ask
    assert addresses(ask("www.example.com", server=unbound.address)) == ["198.51.100.80"]
    assert ask("missing.example.com", server=unbound.address).rcode() == 3
    assert ("missing.example.com", "A") in unbound.asked()
    assert len(ask("alias.example.com", server=unbound.address).answer) == 4
    for name in ("a\\,b", "a\\;b", "a|b", "a\\032b"):
        assert addresses(ask(name + ".example.com", server=unbound.address)), name
    for name in ("printer", "scanner.local", "unit.test", "nas.home.arpa", "localhost", "bad.invalid", "hidden.onion"):
        assert addresses(ask(name, server=unbound.address)), name
    assert ask("1.2.168.192.in-addr.arpa", "PTR", server=unbound.address).answer
