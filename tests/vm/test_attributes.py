# SPDX-License-Identifier: GPL-2.0-only
"""Attributes, extended attributes, ACLs, locks and leases: forebay has those of the lower file, the same
from both sides."""

import fcntl
import os
import signal
import struct
import subprocess
import sys
import time

import pytest
from clock import next_tick
from libc import FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, MAP_SHARED_VALIDATE, MAP_SYNC, Mapping, info
from other_user import NOBODY, python_as
from stack import PAGE, drop_caches, fails, run

def test_mode_and_owner(folder, below):
    path = folder / "f"
    path.write_bytes(b"x")
    os.chmod(path, 0o640)
    os.chown(path, 1000, 1001)
    status = os.stat(below / "f")
    assert (status.st_mode & 0o7777, status.st_uid, status.st_gid) == (0o640, 1000, 1001)
    assert os.stat(path).st_mode == status.st_mode
    folder.chmod(0o755)
    assert python_as(NOBODY, f"open({str(path)!r})").returncode == 1
    os.chmod(path, 0o644)
    assert python_as(NOBODY, f"open({str(path)!r})").returncode == 0
    assert python_as(NOBODY, f"open({str(path)!r}, 'r+')").returncode == 1
    assert python_as(NOBODY, f"import os; os.chmod({str(path)!r}, 0o777)").returncode == 1


def test_writing_takes_suid_away(folder, below):
    """A write takes the suid bit away, also if its bytes go to a DAX page."""
    folder.chmod(0o755)
    path = folder / "f"
    path.write_bytes(b"x" * PAGE)
    fd = os.open(path, os.O_RDWR)
    os.fsync(fd)
    os.pwrite(fd, b"y", 0)
    os.fsync(fd)
    os.chmod(path, 0o6777)
    assert python_as(NOBODY, f"import os; f = os.open({str(path)!r}, os.O_RDWR); os.pwrite(f, b'z', 1)").returncode == 0
    assert os.stat(path).st_mode & 0o7777 == 0o777
    assert os.stat(below / "f").st_mode & 0o7777 == 0o777
    os.close(fd)


def test_writing_back_takes_nothing_away(folder, below):
    """Writeback keeps capabilities and the suid bit that were set after the write: the task that causes
    the writeback is not the writer."""
    capability = struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0)
    folder.chmod(0o755)
    path = folder / "f"
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o755)
    for _ in range(2):
        os.pwrite(fd, b"x" * PAGE, 0)
        os.fsync(fd)
    os.chown(path, NOBODY, -1)
    os.setxattr(path, "security.capability", capability)
    os.chmod(path, 0o4755)
    assert python_as(NOBODY, f"import os; os.posix_fadvise(os.open({str(path)!r}, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)").returncode == 0
    assert os.stat(path).st_mode & 0o7777 == os.stat(below / "f").st_mode & 0o7777 == 0o4755
    assert os.getxattr(path, "security.capability") == os.getxattr(below / "f", "security.capability") == capability
    os.pwrite(fd, b"y", 0)
    with pytest.raises(OSError):
        os.getxattr(path, "security.capability")
    os.close(fd)


def test_times(folder, below):
    path = folder / "f"
    path.write_bytes(b"x" * PAGE)
    os.utime(path, ns=(1_000_000_000, 2_000_000_123))
    assert os.stat(path).st_mtime_ns == os.stat(below / "f").st_mtime_ns == 2_000_000_123
    fd = os.open(path, os.O_RDWR)
    os.fsync(fd)
    for data in (b"first", b"in place"):
        before = os.stat(path).st_mtime_ns
        next_tick()
        os.pwrite(fd, data, 0)
        os.fsync(fd)
        assert os.stat(path).st_mtime_ns > before
    for page in range(1, 24):       # the last of them with space set aside behind them
        os.pwrite(fd, b"a" * PAGE, page * PAGE)
        os.fsync(fd)
    stat = os.stat(path)
    assert stat.st_blocks * 512 > stat.st_size
    next_tick()
    run(f"forebay drain {folder}")
    after = os.stat(path)
    assert (after.st_mtime_ns, after.st_ctime_ns) == (stat.st_mtime_ns, stat.st_ctime_ns), "writeback changes nothing"
    os.close(fd)
    after = os.stat(path)
    assert (after.st_mtime_ns, after.st_ctime_ns) == (stat.st_mtime_ns, stat.st_ctime_ns)
    assert after.st_blocks * 512 == 24 * PAGE, "given back"


