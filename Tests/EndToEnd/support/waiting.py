"""Bounded waiting for a condition; tests wait for time to pass only where time is what they are about.

A machine may stand still for some 100 ms, which is no fault of the daemon's: `waited_since` leaves that out of what it
measures. Only upper bounds may be compared with it; no machine makes anything happen too early.
"""

import collections
import os
import threading
import time

BEAT = 0.01
LATE = 0.05  # beats that are late by less than this are those of a busy machine, which counts
_beats = {}  # of each processor: when its last beat was
_stalls = collections.deque(maxlen=1000)  # (from when, until when) a processor did nothing of ours, the newest


def eventually(condition, what, within=20.0):
    """Polls until `condition` is true and returns its value; fails the test after `within` seconds.

    The limit is for what never comes, and says nothing of how fast it should come: a busy machine needs a part of it. It is
    looked at once more after the last moment, or a machine that stands still would be the condition's failure.
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
    """Has a thread on each processor that this process may use; what comes late to wake it would come late for all."""
    for processor in os.sched_getaffinity(0):
        threading.Thread(target=_beat, args=(processor,), daemon=True).start()


def _beat(processor):
    os.sched_setaffinity(0, {processor})  # of this thread alone
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
