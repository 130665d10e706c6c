# SPDX-License-Identifier: GPL-2.0-only
"""Waiting for what nodes do on a busy host."""

import time

LIMIT = 300             # seconds for a start, an election or a resync; each takes some 20 on an idle host


class Stuck(Exception):
    """The cluster didn't come back in the time it has."""


def wait_until(condition, what, nodes, logs="/run/*.log"):
    """Asks once a second. What the condition gives; Stuck, with the last lines of the nodes' logs, if that is never true."""
    until = time.monotonic() + LIMIT
    while not (found := condition()):
        if time.monotonic() > until:
            said = "\n".join(f"{node.name}: {node.status(f'tail -n 3 {logs}')[1]}" for node in nodes if node.is_on())
            raise Stuck(f"waited {LIMIT} s for {what}; last words:\n{said}")
        time.sleep(1)
    return found


def works(call):
    """What `call()` gives; None if nothing answers."""
    try:
        return call()
    except (OSError, ValueError):
        return None