def test_space_given_back_after_a_truncation(folder, below):
    """A truncation to a size that the lower file hasn't reached yet leaves it the space behind that size."""
    fd = os.open(folder / "f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"a" * PAGE, 0)
    os.fsync(fd)
    for page in range(40):
        os.pwrite(fd, b"b" * PAGE, page * PAGE)
        os.fsync(fd)
    size = os.stat(below / "f").st_size
    assert size < 30 * PAGE
    os.ftruncate(fd, 30 * PAGE)
    os.pwrite(fd, b"c" * PAGE, 30 * PAGE)
    os.fsync(fd)
    os.close(fd)
    stat = os.stat(folder / "f")
    assert (stat.st_size, stat.st_blocks * 512) == (31 * PAGE, 31 * PAGE)


def test_space_given_back_by_somebody_with_limits(folder):
    """The last close gives preallocated space back. The closing task's RLIMIT_FSIZE has since been
    lowered, and must not get the task killed."""
    code = f"""import os, resource, signal
fd = os.open({str(folder / "f")!r}, os.O_RDWR | os.O_CREAT)
os.write(fd, b"a" * {PAGE})
os.fsync(fd)
for page in [0, *range(1, 24)]:
    os.pwrite(fd, b"a" * {PAGE}, page * {PAGE})
    os.fsync(fd)
assert os.fstat(fd).st_blocks * 512 > 24 * {PAGE}
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, ({PAGE}, {PAGE}))
os.close(fd)"""
    subprocess.run([sys.executable, "-c", code], check=True)
    stat = os.stat(folder / "f")
    assert (stat.st_size, stat.st_blocks * 512) == (24 * PAGE, 24 * PAGE)


def test_size_and_blocks(folder, below):
    """Forebay shows the true size; the lower file's size follows later."""
    fd = os.open(folder / "f", os.O_RDWR | os.O_CREAT)
    for i in range(20):
        os.write(fd, b"a" * 1000)
        os.fdatasync(fd)
        assert os.fstat(fd).st_size == (i + 1) * 1000
    run(f"forebay drain {folder}")
    assert os.stat(below / "f").st_size == 20000
    assert os.fstat(fd).st_blocks >= 20000 // 512
    os.close(fd)


def test_xattr(folder, below):
    path = folder / "f"
    path.touch()
    for name in ("user.a", "trusted.b", "security.c"):
        os.setxattr(path, name, b"value of " + name.encode())
        assert os.getxattr(below / "f", name) == b"value of " + name.encode()
    assert {"user.a", "trusted.b", "security.c"} <= set(os.listxattr(path))
    with pytest.raises(FileExistsError):
        os.setxattr(path, "user.a", b"", os.XATTR_CREATE)
    os.removexattr(path, "user.a")
    with pytest.raises(OSError):
        os.getxattr(below / "f", "user.a")
    os.chmod(path, 0o600)
    folder.chmod(0o755)
    assert python_as(NOBODY, f"import os; os.getxattr({str(path)!r}, 'user.a')").returncode == 1
    assert python_as(NOBODY, f"import os; os.setxattr({str(path)!r}, 'trusted.b', b'x')").returncode == 1


def test_acl(folder):
    path = folder / "f"
    path.write_bytes(b"x")
    folder.chmod(0o755)
    os.chmod(path, 0o600)
    assert python_as(NOBODY, f"open({str(path)!r})").returncode == 1
    run(f"setfacl -m u:{NOBODY}:r {path}")
    assert python_as(NOBODY, f"open({str(path)!r})").returncode == 0
    drop_caches()
    assert python_as(NOBODY, f"open({str(path)!r})").returncode == 0
    assert python_as(NOBODY, f"open({str(path)!r}, 'r+')").returncode == 1
    run(f"setfacl -b {path}")
    assert python_as(NOBODY, f"open({str(path)!r})").returncode == 1
    run(f"setfacl -d -m u:{NOBODY}:rw {folder}")
    (folder / "inherits").touch()
    assert f"user:{'nobody'}:rw" in run(f"getfacl -p {folder / 'inherits'}")


def test_file_flags(folder, below):
    path = folder / "f"
    path.write_bytes(b"x")
    fd = os.open(path, os.O_RDWR)
    flags = struct.unpack("l", fcntl.ioctl(fd, FS_IOC_GETFLAGS, bytes(8)))[0]
    fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("l", flags | 0x10))
    assert "i" in run(f"lsattr {below / 'f'}").split()[0]
    with pytest.raises(PermissionError):
        os.unlink(path)
    with pytest.raises(PermissionError):
        os.truncate(path, 0)
    fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("l", flags | 0x20))
    with pytest.raises(PermissionError):
        os.open(path, os.O_WRONLY)
    with open(path, "ab") as file:
        file.write(b"y")
    fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("l", flags))
    os.close(fd)
    assert path.read_bytes() == b"xy"


