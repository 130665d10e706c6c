# SPDX-License-Identifier: GPL-2.0-only
"""bench/__init__.py is the map of the folder: it names every file."""

import re
from pathlib import Path

import bench

FOLDER = Path(bench.__file__).parent


def test_the_map_names_every_file():
    named = set(re.findall(r"\w+", bench.__doc__))
    assert {path.stem for path in FOLDER.glob("*.py")} - {"__init__"} - named == set()
