# SPDX-License-Identifier: GPL-2.0-only
"""The picture of an experiment's results: lines where curves.py knows the experiment, else a chart of bars."""

from pathlib import Path

from . import chart, curves


def draw(results: dict, path: Path) -> None:
    (curves if curves.fits(results) else chart).draw(results, path)
