"""What the operator has put in the place of servers' answers: types that are left out, bogus addresses, aliases."""

import daemon as processes
from dns_client import ask
from groups import PORT, last_of


def status(name, kind="A", **options):
    reply = ask(name, kind, port=PORT, **options)
    return reply.rcode().value, len(reply.answer)


def change(running, binary, at, text, new):
    """Reads the settings again, with another text in them."""
    file = running.directory / "httpdnsd.toml"
    assert text in file.read_text()
    file.write_text(file.read_text().replace(text, new))
    ended = processes.run(binary, "reload", *at)
    assert ended.returncode == 0, ended


def test_types_that_are_left_out(groups, binary, tmp_path):
    """Neither a group, nor [fallback], nor an account is asked for them; the account's requests have the other family alone."""
    at = ["--socket", str(tmp_path / "s")]
    running = groups.run(
        fallback={"without": ["TXT"]}, office={"domains": ["corp.example"], "without": ["AAAA", "HTTPS"]},
        control={"socket": str(tmp_path / "s")})
    change(running, binary, at, "[httpdns]", '[httpdns]\nwithout = ["AAAA", "MX"]')
    for name, kind in (("www.corp.example", "AAAA"), ("www.corp.example", "HTTPS"), ("www.example.com", "AAAA"),
                       ("www.example.com", "MX"), ("www.example.com", "TXT")):
        assert status(name, kind) == (0, 0), (name, kind)
    assert groups.fallback.questions == [] and groups.servers["office"].questions == [] and groups.chosen.names == []
    assert last_of("www.corp.example") == [2] and len(last_of("www.example.com")) > 0
    assert status("www.corp.example", "TXT") == (0, 1)
    shown = processes.run(binary, "explain", *at, "www.corp.example", "HTTPS").stdout
    assert "its group is not asked for HTTPS (without)" in shown and "Asked: nobody" in shown, shown
    # A reload ends what is cached of these types alone.
    change(running, binary, at, 'without = ["AAAA", "HTTPS"]', 'without = ["TXT", "MX"]')
    asked = len(groups.servers["office"].questions)
    assert status("www.corp.example", "TXT") == (0, 0) and last_of("www.corp.example") == [2]
    assert len(groups.servers["office"].questions) == asked
    assert status("www.corp.example", "AAAA") == (0, 1)


def test_bogus_addresses(groups, binary, tmp_path):
    groups.run(fallback={"bogusAddresses": ["192.0.2.0/31"]}, office={"domains": ["corp.example"]}, httpdns=False,
               control={"socket": str(tmp_path / "s")})
    assert status("nowhere.example.com") == (3, 0) and status("nowhere.example.com", "AAAA") == (0, 1)
    assert status("www.corp.example") == (0, 1)
    shown = processes.run(binary, "explain", "--socket", str(tmp_path / "s"), "nowhere.example.com").stdout
    assert "Take 192.0.2.1 out of fallback.bogusAddresses if it is right: an answer with it is NXDOMAIN." in shown, shown
