# SPDX-License-Identifier: GPL-2.0-only
"""Writers on the host, each with one write under way at a time, at the node that is an engine's primary now."""

import random
import threading

from .ledger import Ledger, value

WRITERS = 3
PAUSE = 0.1             # seconds at most between two writes of a writer


class Writers:
    def __init__(self, connect):
        """`connect()` gives a connection to the primary: OSError or ValueError if there is none."""
        self.ledger = Ledger(WRITERS)
        self._connect, self._stop = connect, threading.Event()
        self._threads = [threading.Thread(target=self._live, args=(number,), name=f"writer {number}", daemon=True)
                         for number in range(WRITERS)]

    def start(self):
        for thread in self._threads:
            thread.start()

    def stop(self):
        """Returns when no write is under way. A writer that ended before is an error."""
        ended = [thread.name for thread in self._threads if not thread.is_alive()]
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if ended:
            raise ValueError(f"{', '.join(ended)} ended by an exception")

    def _live(self, writer):
        connection = None
        while not self._stop.wait(random.random() * PAUSE):
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
