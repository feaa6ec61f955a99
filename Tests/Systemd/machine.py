"""Commands and queries of the tests to systemd."""

import json
import pathlib
import subprocess

UNIT = "httpdnsd.service"
SOCKET = "httpdnsd.socket"
DROP_INS = pathlib.Path(f"/etc/systemd/system/{UNIT}.d")


def run(*command, check=True):
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert not check or ended.returncode == 0, f"{' '.join(command)}: {ended.stdout}{ended.stderr}\n{journal_text()}"
    return ended


def systemctl(*words, check=True):
    return run("systemctl", *words, check=check)


def show(name, unit=UNIT):
    return systemctl("show", "--property", name, "--value", unit).stdout.strip()


def main_pid():
    return int(show("MainPID"))


def status_field(name):
    """A line of /proc/PID/status of the daemon."""
    lines = pathlib.Path(f"/proc/{main_pid()}/status").read_text().splitlines()
    return next(line for line in lines if line.startswith(name + ":")).split()[1]


def journal_text():
    return run("journalctl", "--no-pager", "--unit", UNIT, "--unit", SOCKET, check=False).stdout[-4000:]


def journal(**fields):
    """The entries that have these fields, as dicts."""
    matches = [f"{name}={value}" for name, value in fields.items()]
    said = run("journalctl", "--no-pager", "--output", "json", *matches).stdout
    return [json.loads(line) for line in said.splitlines()]


class DropIn:
    """Lines that override the unit's own, as `systemctl edit` would write them."""

    def __init__(self, name, text):
        self.path = DROP_INS / f"{name}.conf"
        self.text = text

    def __enter__(self):
        DROP_INS.mkdir(parents=True, exist_ok=True)
        self.path.write_text(self.text)
        systemctl("daemon-reload")

    def __exit__(self, *_):
        self.path.unlink()
        systemctl("daemon-reload")
