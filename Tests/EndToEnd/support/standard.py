"""Settings and names that most tests use, and limits for all tests."""

import pytest

from daemon import SANITIZED
from httpdns_service import Record

TEST_SECONDS = 300
LOCAL_RESOLVER = "127.0.0.2"
# Milliseconds until the daemon answers by itself. The tests' servers share a busy machine: only a silent server, and no slow one,
# may be given up or make the daemon ask another server.
PATIENCE, HEDGE_AFTER = 3000, 2500
# A sanitizer's build differs in allocations, counts and speed.
measures_the_build = pytest.mark.skipif(SANITIZED, reason="it measures the release build, not that of a sanitizer")

# The names that the HTTPDNS service knows. For all others it has "no record".
ZONE = {
    "www.example.com": Record(["203.0.113.20", "203.0.113.10", "203.0.113.30"],
                              ["2001:db8:1::20", "2001:db8:1::10"], 120),
    "only-v4.example.com": Record(["203.0.113.40"], [], 60),
    "only-v6.example.com": Record([], ["2001:db8:1::50"], 60),
    "fast.example.com": Record(["203.0.113.61"], [], 60),
    "slow.example.com": Record(["203.0.113.62"], [], 60),
    "service.example.com": Record(["127.0.0.1"], [], 60),
    "brief.example.com": Record(["203.0.113.70"], [], 5),
    "eternal.example.com": Record(["203.0.113.71"], [], 4000000),
    **{f"n{i}.example.com": Record([f"203.0.113.{i}"], [f"2001:db8:1::{i:x}"], 600) for i in range(100)},
}


def settings_for(service, authority, extra):
    """A daemon's settings: port 53, the service, the local resolver; `extra` changes them section by section."""
    settings = {"listen": {"addresses": ["127.0.0.1:53"]},
                "fallback": {"servers": [LOCAL_RESOLVER], "timeout": PATIENCE, "hosts": ""}}
    if service is not None:
        settings["httpdns"] = service.settings()
        settings["fallback"]["hedgeAfter"] = HEDGE_AFTER
        if service.encryption == "https":
            settings["tls"] = {"caFile": str(authority.file)}
    for section, keys in extra.items():
        settings[section] = settings.get(section, {}) | keys
    return settings
