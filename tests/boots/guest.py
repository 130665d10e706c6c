# SPDX-License-Identifier: GPL-2.0-only
"""The guest's side of the tests that take two boots: guest.py PART, a function of this file.

A first part says "cut" on standard output when the power may go, and waits for that; or it says "off" and switches the
machine off. A second part, in the next boot with the same devices, checks what was left; a failed assertion makes the command
fail.
"""

import ctypes
import os
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent.parent / "vm")]

from bench.workloads.dax import ENGINE      # noqa: E402
from libc import checked    # noqa: E402
from mapped import noise    # noqa: E402
from stack import LOWER, MOUNT, PAGE, PMEM, SSD, Stack, run     # noqa: E402
from transit import Transit     # noqa: E402

MIB = 512       # of the lower file system


def await_cut():
    """Tells the host that the power may go, and waits for the cut: never returns."""
    print("cut", flush=True)
    time.sleep(600)


def stack_on_dm():
    """A fresh forebay over ext4 on a device that can be held up. With commit=600, ext4 writes its
    journal only when a sync call asks for that."""
    run(f"dmsetup create ssd --table '0 {MIB * 2048} linear {SSD} 0'; dmsetup mknodes")
    return Stack(mib=MIB, device="/dev/mapper/ssd", lower_options="lazytime,commit=600").make()


def hold_up_ssd():
    """Holds up the SSD: later writes don't reach it and don't fail. A task that waits for such a write
    waits for ever."""
    run("dmsetup suspend --noflush --nolockfs ssd")


def write_synced(fd, letter, pages, first=0):
    """Writes and syncs pages; they are in PMem when this function returns."""
    for start in range(first, first + pages, 32):
        for page in range(start, min(start + 32, first + pages)):
            os.pwrite(fd, (letter + b"%08d" % page).ljust(PAGE), page * PAGE)
        os.fdatasync(fd)


def older_below(name, pages):
    """An open file of which the SSD has an older state, in every page."""
    fd = os.open(MOUNT / name, os.O_RDWR | os.O_CREAT)
    for page in range(pages):
        os.pwrite(fd, b"old".ljust(PAGE), page * PAGE)
    os.fsync(fd)
    return fd


def has(path, letter, pages):
    """Tells whether a file has what write_synced() wrote."""
    with open(path, "rb") as file:
        return [file.read(PAGE)[:9] for _ in range(pages)] == [letter + b"%08d" % page for page in range(pages)]


def unplaced(stack, pages):
    """Waits until the worker has tried all files."""
    deadline = time.monotonic() + 20
    while stack.value("pages_unplaced") != pages and time.monotonic() < deadline:
        time.sleep(0.05)
    assert stack.value("pages_unplaced") == pages, (stack.value("pages_unplaced"), pages)


# A cache full of pages that are not below.

def most_of(stack):
    """So many pages a single file gets while the SSD takes none: one in 16 is reserved (fs/page/alloc.c)."""
    total = stack.value("pages_total")
    return total - total // 16 - 64


def full_1():
    """All pages that a file can have in the cache are out-of-sync."""
    stack = stack_on_dm()
    pages = most_of(stack)
    fd = older_below("f", pages)
    write_synced(fd, b"f", 1)       # from now on whole pages go to PMem at once
    hold_up_ssd()
    write_synced(fd, b"f", pages)
    out_of_sync = stack.value("pages_out_of_sync")
    assert out_of_sync >= pages and stack.value("pages_clean") == 0
    print("out-of-sync", out_of_sync)
    await_cut()


def full_2():
    """Mounts, with only the mount call measured; then looks that all data are there."""
    run(f"modprobe forebay; modprobe ext4; mkdir -p {LOWER} {MOUNT}; mount {SSD} {LOWER}")
    libc = ctypes.CDLL(None, use_errno=True)
    begin = time.monotonic()
    checked(libc.mount(os.fsencode(LOWER), os.fsencode(MOUNT), b"forebay", ctypes.c_ulong(0), b"cache=" + os.fsencode(PMEM)))
    seconds = time.monotonic() - begin
    stack = Stack(mib=MIB)
    pages = most_of(stack)
    print(f"seconds {seconds:.3f}")
    print("recovered", stack.value("pages_recovered"))
    assert stack.value("pages_recovered") >= pages
    assert has(MOUNT / "f", b"f", pages)
    stack.umount()
    assert has(LOWER / "f", b"f", pages)
    stack.destroy()


