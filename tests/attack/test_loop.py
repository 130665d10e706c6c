# SPDX-License-Identifier: GPL-2.0-only
"""A file system in a file on forebay, by way of a loop device: its blocks are written, flushed, and given back as holes."""

import os
import random

import pytest
from conftest import clean_up
from libc import syncfs
from stack import LOWER, MOUNT, PAGE, Stack, close_files, drop_caches, run
from test_cuts import LEFT, LEFT_LOWER, Pair

INNER, INNER_LEFT = "/mnt/inner", "/mnt/inner-left"
# What is made in the file, and the check that its log is good for.
KINDS = {"ext4": ("mkfs.ext4 -q -b 4096", "e2fsck -fp {device}; [ $? -lt 2 ]"),
         "no-journal": ("mkfs.ext4 -q -b 1024 -O ^has_journal", "true")}


def attach(image, direct="off"):
    """Makes a loop device of a file; returns its path."""
    return run(f"losetup -f --show --direct-io={direct} {image}").strip()


def detach(device):
    """Takes the device away, which may be a moment later."""
    run(f"losetup -d {device}; udevadm settle 2>/dev/null; while losetup {device} 2>/dev/null; do sleep 0.1; done")


@pytest.fixture(autouse=True, name="loops")
def loops_fixture():
    """The module; no device is left."""
    run(f"modprobe loop; mkdir -p {INNER} {INNER_LEFT}")
    yield
    close_files("/mnt/")
    run(f"umount {INNER} {INNER_LEFT}; losetup -D", False)
    clean_up()


class LargePair(Pair):
    """With room for an image."""
    mib, cache_mib = 160, 16


@pytest.fixture(name="pair")
def pair_fixture():
    """A fresh pair of file systems on emulated devices."""
    clean_up()
    run("modprobe forebay-emu; modprobe forebay")
    pair = LargePair()
    yield pair
    close_files("/mnt/")
    run(f"umount {INNER}; umount {INNER_LEFT}; losetup -D; umount {LEFT}; umount {LEFT_LOWER}", False)
    clean_up()
    for device in (pair.storage, pair.storage_left, pair.cache, pair.cache_left):
        run(f"forebay emu remove {device}")


class Files:
    """Files in the inner file system, all of them synced, and what they must hold."""

    def __init__(self, seed):
        self.random, self.expected = random.Random(seed), {}

    def change(self):
        """Writes into a file and syncs it."""
        name = f"f{self.random.randrange(20)}"
        data, at = self.random.randbytes(self.random.choice((100, 5000, 40000))), self.random.choice((0, 100, PAGE, 30000))
        fd = os.open(f"{INNER}/{name}", os.O_RDWR | os.O_CREAT)
        os.pwrite(fd, data, at)
        os.fsync(fd)
        os.close(fd)
        old = self.expected.get(name, b"").ljust(at, b"\0")
        self.expected[name] = old[:at] + data + old[at + len(data):]

    def remove_some(self):
        """Deletes files, and gives their blocks back."""
        for name in self.random.sample(sorted(self.expected), 3):
            os.unlink(f"{INNER}/{name}")
            del self.expected[name]
        self.sync()
        run(f"fstrim {INNER}")

    def work(self, turn):
        """Changes some, and removes some in every other turn."""
        for _ in range(12):
            self.change()
        if turn % 2:
            self.remove_some()

    @staticmethod
    def sync():
        """All of the inner file system."""
        fd = os.open(INNER, os.O_RDONLY)
        syncfs(fd)
        os.close(fd)

    def check(self, folder):
        """They are there."""
        for name, data in self.expected.items():
            with open(f"{folder}/{name}", "rb") as file:
                assert file.read() == data, name


@pytest.mark.slow
@pytest.mark.parametrize("direct", ["off", "on"])
@pytest.mark.parametrize("kind", KINDS)
def test_cuts(pair, kind, direct):
    """What was synced in the inner file system is there after a cut of all power."""
    make, check = KINDS[kind]
    with open(MOUNT / "image", "wb") as image:
        image.truncate(64 << 20)
        os.fsync(image.fileno())
    device, files = attach(MOUNT / "image", direct), Files(5)
    run(f"{make} {device}; mount -o discard {device} {INNER}")
    for turn in range(6):
        files.work(turn)
        if turn == 3:
            run(f"forebay drain {MOUNT}")
        files.sync()
        for seed in range(2):
            pair.cut(seed)
            pair.mount(pair.storage_left, pair.cache_left, LEFT_LOWER, LEFT)
            left = attach(LEFT / "image")
            run(f"{check.format(device=left)}; mount {left} {INNER_LEFT}")
            files.check(INNER_LEFT)
            run(f"umount {INNER_LEFT}")
            detach(left)
            run(f"umount {LEFT} && umount {LEFT_LOWER}")
    run(f"umount {INNER}")
    detach(device)


@pytest.mark.parametrize("fs", ["ext4", "xfs"])
def test_image_is_below(fs):
    """After an unmount the image on the lower file system is whole."""
    clean_up()
    stack, files = Stack(fs=fs).make(), Files(6)
    with open(MOUNT / "image", "wb") as image:
        image.truncate(128 << 20)
    device = attach(MOUNT / "image")
    run(f"mkfs.ext4 -q {device}; mount -o discard {device} {INNER}")
    for turn in range(4):
        files.work(turn)
    assert stack.value("pages_absorbed")
    run(f"umount {INNER}")
    detach(device)
    stack.umount()
    drop_caches()
    device = attach(LOWER / "image")
    run(f"e2fsck -fn {device} && mount {device} {INNER}")
    files.check(INNER)
    run(f"umount {INNER}")
    detach(device)
    stack.destroy()
