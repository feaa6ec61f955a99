"""Bounded waiting for a condition; tests wait for time to pass only where time is what they are about.

A machine may stand still for some 100 ms, which is no fault of the daemon's: `waited_since` leaves that out of what it
measures. Only upper bounds may be compared with it; no machine makes anything happen too early.
"""

import collections
import os
import threading
import time

BEAT = 0.01
LATE = 0.05  # beats that are late by less than this are a busy machine's, whose time counts
_beats = {}  # for each processor: the time of its last beat
_stalls = collections.deque(maxlen=1000)  # (from when, until when) a processor did not run the tests; the newest


def eventually(condition, what, within=20.0):
    """Polls until `condition` is true and returns its value; fails the test after `within` seconds.

    The limit is for conditions that never become true, and is no measure of speed: even a busy machine needs only a part of it.
    The condition is checked once more after the limit, or a machine that stands still would make it fail.
    """
    begun = time.monotonic()
    while True:
        is_last = waited_since(begun) > within
        value = condition()
        if value:
            return value
        if is_last:
            raise AssertionError(f"not within {within} s: {what}")
        time.sleep(0.01)


def watch_for_stalls():
    """Starts a thread on each processor that this process may use; if its wake-up is late, every wake-up would be late."""
    for processor in os.sched_getaffinity(0):
        threading.Thread(target=_beat, args=(processor,), daemon=True).start()


def _beat(processor):
    os.sched_setaffinity(0, {processor})  # for this thread alone
    while True:
        _beats[processor] = time.monotonic()
        time.sleep(BEAT)
        if stall := _stall(processor, time.monotonic()):
            _stalls.append(stall)


def _stall(processor, now):
    due = _beats[processor] + BEAT
    return (due, now) if now - due > LATE else None


def waited_since(begun, end=None):
    """Seconds from `begun` to now, or to `end`, without those in which a processor stood still."""
    now = time.monotonic()
    end = now if end is None else end
    lost, counted = 0.0, begun
    unfinished = [stall for processor in list(_beats) if (stall := _stall(processor, now))]
    for since, until in sorted([*_stalls, *unfinished]):
        since, until = max(since, counted), min(until, end)
        if until > since:
            lost, counted = lost + until - since, until
    return end - begun - lost
