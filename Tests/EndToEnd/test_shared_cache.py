"""The shared cache: the saved lookups of a fleet, the data in the store, and the ways to reach it."""

import ipaddress
import random
import re
import time

import dns.rcode
import pytest

from control import Control, fetch
from dns_client import addresses, ask
from fleet import KEY, count_of, fill, in_use, passed_on, remembered, state
from httpdns_service import Record, address_of, every_name
from store import PASSWORD
from waiting import eventually

NAMES = [f"name{number}.example.com" for number in range(6)]
OTHER_KEY = "a key of another fleet, which is none of ours"
STRICT = {"httpOnly": True}

# The purpose of the shared cache


def test_two_daemons_are_billed_once(service, store, member):
    account = service("https", every_name)
    shared = store()
    first, second = member(account, shared), member(account, shared)
    name, before, after = passed_on(first, second)
    assert addresses(after) == addresses(before) == [address_of(name)]
    assert account.names.count(name) == 1
    assert addresses(ask(name, "AAAA", port=first.port), "AAAA") == [address_of(name, 6)]
    name, _, after = passed_on(first, second, kind="AAAA", suffix="example.org")
    assert addresses(after, "AAAA") == [address_of(name, 6)] and account.names.count(name) == 1
    time.sleep(1.1)
    third = member(account, shared)
    faults = in_use(third).faults
    aged = ask(name, "AAAA", port=third.port)
    assert aged.answer[0].ttl < before.answer[0].ttl or state(third).faults > faults
    text = fetch("/", address=("127.0.0.1", 9000 + second.port))[2]
    assert re.search("Shared cache: in use; [0-9]+ of [0-9]+ looks found something", text)


def test_what_it_knew_is_answered_after_a_restart_without_httpdns(service, store, member):
    account = service("https", lambda name, request: Record([address_of(name)], [], 600))
    shared = store()
    first = member(account, shared, settings={"httpdns": STRICT})
    names = remembered(first, 40)
    first.stop()
    account.stop()
    second = member(account, shared, settings={"httpdns": STRICT})

    def answered(name):
        reply = ask(name, port=second.port)
        return reply if reply.rcode() == dns.rcode.NOERROR else None
    for name in names:
        # While the store is slow, the daemon has no other server to ask, so the client asks again.
        reply = eventually(lambda: answered(name), f"{name} is answered", 30)
        assert addresses(reply) == [address_of(name)]


# The data in the store


def test_the_store_learns_nothing(service, store, member):
    account = service("https", every_name)
    shared = store()
    one = member(account, shared)
    names = remembered(one, 40)
    for name in names:
        ask(name, "AAAA", port=one.port)
    keys = shared.keys()
    assert len(keys) >= 4 * len(names) and all(key.startswith(b"h1:") and len(key) == 25 for key in keys)
    assert all(0 < shared("TTL", key) <= 600 + 86_400 for key in keys)
    assert {len(shared("GET", key)) % 128 for key in keys} == {0}
    dump = shared.dump().lower()
    for name in names:
        assert name.encode() not in dump
        for family in (4, 6):
            address = ipaddress.ip_address(address_of(name, family))
            # By chance, a dump of this size has a given four octets about once in 80,000 tries.
            for form in (str(address), address.exploded, address.packed.hex(), address.reverse_pointer):
                assert form.encode() not in dump
            assert family == 4 or address.packed not in dump
    for label in (b"kept", b"example", b"\3com", b"httpdnsd", KEY.encode()):
        assert label not in dump.replace(b"redis-ver", b"")
    assert set(shared.calls()) <= {"get", "set", "del", "client|setname", "keys", "ttl", "info", "config|set", "save"}


def test_fleets_with_other_keys_or_settings_see_nothing_of_each_other(service, store, member):
    account = service("https", every_name)
    shared = store()
    first = member(account, shared)
    name, = remembered(first, 1)
    others = [member(account, shared, key=OTHER_KEY), member(account, shared, settings={"httpdns": {"routeIp": "192.0.2.1"}}),
              member(account, shared, settings={"domains": {"privateAddresses": "refuse"}}),
              member(account, shared, settings={"httpdns": {"share": False}})]
    for number, other in enumerate(others):
        ask(name, port=other.port)
        assert account.names.count(name) == 2 + number
        assert count_of(other, "reads_total", result="hit") == 0


def test_while_keys_change_both_are_read(service, store, member, tmp_path):
    account = service("https", every_name)
    shared = store()
    first = member(account, shared)
    before = tmp_path / "before"
    before.write_text(KEY)
    second = member(account, shared, key=OTHER_KEY, settings={"sharedCache": {"keyFileBefore": str(before)}})
    third = member(account, shared, key=OTHER_KEY)
    for giver, taker in [(first, second), (second, third)]:
        name, _, after = passed_on(giver, taker)
        assert addresses(after) and account.names.count(name) == 1


