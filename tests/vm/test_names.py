# SPDX-License-Identifier: GPL-2.0-only
"""Names are passed on: a name that is made, renamed, linked or removed above is so below, and the
kernel's rules hold."""

import errno
import fcntl
import os
import stat
import subprocess

import pytest
from libc import RENAME_EXCHANGE, RENAME_NOREPLACE, RENAME_WHITEOUT, file_handle, linkat, open_by_handle, renameat2
from stack import LOWER, MOUNT, PAGE, drop_caches, run


def write(path, data=b"data", sync=True):
    """A file with contents."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        if sync:
            os.fsync(file.fileno())


def test_create_unlink(folder, below):
    write(folder / "a")
    assert (below / "a").exists()
    with pytest.raises(FileExistsError):
        os.open(folder / "a", os.O_CREAT | os.O_EXCL)
    os.unlink(folder / "a")
    assert not (below / "a").exists()
    with pytest.raises(FileNotFoundError):
        os.stat(folder / "a")


def test_directories(folder, below):
    os.makedirs(folder / "d/e/f")
    with pytest.raises(OSError) as err:
        os.rmdir(folder / "d/e")
    assert err.value.errno == errno.ENOTEMPTY
    assert (below / "d/e/f").is_dir()
    assert os.stat(folder / "d").st_nlink == 3
    os.rmdir(folder / "d/e/f")
    assert os.stat(folder / "d/e").st_nlink == 2


def test_symlink(folder, below):
    os.symlink("target", folder / "s")
    assert os.readlink(folder / "s") == os.readlink(below / "s") == "target"
    write(folder / "target")
    assert (folder / "s").read_bytes() == b"data"
    os.symlink("s2", folder / "s2")
    with pytest.raises(OSError) as err:
        os.stat(folder / "s2")
    assert err.value.errno == errno.ELOOP


def test_mknod(folder, below):
    os.mkfifo(folder / "fifo")
    os.mknod(folder / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(folder / "socket", stat.S_IFSOCK | 0o600)
    assert stat.S_ISFIFO(os.stat(below / "fifo").st_mode)
    assert os.stat(below / "null").st_rdev == os.makedev(1, 3)
    with open(folder / "null", "wb") as null:
        null.write(b"gone")
    reader = os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(folder / "fifo", os.O_WRONLY)
    os.write(writer, b"through")
    assert os.read(reader, 10) == b"through"
    os.close(reader)
    os.close(writer)


def test_hard_links(folder, below):
    write(folder / "a")
    os.link(folder / "a", folder / "b")
    assert os.stat(folder / "a").st_nlink == 2
    assert os.stat(folder / "a").st_ino == os.stat(folder / "b").st_ino
    with open(folder / "b", "r+b") as file:
        file.write(b"D")
        os.fsync(file.fileno())
    os.unlink(folder / "a")
    assert (folder / "b").read_bytes() == b"Data"
    assert os.stat(below / "b").st_nlink == 1
    with pytest.raises(PermissionError):
        os.link(folder, folder / "self")


def test_tmpfile(folder, below):
    fd = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(fd, b"x" * PAGE)
    os.fsync(fd)
    os.pwrite(fd, b"y" * 10, 0)
    os.fdatasync(fd)
    assert os.fstat(fd).st_nlink == 0
    linkat(f"/proc/self/fd/{fd}", folder / "named")
    os.fsync(fd)
    os.pwrite(fd, b"z", 0)
    os.fdatasync(fd)
    os.close(fd)
    assert (folder / "named").read_bytes() == b"z" + b"y" * 9 + b"x" * (PAGE - 10)
    assert os.stat(below / "named").st_nlink == 1
    fd = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600)
    with pytest.raises(FileNotFoundError):
        linkat(f"/proc/self/fd/{fd}", folder / "not")
    os.close(fd)


def test_rename(folder, below):
    write(folder / "a", b"A")
    write(folder / "b", b"B")
    os.rename(folder / "a", folder / "b")
    assert (folder / "b").read_bytes() == b"A"
    assert sorted(os.listdir(below)) == ["b"]
    os.mkdir(folder / "d")
    os.rename(folder / "b", folder / "d/b")
    assert (below / "d/b").exists()
    with pytest.raises(OSError) as err:
        os.rename(folder / "d", folder / "d/e")
    assert err.value.errno == errno.EINVAL


def test_rename_flags(folder, below):
    write(folder / "a", b"A")
    write(folder / "b", b"B")
    with pytest.raises(FileExistsError):
        renameat2(folder / "a", folder / "b", RENAME_NOREPLACE)
    renameat2(folder / "a", folder / "b", RENAME_EXCHANGE)
    assert (folder / "a").read_bytes() == b"B" and (folder / "b").read_bytes() == b"A"
    renameat2(folder / "a", folder / "c", RENAME_WHITEOUT)
    status = os.stat(below / "a")
    assert stat.S_ISCHR(status.st_mode) and status.st_rdev == 0
    assert (folder / "c").read_bytes() == b"B"


def test_unlink_while_open(folder, shared):
    """The pages of a deleted file stay as long as the file is open, then go back to the cache."""
    fd = os.open(folder / "f", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"1" * 8 * PAGE)
    os.fsync(fd)
    os.pwrite(fd, b"2" * 4 * PAGE, 0)
    os.fdatasync(fd)
    os.unlink(folder / "f")
    drop_caches()
    assert os.pread(fd, 8 * PAGE, 0) == b"2" * 4 * PAGE + b"1" * 4 * PAGE
    os.pwrite(fd, b"3", 0)
    os.fsync(fd)
    os.pwrite(fd, b"4", 20 * PAGE)
    os.fsync(fd)
    assert os.pread(fd, 2, 0) == b"32"
    os.close(fd)
    shared.drain()
    assert shared.value("pages_out_of_sync") == 0


def test_many_entries_and_positions(folder):
    """readdir(3) gives every name once; telldir and seekdir work, with changes in between."""
    names = {f"name-{i:04}" for i in range(700)}
    for name in names:
        (folder / name).touch()
    assert set(os.listdir(folder)) == names
    program = os.path.join(os.path.dirname(__file__), "..", "..", "build", "tests", "telldir")
    assert subprocess.run([program, folder], check=False).returncode == 0


def test_statfs(folder, below):
    above, under = os.statvfs(folder), os.statvfs(below)
    assert (above.f_blocks, above.f_bsize, above.f_namemax) == (under.f_blocks, under.f_bsize, under.f_namemax)
    assert run(f"stat -f -c %t {folder}").strip() == "46425259"
    assert above.f_fsid not in (0, under.f_fsid)
    with pytest.raises(OSError) as err:
        (folder / ("n" * 300)).touch()
    assert err.value.errno == errno.ENAMETOOLONG


def test_exec(folder):
    run(f"cp /bin/true {folder}/program; sync {folder}/program")
    fd = os.open(folder / "program", os.O_RDWR)
    os.pwrite(fd, os.pread(fd, 100, 0), 0)
    os.fsync(fd)
    with pytest.raises(OSError) as err:
        subprocess.run([folder / "program"], check=True)
    assert err.value.errno == errno.ETXTBSY
    os.close(fd)
    drop_caches()
    subprocess.run([folder / "program"], check=True)
    (folder / "script").write_text("#!/bin/sh\nexit 3\n", encoding="ascii")
    os.chmod(folder / "script", 0o755)
    assert subprocess.run([folder / "script"], check=False).returncode == 3


def test_file_handles(folder):
    """Handles survive the dentry, the cache and the name, and go stale with the file."""
    write(folder / "f", b"by handle")
    handle, _ = file_handle(folder / "f")
    mount_fd = os.open(MOUNT, os.O_RDONLY)
    os.rename(folder / "f", folder / "g")
    drop_caches()
    fd = open_by_handle(mount_fd, handle, os.O_RDWR)
    assert os.read(fd, 20) == b"by handle"
    os.pwrite(fd, b"BY", 0)
    os.fsync(fd)
    os.close(fd)
    assert (folder / "g").read_bytes() == b"BY handle"
    handle_of_folder, _ = file_handle(folder)
    drop_caches()
    fd = open_by_handle(mount_fd, handle_of_folder, os.O_RDONLY | os.O_DIRECTORY)
    assert os.listdir(fd) == ["g"]
    os.close(fd)
    os.unlink(folder / "g")
    drop_caches()
    with pytest.raises(OSError) as err:
        open_by_handle(mount_fd, handle, os.O_RDONLY)
    assert err.value.errno == errno.ESTALE
    os.close(mount_fd)


def test_handles_of_another_mount(folder):
    """What a handle names does not depend on forebay: the lower file system's are ours."""
    write(folder / "f", b"same")
    handle, _ = file_handle(LOWER / folder.name / "f")
    mount_fd = os.open(MOUNT, os.O_RDONLY)
    fd = open_by_handle(mount_fd, handle, os.O_RDONLY)
    assert os.read(fd, 20) == b"same"
    os.close(fd)
    os.close(mount_fd)