def test_immutable_with_pages_in_pmem(folder, below):
    """Setting the flag writes the pages in PMem back first. A descriptor that was open before can't make
    new pages."""
    path = folder / "f"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    for byte in (b"x", b"y"):
        os.pwrite(fd, byte * PAGE, 0)
        os.fsync(fd)
    flags = struct.unpack("l", fcntl.ioctl(fd, FS_IOC_GETFLAGS, bytes(8)))[0]
    fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("l", flags | 0x10))
    assert (below / "f").read_bytes() == b"y" * PAGE
    with pytest.raises(PermissionError):
        os.pwrite(fd, b"z", 0)
    assert "immutable" in fails(f"forebay pin {path}")
    run(f"forebay drain {folder}")
    with Mapping(fd, PAGE, MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        assert mapping.read(0, 1) == b"y"
        fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("l", flags))
        mapping.write(0, b"z")
        assert info(fd).dirty + info(fd).out_of_sync
    os.pwrite(fd, b"w", 1)
    os.close(fd)


def test_flock(folder):
    (folder / "f").touch()
    with open(folder / "f", "rb") as one, open(folder / "f", "rb") as two:
        fcntl.flock(one, fcntl.LOCK_EX)
        with pytest.raises(BlockingIOError):
            fcntl.flock(two, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(one, fcntl.LOCK_UN)
        fcntl.flock(two, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_posix_locks(folder):
    (folder / "f").write_bytes(bytes(100))
    with open(folder / "f", "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 10, 5)
        code = f"import fcntl; f = open({str(folder / 'f')!r}, 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 3, {{}})"
        assert subprocess.run([sys.executable, "-c", code.format(8)], stderr=subprocess.DEVNULL, check=False).returncode
        assert not subprocess.run([sys.executable, "-c", code.format(20)], check=False).returncode
        lock = fcntl.fcntl(file, 5, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))   # F_GETLK
        assert struct.unpack("hhqqi4x", lock)[0] == fcntl.F_UNLCK
        ofd = os.open(folder / "f", os.O_RDWR)
        fcntl.fcntl(ofd, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 50, 10, 0))        # F_OFD_SETLK
        other = os.open(folder / "f", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.fcntl(other, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 55, 10, 0))
        os.close(ofd)
        os.close(other)


def test_lease(folder):
    (folder / "f").touch()
    fd = os.open(folder / "f", os.O_RDONLY)
    broken = []
    old = signal.signal(signal.SIGIO, lambda *_: broken.append(1))
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        assert fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_RDLCK
        with pytest.raises(BlockingIOError):
            os.open(folder / "f", os.O_WRONLY | os.O_NONBLOCK)
        end = time.monotonic() + 20
        while not broken and time.monotonic() < end:
            time.sleep(0.01)
        assert broken
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    finally:
        signal.signal(signal.SIGIO, old)
        os.close(fd)
