# SPDX-License-Identifier: GPL-2.0-only
"""tests/emu/guest.py: a campaign in which nothing was written is no success."""

import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import pytest

EMU = Path(__file__).resolve().parents[1] / "emu"


class Subject:
    """One whose writes end as told. Nothing is ever lost."""

    NAME, BLOCKS = "test", 6

    def __init__(self, write):
        self.write = write

    def cut(self, seed):
        time.sleep(0.05)

    def read(self):
        return []

    open_copy = close_copy = end = lambda self: None


def works(_block, _data):
    time.sleep(0.001)


def hangs(_block, _data):
    time.sleep(3600)


def fails(_block, _data):
    raise OSError


@pytest.mark.parametrize("write, status", [(works, 0), (hangs, 3), (fails, 3)])
def test_writers(monkeypatch, write, status):
    monkeypatch.syspath_prepend(str(EMU))
    subjects = SimpleNamespace(FileSystem=Subject, WriteLog=Subject)
    monkeypatch.setitem(sys.modules, "subjects", subjects)
    spec = spec_from_file_location("emu_guest", EMU / "guest.py")
    guest = module_from_spec(spec)
    spec.loader.exec_module(guest)
    monkeypatch.setattr(guest, "NICE", 0)
    monkeypatch.setattr(guest, "PATIENCE", 120 if write is works else 3)

    class Given(Subject):
        def __init__(self):
            super().__init__(write)

    monkeypatch.setattr(subjects, "FileSystem", Given)
    assert guest.main("forebay", "20", "1") == status