def test_changed_underneath(folder, below):
    """Changes that other programs make directly in the lower tree do no harm, though they aren't
    supported."""
    write(folder / "f", b"old")
    os.unlink(below / "f")
    (below / "f").write_bytes(b"another file")
    assert (folder / "f").read_bytes() in (b"old", b"another file")
    (below / "new").write_bytes(b"new")
    assert (folder / "new").read_bytes() == b"new"
    os.rename(below / "new", below / "newer")
    assert (folder / "newer").read_bytes() == b"new"
    for name in ("f", "new"):
        try:
            os.unlink(folder / name)
        except OSError as err:
            assert err.errno in (errno.ESTALE, errno.ENOENT)
    assert (folder / "newer").read_bytes() == b"new"


def test_dup_and_fork(folder):
    """Trap 9: fsync of any descriptor is a sync call for the file, whichever process wrote."""
    fd = os.open(folder / "f", os.O_RDWR | os.O_CREAT)
    other = os.open(folder / "f", os.O_RDONLY)
    os.write(fd, b"a")
    os.fsync(other)
    pid = os.fork()
    if not pid:
        os.write(fd, b"b")
        os.fsync(os.dup(fd))
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert os.fstat(fd).st_size == 2
    assert fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_RDWR
    os.close(fd)
    os.close(other)
