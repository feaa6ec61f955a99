"""The services of providers.py sign and encrypt as the vendors' documents and kits do: vectors of the vendors show that service
and daemon are not wrong in the same way."""

import json

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from providers import AES_KEY, SECRETS, HexAES, digest, hmac_digest, sorted_digest

PLAIN = '{"dn":"www.example.com","q":"4,6"}'


@pytest.mark.parametrize(("text", "expected"), [
    ("www.aliyun.com-IAmASecret-1534316400", "60c71e98b6d7fcbb366243e224eab457"),
    ("a.example,b.example-IAmASecret-1534316400", "bff12ffc61735b9bfddd4e7bf3721ef6"),
    ("abcdef2345-123456-1632912372", "de7be63a9f19cf11e9d455d7d4f23cb4"),
    ("www.baidu.com-1234567890-1513602734", "9d4eac35c33b8fa1610476ff1532643d")])
def test_md5(text, expected):
    assert digest(text) == expected


@pytest.mark.parametrize(("values", "joined", "expected"), [
    (("www.a.com,www.b.com", "1023", "1566808387000", "", ""), "__1023_1566808387000_QlgAuFMwNUwN_www.a.com,www.b.com",
     "4b00a808d49a334991b7e50d324a9287"),
    (("www.example.com", "1023", "1566808387000", "AAAA", "203.0.113.7"),
     "1023_1566808387000_203.0.113.7_AAAA_QlgAuFMwNUwN_www.example.com", "9a1c2c50ed9a5d9064820de7a22af2f9")])
def test_sorted_values(values, joined, expected):
    assert sorted_digest([*values, SECRETS["volcengine"]]) == digest(joined) == expected


def version2(mode, first):
    """The signature of a request in a mode; the request begins with these parameters."""
    parameters = dict(pair.split("=", 1) for pair in first.split("&"))
    return hmac_digest(SECRETS["alibaba"], parameters | {"exp": "1700000600", "id": "100000", "m": mode, "v": "1.0"})


def test_version_2_in_clear():
    assert version2("0", "dn=www.example.com&q=4,6") == "85a84cc69eac02a602dea38044f81632fe3256ab5e89a2760c512c4c4368a515"


def test_version_2_with_aes_cbc():
    vector, plain = bytes(range(16, 32)), PLAIN.encode()
    padded = plain + bytes([16 - len(plain) % 16]) * (16 - len(plain) % 16)
    encryptor = Cipher(algorithms.AES(bytes.fromhex(AES_KEY)), modes.CBC(vector)).encryptor()
    encrypted = (vector + encryptor.update(padded) + encryptor.finalize()).hex()
    assert encrypted == ("101112131415161718191a1b1c1d1e1f4a3bd6d0ce0473452fc77e35a52ff82fd02de117d8e7772cbfe3272157706e70"
                         "18b6b5a36d9bc1718a3e2d466076edb6")
    assert json.loads(HexAES(AES_KEY).decrypt(encrypted)) == json.loads(PLAIN)
    assert version2("1", f"enc={encrypted}") == "6375aefc92b6485b3fc8631cb95fde96ef71692948022b24ce43a6a9664ab004"
