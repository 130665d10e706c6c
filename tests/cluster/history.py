# SPDX-License-Identifier: GPL-2.0-only
"""What clients asked of the cluster and what they were answered, with the times of one clock, for tests/cluster/linear.

The outcome of an operation is unknown if no answer came, or an error after the operation was sent. Such an operation stays in the
history without a time of return: it may take effect at any later time, or never. An operation that was never sent isn't in the history.
"""

import json
import threading
import time
from dataclasses import asdict, dataclass


@dataclass
class Operation:
    client: int
    key: str
    kind: str                   # put, cas or get
    value: str = ""             # that put and cas write
    expected: str = ""          # by cas
    succeeded: bool = False     # cas
    found: str = ""             # by get, and by a cas that didn't succeed; "" is an absent key
    call: int = 0               # nanoseconds
    return_: int | None = None  # None: the outcome is unknown

    def as_json(self):
        fields = asdict(self)
        fields["return"] = fields.pop("return_")
        return json.dumps(fields)


class History:
    """Filled by several threads."""

    def __init__(self):
        self._lock = threading.Lock()
        self._operations = []
        self.acknowledged = self.unknown = 0

    def carry_out(self, operation, call):
        """`call(operation)` asks and fills in what was answered; OSError or ValueError: the outcome is unknown. True if known."""
        operation.call = time.monotonic_ns()
        try:
            call(operation)
            operation.return_ = time.monotonic_ns()
        except (OSError, ValueError):
            pass
        known = operation.return_ is not None
        with self._lock:
            # A read without an answer says nothing.
            if known or operation.kind != "get":
                self._operations.append(operation)
            self.acknowledged += known
            self.unknown += not known
        return known

    def add(self, operations):
        with self._lock:
            self._operations.extend(operations)

    def keys(self):
        with self._lock:
            return {operation.key for operation in self._operations}

    def lines(self):
        with self._lock:
            return [operation.as_json() for operation in self._operations]