@pytest.mark.parametrize("forge", ["flip", "move", "foreign"])
def test_what_the_fleet_did_not_seal_is_deleted_and_never_given(service, store, member, forge):
    account = service("https", every_name)
    shared = store()
    first = member(account, shared)
    names = remembered(first, 4)
    values = {key: shared("GET", key) for key in shared.keys()}
    chosen = random.Random(7)
    for key, value in values.items():
        if forge == "flip":
            place = chosen.randrange(len(value))
            forged = value[:place] + bytes([value[place] ^ 1 << chosen.randrange(8)]) + value[place + 1:]
        elif forge == "move":
            forged = values[chosen.choice([other for other in values if other != key])]
        else:
            forged = b"192.0.2.66"
        shared("SET", key, forged, "KEEPTTL")
    second = member(account, shared)
    for name in names:
        in_use(second)
        fill(second, [name])
        assert account.names.count(name) == 2
    eventually(lambda: count_of(second, "refused_total") == 8, "fresh and stale of four names are refused")
    assert "8 foreign entries deleted" in fetch("/", address=("127.0.0.1", 9000 + second.port))[2]


def test_flush_reaches_it(service, store, member, binary):
    account = service("https", every_name)
    shared = store()
    first = member(account, shared, settings={"control": {"socket": "control.sock"}})
    second = member(account, shared)
    names = remembered(first, 3)
    keys = len(shared.keys())
    control = Control(binary, first)
    control("flush", names[0])
    eventually(lambda: len(shared.keys()) == keys - 4, "the entries of one name are deleted")
    faults = in_use(second).faults
    fill(second, names)
    assert account.names.count(names[0]) == 2
    assert account.names.count(names[1]) == 1 or state(second).faults > faults
    control("flush", "--all")
    third = member(account, shared)
    billed = len(account.names)
    fill(third, names)
    assert account.names[billed:] == names
    assert control.json()["sharedCache"]["inUse"] is True


def test_after_a_restart_a_store_that_lies_cannot_undo_a_flush(service, store, member, binary, tmp_path):
    """The store returns its state from before the flush: unexpired entries, and no generation."""
    account = service("https", every_name)
    shared = store()
    settings = {"control": {"socket": "control.sock"}, "cache": {"file": str(tmp_path / "answers")}}
    first = member(account, shared, settings=settings)
    names = remembered(first, 3)
    before = set(shared.keys())
    Control(binary, first)("flush", "--all")
    eventually(lambda: set(shared.keys()) > before, "a generation is begun")
    first.stop()
    for key in set(shared.keys()) - before:
        shared("DEL", key)
    second = member(account, shared, settings=settings)
    billed = len(account.names)
    fill(second, names)
    assert account.names[billed:] == names


# Ways to reach the store


def test_tls_and_a_user_of_an_access_list(service, store, member, authority, tmp_path):
    certificate = authority.server_file(addresses=["127.0.0.9"])
    acl = tmp_path / "users.acl"
    acl.write_text(f"user default on nopass ~* +@all\nuser dns on >{PASSWORD.replace(' ', '')} ~h1:* +get +set +del\n")
    shared = store("--tls-cert-file", certificate, "--tls-key-file", certificate, "--tls-ca-cert-file", authority.file,
                   "--tls-auth-clients", "no", "--aclfile", acl, tls=True)
    password = tmp_path / "password"
    password.write_text(PASSWORD.replace(" ", ""))
    settings = {"sharedCache": {"caFile": str(authority.file), "user": "dns", "passwordFile": str(password)}}
    account = service("https", every_name)
    both = [member(account, shared, server="tls://127.0.0.9", settings=settings) for _ in range(2)]
    name, _, _ = passed_on(*both)
    assert account.names.count(name) == 1
    assert PASSWORD.replace(" ", "") not in "".join(one.log() for one in both)


def test_unix_socket_and_password(service, store, member, tmp_path):
    shared = store("--requirepass", PASSWORD)
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    settings = {"sharedCache": {"passwordFile": str(password)}}
    account = service("https", every_name)
    both = [member(account, shared, server=f"unix:{shared.path}", settings=settings) for _ in range(2)]
    name, _, _ = passed_on(*both)
    assert account.names.count(name) == 1


def test_it_comes_back(service, store, member):
    account = service("https", every_name)
    shared = store(running=False)
    one = member(account, shared, wait=False)
    eventually(lambda: one.log_lines("shared cache: not in use, .*: .*refused"), "it is said that the store is away")
    fill(one, NAMES[:3])
    shared.start()
    eventually(lambda: one.log_lines("shared cache: in use"), "the store is in use")
    shared.kill()
    eventually(lambda: len(one.log_lines("shared cache: not in use")) == 2, "it is said again")
    fill(one, NAMES[3:6])
    assert len(one.log_lines("shared cache")) == 3
