# SPDX-License-Identifier: GPL-2.0-only
"""What the writers of an engine sent and what was acknowledged, and what an engine may answer after its failovers.

Writer W's write N is one transaction: it adds row (W, N), and sets W's counter to N. A write without an answer may be there or not.
"""

import hashlib
from dataclasses import dataclass, field


@dataclass
class Found:
    """What an engine has."""
    rows: dict = field(default_factory=dict)            # (writer, number): value
    counters: dict = field(default_factory=dict)        # writer: number


def value(writer, number):
    """Of a row; 33 to 800 bytes, so that rows lie at every offset of a page."""
    return hashlib.sha256(f"{writer}.{number}".encode()).hexdigest()[:32] * (1 + number % 25) + str(writer)


class Ledger:
    """Each writer changes its own entries alone."""

    def __init__(self, writers):
        self._sent = dict.fromkeys(range(writers), 0)
        self._acknowledged = {writer: set() for writer in range(writers)}

    def sends(self, writer):
        """The number of the writer's next write."""
        self._sent[writer] += 1
        return self._sent[writer]

    def was_acknowledged(self, writer, number):
        self._acknowledged[writer].add(number)

    def acknowledged(self):
        return sum(map(len, self._acknowledged.values()))

    def unknown(self):
        return sum(self._sent.values()) - self.acknowledged()

    def violations(self, found):
        """A line for each writer and kind; none if everything acknowledged is there, and nothing else than what was sent."""
        lines = []
        for writer, sent in self._sent.items():
            numbers = {number for owner, number in found.rows if owner == writer}
            bad = {
                "acknowledged rows are lost": self._acknowledged[writer] - numbers,
                "rows were never sent": {number for number in numbers if not 0 < number <= sent},
                "rows have another value": {number for number in numbers if found.rows[writer, number] != value(writer, number)}}
            lines += [f"writer {writer}: {len(those)} {what}, the first is {min(those)}" for what, those in bad.items() if those]
            if (counter := found.counters.get(writer, 0)) != max(numbers, default=0):
                lines.append(f"writer {writer}: the counter says {counter}, the last row is {max(numbers, default=0)}")
        return lines
