"""Addresses of `listen`: both families at [::], and addresses that this machine lacks."""

from daemon import run
from dns_client import addresses, ask
from networks import needs_ipv6

PORT = 2053
FALLBACK = {"fallback": {"servers": ["127.0.0.2"], "hosts": ""}}


@needs_ipv6
def test_all_addresses_of_ipv6_take_ipv4_too(daemon):
    running = daemon(whole=FALLBACK | {"listen": {"addresses": [f"[::]:{PORT}"]}}, port=PORT)
    for server in ("127.0.0.1", "::1"):
        assert addresses(ask("localhost", server=server, port=PORT)) == ["127.0.0.1"]
    assert running.log_lines(rf"listening on \[::\]:{PORT}, 0\.0\.0\.0:{PORT}")


@needs_ipv6
def test_a_machine_without_its_usual_ipv6_address(daemon, network):
    """A default address that the machine lacks is a warning, as no line of the settings names it."""
    here = network()
    here.ip("-6 address del ::1/128 dev lo")
    with here:
        running = daemon(whole=FALLBACK | {"listen": {"allow": ["127.0.0.0/8"]}})
        assert addresses(ask("localhost")) == ["127.0.0.1"]
    assert running.log_lines(r"warning no question comes there: bind \[::1\]:53")
    assert not running.log_lines("listen.allow has no ::1"), "no program of this host asks there"


def test_one_address_for_two_things(binary, tmp_path):
    file = tmp_path / "twice.toml"
    file.write_text("[listen]\naddresses = ['127.0.0.1:853']\ntls = ['127.0.0.1:853']\n")
    ended = run(binary, "check", "-c", str(file))
    assert ended.returncode == 78 and "listen.tls: 127.0.0.1:853 is listed twice" in ended.stderr + ended.stdout
