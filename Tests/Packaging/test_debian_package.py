"""The Debian package: its build, and its life on a clean machine without a running systemd."""

import subprocess

import pytest

from waiting import eventually

SETTINGS = """
[httpdns]
encryptType = "aes"
dnsId = 12345
dnsKeyFile = "credentials/dnsKey"
dnsIp = ["127.0.0.1:8053"]
addressType = "ipv4"
"""
KEY = "0123456789abcdef"

# Records of dpkg and other programs.
NOT_LOOKED_AT = ("/var/lib/dpkg/", "/var/log/", "/var/cache/debconf/", "/var/cache/ldconfig/", "/dev/", "/proc/", "/sys/")


def listing(machine):
    found = machine.run("find", "/", "-xdev", "-printf", "%p %y %m %U:%G\n").stdout.splitlines()
    # sysusers, userdel and groupdel restore the files, and leave backups with a dash at the end.
    users = ("/etc/group", "/etc/gshadow", "/etc/passwd", "/etc/shadow", "/etc/subuid", "/etc/subgid")
    return {line for line in found if not line.startswith((*NOT_LOOKED_AT, *users))
            and line.split()[0] not in ("/", "/etc", "/root", "/tmp")}


@pytest.fixture(scope="module")
def newer(deb, tmp_path_factory):
    """The same package, of a later version, with another shipped configuration."""
    directory = tmp_path_factory.mktemp("newer")
    tree = directory / "tree"
    subprocess.run(["dpkg-deb", "--raw-extract", deb, tree], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(control.read_text().replace("\nVersion: ", "\nVersion: 99."))
    shipped = tree / "etc/httpdnsd/httpdnsd.toml"
    shipped.write_text(shipped.read_text() + "\n# Of a later version.\n")
    package = directory / "newer.deb"
    subprocess.run(["dpkg-deb", "--build", "-Zgzip", "-z1", tree, package], check=True, stdout=subprocess.DEVNULL)
    return package


def test_lintian_has_no_complaint(deb):
    changes = list(deb.parent.glob("*.changes"))
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", *changes], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_documents_are_in_it(top, deb):
    listed = subprocess.run(["dpkg-deb", "--contents", deb], capture_output=True, text=True, check=True).stdout
    found = {line.split()[5].removesuffix(".gz") for line in listed.splitlines()}  # the larger ones are compressed
    for path in [top / "README.md", *(top / "docs").iterdir(), *(top / "config/examples").glob("*.toml"),
                 *(top / "config/container").rglob("*.yaml")]:
        assert f"./usr/share/doc/httpdnsd/{path.relative_to(top)}" in found


def test_the_binary_is_hardened(deb, tmp_path):
    subprocess.run(["dpkg-deb", "--extract", deb, tmp_path], check=True)
    shown = subprocess.run(["readelf", "--wide", "--headers", "--dynamic", "--symbols", tmp_path / "usr/sbin/httpdnsd"],
                           capture_output=True, text=True, check=True).stdout
    assert "FLAGS_1)            Flags: NOW PIE" in shown
    assert "GNU_RELRO" in shown
    assert "GNU_STACK" in shown and " RWE " not in shown
    assert "__stack_chk_fail" in shown
    assert ".symtab" not in shown and ".debug_info" not in shown
    assert "RUNPATH" not in shown and "RPATH" not in shown


def test_install_run_upgrade_purge(either_machine, deb, newer, version):
    machine = either_machine
    machine.run("mkdir", "-p", "-m", "700", "/var/cache/private")  # as systemd makes it
    before = listing(machine)
    resolv_conf = machine.path("/etc/resolv.conf").read_text()
    groups = machine.path("/etc/group").read_text()
    for package in (deb, newer):
        machine.path(f"/root/{package.name}").write_bytes(package.read_bytes())

    machine.run("dpkg", "--install", f"/root/{deb.name}")
    assert machine.run("httpdnsd", "--version").stdout.strip() == version
    assert machine.run("getent", "group", "httpdnsd").returncode == 0
    assert machine.path("/etc/resolv.conf").read_text() == resolv_conf
    machine.run("httpdnsd", "check")  # the shipped settings are right
    # The service is not enabled before the operator enables it.
    assert not list(machine.path("/etc/systemd/system").glob("*/httpdnsd.*"))

    # An account, and a lookup through it.
    settings, key = machine.path("/etc/httpdnsd/httpdnsd.toml"), machine.path("/etc/httpdnsd/credentials/dnsKey")
    assert key.parent.stat().st_mode & 0o777 == 0o700
    # The settings may hold a secret, and the service reads them as a member of their group.
    assert machine.run("stat", "--format=%a %U %G", "/etc/httpdnsd/httpdnsd.toml").stdout == "640 root httpdnsd\n"
    # Another user who looks at the settings is not advised to change their mode.
    other = machine.run("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "httpdnsd", "check", check=False)
    assert other.returncode == 78, other
    assert other.stdout.endswith("; the service can read it, this user cannot: give the command as root\n"), other
    changed = settings.read_text().replace("#addresses = ", 'addresses = ["127.0.0.1:53"]  #') + SETTINGS
    settings.write_text(changed)
    key.write_text(KEY)
    machine.start_service("--key", KEY, "--record", "www.example.com=203.0.113.20")
    daemon = machine.start("httpdnsd")  # pytest shows its log if a test fails

    def resolved():
        return machine.run("getent", "ahostsv4", "www.example.com", check=False).stdout.startswith("203.0.113.20 ")
    eventually(resolved, "a program of the machine resolves through the daemon")
    daemon.terminate()
    assert daemon.wait(5) == 0

    machine.run("dpkg", "--install", "--force-confold", f"/root/{newer.name}")
    assert f"Version: 99.{version}" in machine.run("dpkg", "--status", "httpdnsd").stdout
    assert settings.read_text() == changed
    assert key.read_text() == KEY
    daemon = machine.start("httpdnsd")
    eventually(resolved, "the same after the upgrade")
    daemon.terminate()
    assert daemon.wait(5) == 0

    # A removal leaves settings and secrets; a purge removes all.
    machine.run("dpkg", "--remove", "httpdnsd")
    assert settings.read_text() == changed
    assert key.read_text() == KEY
    machine.path("/var/cache/private/httpdnsd").mkdir()
    machine.path("/var/cache/httpdnsd").symlink_to("private/httpdnsd")
    machine.run("dpkg", "--purge", "httpdnsd")
    for package in (deb, newer):
        machine.path(f"/root/{package.name}").unlink()
    assert listing(machine) == before
    assert machine.path("/etc/group").read_text() == groups
    assert machine.path("/etc/resolv.conf").read_text() == resolv_conf


def test_an_upgrade_says_what_is_wrong_in_the_settings(machine, deb, newer):
    for package in (deb, newer):
        machine.path(f"/root/{package.name}").write_bytes(package.read_bytes())
    machine.run("dpkg", "--install", f"/root/{deb.name}")
    settings, token = machine.path("/etc/httpdnsd/httpdnsd.toml"), machine.path("/etc/httpdnsd/credentials/token")
    right = settings.read_text() + '\n[httpdns]\ntokenFile = "token"\n'
    token.write_text("1234")  # as systemd passes it
    for text, is_right in ((right, True), (right + "[logs]\n", False)):
        settings.write_text(text)
        done = machine.run("dpkg", "--install", "--force-confold", f"/root/{newer.name}")
        assert ("type: systemctl restart httpdnsd" in done.stdout) != is_right, done.stdout
        assert ("httpdnsd.toml:" in done.stdout) != is_right
