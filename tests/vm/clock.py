# SPDX-License-Identifier: GPL-2.0-only
"""Tests that judge by the clock.

The machine is emulated, and its host may stand still at the wrong moment. Such a test may be run again, three times at
most, and pytest prints RERUN for each. What the test is there to find fails each time.
"""

import pytest

BY_THE_CLOCK = pytest.mark.flaky(reruns=3, reruns_delay=2)      # python3-pytest-rerunfailures
