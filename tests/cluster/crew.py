# SPDX-License-Identifier: GPL-2.0-only
"""Threads of the host that work at a cluster, each with one operation under way at a time, from start() to stop()."""

import threading


class Crew:
    """A subclass has _live(number), what one thread does until `_ends` is set."""

    def __init__(self, count, name):
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._live, args=(number,), name=f"{name} {number}", daemon=True)
                         for number in range(count)]

    def start(self):
        for thread in self._threads:
            thread.start()

    def stop(self):
        """Returns when no operation is under way. A thread that ended before is an error: what it did last is not known."""
        ended = [thread.name for thread in self._threads if not thread.is_alive()]
        self._ends.set()
        for thread in self._threads:
            thread.join()
        if ended:
            raise ValueError(f"{', '.join(ended)} ended by an exception")

    def _live(self, number):
        raise NotImplementedError
