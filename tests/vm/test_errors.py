# SPDX-License-Identifier: GPL-2.0-only
"""An error of the storage never loses the only copy, reaches the next fsync, and is tried again."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from conftest import clean_up
from libc import MAP_SHARED_VALIDATE, MAP_SYNC, Mapping
from stack import LOWER, MOUNT, PAGE, PMEM, SSD, SSD2, Stack, fails, run

SECTORS = 512 * 2048


@pytest.fixture(name="failing")
def failing_fixture(request):
    """forebay over a file system on a device that can be made to fail."""
    clean_up()
    run(f"dmsetup create ssd --table '0 {SECTORS} linear {SSD} 0'; dmsetup mknodes")
    stack = Stack(fs=getattr(request, "param", "ext2"), device="/dev/mapper/ssd", mib=256).make()
    yield stack
    os.chdir("/")
    table(fails_now=False)
    clean_up()


def table(fails_now):
    """Replaces the device's table: either all I/O fails, or none."""
    target = "error" if fails_now else f"linear {SSD} 0"
    run(f"dmsetup suspend --noflush --nolockfs ssd; dmsetup load ssd --table '0 {SECTORS} {target}'; dmsetup resume ssd")


def synced_pages(name="f", pages=32, filler=b"s"):
    """Makes a file that is all below, then has pages of it out-of-sync; returns the open descriptor."""
    fd = os.open(MOUNT / name, os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"o" * pages * PAGE, 0)
    os.fsync(fd)
    run(f"forebay drain {MOUNT}; sync")
    for page in range(pages):
        os.pwrite(fd, filler * PAGE, page * PAGE)
        os.fdatasync(fd)
    return fd


def test_errors_for_a_while(failing):
    """The device fails, then works again. No data are lost, and drain, status and fsync report the
    error."""
    fd = synced_pages()
    assert failing.value("pages_out_of_sync") == 32
    table(fails_now=True)
    assert "error" in failing.drain(check=False).lower()
    assert failing.value("writeback_errors") > 0
    assert failing.value("last_error") < 0
    assert failing.value("pages_out_of_sync") == 32
    assert "error" in run(f"forebay status {failing.cache}").lower()
    with pytest.raises(OSError):
        os.fsync(fd)
    assert os.pread(fd, 32 * PAGE, 0) == b"s" * 32 * PAGE
    os.pwrite(fd, b"t", 0)
    os.fdatasync(fd)
    table(fails_now=False)
    failing.drain()
    assert failing.value("last_error") == 0
    assert failing.value("pages_out_of_sync") == 0
    os.fsync(fd)
    os.close(fd)
    failing.umount()
    assert (LOWER / "f").read_bytes() == b"t" + b"s" * (32 * PAGE - 1)


