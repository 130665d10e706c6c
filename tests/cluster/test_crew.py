# SPDX-License-Identifier: GPL-2.0-only
"""Writers write until they are stopped, and a writer that ended by itself is reported."""

import sys
import threading
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from cluster.writers import WRITERS, Writers        # noqa: E402


class Connection:
    """Writes come to nothing; `enough` is set after some of them."""

    def __init__(self):
        self.nr, self.enough = 0, threading.Event()

    def write(self, writer, number, text):
        del writer, number, text
        self.nr += 1
        if self.nr == 3 * WRITERS:
            self.enough.set()


def test_writers_end_when_they_are_stopped():
    connection = Connection()
    writers = Writers(lambda: connection)
    writers.start()
    assert connection.enough.wait(30)
    writers.stop()
    assert connection.nr == writers.ledger.acknowledged() and writers.ledger.unknown() == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_writer_that_ended_is_an_error():
    tried = threading.Semaphore(0)

    def connect():
        tried.release()
        raise KeyError

    writers = Writers(connect)
    writers.start()
    for _ in range(WRITERS):
        assert tried.acquire(timeout=30)
    for thread in threading.enumerate():
        if thread.name.startswith("writer "):
            thread.join(30)
    with pytest.raises(ValueError, match="writer 0, writer 1, writer 2 ended by an exception"):
        writers.stop()
