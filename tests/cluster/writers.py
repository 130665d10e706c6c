# SPDX-License-Identifier: GPL-2.0-only
"""Writers on the host, each with one write under way at a time, at the node that is an engine's primary now."""

import random

from .crew import Crew
from .ledger import Ledger, value

WRITERS = 3
PAUSE = 0.1             # seconds at most between two writes of a writer


class Writers(Crew):
    def __init__(self, connect):
        """`connect()` gives a connection to the primary: OSError or ValueError if there is none."""
        super().__init__(WRITERS, "writer")
        self.ledger = Ledger(WRITERS)
        self._connect = connect

    def _live(self, writer):
        connection = None
        while not self._ends.wait(random.random() * PAUSE):
            try:
                connection = connection or self._connect()
            except (OSError, ValueError):
                continue
            number = self.ledger.sends(writer)
            try:
                connection.write(writer, number, value(writer, number))
                self.ledger.was_acknowledged(writer, number)
            except (OSError, ValueError):
                connection.close()
                connection = None
