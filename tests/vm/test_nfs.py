# SPDX-License-Identifier: GPL-2.0-only
"""A mount that is exported with NFS, by the kernel's own server to its own client."""

import errno
import fcntl
import os
import time

import pytest
from conftest import clean_up
from libc import error_of
from stack import LOWER, MOUNT, PAGE, Stack, run

CLIENT = "/mnt/nfs"


@pytest.fixture(name="exported", scope="module", params=["ext4", "xfs"])
def exported_fixture(request):
    """forebay, exported and mounted again by NFS 4.2."""
    clean_up()
    stack = Stack(fs=request.param).make()
    os.makedirs(CLIENT, exist_ok=True)
    try:
        serve()
        yield stack
    finally:
        os.chdir("/")
        run(f"umount {CLIENT}; rpc.nfsd 0; exportfs -ua; killall rpc.mountd nfsdcld; umount /proc/fs/nfsd", check=False)
        stack.destroy()
        clean_up()


def serve():
    """Starts the server and mounts what it exports."""
    run("modprobe nfsd; mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd")
    run("mkdir -p /run/rpc_pipefs /var/lib/nfs/v4recovery; touch /var/lib/nfs/etab /var/lib/nfs/rmtab; "
        "mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs")
    run(f"exportfs -o rw,no_root_squash,no_subtree_check,fsid=0,sync localhost:{MOUNT}")
    run("mkdir -p /var/lib/nfs/nfsdcld; nfsdcld")
    run("rpc.mountd -N 3 && rpc.nfsd -N 3 -G 10 -L 10 2; echo Y > /proc/fs/nfsd/v4_end_grace", check=False)
    run(f"timeout 300 mount -t nfs4 -o actimeo=0,soft,timeo=600 localhost:/ {CLIENT}")


def test_files_over_nfs(exported):
    """Write, sync, read, rename, list; what a client's fsync acknowledged is in PMem or below."""
    folder = f"{CLIENT}/d"
    os.mkdir(folder)
    fd = os.open(f"{folder}/f", os.O_RDWR | os.O_CREAT, 0o640)
    os.write(fd, b"w" * 3 * PAGE)
    os.fsync(fd)
    assert (MOUNT / "d/f").read_bytes() == b"w" * 3 * PAGE
    absorbed = exported.value("pages_absorbed")
    for turn in range(5):
        os.pwrite(fd, b"again%d" % turn, PAGE)
        os.fsync(fd)
        assert (MOUNT / "d/f").read_bytes()[PAGE:PAGE + 6] == b"again%d" % turn
    assert exported.value("pages_absorbed") > absorbed
    os.close(fd)
    os.rename(f"{folder}/f", f"{folder}/g")
    for number in range(200):
        open(f"{folder}/n{number}", "x", encoding="ascii").close()
    assert sorted(os.listdir(folder)) == sorted(["g"] + [f"n{number}" for number in range(200)])
    assert os.stat(f"{folder}/g").st_mode & 0o777 == 0o640
    with open(f"{folder}/g", "rb") as file:
        assert file.read() == b"w" * PAGE + b"again4" + b"w" * (2 * PAGE - 6)
    os.truncate(f"{folder}/g", 10)
    assert (MOUNT / "d/g").read_bytes() == b"w" * 10
    assert os.statvfs(folder).f_blocks


def test_what_was_written_above_is_seen(exported):
    """The server's page cache is the lower file's, and the pages in PMem override it."""
    (MOUNT / "local").write_bytes(b"l" * 4 * PAGE)
    fd = os.open(MOUNT / "local", os.O_RDWR)
    os.fsync(fd)
    os.pwrite(fd, b"in PMem", 2 * PAGE)
    os.fdatasync(fd)
    os.close(fd)
    assert exported.value("pages_out_of_sync") > 0
    with open(f"{CLIENT}/local", "rb") as file:
        assert file.read() == b"l" * 2 * PAGE + b"in PMem" + b"l" * (2 * PAGE - 7)


