# SPDX-License-Identifier: GPL-2.0-only
"""Runs names_agree/: two processes change, look at and sync one tree of a mount with a name log, which must be that of
their model: then, after a remount, and after power cuts while they work. On emulated devices, a cut is a copy
(names_pair.py). FOREBAY_AGREE is the number of seconds before the cuts (60), FOREBAY_CUTS how many these are (6)."""

import json
import mmap
import os
import random
import struct
import subprocess
import time
from pathlib import Path

import pytest
from conftest import clean_up
from names_pair import NamesPair, XfsPair, settle
from stack import LOWER, MOUNT, run
from test_cuts import LEFT, LEFT_LOWER

SECONDS = int(os.environ.get("FOREBAY_AGREE", "60"))
CUTS = int(os.environ.get("FOREBAY_CUTS", "6"))
AGREE = Path(__file__).resolve().parents[2] / "build/tests/names_agree"
MODELS = Path("/mnt/model")
HEAD = struct.Struct("<QI")         # of the model: tickets, stop
DURING = 1.5                        # s: the latest cut after the processes began


@pytest.fixture(name="pair", params=[NamesPair, XfsPair], ids=["ext4", "xfs"])
def pair_fixture(request):
    """A fresh pair of file systems, and memory for a model."""
    clean_up()
    run(f"modprobe forebay-emu; modprobe forebay; mkdir -p {MODELS}; mount -t tmpfs none {MODELS}")
    yield request.param()
    for folder in (LEFT, LEFT_LOWER, MODELS):
        run(f"umount {folder}", False)
    clean_up()
    for device in json.loads(run("forebay emu list --json")):
        run(f"forebay emu remove {device['device']}")


def agree(what, folder, *arguments):
    """names_agree, which must find nothing wrong."""
    done = subprocess.run([AGREE, what, folder, MODELS / "model", *map(str, arguments)], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(what, done.stdout.strip())
    assert done.returncode == 0, done.stdout


def cut_at_work(pair, seed):
    """Cuts while both processes work, and ends them. Returns the tickets given before the cut began and before its end."""
    settle()
    with open(MODELS / "model", "r+b") as file, mmap.mmap(file.fileno(), mmap.PAGESIZE) as head:
        with subprocess.Popen([AGREE, "run", MOUNT, MODELS / "model", "60", str(seed)], stdout=subprocess.DEVNULL) as players:
            begin = HEAD.unpack_from(head)[0]
            while HEAD.unpack_from(head)[0] < begin + 10 and players.poll() is None:
                time.sleep(0.01)
            time.sleep(random.Random(seed).uniform(0, DURING))
            before = HEAD.unpack_from(head)[0]
            pair.cut(seed % 1000)
            after = HEAD.unpack_from(head)[0]
            struct.pack_into("<I", head, 8, 1)
        assert players.returncode == 0
    return before, after


def test_names_agree(pair):
    """Half of the time over each file system."""
    seed = int(os.environ.get("FOREBAY_SEED") or random.SystemRandom().randrange(1 << 30))
    print(f"seed {seed}")
    agree("new", MOUNT)
    agree("run", MOUNT, SECONDS // 2, seed)
    agree("check", MOUNT)
    run(f"umount {MOUNT}")
    agree("check", LOWER)
    run(f"mount -t forebay -o cache={pair.cache},allow_volatile_cache {LOWER} {MOUNT}")
    agree("check", MOUNT)
    replayed = 0
    for number in range(1, CUTS + 1):
        before, after = cut_at_work(pair, seed + 100 * number)
        agree("check", MOUNT)
        pair.mount(pair.storage_left, pair.cache_left, LEFT_LOWER, LEFT)
        replayed += pair.value("names_replayed")
        agree("cut", LEFT, before, after)
        run(f"umount {LEFT} && umount {LEFT_LOWER}")
    counters = Path("/sys/fs/forebay") / Path(pair.cache).name
    print(f"{replayed} records replayed;", *(f"{name} {(counters / name).read_text().strip()}" for name in (
        "names_recorded", "names_barriers", "names_switched_off", "syncs_absorbed", "syncs_lower")))
    assert replayed, "storage had everything: the cuts show nothing"