# Deletions that were, and were not, durable.

def deleted_1():
    """Deletes two files. One deletion never becomes durable, though there is time for it."""
    stack = stack_on_dm()
    files = [older_below(name, 8) for name in ("back", "gone", "linked")]
    os.link(MOUNT / "linked", MOUNT / "other name")
    os.fsync(files[-1])     # the new name is paid for
    stack.drain()
    os.sync()
    for fd in files:
        write_synced(fd, b"m", 8)
        os.close(fd)
    assert stack.value("pages_out_of_sync") == 24
    os.unlink(MOUNT / "gone")
    os.unlink(MOUNT / "linked")
    os.sync()
    for name in ("back", "other name"):
        fd = os.open(MOUNT / name, os.O_RDWR)
        write_synced(fd, b"n", 8)       # in place, in PMem; below is what the sync wrote
        os.close(fd)
    hold_up_ssd()
    os.unlink(MOUNT / "back")
    time.sleep(3)       # the deletion would be made durable after one
    await_cut()


def deleted_2():
    """The file whose deletion was lost is back as it was synced, and not with the older contents that
    are below."""
    run(f"modprobe forebay; mkdir -p {LOWER} {MOUNT}")
    stack = Stack(mib=MIB)
    stack.mount_lower()
    assert not has(LOWER / "back", b"n", 8), "the SSD has what was acknowledged: this shows nothing"
    stack.mount()
    assert sorted(os.listdir(MOUNT)) == ["back", "lost+found", "other name"]
    assert has(MOUNT / "back", b"n", 8) and has(MOUNT / "other name", b"n", 8)
    unplaced(stack, 0)
    assert stack.value("files_used") == 2
    stack.umount()
    assert has(LOWER / "back", b"n", 8) and has(LOWER / "other name", b"n", 8)
    stack.destroy()


# Files that other programs than forebay change between two boots.

PAGES = {"removed": 3, "replaced": 5, "damaged": 7, "immutable": 9, "kept": 11}


def changed_1():
    """Synced pages of several files."""
    stack = stack_on_dm()
    files = {name: older_below(name, pages) for name, pages in PAGES.items()}
    stack.drain()
    os.sync()
    for name, fd in files.items():
        write_synced(fd, b"s", PAGES[name])
    assert stack.value("pages_out_of_sync") == sum(PAGES.values())
    await_cut()


def damage_inode(name):
    """Changes the inode without its checksum, so that ext4 refuses to read it."""
    said = run(f"debugfs -R 'imap /{name}' {SSD}")
    block, offset = re.search(r"located at block (\d+), offset (0x[0-9a-f]+)", said).groups()
    with open(SSD, "r+b", buffering=0) as file:
        file.seek(int(block) * PAGE + int(offset, 16) + 0x64)      # i_generation
        file.write(b"\x55\xaa\x55\xaa")
        os.fsync(file.fileno())


def refused_or_empty(path):
    """Whether no byte of a file can be read."""
    try:
        return not path.read_bytes()
    except OSError:
        return True


def changed_2():
    """The mount works. Pages that can't be placed are kept, shown and never mixed into another file.
    Only --discard-unplaced gives them up."""
    run(f"modprobe forebay; mkdir -p {LOWER} {MOUNT}")
    stack = Stack(mib=MIB)
    stack.mount_lower()
    os.unlink(LOWER / "removed")
    (LOWER / "new").write_bytes(b"mine" * PAGE)
    os.rename(LOWER / "new", LOWER / "replaced")
    run(f"chattr +i {LOWER}/immutable; umount {LOWER}")
    damage_inode("damaged")
    stack.mount_lower()
    stack.mount()
    lost = PAGES["removed"] + PAGES["replaced"] + PAGES["damaged"]
    unplaced(stack, lost)
    for name in ("kept", "immutable"):
        assert has(MOUNT / name, b"s", PAGES[name])
    assert (MOUNT / "replaced").read_bytes() == b"mine" * PAGE
    assert refused_or_empty(MOUNT / "damaged"), "older bytes than were acknowledged must not be served"
    assert "can't be placed" in run(f"forebay status {PMEM}")
    assert stack.status()[0]["pages_unplaced"] == lost
    assert subprocess.run(["forebay", "drain", "--quiet", MOUNT], check=False).returncode == 4
    assert stack.value("pages_out_of_sync") == PAGES["immutable"], "ext4 refuses to write an immutable file"
    stack.umount()
    assert "not everything could be written back" in run("dmesg")

    run(f"chattr -i {LOWER}/immutable")
    stack.mount()
    unplaced(stack, lost)
    assert has(MOUNT / "immutable", b"s", PAGES["immutable"])
    assert (MOUNT / "replaced").read_bytes() == b"mine" * PAGE
    run(f"forebay drain --discard-unplaced {MOUNT}")
    unplaced(stack, 0)
    stack.umount()
    assert has(LOWER / "immutable", b"s", PAGES["immutable"]) and has(LOWER / "kept", b"s", PAGES["kept"])
    run(f"umount {LOWER}; forebay check {PMEM}")


