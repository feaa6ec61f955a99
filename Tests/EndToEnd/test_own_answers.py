"""Answers that the operator sets instead of servers' answers: types left out, bogus addresses, aliases."""

import daemon as processes
from dns_client import ask
from groups import PORT, last_of
from waiting import eventually


def status(name, kind="A", **options):
    reply = ask(name, kind, port=PORT, **options)
    return reply.rcode().value, len(reply.answer)


def change(running, binary, at, text, new):
    """Replaces a text in the settings, and has them read again."""
    file = running.directory / "httpdnsd.toml"
    assert text in file.read_text()
    file.write_text(file.read_text().replace(text, new))
    ended = processes.run(binary, "reload", *at)
    assert ended.returncode == 0, ended


def test_types_that_are_left_out(groups, binary, tmp_path):
    """Groups, [fallback] and accounts are not asked for such types; the account's requests have the other family alone."""
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
    # A reload invalidates cached answers of these types alone.
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


def test_an_alias(groups, binary, tmp_path):
    """The alias's addresses come from the group of its target, after a CNAME; circles are refused."""
    at = ["--socket", str(tmp_path / "s")]
    running = groups.run(
        safe={"answer": "nodata", "domains": ["alias.example"]}, office={"domains": ["corp.example"]},
        control={"socket": str(tmp_path / "s")})
    change(running, binary, at, 'answer = "nodata"', 'alias = "www.corp.example"')
    for name, kind in (("alias.example", "A"), ("x.alias.example", "AAAA")):
        reply = ask(name, kind, port=PORT)
        alias, records = reply.answer
        assert (alias.name.to_text(), alias[0].target.to_text()) == (f"{name}.", "www.corp.example."), reply
        assert records.name.to_text() == "www.corp.example.", reply
    assert last_of("alias.example") == [2] and last_of("alias.example", transport="tcp") == [2]
    assert status("alias.example", "MX") == (0, 0) and status("alias.example", "CNAME") == (0, 1)
    assert groups.names("office") == {"www.corp.example"} and groups.fallback.questions == []
    shown = processes.run(binary, "explain", *at, "alias.example").stdout
    assert "Alias: alias.example is answered as it is, by [upstreams.safe]" in shown, shown
    assert "corp.example, in upstreams.office.domains" in shown, shown
    assert groups.names("office") == {"www.corp.example"}, "explain asks servers for the target, too"
    file = running.directory / "httpdnsd.toml"
    file.write_text(file.read_text().replace("www.corp.example", "www.alias.example"))
    ended = processes.run(binary, "check", str(file))
    assert ended.returncode == 78 and "upstreams.safe.alias: www.alias.example is a name that this group takes itself" in ended.stderr


def test_several_lists_of_a_group(groups, binary, tmp_path):
    """An exception in any list applies to all; hosts files count as one; each list is followed."""
    files = {name: tmp_path / name for name in ("ads", "more", "free", "hosts", "hosts2")}
    files["ads"].write_text("||ads.example^\n||x.free.example^\n")
    files["more"].write_text("more.example\nwww.good.example\n")
    files["free"].write_text("@@||free.example^\n")
    files["hosts"].write_text("192.0.2.101 one.example\n")
    files["hosts2"].write_text("192.0.2.102 two.example\n192.0.2.103 one.example\n")
    running = groups.run(
        httpdns=False, fallback={"hosts": [str(files["hosts"]), str(files["hosts2"])]},
        ads={"answer": "nxdomain", "domainsFile": [str(files[name]) for name in ("ads", "more", "free")], "except": ["good.example"]})
    assert [status(name)[0] for name in ("ads.example", "more.example", "x.free.example", "www.good.example")] == [3, 3, 0, 0]
    assert last_of("one.example") == [101, 103] and last_of("two.example") == [102]
    assert not running.log_lines("no effect")
    processes.run(binary, "check", str(running.directory / "httpdnsd.toml"))
    files["free"].with_suffix(".new").write_text("@@||more.example^\n")
    files["free"].with_suffix(".new").rename(files["free"])
    eventually(lambda: status("more.example")[0] == 0 and status("x.free.example")[0] == 3, "each list is followed")


def test_the_file_of_another_program(binary, tmp_path):
    file = tmp_path / "smartdns.conf"
    file.write_text("bind [::]:53\nserver 192.0.2.1\naddress /ads.example/#\n")
    ended = processes.run(binary, "check", str(file))
    said, = ended.stderr.splitlines()
    assert ended.returncode == 78 and "smartdns.conf is a configuration of smartdns" in said and "docs/migrating.md" in said, ended
    file = tmp_path / "dnscrypt-proxy.toml"
    file.write_text("server_names = ['x']\nlisten_addresses = ['127.0.0.1:53']\nblock_ipv6 = true\n")
    ended = processes.run(binary, "check", str(file))
    assert ended.returncode == 78 and ended.stderr.splitlines()[-1].count("is a configuration of dnscrypt-proxy") == 1, ended
    assert 'block_ipv6: unknown key' in ended.stderr and 'without = ["AAAA"]' in ended.stderr, ended
