"""Bounded waiting for a condition; tests wait for time to pass only where time is what they are about."""

import time


def eventually(condition, what, within=5.0):
    """Polls until `condition` is true and returns its value; fails the test after `within` seconds."""
    deadline = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within} s: {what}")
        time.sleep(0.01)
