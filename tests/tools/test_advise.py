# SPDX-License-Identifier: GPL-2.0-only
"""What forebay advise says about caches of each size: its model against a cache of that size, page by page."""

import json
import random
import subprocess
from collections import OrderedDict

import pytest

SIZES = 12


def found_by(advise_model, lines):
    done = subprocess.run([advise_model], input="\n".join(lines), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def cached(synced, size):
    """How many pages a cache of that size still had when they were synced again."""
    cache, again = OrderedDict(), 0
    for page in synced:
        again += page in cache
        cache.pop(page, None)
        cache[page] = True
        if len(cache) > size:
            cache.popitem(last=False)
    return again


@pytest.mark.parametrize("seed", range(8))
def test_caches_of_all_sizes(advise_model, seed):
    """A page at a time, so that the order of pages within a call doesn't matter."""
    draw = random.Random(seed)
    span = draw.choice((3, 40, 700))
    lines, synced = [], []
    for _ in range(3000):
        page = draw.randrange(2), min(draw.randrange(span), draw.randrange(span))
        lines += [f"w {page[0]} {page[1]} {page[1]}", f"s {page[0]} 1"]
        synced.append(page)
    found = found_by(advise_model, lines)
    assert (found["calls"], found["pages"], found["distinct"]) == (3000, 3000, len(set(synced)))
    assert found["again"][:SIZES] == [cached(synced, 1 << size) for size in range(SIZES)]


def test_calls(advise_model):
    """Pages that were written twice count once; a call without any, and a file that was never written, are told apart."""
    found = found_by(advise_model, ["w 7 0 9", "w 7 5 14", "s 7 0.5", "s 7 0.6", "s 8 0.7", "w 9 3 3", "s 9 2"])
    assert (found["calls"], found["empty"], found["files"]) == (4, 2, 2)
    assert (found["pages"], found["distinct"], found["largest"]) == (16, 16, 15)
    assert found["again"] == [0] * len(found["again"])
    assert found["full"][:6] == [0.5, 0.5, 0.5, 0.5, 2, -1]


def test_busiest_window(advise_model):
    """Of 30 seconds; a page counts once in each."""
    lines = [line for second, pages in ((1, 10), (2, 10), (29, 12), (31, 8), (61, 5))
             for line in (f"w 1 0 {pages - 1}", f"s 1 {second}")]
    assert found_by(advise_model, lines)["busiest"] == 12