# What fio has written through its engine for mappings (bench/fio-dax), and never with a call.

def fio(*options):
    """One pass over a file of 4 MiB, each block with a checksum; fio's exit status."""
    return subprocess.run(["fio", "--name=job", "--size=4m", "--bs=4k", "--rw=randwrite", "--verify=crc32c", "--verify_state_save=0",
                           "--invalidate=0", *options], stdout=subprocess.DEVNULL, check=False).returncode


def fio_1():
    """A file is mapped with MAP_SYNC, flushed and fenced; another one is mapped without, and not synced."""
    stack_on_dm()
    for name in ("fenced", "volatile"):
        os.close(older_below(name, 1024))
    engine = f"--ioengine=external:{ENGINE}"
    assert fio(f"--filename={MOUNT}/volatile", engine, "--do_verify=0") == 0
    assert fio(f"--filename={MOUNT}/fenced", engine, "--dax=1", "--fsync=1", "--do_verify=0") == 0
    hold_up_ssd()
    await_cut()


def fio_2():
    """fio finds its checksums in the one, and not in the other."""
    run(f"modprobe forebay; mkdir -p {LOWER} {MOUNT}")
    stack = Stack(mib=MIB)
    stack.mount_lower()
    stack.mount()
    assert fio(f"--filename={MOUNT}/fenced", "--ioengine=psync", "--verify_only") == 0
    assert fio(f"--filename={MOUNT}/volatile", "--ioengine=psync", "--verify_only") != 0, "not synced, and there: this shows nothing"
    stack.umount()
    assert fio(f"--filename={LOWER}/fenced", "--ioengine=psync", "--verify_only") == 0
    stack.destroy()


def main():
    """Runs the part that the command line names."""
    subprocess.run(["dmesg", "-C"], check=True)
    globals()[sys.argv[1]]()
    print("done", flush=True)


# A cache of which the tables in DRAM are larger than 2 GiB.

def large():
    """Makes the namespace with --map=dev: struct pages that are on the device itself don't take the
    machine's memory."""
    run("ndctl create-namespace -f -e namespace0.0 -m fsdax --map=dev")
    stack = Stack(mib=MIB).make()
    print("pages", stack.value("pages_total"))
    fd = older_below("f", 64)
    write_synced(fd, b"n", 64)
    assert stack.value("pages_out_of_sync") >= 64
    os.close(fd)
    stack.umount()
    assert has(LOWER / "f", b"n", 64)
    stack.mount()
    assert stack.value("pages_free") == stack.value("pages_total")
    stack.destroy()


# Transit caches in a machine that is switched off.

POWER_OFF = 0x4321fedc      # of reboot(2)


def transit_1():
    """Writes to a cache that keeps blocks until a flush, and switches the machine off, without a flush and
    with the cache in use. Beside it is a cache over a device that doesn't answer."""
    kept, stuck = Transit(), Transit(below="/dev/mapper/silent")
    run(f"dmsetup create silent --table '0 {stuck.sectors} linear {SSD} {1 << 20}' && dmsetup mknodes")
    stuck.name = "stuck"
    for cache in (stuck, kept):
        cache.create(policy="lru", block_size=PAGE)
        os.open(cache.device, os.O_RDWR)
        cache.put(0, noise(1 << 20))
        assert cache.status()["used"] == 256, cache.status()
    run("dmsetup suspend --noflush --nolockfs silent")
    assert kept.read(0, 1 << 20, SSD) != noise(1 << 20), "this shows nothing"
    print("off", flush=True)
    time.sleep(1)
    ctypes.CDLL(None).reboot(POWER_OFF)


def transit_2():
    """The device has what was written."""
    assert Transit().read(0, 1 << 20, SSD) == noise(1 << 20)


if __name__ == "__main__":
    main()
