# SPDX-License-Identifier: GPL-2.0-only
"""The host's side of the databases and the plug: what fails a boot."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

import cuts                                 # noqa: E402

ACKNOWLEDGED = [f"ack client{number} 7" for number in range(cuts.CLIENTS)]


class Machine:
    """Says some lines, and then nothing until its power is cut."""

    def __init__(self, said):
        self.said, self.was_cut = said, False

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def lines(self):
        yield from self.said
        while not self.was_cut:
            yield ""

    def cut(self):
        self.was_cut = True

    def wait(self):
        return SimpleNamespace(reports=[], was_cut=self.was_cut, status=98, seconds=1.0)


@pytest.mark.parametrize("said, good", [([], True), (["client ('pg1',): psql: ERROR:  Input/output error"], False)])
def test_a_client_that_ended(monkeypatch, said, good):
    """It ends after all have begun, so what the others acknowledge is still there after the cut."""
    monkeypatch.setattr(cuts.random, "uniform", lambda *_: 0.01)
    acknowledged = {}
    assert cuts.one_boot(Machine(ACKNOWLEDGED + said), True, acknowledged) == good
    assert len(acknowledged) == cuts.CLIENTS