def test_stale_handle(exported):
    """A file that was removed on the server, and one whose server's caches were dropped."""
    (MOUNT / "stays").write_bytes(b"here")
    (MOUNT / "goes").write_bytes(b"here")
    stays, goes = os.open(f"{CLIENT}/stays", os.O_RDONLY), os.stat(f"{CLIENT}/goes")
    assert goes.st_size == 4
    path = os.open(f"{CLIENT}/goes", os.O_PATH)
    os.unlink(MOUNT / "goes")
    os.sync()
    for _ in range(2):
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("2")
        time.sleep(0.2)
    with pytest.raises(OSError) as err:
        os.stat(f"/proc/self/fd/{path}")
    assert err.value.errno in (errno.ESTALE, errno.ENOENT)
    assert os.read(stays, 4) == b"here"
    os.close(stays)
    os.close(path)
    assert (LOWER / "stays").exists() and exported.value("pages_unplaced") == 0


def test_file_deleted_on_the_server(exported):
    """A client that has it open reads and writes it as before; it has pages in PMem, and leaves none."""
    (MOUNT / "unlinked").write_bytes(b"u" * 4 * PAGE)
    fd = os.open(f"{CLIENT}/unlinked", os.O_RDWR)
    for turn in range(3):
        os.pwrite(fd, b"first %d" % turn, PAGE)
        os.fsync(fd)
    os.unlink(MOUNT / "unlinked")
    os.pwrite(fd, b"second", 2 * PAGE)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    assert os.pread(fd, 4 * PAGE, 0) == (b"u" * PAGE + b"first 2" + b"u" * (PAGE - 7) + b"second" + b"u" * (2 * PAGE - 6))
    os.close(fd)
    exported.drain()
    assert exported.value("pages_unplaced") == 0


def test_locks_and_synchronous_writes(exported):
    """A lock of the client's is seen on the server; what an O_SYNC write of it acknowledged is in PMem or below."""
    (MOUNT / "locked").write_bytes(b"l" * 4 * PAGE)
    fd = os.open(f"{CLIENT}/locked", os.O_RDWR | os.O_SYNC)
    fcntl.lockf(fd, fcntl.LOCK_EX, PAGE, PAGE)
    with open(MOUNT / "locked", "r+b") as local:
        assert error_of(fcntl.lockf, local, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, PAGE + 10) in (errno.EAGAIN, errno.EACCES)
        fcntl.lockf(local, fcntl.LOCK_EX | fcntl.LOCK_NB, PAGE, 0)
    absorbed = exported.value("syncs_absorbed")
    for turn in range(4):
        os.pwrite(fd, b"synchronous %d" % turn, PAGE)
    assert exported.value("syncs_absorbed") > absorbed
    assert (MOUNT / "locked").read_bytes()[PAGE:PAGE + 13] == b"synchronous 3"
    os.close(fd)


def test_handles_after_a_remount(exported):
    """The server stops, forebay is unmounted and mounted again: the client's handles lead to the same files, deleted ones are stale."""
    for name in ("kept", "gone"):
        (MOUNT / name).write_bytes(name.encode() * PAGE)
    kept, gone = (os.open(f"{CLIENT}/{name}", os.O_PATH) for name in ("kept", "gone"))
    run("rpc.nfsd 0; exportfs -ua; exportfs -f; killall rpc.mountd nfsdcld", check=False)
    (MOUNT / "gone").unlink()
    exported.remount()
    run(f"exportfs -o rw,no_root_squash,no_subtree_check,fsid=0,sync localhost:{MOUNT}; nfsdcld")
    run("rpc.mountd -N 3 && rpc.nfsd -N 3 -G 10 -L 10 2; echo Y > /proc/fs/nfsd/v4_end_grace", check=False)
    assert error_of(os.stat, f"/proc/self/fd/{gone}") in (errno.ESTALE, errno.ENOENT)
    fd = os.open(f"/proc/self/fd/{kept}", os.O_RDWR)
    os.pwrite(fd, b"after", PAGE)
    os.fsync(fd)
    assert os.pread(fd, 10, PAGE - 4) == b"kept" + b"after" + b"e"
    assert (MOUNT / "kept").read_bytes()[PAGE:PAGE + 5] == b"after"
    for each in (kept, gone, fd):
        os.close(each)
