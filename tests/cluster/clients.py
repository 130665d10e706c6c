# SPDX-License-Identifier: GPL-2.0-only
"""Clients on the host, each with one operation under way at a time, that write registers of the cluster and read them.

A client stays with a member until an operation fails, then goes to another. Three in ten operations are a put to a key of its own,
written once: a later write can't hide its loss. The others go to registers that all clients of a round share.
"""

import random
import time

from .crew import Crew
from .etcd import Connection
from .history import History, Operation

CLIENTS, SHARED = 6, 6
PAUSE = 0.3             # seconds at most between two operations of a client


class Clients(Crew):
    def __init__(self, ports, seed):
        """`ports`: the host's, one for each member."""
        super().__init__(CLIENTS, "client")
        self.history = History()
        self.round = 0
        self._ports, self._seed = list(ports), seed

    def _live(self, number):
        chance = random.Random(f"{self._seed} {number}")
        connection, written, seen = None, 0, {}
        while not self._ends.wait(chance.random() * PAUSE):
            try:
                connection = connection or Connection(chance.choice(self._ports))
            except (OSError, ValueError):
                continue
            written += 1
            operation = _choose(number, f"{number}.{written}", self.round, seen, chance)
            if self.history.carry_out(operation, connection.carry_out):
                seen[operation.key] = operation.value if operation.succeeded or operation.kind == "put" else operation.found
            else:
                connection.close()
                connection = None
        if connection:
            connection.close()


def _choose(number, value, turn, seen, chance):
    """An operation; every value is written once in the whole run."""
    key, dice = f"round{turn}/{chance.randrange(SHARED)}", chance.random()
    if dice < 0.3:
        return Operation(number, f"once/{value}", "put", value=value)
    if dice < 0.5:
        return Operation(number, key, "put", value=value)
    if dice < 0.75 and seen.get(key):
        return Operation(number, key, "cas", value=value, expected=seen[key])
    return Operation(number, key, "get")


def read_back(history, connection, number):
    """Reads each key that was ever written, by one read of all; OSError or ValueError without an answer."""
    call = time.monotonic_ns()
    found = connection.everything()
    end = time.monotonic_ns()
    history.add([Operation(number, key, "get", found=found.get(key, ""), call=call, return_=end) for key in history.keys()])
