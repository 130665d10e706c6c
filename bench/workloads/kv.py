# SPDX-License-Identifier: GPL-2.0-only
"""Key-value stores, volatile and persistent (PMDK thesis 5.2, figures 11 to 14). Own engines stand in for pmemkv's: on memkind
and on libpmemobj, of the same code, so that the ratio of the two is the cost of persistence (kv.c).
"""

import os

from ..commands import run
from . import guest_only
from .memory import must_be_pmem
from .ranges import BIN

MIB = 1 << 20
DATA_MIB = 32
MOST, LEAST = 20000, 50         # keys; kv.c puts at least as many


def store(structure: str, size: int):
    """Both kinds, one after the other. Puts/s of the persistent one; times and rates of both."""
    def measure(folder: str, seconds: float) -> dict:
        guest_only.install("kv")
        keys = min(MOST, DATA_MIB * MIB // size)
        found = {}
        for kind in ("volatile", "persistent"):
            place = f"{folder}/{kind}"
            os.mkdir(place)
            said = run(str(BIN / "kv"), place, structure, kind, str(size), str(keys), str(seconds), timeout=900)
            puts, put, gets, get = parse(said, kind, keys, seconds, kind == "persistent" and must_be_pmem(place))
            found |= {f"{kind}_write_us": put / puts * 1e6, f"{kind}_read_us": get / gets * 1e6, f"{kind}_keys": puts,
                      f"{kind}_write_mibs": puts * size / MIB / put, f"{kind}_read_mibs": gets * size / MIB / get}
        for name in ("write", "read"):
            found[f"cost_of_{name}"] = found[f"persistent_{name}_us"] / found[f"volatile_{name}_us"]
        return found | {"value": 1e6 / found["persistent_write_us"]}
    return measure


def parse(said: str, kind: str, keys: int, seconds: float, pmem: bool) -> tuple[int, float, int, float]:
    """Puts, their seconds, gets, their seconds. If its time was over a system put fewer keys; kv.c found each of them."""
    how, *numbers = said.split()
    puts, put, gets, get = map(int, numbers)
    if (how == "HEAP") != (kind == "volatile") or pmem and how != "PMEM":
        raise ValueError(f"kv was to be {kind}{', in persistent memory' if pmem else ''}, and says {how}")
    early = puts < keys and put < seconds * 1e9
    if early or not min(LEAST, keys) <= puts <= keys or gets != 2 * puts or not put or not get:
        raise ValueError(f"kv was to put {keys} keys, and did {puts} puts and {gets} gets in {put} and {get} ns")
    return puts, put / 1e9, gets, get / 1e9
