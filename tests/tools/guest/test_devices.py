# SPDX-License-Identifier: GPL-2.0-only
"""The command with real devices and mounts. Runs in the test machine:

    vm/run --pmem 128M -- /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/tools/guest
"""

import os
import subprocess
import threading
from pathlib import Path

import pytest

from conftest import DONE, FAILED, LEFT, MIB
from machine import needs, sh

PMEM, NVME = Path("/dev/pmem0"), Path("/dev/nvme0n1")
LOWER, UPPER = Path("/tmp/lower"), Path("/tmp/upper")
SECTORS = 128 * MIB // 512      # of the SSD, used for the lower file system

pytestmark = needs(PMEM)


@pytest.fixture
def empty(forebay):
    """An empty cache on the device."""
    assert forebay("format", "--force", PMEM).status == DONE


@pytest.fixture(scope="module")
def lower():
    """An ext4 file system on the SSD, with a file of 4 MiB; on a mapped device, for test_drain_onto_a_broken_disk."""
    for folder in (LOWER, UPPER):
        folder.mkdir(exist_ok=True)
    sh("dmsetup", "create", "ssd", "--table", f"0 {SECTORS} linear {NVME} 0")
    sh("mkfs.ext4", "-q", "-F", "/dev/mapper/ssd")
    sh("mount", "/dev/mapper/ssd", LOWER)
    (LOWER / "old").write_bytes(bytes(4 * MIB))
    os.sync()
    sh("modprobe", "forebay")
    yield LOWER
    sh("umount", LOWER)
    sh("dmsetup", "remove", "ssd")


def mount():
    sh("mount", "-t", "forebay", "-o", f"cache={PMEM}", LOWER, UPPER)


@pytest.fixture
def mounted(empty, lower):
    """A mount of the two."""
    mount()
    yield UPPER
    sh("umount", UPPER)


def overwrite(pages):
    """Overwrites pages of a file and syncs each, so that the cache absorbs them."""
    file = os.open(UPPER / "old", os.O_RDWR)
    os.fsync(file)      # the first sync of a file goes to the lower file system
    for page in range(pages):
        os.pwrite(file, b"new!" * 1024, page * 4096)
        os.fdatasync(file)
    os.close(file)


def test_format_refuses_what_has_no_dax(forebay):
    for force in ([], ["--force"]):
        result = forebay("format", *force, NVME)
        assert result.status == FAILED
        assert "is not persistent memory: it has no DAX" in result.err


def test_format_refuses_a_file_system_and_a_mounted_one(forebay):
    sh("mkfs.ext4", "-q", "-F", PMEM)
    assert "holds a file system (ext4)" in forebay("format", PMEM).err
    UPPER.mkdir(exist_ok=True)
    sh("mount", PMEM, UPPER)
    try:
        result = forebay("format", "--force", PMEM)
        assert result.status == FAILED
        assert f"{PMEM} is mounted on {UPPER} (ext4)" in result.err
    finally:
        sh("umount", UPPER)
    result = forebay("format", "--force", PMEM)
    assert result.status == DONE and result.out.startswith(f"{PMEM}: empty cache")


def test_what_would_write_refuses_a_device_that_is_read_only(forebay, empty, make_store, patch, tables):
    """The kernel opens it for writing, and would refuse the mapping as an invalid argument."""
    sh(make_store, PMEM, "bind", "file", 0, 0, "live")
    patch(PMEM, tables(PMEM)[0] + 20, b"\xff")
    before = PMEM.read_bytes()
    sh("blockdev", "--setro", PMEM)
    try:
        for words in ["format", "--force"], ["writelog", "format", "--force"], ["check", "--repair", "--yes"]:
            result = forebay(*words, PMEM)
            assert result.status == FAILED and f"{PMEM} is read-only\n    `blockdev --setrw {PMEM}`" in result.err
        assert forebay("check", PMEM).status == LEFT and forebay("status", PMEM).status == DONE
    finally:
        sh("blockdev", "--setrw", PMEM)
    assert PMEM.read_bytes() == before


def test_format_refuses_a_disk_that_another_device_holds(forebay, empty):
    sh("dmsetup", "create", "holder", "--table", f"0 2048 linear {PMEM} 0")
    try:
        result = forebay("format", PMEM)
        assert result.status == FAILED and f"{PMEM} is used by /dev/mapper/holder (dm-" in result.err
    finally:
        sh("dmsetup", "remove", "holder")


def test_a_mounted_cache_is_left_alone(forebay, mounted):
    for verb in (["format", "--force"], ["check"]):
        result = forebay(*verb, PMEM)
        assert result.status == FAILED
        assert f"{PMEM} is the cache of {mounted}, which is mounted" in result.err
    assert forebay("check", "--force", PMEM).status == DONE


def test_status_of_a_mount(forebay, mounted):
    overwrite(5)
    shown, = forebay("status", "--json").json
    assert (shown["device"], shown["mountpoints"], shown["lower"]) == (str(PMEM), [str(mounted)], str(LOWER))
    assert shown["pages_out_of_sync"] == 5 and shown["syncs_absorbed"] >= 5
    for name in (PMEM, mounted):
        again, = forebay("status", "--json", name).json
        assert again["cache_uuid"] == shown["cache_uuid"] and again["mounted"]
    sh("mount", "--bind", mounted, "/mnt")
    both, = forebay("status", "--json").json
    sh("umount", "/mnt")
    assert both["mountpoints"] == [str(mounted), "/mnt"]


