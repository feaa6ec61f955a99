"""`make install` and `make uninstall`."""

import os
import re
import shutil
import subprocess

import pytest


def make(top, *arguments):
    done = subprocess.run(["make", "--no-print-directory", *arguments], cwd=top, capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def documents(top):
    return {"README.md", *(f"docs/{path.name}" for path in (top / "docs").iterdir()),
            *(f"config/examples/{path.name}" for path in (top / "config/examples").glob("*.toml")),
            *(f"config/prometheus/{path.name}" for path in (top / "config/prometheus").iterdir()),
            *manifests(top)}


def manifests(top):
    """The shipped manifests; other files beside them belong to an operator, and may be secrets."""
    return {str(path.relative_to(top)) for path in (top / "config/container").rglob("*")
            if path.suffix in (".yaml", ".toml") or path.name in ("Containerfile", "resolv.conf")}


def files(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize("prefix", ["/usr/local", "/usr", "/opt/httpdnsd"])
def test_what_is_installed_is_uninstalled(top, tmp_path, version, prefix):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/resolv.conf").write_text("nameserver 192.0.2.1\n")
    arguments = [f"DESTDIR={tmp_path}"] + ([f"PREFIX={prefix}"] if prefix != "/usr/local" else [])
    make(top, "install", *arguments)
    below = prefix[1:]
    assert files(tmp_path) == {
        "etc/resolv.conf", "etc/httpdnsd/httpdnsd.toml", f"{below}/sbin/httpdnsd",
        *(f"{below}/lib/systemd/system/httpdnsd{unit}" for unit in (".service", ".socket", "-dot.socket", "-doh.socket")),
        f"{below}/lib/sysusers.d/httpdnsd.conf", f"{below}/share/man/man8/httpdnsd.8",
        f"{below}/share/man/man5/httpdnsd.toml.5", f"{below}/share/bash-completion/completions/httpdnsd",
        f"{below}/share/zsh/site-functions/_httpdnsd", f"{below}/share/fish/vendor_completions.d/httpdnsd.fish",
        *(f"{below}/share/doc/httpdnsd/{path}" for path in documents(top))}
    assert (tmp_path / "etc/resolv.conf").read_text() == "nameserver 192.0.2.1\n"
    # The settings may hold a secret.
    assert (tmp_path / "etc/httpdnsd/httpdnsd.toml").stat().st_mode & 0o777 == 0o640
    installed = tmp_path / below / "sbin/httpdnsd"
    assert subprocess.run([installed, "--version"], capture_output=True, text=True).stdout.strip() == version
    sections = subprocess.run(["readelf", "--sections", "--wide", installed], capture_output=True, text=True, check=True)
    assert not re.search(r" \.(symtab|strtab|debug_\w+) ", sections.stdout), "it is not stripped"
    assert " .dynsym " in sections.stdout
    unit = (tmp_path / below / "lib/systemd/system/httpdnsd.service").read_text()
    programs = re.findall(r"^Exec\w+=\+?(\S*httpdnsd) ", unit, re.MULTILINE)
    assert set(programs) == {f"{prefix}/sbin/httpdnsd"}

    make(top, "uninstall", *arguments)
    assert files(tmp_path) == {"etc/resolv.conf"}
    assert not (tmp_path / "etc/httpdnsd").exists()
    assert not (tmp_path / below / "share/doc/httpdnsd").exists()


def test_a_build_goes_on_where_there_is_no_dpkg(top, tmp_path):
    for program in ("bash", "cat", "date", "git", "head", "id", "sed", "sort", "uname"):
        (tmp_path / program).symlink_to(shutil.which(program))
    done = subprocess.run([shutil.which("make"), "--no-print-directory", "build-packages"], cwd=top, capture_output=True, text=True,
                          env={"PATH": str(tmp_path)})
    assert done.returncode == 0 and "libssl-dev" in done.stderr, done


def test_a_secret_beside_the_manifests_is_not_installed(top, tmp_path):
    secret = top / "config/container/kubernetes/node/token"
    if secret.exists():
        pytest.skip("there is a token")
    secret.write_text("1234")
    try:
        make(top, "install", f"DESTDIR={tmp_path}")
    finally:
        secret.unlink()
    assert not list(tmp_path.rglob("token")) and list(tmp_path.rglob("node/kustomization.yaml"))


def test_settings_outlive_both(top, tmp_path):
    settings = tmp_path / "etc/httpdnsd/httpdnsd.toml"
    secret = tmp_path / "etc/httpdnsd/credentials/token"
    make(top, "install", f"DESTDIR={tmp_path}")
    settings.write_text("[log]\nlevel = 'debug'\n")
    secret.write_text("1234")
    make(top, "install", f"DESTDIR={tmp_path}")
    assert settings.read_text() == "[log]\nlevel = 'debug'\n"
    make(top, "uninstall", f"DESTDIR={tmp_path}")
    assert files(tmp_path) == {"etc/httpdnsd/httpdnsd.toml", "etc/httpdnsd/credentials/token"}


@pytest.mark.parametrize("shell, path, check", [
    ("bash", "share/bash-completion/completions/httpdnsd",
     'source "$1"; COMP_WORDS=(httpdnsd qu); COMP_CWORD=1; COMP_LINE="httpdnsd qu"; COMP_POINT=11; _httpdnsd httpdnsd qu httpdnsd; '
     'printf "%s\\n" "${COMPREPLY[@]}"'),
    ("fish", "share/fish/vendor_completions.d/httpdnsd.fish", 'source $argv[1]; complete --do-complete "httpdnsd qu"'),
])
def test_completions_complete(top, tmp_path, shell, path, check):
    make(top, "install", f"DESTDIR={tmp_path}")
    file = tmp_path / "usr/local" / path
    assert not file.read_text().startswith("#!")
    command = ["bash", "-c", check, "bash", file] if shell == "bash" else ["fish", "--no-config", "-c", check, file]
    done = subprocess.run(command, capture_output=True, text=True,
                          env={"PATH": f"{tmp_path}/usr/local/sbin:{os.environ['PATH']}", "HOME": str(tmp_path)})
    assert done.stderr == ""
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["query"]


def test_completions_of_zsh_are_valid(top, tmp_path):
    make(top, "install", f"DESTDIR={tmp_path}")
    file = tmp_path / "usr/local/share/zsh/site-functions/_httpdnsd"
    assert file.read_text().startswith("#compdef httpdnsd\n")
    done = subprocess.run(["zsh", "--no-rcs", "-n", file], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def on_this_machine(top, folder, *targets, check=True):
    """Runs make without DESTDIR, with its own /etc, /usr/local and /var/lib; calls of systemctl are recorded."""
    script = """
        set -e
        mount --make-rprivate /
        for part in usr/local var/lib; do mkdir -p $1/$part; mount --bind $1/$part /$part; done
        mkdir -p $1/etc $1/run/systemd/system
        cp -a /etc/. $1/etc
        mount --bind $1/etc /etc
        mount --bind $1/run /run
        rm -rf /etc/httpdnsd
        shift
        make --no-print-directory -C "$@"
    """
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "systemctl").write_text(f'#!/bin/sh\necho systemctl "$@" >> {folder}/ran\n')
    (programs / "systemctl").chmod(0o755)
    done = subprocess.run(["unshare", "--mount", "bash", "-c", script, "bash", folder, top, *targets], capture_output=True,
                          text=True, env={"PATH": f"{programs}:{os.environ['PATH']}", "HOME": "/root", "LC_ALL": "C.UTF-8"})
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.mark.skipif(os.geteuid() != 0, reason="it needs root")
def test_on_the_machine_itself(top, tmp_path):
    """The daemon's group reads the settings, systemd reloads, and `uninstall` runs `host disable` before it deletes anything."""
    ran = tmp_path / "ran"
    on_this_machine(top, tmp_path, "install")
    settings = (tmp_path / "etc/httpdnsd/httpdnsd.toml").stat()
    group, = (line.split(":") for line in (tmp_path / "etc/group").read_text().splitlines() if line.startswith("httpdnsd:"))
    assert (settings.st_mode & 0o777, settings.st_gid) == (0o640, int(group[2]))
    assert "_httpdnsd:" in (tmp_path / "etc/passwd").read_text()
    assert ran.read_text() == "systemctl daemon-reload\n"

    installed = tmp_path / "usr/local/sbin/httpdnsd"
    record = tmp_path / "var/lib/httpdnsd/host"
    record.parent.mkdir()
    for code in (1, 0):
        ran.unlink()
        record.touch()
        installed.write_text(f'#!/bin/sh\necho httpdnsd "$@" >> {ran}\nexit {code}\n')
        done = on_this_machine(top, tmp_path, "uninstall", check=False)
        assert (done.returncode == 0) == (code == 0) and installed.exists() == (code != 0), done
    lines = ran.read_text().splitlines()
    assert lines[0] == "httpdnsd host disable" and lines[-1] == "systemctl daemon-reload"
    stopped, = lines[1:-1]
    assert stopped.startswith("systemctl --quiet disable --now ")
    assert set(stopped.split()[4:]) == {f"httpdnsd{unit}" for unit in (".service", ".socket", "-dot.socket", "-doh.socket")}
