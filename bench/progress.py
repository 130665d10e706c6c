# SPDX-License-Identifier: GPL-2.0-only
"""Progress messages on standard error, with the seconds since the start."""

import sys
import time

BEGIN = time.monotonic()


def say(text: str) -> None:
    print(f"[{seconds():5.0f} s] {text}", file=sys.stderr, flush=True)


def seconds() -> float:
    return time.monotonic() - BEGIN
