# SPDX-License-Identifier: GPL-2.0-only
"""Tests that judge by the clock, and the tick of the clock that time stamps are taken from.

The machine is emulated, and its host may stand still at the wrong moment. Such a test may be run again, three times at
most, and pytest prints RERUN for each. What the test is there to find fails each time.
"""

import time

import pytest

REALTIME_COARSE = 5         # CLOCK_REALTIME_COARSE: the time of the last tick, as the kernel puts it into inodes

BY_THE_CLOCK = pytest.mark.flaky(reruns=3, reruns_delay=2)      # python3-pytest-rerunfailures


def next_tick():
    """Waits for the next tick, all of which is ahead then: what changes has later time stamps than what has changed until now. A
    tick may take longer than its 4 ms, while the emulated processor that counts ticks stands still and another one runs.

    Returns the tick's time. What then has changes of this time alone has it as its ctime after the last one. To ask in between
    would spoil that: since Linux 6.13, a file whose time was asked for gets another one with its next change, however soon."""
    before = time.clock_gettime_ns(REALTIME_COARSE)
    while (tick := time.clock_gettime_ns(REALTIME_COARSE)) == before:
        pass
    return tick