def test_drain(forebay, mounted):
    overwrite(300)
    result = forebay("drain", mounted)
    assert result.status == DONE
    assert "everything is on the lower file system (1.2 MiB written back now)" in result.out
    assert (LOWER / "old").read_bytes()[:300 * 4096] == b"new!" * (300 * 1024)
    shown, = forebay("status", "--json").json
    assert shown["pages_out_of_sync"] == 0 and shown["pages_written_back"] == 300
    result = forebay("drain", "--quiet", mounted)
    assert (result.status, result.out, result.err) == (DONE, "", "")


def test_drain_is_for_root(command, mounted):
    done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", command, "drain", mounted],
                          capture_output=True, text=True)
    assert done.returncode == FAILED and "only root may drain" in done.stderr


def test_drain_needs_a_capability(command, mounted):
    done = subprocess.run(["setpriv", "--bounding-set=-sys_admin", command, "drain", mounted], capture_output=True, text=True)
    assert done.returncode == FAILED and "the capability CAP_SYS_ADMIN" in done.stderr


@pytest.mark.parametrize("words, said", [
    (("status", PMEM), "sysfs is not mounted"), (("format", "--force", PMEM), "sysfs is not mounted"),
    (("metrics",), "sysfs is not mounted"), (("top", "--callers", "--count", "1"), "there is no tracefs")])
def test_without_sysfs(command, empty, words, said):
    """Whether the device has DAX, and whether it is mounted, isn't known."""
    done = subprocess.run(["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys && exec "$0" "$@"', command, *words],
                          capture_output=True, text=True)
    assert done.returncode == FAILED and said in done.stderr and not done.stdout


def test_drain_while_others_write(forebay, mounted):
    done = threading.Event()

    def write():
        while not done.is_set():
            overwrite(100)
    writer = threading.Thread(target=write)
    writer.start()
    result = forebay("drain", mounted)
    done.set()
    writer.join()
    assert result.status == DONE, result.err


def test_unmounted_cache_holds_nothing(forebay, mounted):
    overwrite(10)
    sh("umount", mounted)
    try:
        shown, = forebay("status", "--json", PMEM).json
        assert not shown["mounted"] and shown["pages_free"] == shown["pages_total"] and not shown["files_used"]
        assert forebay("check", PMEM).status == DONE
    finally:
        mount()


def test_pages_without_a_file(forebay, mounted, make_store):
    sh("umount", mounted)
    sh(make_store, PMEM, *"file 0 0 live page 0 0 7 out-of-sync page 1 0 8 out-of-sync".split())
    assert "holds 2 pages (8 KiB) not yet written" in forebay("format", PMEM).err
    mount()
    result = forebay("drain", mounted)
    assert result.status == LEFT and not result.out
    assert "2 pages (8 KiB) can't be placed" in result.err and "--discard-unplaced" in result.err
    assert "2 pages (8 KiB) can't be placed" in forebay("status").out
    result = forebay("drain", "--discard-unplaced", mounted)
    assert result.status == DONE and "2 pages without a file discarded" in result.out
    shown, = forebay("status", "--json").json
    assert shown["pages_unplaced"] == 0 and shown["files_used"] == 0


def test_what_waits_for_its_mount(forebay, empty, lower, make_store):
    """status shows a cache that still holds pages, and says that its lower directory is older."""
    mount()
    sh("umount", UPPER)
    assert forebay("status").out == "No forebay file system is mounted.\n", "bound, but empty"
    assert f"{LOWER} is not on a forebay mount" in forebay("status", LOWER).err
    sh(make_store, PMEM, *"file 0 0 live page 0 0 7 out-of-sync page 1 0 8 out-of-sync".split())
    shown, = forebay("status", "--json").json
    assert (shown["device"], shown["mounted"], shown["pages_out_of_sync"]) == (str(PMEM), False, 2)
    assert "The lower file system lacks what is out-of-sync" in forebay("status").out
    result = forebay("status", LOWER)
    assert result.status == FAILED
    assert f"{LOWER} is older than what was made durable: its cache, {PMEM}, is not mounted and holds 8 KiB more" in result.err
    assert f"mount -t forebay -o cache=UUID={shown['cache_uuid']} {LOWER} MOUNTPOINT" in result.err
    other = LOWER / "other"
    other.mkdir()
    assert f"{other} is not on a forebay mount" in forebay("status", other).err
    mount()
    assert len(forebay("status", "--json").json) == 1 and "older" not in forebay("status", LOWER).err
    forebay("drain", "--discard-unplaced", UPPER)
    sh("umount", UPPER)
    other.rmdir()


def test_format_of_a_log_that_waits(forebay, empty, make_log):
    assert forebay("writelog", "format", "--force", PMEM).status == DONE
    sh(make_log, PMEM, *"bind 1000 disk17 open 0 write 8 8".split())
    result = forebay("format", PMEM)
    assert result.status == FAILED and "is a write log that holds 1 write (4 KiB) not yet on its origin" in result.err


def test_drain_onto_a_broken_disk(forebay, mounted):
    """The last test: ext4 doesn't recover from this."""
    overwrite(50)
    sh("dmsetup", "suspend", "--nolockfs", "ssd")
    sh("dmsetup", "load", "ssd", "--table", f"0 {SECTORS} error")
    sh("dmsetup", "resume", "ssd")
    result = forebay("drain", mounted)
    assert result.status == LEFT and not result.out
    assert "not everything could be written back: Input/output error" in result.err
    assert "200 KiB left in the cache; nothing is lost" in result.err
    assert "/sys/fs/forebay/pmem0: writeback_errors, last_error" in result.err
    assert "Writing back fails: Input/output error" in forebay("status").out
    sh("umount", mounted)
    shown, = forebay("status", "--json", PMEM).json
    assert shown["pages_out_of_sync"] == 50
    assert "holds 50 pages (200 KiB) not yet written" in forebay("format", PMEM).err
    sh("mount", "-t", "tmpfs", "none", mounted)     # for the fixture to unmount