def test_worker_tries_again(failing):
    """The worker repeats failed writeback by itself, without a sync or drain call."""
    total = failing.value("pages_total")
    fd = os.open(MOUNT / "big", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"o" * total * PAGE, 0)
    os.fsync(fd)
    run(f"forebay drain {MOUNT}; sync")
    table(fails_now=True)
    for start in range(0, total * 19 // 20, 32):
        for page in range(start, start + 32):
            os.pwrite(fd, b"w", page * PAGE)
        try:
            os.fdatasync(fd)
        except OSError:
            break
    deadline = time.time() + 20
    while not failing.value("writeback_errors") and time.time() < deadline:
        time.sleep(0.2)
    assert failing.value("writeback_errors") > 0
    before = failing.value("pages_written_back")
    table(fails_now=False)
    deadline = time.time() + 20
    while failing.value("pages_written_back") == before and time.time() < deadline:
        time.sleep(0.2)
    assert failing.value("pages_written_back") > before
    os.close(fd)


@pytest.mark.parametrize("failing", ["ext4", "ext2"], indirect=True)
def test_errors_for_ever(failing):
    """Unmount leaves in the cache what storage did not take. The next mount of the same directory brings
    the data back; a mount of another directory is refused."""
    fd = synced_pages(filler=b"k")
    os.close(fd)
    table(fails_now=True)
    run("dmesg -C")
    failing.umount()
    assert "not everything could be written back" in run("dmesg")
    run(f"umount {LOWER}")
    table(fails_now=False)
    run(f"fsck.{failing.fs} -fy {failing.device}", check=False)
    assert "128 KiB" in run(f"forebay status {PMEM}")

    run(f"mkdir -p /mnt/lower2; mkfs.ext4 -Fq {SSD2} 128M && mount {SSD2} /mnt/lower2")
    assert "holds data of another directory" in fails(f"mount -t forebay -o cache={PMEM} /mnt/lower2 {MOUNT}")
    run("umount /mnt/lower2")
    fails(f"forebay format {PMEM}")

    failing.mount_lower()
    failing.mount()
    assert (MOUNT / "f").read_bytes() == b"k" * 32 * PAGE
    failing.drain()
    failing.umount()
    assert (LOWER / "f").read_bytes() == b"k" * 32 * PAGE


def test_file_that_went_below(failing):
    """Pages whose file was removed from the lower file system are kept and shown. Only `drain
    --discard-unplaced` gives them up."""
    fd = synced_pages(filler=b"g")
    os.close(fd)
    table(fails_now=True)
    failing.umount()
    run(f"umount {LOWER}")
    table(fails_now=False)
    run(f"fsck.ext2 -fy {failing.device}", check=False)
    failing.mount_lower()
    os.unlink(LOWER / "f")
    os.sync()
    failing.mount()
    deadline = time.time() + 10
    while failing.value("pages_unplaced") != 32 and time.time() < deadline:
        time.sleep(0.1)
    assert failing.value("pages_unplaced") == 32
    assert failing.drain(check=False)
    assert failing.value("pages_unplaced") == 32
    fd = synced_pages("another")
    os.close(fd)
    run(f"forebay drain --discard-unplaced {MOUNT}")
    assert failing.value("pages_unplaced") == 0
    failing.umount()
    assert (LOWER / "another").read_bytes() == b"s" * 32 * PAGE


@pytest.mark.parametrize("stack", [{"fs": "ext4"}, {"fs": "xfs"}, {"fs": "ext4", "names": "4M"}], indirect=True,
                         ids=["ext4", "xfs", "names"])
def test_made_read_only_by_force(stack):
    """An emergency remount makes the file system below read-only under its writers. ext4's fsync then says that all is well,
    and writes nothing. Pages stay in PMem, and the next mount has them."""
    fd = synced_pages(filler=b"k")
    before = stack.value("pages_out_of_sync")
    assert before >= 32
    run("dmesg -C")
    Path("/proc/sysrq-trigger").write_text("u", encoding="ascii")
    deadline = time.time() + 20
    while "Emergency Remount complete" not in run("dmesg") and time.time() < deadline:
        time.sleep(0.2)
    assert f" {LOWER} {stack.fs} ro" in Path("/proc/mounts").read_text(encoding="utf-8")
    os.pwrite(fd, b"K" * PAGE, PAGE)
    os.fdatasync(fd)
    os.close(fd)
    stack.drain(check=False)
    stack.umount()
    run(f"umount {LOWER}")
    stack.mount_lower()
    stack.mount()
    assert (MOUNT / "f").read_bytes() == b"k" * PAGE + b"K" * PAGE + b"k" * 30 * PAGE
    stack.umount()
    assert (LOWER / "f").read_bytes() == b"k" * PAGE + b"K" * PAGE + b"k" * 30 * PAGE


def unbind(device):
    """Begins to take a device from its driver; returns the process, and what binds it again."""
    driver = os.path.realpath(device / "driver")
    name = os.path.basename(os.path.realpath(device))
    # pylint: disable-next=consider-using-with
    return subprocess.Popen(["sh", "-c", f"echo {name} >{driver}/unbind"]), f"echo {name} >{driver}/bind"


def test_cache_taken_from_its_driver(stack):
    """PMem can't go away under a mount: the unbind waits for the unmount. Until then all goes on, and nothing is lost."""
    fd = synced_pages(filler=b"k")
    mapping = Mapping(fd, 32 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC)
    mapping.write(0, b"before")
    run("dmesg -C")
    unbinding, bind = unbind(Path("/sys/block/pmem0/device"))
    time.sleep(3)
    assert unbinding.poll() is None
    assert "pmem0: its driver is being unbound" in run("dmesg")
    mapping.write(PAGE, b"stored")
    os.pwrite(fd, b"written", 2 * PAGE)
    os.fdatasync(fd)
    assert mapping.read(2 * PAGE, 7) == b"written" and os.pread(fd, 6, PAGE) == b"stored"
    mapping.close()
    os.close(fd)
    run("sync")
    stack.umount()
    assert unbinding.wait(60) == 0
    data = (LOWER / "f").read_bytes()
    assert data == b"".join(text.ljust(PAGE, b"k") for text in (b"before", b"stored", b"written")) + b"k" * 29 * PAGE
    run(bind)
    deadline = time.time() + 20
    while not os.path.exists(PMEM) and time.time() < deadline:
        time.sleep(0.2)
    stack.mount()
    assert (MOUNT / "f").read_bytes() == data


@pytest.mark.parametrize("stack", [{"fs": "ext4"}, {"fs": "xfs"}, {"fs": "ext4", "names": "4M"}], indirect=True,
                         ids=["ext4", "xfs", "names"])
def test_storage_unplugged(stack):
    """The SSD goes away for good, and comes back after the unmount. All that was acknowledged is there again."""
    fd = synced_pages(filler=b"k")
    mapping = Mapping(fd, 32 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC)
    controller = Path(os.path.realpath(f"/sys/block/{os.path.basename(SSD)}/device/device"))
    (controller / "remove").write_text("1", encoding="ascii")
    assert not os.path.exists(SSD)
    mapping.write(PAGE, b"stored")
    assert os.pwrite(fd, b"written", 2 * PAGE) == 7
    assert os.pread(fd, 7, 2 * PAGE) == b"written"
    mapping.close()
    os.close(fd)
    assert "rror" in stack.drain(check=False)
    run("dmesg -C")
    stack.umount()
    assert "not everything could be written back" in run("dmesg")
    run(f"umount {LOWER}")
    Path("/sys/bus/pci/rescan").write_text("1", encoding="ascii")
    deadline = time.time() + 20
    while not os.path.exists(SSD) and time.time() < deadline:
        time.sleep(0.2)
    stack.mount_lower()
    stack.mount()
    data = b"k" * PAGE + b"stored".ljust(PAGE, b"k") + b"written".ljust(PAGE, b"k") + b"k" * 29 * PAGE
    assert (MOUNT / "f").read_bytes() == data
    stack.umount()
    assert (LOWER / "f").read_bytes() == data
