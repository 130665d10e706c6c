# SPDX-License-Identifier: GPL-2.0-only
"""Mounts: twice, on top of each other, read-only, frozen, mapped, over full and limited file systems."""

import errno
import fcntl
import os
import subprocess
import sys
import threading
import time

import pytest
from libc import (FIFREEZE, FITHAW, KEEP_SIZE, MAP_SHARED_VALIDATE, MAP_SYNC, PROT_READ, PUNCH_HOLE, Mapping, error_of,
                  fallocate)
from mapped import small_device
from other_user import NOBODY, python_as, run_as
from stack import LOWER, MOUNT, PAGE, PMEM, block_name, fails, run, small_cache


def synced(path, data, rewrite=b"R"):
    """A file of which a part is in PMem."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, data, 0)
    os.fsync(fd)
    os.pwrite(fd, rewrite, 0)
    os.fsync(fd)
    os.close(fd)


def test_mount_again_after_unmount(stack):
    """After an unmount the cache is still bound, but empty, and the module can be unloaded."""
    for turn in range(3):
        synced(MOUNT / "f", b"%d" % turn * PAGE)
        stack.remount()
        assert (MOUNT / "f").read_bytes() == b"R" + b"%d" % turn * (PAGE - 1)
    stack.umount()
    assert (LOWER / "f").read_bytes()[:2] == b"R2"
    run("rmmod forebay && modprobe forebay")
    run(f"forebay check {stack.cache}")
    stack.mount()


def test_bind_and_overmount(stack):
    os.mkdir("/mnt/other")
    try:
        synced(MOUNT / "f", b"x" * PAGE)
        run(f"mount --bind {MOUNT} /mnt/other")
        run(f"mount -t tmpfs none {LOWER}")
        synced("/mnt/other/f", b"y" * PAGE)
        assert (MOUNT / "f").read_bytes() == b"R" + b"y" * (PAGE - 1)
        run(f"umount {LOWER}; umount /mnt/other")
    finally:
        os.rmdir("/mnt/other")


def test_subdirectory(stack):
    """With a directory as the lower side, names beside that directory are out of reach."""
    stack.umount()
    (LOWER / "sub").mkdir()
    (LOWER / "beside").touch()
    run(f"mount -t forebay -o cache={stack.cache} {LOWER}/sub {MOUNT}")
    synced(MOUNT / "f", b"x" * PAGE)
    assert os.listdir(MOUNT) == ["f"]
    assert os.stat(MOUNT / "..").st_ino != os.stat(LOWER).st_ino
    stack.umount()
    assert (LOWER / "sub/f").read_bytes()[:2] == b"Rx"
    run(f"mount -t forebay -o cache={stack.cache} {LOWER}/sub {MOUNT}")


@pytest.mark.parametrize("stack", [{"fs": "btrfs"}], indirect=True, ids=["btrfs"])
def test_subvolume_in_the_tree(stack):
    """A subvolume's root has the same inode number as the mount's root. Only the device number shows
    that they are two directories."""
    stack.umount()
    run(f"btrfs subvolume create {LOWER}/sub && touch {LOWER}/sub/inside {LOWER}/beside")
    stack.mount()
    root, sub = os.stat(MOUNT), os.stat(MOUNT / "sub")
    assert root.st_ino == sub.st_ino and root.st_dev != sub.st_dev
    assert os.stat(MOUNT / "beside").st_dev == root.st_dev
    assert os.stat(MOUNT / "sub/inside").st_dev == sub.st_dev
    assert f"{MOUNT}/sub/inside\n" in run(f"find {MOUNT}")


@pytest.mark.parametrize("stack", [{"fs": "btrfs"}], indirect=True, ids=["btrfs"])
def test_read_only_subvolume(stack):
    """No file of a read-only snapshot in the tree can be written. btrfs looks at that when a file is opened, not when it is written."""
    stack.umount()
    run(f"btrfs subvolume create {LOWER}/sub")
    (LOWER / "sub/f").write_bytes(b"o" * 4 * PAGE)
    run(f"btrfs subvolume snapshot -r {LOWER}/sub {LOWER}/snap")
    stack.mount()
    for folder in (LOWER, MOUNT):
        path = folder / "snap/f"
        for flags in (os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_TRUNC):
            assert error_of(os.open, path, flags) == errno.EROFS, (folder, flags)
        assert not os.access(path, os.W_OK) and os.access(path, os.R_OK)
        for call in ((os.truncate, path, 1), (os.unlink, path), (os.utime, path), (os.mkdir, folder / "snap/d")):
            assert error_of(*call) == errno.EROFS, (folder, call)
    assert (MOUNT / "snap/f").read_bytes() == b"o" * 4 * PAGE
    synced(MOUNT / "sub/f", b"n" * 4 * PAGE)
    stack.umount()
    assert (LOWER / "snap/f").read_bytes() == b"o" * 4 * PAGE


def test_read_only(stack):
    synced(MOUNT / "f", b"x" * PAGE)
    run(f"mount -o remount,ro {MOUNT}")
    assert (MOUNT / "f").read_bytes()[:2] == b"Rx"
    with pytest.raises(OSError) as err:
        os.open(MOUNT / "f", os.O_RDWR)
    assert err.value.errno == errno.EROFS
    run(f"mount -o remount,rw {MOUNT}")
    synced(MOUNT / "f", b"z" * PAGE)


def test_read_only_below(stack):
    """The file system below is made read-only when it has no writer. A MAP_SYNC mapping still reads what isn't in PMem."""
    synced(MOUNT / "f", b"x" * 4 * PAGE)
    run(f"forebay drop {MOUNT}/f; mount -o remount,ro {LOWER}")
    code = (f"import os, sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\nfrom libc import *\n"
            f"m = Mapping(os.open({str(MOUNT / 'f')!r}, os.O_RDONLY), 4 * 4096, MAP_SHARED_VALIDATE | MAP_SYNC, PROT_READ)\n"
            f"assert m.read(0, 2) == b'Rx' and m.read(3 * 4096, 1) == b'x'")
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert error_of(os.open, MOUNT / "f", os.O_RDWR) == errno.EROFS
    fd = os.open(MOUNT / "f", os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    run(f"mount -o remount,rw {LOWER}")
    synced(MOUNT / "f", b"z" * PAGE)


def test_dirsync_is_refused(stack):
    """A promise that would not be kept: names are durable after a sync call. The file system below can make it."""
    fails(f"mount -o remount,dirsync {MOUNT}")
    stack.umount()
    assert "dirsync" in fails(f"mount -t forebay -o dirsync,cache={stack.cache} {LOWER} {MOUNT}")
    stack.mount()


def test_freeze(stack):
    """While the mount is frozen, all data are below and nothing changes. After the thaw the waiting
    tasks go on."""
    synced(MOUNT / "f", b"x" * 8 * PAGE)
    fd = os.open(MOUNT / "f", os.O_RDWR)
    mapping = Mapping(fd, 8 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC)
    mapping.write(PAGE, b"before")
    root = os.open(MOUNT, os.O_RDONLY)
    fcntl.ioctl(root, FIFREEZE, 0)
    done = []
    writer = threading.Thread(target=lambda: done.append(os.pwrite(fd, b"w", 2 * PAGE)))
    code = (f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\nfrom libc import *\n"
            f"m = Mapping(os.open({str(MOUNT / 'f')!r}, os.O_RDWR), 8 * 4096)\nm.write(4096, b'stored')")
    try:
        writer.start()
        storing = subprocess.Popen([sys.executable, "-c", code])  # pylint: disable=consider-using-with
        time.sleep(3)
        assert not done and storing.poll() is None
        assert stack.value("pages_out_of_sync") == 0
        assert (LOWER / "f").read_bytes()[PAGE:PAGE + 6] == b"before"
    finally:
        fcntl.ioctl(root, FITHAW, 0)
    writer.join(60)
    assert done == [1] and storing.wait(60) == 0
    assert os.pread(fd, 6, PAGE) == b"stored"
    mapping.close()
    os.close(root)
    os.close(fd)


def test_unmounted_while_frozen(stack):
    """The freeze stays, with the super block. It is mounted again, as on other file systems, and thawed."""
    synced(MOUNT / "f", b"x" * 8 * PAGE)
    run(f"fsfreeze -f {MOUNT} && umount {MOUNT}")
    assert (LOWER / "f").read_bytes()[:2] == b"Rx"
    other = LOWER / "other"
    other.mkdir()
    fails(f"mount -t forebay -o cache={stack.cache} {other} {MOUNT}")
    stack.mount()
    done = subprocess.Popen(["cp", "/etc/passwd", MOUNT / "new"])  # pylint: disable=consider-using-with
    time.sleep(2)
    assert done.poll() is None, "it is frozen"
    run(f"fsfreeze -u {MOUNT}")
    assert done.wait(60) == 0
    synced(MOUNT / "f", b"y" * 8 * PAGE)
    fails(f"mount -t forebay -o cache={stack.cache} {LOWER} {MOUNT}")
    stack.remount()
    assert (MOUNT / "f").read_bytes()[:2] == b"Ry"


def test_lower_frozen_and_thawed(stack):
    fd = os.open(MOUNT / "f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"x" * PAGE, 0)
    os.fsync(fd)
    run(f"fsfreeze -f {LOWER}")
    done = []
    writer = threading.Thread(target=lambda: done.append(os.pwrite(fd, b"w" * 3 * PAGE, 0)))
    writer.start()
    time.sleep(0.5)
    assert not done, "it waits for the thaw"
    run(f"fsfreeze -u {LOWER}")
    writer.join(60)
    assert done == [3 * PAGE]
    os.close(fd)


def test_overlay_above(stack):
    """overlayfs has its layers on forebay, as containers have: files are mapped, executed, and written from both sides."""
    for name in ("below", "upper", "work"):
        (MOUNT / name).mkdir()
    synced(MOUNT / "below/old", b"o" * 4 * PAGE)
    run(f"mkdir -p /mnt/overlay; mount -t overlay -o lowerdir={MOUNT}/below,upperdir={MOUNT}/upper,workdir={MOUNT}/work "
        "overlay /mnt/overlay")
    fd = os.open("/mnt/overlay/old", os.O_RDONLY)
    with Mapping(fd, 4 * PAGE, prot=PROT_READ) as mapping:
        assert mapping.read(0, 2) == b"Ro"
    os.close(fd)
    synced("/mnt/overlay/new", b"n" * 4 * PAGE)
    fd, below = os.open("/mnt/overlay/new", os.O_RDWR), os.open(MOUNT / "upper/new", os.O_RDWR)
    with Mapping(fd, 4 * PAGE) as mapping, Mapping(below, 4 * PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as direct:
        assert mapping.read(0, 2) == b"Rn"
        mapping.write(PAGE, b"above")
        assert direct.read(PAGE, 5) == b"above"
        direct.write(2 * PAGE, b"below")
        assert mapping.read(2 * PAGE, 5) == os.pread(fd, 5, 2 * PAGE) == b"below"
        mapping.sync()
        fallocate(fd, PUNCH_HOLE | KEEP_SIZE, PAGE, PAGE)
        assert mapping.read(PAGE, 5) == direct.read(PAGE, 5) == bytes(5)
        mapping.write(3 * PAGE, b"last")
    os.close(below)
    os.close(fd)
    run("cp /bin/true /mnt/overlay/program; sync /mnt/overlay/program; /mnt/overlay/program")
    run("umount /mnt/overlay; rmdir /mnt/overlay")
    stack.umount()
    assert (LOWER / "upper/new").read_bytes() == b"".join((b"R".ljust(PAGE, b"n"), bytes(PAGE), b"below".ljust(PAGE, b"n"),
                                                           b"last".ljust(PAGE, b"n")))


@pytest.mark.parametrize("stack", [{"mib": 64}], indirect=True)
def test_full_lower_file_system(stack):
    """The writer gets ENOSPC; data that were synced stay."""
    synced(MOUNT / "kept", b"k" * 16 * PAGE)
    fd = os.open(MOUNT / "filler", os.O_RDWR | os.O_CREAT)
    with pytest.raises(OSError) as err:
        while True:
            os.write(fd, b"f" * (1 << 20))
    assert err.value.errno == errno.ENOSPC
    with pytest.raises(OSError) as err:
        while True:
            os.write(fd, b"f" * 512)
            os.fdatasync(fd)
    assert err.value.errno == errno.ENOSPC
    kept = os.open(MOUNT / "kept", os.O_RDWR)
    for page in range(16):
        os.pwrite(kept, b"again", page * PAGE)
        os.fdatasync(kept)
    os.close(kept)
    stack.drain()
    os.close(fd)
    stack.umount()
    assert (LOWER / "kept").read_bytes() == (b"again" + b"k" * (PAGE - 5)).replace(b"", b"") * 16


@pytest.mark.parametrize("stack", [{"fs": "xfs", "lower_options": "uquota"}], indirect=True)
def test_quota(stack):
    """A user's limit below is a user's limit above."""
    os.chmod(MOUNT, 0o777)
    run(f"xfs_quota -x -c 'limit bhard=1m 65534' {LOWER}")
    code = f"import os\nf = os.open({str(MOUNT / 'f')!r}, os.O_RDWR | os.O_CREAT)\nfor i in range(40):\n os.write(f, bytes(65536)); os.fsync(f)"
    done = python_as(NOBODY, code, text=True, stderr=subprocess.PIPE)
    assert "Disk quota exceeded" in done.stderr
    assert 0 < os.stat(MOUNT / "f").st_size <= 1 << 20


@pytest.mark.slow       # for lockdep, after test_freeze: docs/decisions/locks.md
def test_quota_on_ext4(stack):
    """The writer gets EDQUOT, for volatile and for synced writes; acknowledged data stay."""
    stack.umount()
    run(f"umount {LOWER}; tune2fs -O quota -Q usrquota {stack.device}; mount -o usrquota {stack.device} {LOWER}")
    run(f"setquota -u 65534 0 1024 0 0 {LOWER}")
    stack.mount()
    os.chmod(MOUNT, 0o777)
    code = (f"import errno, os\nf = os.open({str(MOUNT / 'f')!r}, os.O_RDWR | os.O_CREAT)\ndone = 0\n"
            "try:\n for i in range(1000):\n  done += os.write(f, b'q' * 4096)\n  os.fdatasync(f)\n"
            "except OSError as err:\n assert err.errno == errno.EDQUOT, err\n print(done)\n"
            "os.pwrite(f, b'again', 0)\nos.fdatasync(f)")
    done = python_as(NOBODY, code, check=True, text=True, stdout=subprocess.PIPE)
    size = int(done.stdout)
    assert 0 < size <= 1 << 20
    stack.drain()
    stack.umount()
    assert (LOWER / "f").read_bytes() == b"again" + b"q" * (size - 5)


def test_mount_over_a_full_file_system(stack):
    """A mount needn't write anything below. Over a full file system, writes to allocated blocks are
    synced, and only writes that need more space are refused."""
    synced(MOUNT / "kept", b"k" * 4 * PAGE)
    stack.umount()
    run(f"head -c 1G /dev/zero > {LOWER}/filler", check=False)
    assert os.statvfs(LOWER).f_bavail * os.statvfs(LOWER).f_bsize < 1 << 16
    stack.mount()
    synced(MOUNT / "kept", b"n" * 4 * PAGE)
    assert stack.value("pages_absorbed") > 0
    fd = os.open(MOUNT / "kept", os.O_RDWR)
    with pytest.raises(OSError) as err:
        os.pwrite(fd, b"x" * (1 << 24), 4 * PAGE)
        os.fsync(fd)
        os.pwrite(fd, b"x" * (1 << 24), 1 << 24)
        os.fsync(fd)
    assert err.value.errno == errno.ENOSPC
    os.close(fd)
    stack.umount()
    assert (LOWER / "kept").read_bytes()[:4 * PAGE] == b"R" + b"n" * (4 * PAGE - 1)


def test_idmapped_mount(stack):
    """Owners are mapped above and plain below."""
    from libc import checked, syscall  # pylint: disable=import-outside-toplevel
    import ctypes  # pylint: disable=import-outside-toplevel
    libc = ctypes.CDLL(None, use_errno=True)
    (MOUNT / "f").write_bytes(b"x")
    os.chown(MOUNT / "f", 1000, 1000)
    os.chmod(MOUNT, 0o777)
    ready, go = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        libc.unshare(0x10000000)
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
            file.write("0 10000 10000")
    userns = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
    tree = syscall(428, -100, ctypes.c_char_p(os.fsencode(MOUNT)), 1 | os.O_CLOEXEC)
    attr = (ctypes.c_uint64 * 4)(0x100000, 0, 0, userns)
    syscall(442, tree, ctypes.c_char_p(b""), 0x1000, ctypes.byref(attr), 32)
    os.makedirs("/mnt/mapped", exist_ok=True)
    syscall(429, tree, ctypes.c_char_p(b""), -100, ctypes.c_char_p(b"/mnt/mapped"), 4)
    try:
        assert os.stat("/mnt/mapped/f").st_uid == 11000
        run_as(12000, "touch", "/mnt/mapped/made", check=True)
        assert os.stat(LOWER / "made").st_uid == 2000 and os.stat("/mnt/mapped/made").st_uid == 12000
        synced("/mnt/mapped/f", b"through")
        assert (MOUNT / "f").read_bytes() == b"Rhrough"
    finally:
        os.write(go[1], b"x")
        os.waitpid(pid, 0)
        for fd in (userns, tree, *ready, *go):
            os.close(fd)
        run("umount /mnt/mapped")
    checked(0)


@pytest.mark.parametrize("stack", [{"fs": "ext2"}], indirect=True)
def test_ext2_below(stack):
    synced(MOUNT / "f", b"x" * PAGE)
    stack.remount()
    assert (MOUNT / "f").read_bytes()[:2] == b"Rx"


def test_one_memory_under_two_names(stack):
    """The memory of a cache in use can't be opened through a second device, neither as a cache nor as a
    log."""
    stack.umount()
    stack.cache = small_cache(8)
    run(f"forebay format --force {stack.cache}")
    stack.mount()
    synced(MOUNT / "f", b"x" * PAGE)
    alias, origin = small_device("alias", 8, PMEM), small_device("origin", 8, PMEM, 16)
    run(f"mkfs.ext4 -Fq {origin} && mkdir -p /mnt/lower2 /mnt/fb2 && mount {origin} /mnt/lower2")
    said = fails(f"mount -t forebay -o cache={alias} /mnt/lower2 /mnt/fb2")
    in_use = f"in use already, as the cache {block_name(stack.cache)} of a forebay mount"
    assert in_use in said, said
    run("umount /mnt/lower2; modprobe dm-forebay-writelog")
    said = fails(f"dmsetup create log --table '0 2048 forebay-wlog {origin} {alias}'")
    assert in_use in said, said
    stack.umount()
    stack.cache = alias
    stack.mount()
    assert (MOUNT / "f").read_bytes()[:2] == b"Rx"


def test_hard_link_in_two_mounts(stack):
    """A file with names in the directories of two mounts is served by one of them. The other one would know neither its page cache nor
    its pages in PMem."""
    stack.umount()
    for folder in ("a", "b"):
        (LOWER / folder).mkdir()
    (LOWER / "a/f").write_bytes(b"0" * PAGE)
    os.link(LOWER / "a/f", LOWER / "b/g")
    (LOWER / "b/alone").write_bytes(b"1")
    os.link(LOWER / "b/alone", LOWER / "b/twice")
    os.makedirs("/mnt/fb2", exist_ok=True)
    stack.cache, second = small_device("first", 8, PMEM), small_device("second", 8, PMEM, 16)
    for cache, folder, point in ((stack.cache, "a", MOUNT), (second, "b", "/mnt/fb2")):
        run(f"forebay format --force {cache} && mount -t forebay -o cache={cache} {LOWER}/{folder} {point}")
    synced(MOUNT / "f", b"x" * PAGE)
    for _ in range(2):
        assert error_of(os.stat, "/mnt/fb2/g") == errno.EBUSY
    assert os.stat("/mnt/fb2/alone").st_nlink == 2
    synced("/mnt/fb2/twice", b"y" * PAGE)
    stack.umount()
    assert (LOWER / "b/g").read_bytes()[:2] == b"Rx"
    synced("/mnt/fb2/g", b"z" * PAGE)
    run("umount /mnt/fb2")
    assert (LOWER / "a/f").read_bytes()[:2] == b"Rz"


def test_status_tells(stack):
    synced(MOUNT / "f", b"x" * PAGE)
    text = run(f"forebay status {stack.cache}")
    assert str(MOUNT) in text and str(LOWER) in text
    stack.status()
