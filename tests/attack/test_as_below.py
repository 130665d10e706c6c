# SPDX-License-Identifier: GPL-2.0-only
"""Calls on files with pages in PMem, and the same calls on the lower file system alone: they answer alike, and leave the same bytes,
rights and flags. Each probe is a function of a folder; what it returns is compared."""

import contextlib
import ctypes
import errno
import faulthandler
import fcntl
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from conftest import clean_up
from libc import (COLLAPSE_RANGE, FICLONE, FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, INSERT_RANGE, KEEP_SIZE, MAP_PRIVATE,
                  PUNCH_HOLE, UNSHARE, ZERO_RANGE, Iovec, Mapping, _libc, aligned, checked, error_of, fallocate, pages, syscall, vmsplice)
from other_user import as_user
from stack import LOWER, MKFS, MOUNT, PAGE, SSD2, Stack, run

REF, MIB = Path("/mnt/ref"), 384
STRANGER = 1234
IDMAPPED = Path("/mnt/ref-mapped"), Path("/mnt/fb-mapped")
PAGES = 8
CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)
APPEND_FL, IMMUTABLE_FL, JOURNAL_FL, SYNC_FL, NOATIME_FL = 0x20, 0x10, 0x4000, 0x8, 0x80
FSGETXATTR, FSSETXATTR = 0x801C581F, 0x401C5820
BEYOND = (1 << 43) + PAGE       # 8 TiB


@pytest.fixture(name="both", scope="module", params=["ext4", "xfs"])
def both_fixture(request):
    """forebay over a file system, and another one of that kind alone."""
    clean_up()
    stack = Stack(fs=request.param, mib=MIB).make()
    REF.mkdir(exist_ok=True)
    run(MKFS[stack.fs].format(device=SSD2, mib=MIB))
    run(f"mount {SSD2} {REF}; chmod 755 {REF} {MOUNT}")
    yield stack
    os.chdir("/")
    run(f"umount {REF}")
    stack.destroy()
    clean_up()


def alike(both, probe, roots=(REF, MOUNT)):
    """Runs the probe on both."""
    answers = []
    for root in roots:
        folder = root / probe.__name__
        folder.mkdir()
        folder.chmod(0o777)
        answers.append(probe(folder))
        os.chdir("/")
    both.drain()
    print(answers[0])
    assert answers[1] == answers[0]


def in_pmem(path, number=PAGES, mode=0o644):
    """A file whose pages are in PMem, if it is on forebay; opened."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    os.pwrite(fd, b"".join(bytes([65 + page % 26]) * PAGE for page in range(number)), 0)
    os.fsync(fd)
    for page in range(number):
        os.pwrite(fd, bytes([97 + page % 26]) * 100, page * PAGE)
    os.fsync(fd)
    if path.is_relative_to(MOUNT) or path.is_relative_to(IDMAPPED[1]):
        assert pages(fd) == number, f"{pages(fd)} pages of {path} are in PMem"
    os.fchmod(fd, mode)
    return fd


def contents(path):
    """The file's bytes, shortly."""
    with open(path, "rb") as file:
        data = file.read()
    return [len(data)] + [data[at:at + 3].decode("latin1") + data[at + 200:at + 202].decode("latin1") for at in range(0, len(data), PAGE)]


def in_child(action):
    """How a child ends that does this: 0, a signal, or an errno."""
    pid = os.fork()
    if not pid:
        faulthandler.disable()
        status = 99
        with contextlib.suppress(BaseException):
            status = error_of(action) & 0x7F
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def opened(path, flags, action):
    """The errno of an action on a descriptor of its own."""
    def do():
        fd = os.open(path, flags)
        try:
            action(fd)
        finally:
            os.close(fd)
    return error_of(do)


def pwritev2(fd, data, offset, flags):
    """Bytes written."""
    return os.pwritev(fd, [data], offset, flags)


def from_other(path, action):
    """action(the file, another one in its folder), both opened."""
    with open(path.parent / "other", "rb") as other:
        return opened(path, os.O_RDWR, lambda fd: action(fd, other.fileno()))


def store(fd):
    """In a mapping."""
    with Mapping(fd, PAGE) as mapping:
        mapping.write(0, b"stored")


def splice_into(fd):
    """From a pipe."""
    reading, writing = os.pipe()
    with open(reading, "rb"), open(writing, "wb", buffering=0) as pipe:
        pipe.write(b"spliced")
        os.splice(reading, fd, 7, offset_dst=10)


WRITES = {
    "pwrite": lambda path: opened(path, os.O_RDWR, lambda fd: os.pwrite(fd, b"new", 10)),
    "append": lambda path: opened(path, os.O_RDWR | os.O_APPEND, lambda fd: os.write(fd, b"new")),
    "direct": lambda path: opened(path, os.O_RDWR | os.O_DIRECT, lambda fd: os.pwritev(fd, [aligned(b"d" * PAGE)], 0)),
    "dsync": lambda path: opened(path, os.O_RDWR | os.O_DSYNC, lambda fd: os.pwrite(fd, b"new", 10)),
    "nothing": lambda path: opened(path, os.O_RDWR, lambda fd: os.pwrite(fd, b"", 10)),
    "bad memory": lambda path: opened(path, os.O_RDWR, lambda fd: checked(_libc.pwrite(fd, ctypes.c_void_p(1), 10, ctypes.c_long(0)))),
    "truncate": lambda path: error_of(os.truncate, path, PAGE),
    "truncate same": lambda path: error_of(os.truncate, path, PAGES * PAGE),
    "truncate more": lambda path: error_of(os.truncate, path, 9 * PAGE),
    "O_TRUNC": lambda path: opened(path, os.O_RDWR | os.O_TRUNC, lambda fd: None),
    "allocate": lambda path: opened(path, os.O_RDWR, lambda fd: fallocate(fd, 0, 0, PAGE)),
    "allocate beyond": lambda path: opened(path, os.O_RDWR, lambda fd: fallocate(fd, KEEP_SIZE, 9 * PAGE, PAGE)),
    "punch": lambda path: opened(path, os.O_RDWR, lambda fd: fallocate(fd, PUNCH_HOLE | KEEP_SIZE, PAGE, PAGE)),
    "zero": lambda path: opened(path, os.O_RDWR, lambda fd: fallocate(fd, ZERO_RANGE, PAGE, PAGE)),
    "collapse": lambda path: opened(path, os.O_RDWR, lambda fd: fallocate(fd, COLLAPSE_RANGE, PAGE, PAGE)),
    "collapse badly": lambda path: opened(path, os.O_RDWR, lambda fd: fallocate(fd, COLLAPSE_RANGE, PAGE, 100)),
    "insert beyond": lambda path: opened(path, os.O_RDWR, lambda fd: fallocate(fd, INSERT_RANGE, 16 * PAGE, PAGE)),
    "unshare": lambda path: opened(path, os.O_RDWR, lambda fd: fallocate(fd, UNSHARE, 0, PAGE)),
    "unknown mode": lambda path: opened(path, os.O_RDWR, lambda fd: fallocate(fd, 0x1000, 0, PAGE)),
    "copy": lambda path: from_other(path, lambda fd, other: os.copy_file_range(other, fd, PAGE, 0, PAGE)),
    "copy nothing": lambda path: from_other(path, lambda fd, other: os.copy_file_range(other, fd, PAGE, 1 << 20, PAGE)),
    "clone": lambda path: from_other(path, lambda fd, other: fcntl.ioctl(fd, FICLONE, other)),
    "sendfile": lambda path: from_other(path, lambda fd, other: os.sendfile(fd, other, 0, 100)),
    "splice": lambda path: opened(path, os.O_RDWR, splice_into),
    "store": lambda path: opened(path, os.O_RDWR, store),
    "utimes": lambda path: error_of(os.utime, path),
    "nowait": lambda path: opened(path, os.O_RDWR | os.O_DIRECT,
                                  lambda fd: os.pwritev(fd, [aligned(b"d" * PAGE)], 0, os.RWF_NOWAIT)),
}


def rights(folder):
    """What a stranger's and root's writes take away: the set-ID bits and capabilities."""
    os.close(in_pmem(folder / "other", mode=0o666))
    answers = {}
    owner = 2000 if folder.parent in IDMAPPED else 1000
    for name, action in WRITES.items():
        for mode, users in {0o6777: (STRANGER, 0), 0o2766: (STRANGER,)}.items():
            for user in users:
                path = folder / "f"
                fd = in_pmem(path, mode=0o666)
                os.chown(path, owner, owner)
                os.setxattr(path, "security.capability", CAPABILITY)
                os.chmod(path, mode)
                if user:
                    error = as_user(user, lambda action=action, path=path: action(path))
                else:
                    error = action(path)
                os.close(fd)
                answers[f"{name} {mode:o} {user}"] = error
                if error != errno.EOPNOTSUPP:       # then forebay has taken them before it knows
                    answers[f"{name} {mode:o} {user}"] = error, f"{path.stat().st_mode:o}", os.listxattr(path)
                path.unlink()
    return answers


def change_flag(fd, flag, there):
    """chattr, by a descriptor that may only read."""
    flags = struct.unpack("I", fcntl.ioctl(fd, FS_IOC_GETFLAGS, bytes(4)))[0]
    fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("I", flags | flag if there else flags & ~flag))


def under_flag(path, flag):
    """What a file can be used for with that flag, which comes while it is open and mapped; and its bytes."""
    fd, answers = in_pmem(path), {}
    appending, reading = os.open(path, os.O_WRONLY | os.O_APPEND), os.open(path, os.O_RDONLY)
    with Mapping(fd, PAGES * PAGE) as mapping:
        mapping.write(PAGE + 1, b"mapped")
        answers["set"] = error_of(change_flag, reading, flag, True)
        answers["shown"] = struct.unpack("I", fcntl.ioctl(reading, FS_IOC_GETFLAGS, bytes(4)))[0] & flag
        answers["pwrite"] = error_of(os.pwrite, fd, b"P", 2 * PAGE)
        answers["direct"] = opened(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_DIRECT, lambda fd: os.pwritev(fd, [aligned(b"d" * PAGE)], PAGE))
        answers["append"] = error_of(os.write, appending, b"end")
        answers["store"] = in_child(lambda: mapping.write(PAGE, b"S"))
        answers["store elsewhere"] = in_child(lambda: mapping.write(3 * PAGE, b"S"))
        answers["ftruncate"] = error_of(os.ftruncate, fd, 6 * PAGE)
        answers["allocate"] = error_of(fallocate, fd, KEEP_SIZE, 20 * PAGE, PAGE)
        answers["punch"] = error_of(fallocate, fd, PUNCH_HOLE | KEEP_SIZE, 4 * PAGE, PAGE)
        answers["map"] = error_of(lambda: Mapping(fd, PAGE).close())
        answers["fsync"] = error_of(os.fsync, fd)
        answers["utime"] = error_of(os.utime, path, (1, 1))
        answers["chmod"] = error_of(os.chmod, path, 0o640)
        answers["xattr"] = error_of(os.setxattr, path, "user.x", b"x")
        answers["rename"] = error_of(os.rename, path, path.with_suffix(".new"))
        answers["link"] = error_of(os.link, path, path.with_suffix(".link"))
        answers["open"] = opened(path, os.O_RDWR, lambda fd: None)
        answers["unlink"] = error_of(os.unlink, path)
        answers["clear"] = error_of(change_flag, reading, flag, False)
        answers["pwrite again"] = error_of(os.pwrite, fd, b"Q", 2 * PAGE + 1)
        answers["store again"] = in_child(lambda: mapping.write(5 * PAGE, b"T"))
        answers["fsync again"] = error_of(os.fsync, fd)
        answers["bytes"] = contents(f"/proc/self/fd/{fd}")
    for each in (fd, appending, reading):
        os.close(each)
    return answers


def flags(folder):
    """chattr +a, +j, +S, +A while dirty and mapped; +i, too, where xfs doesn't let open descriptors write on."""
    some = [APPEND_FL, JOURNAL_FL, SYNC_FL, NOATIME_FL]
    if "xfs" not in run(f"findmnt -no FSTYPE {REF}"):
        some.append(IMMUTABLE_FL)
    return {hex(flag): under_flag(folder / f"f{flag}", flag) for flag in some}


def set_fsx(fd, **changes):
    """FS_IOC_FSSETXATTR; the errno, and what is said then."""
    names = ("xflags", "extsize", "nextents", "projid", "cowextsize")
    fsx = dict(zip(names, struct.unpack("5I8x", fcntl.ioctl(fd, FSGETXATTR, bytes(28)))))
    fsx["xflags"] |= changes.pop("xflag", 0)
    fsx.update(changes)
    error = error_of(fcntl.ioctl, fd, FSSETXATTR, struct.pack("5I8x", *fsx.values()))
    now = dict(zip(names, struct.unpack("5I8x", fcntl.ioctl(fd, FSGETXATTR, bytes(28)))))
    return [error, now["xflags"], now["extsize"], now["projid"]]


def extended_flags(folder):
    """Projects, extent sizes and the DAX flag, of files with and without bytes, by the owner and a stranger."""
    answers = {}
    for name, changes in {"project": {"projid": 7}, "extsize": {"xflag": 0x800, "extsize": 1 << 16}, "dax": {"xflag": 0x8000},
                          "inherit": {"xflag": 0x200, "projid": 9}, "unknown": {"xflag": 1 << 30}}.items():
        fd = in_pmem(folder / name, mode=0o666)
        empty = os.open(folder / f"{name}-empty", os.O_RDWR | os.O_CREAT)
        reading = os.open(folder / name, os.O_RDONLY)
        answers[name] = [as_user(STRANGER, lambda: set_fsx(reading, **dict(changes))), set_fsx(reading, **dict(changes)),
                         set_fsx(empty, **dict(changes))]
        os.pwrite(fd, b"after", 3 * PAGE)
        os.pwrite(empty, b"after" * PAGE, 100)
        answers[name] += [error_of(os.fsync, fd), error_of(os.fsync, empty), contents(folder / name), contents(folder / f"{name}-empty")]
        for each in (fd, empty, reading):
            os.close(each)
    return answers


def no_waiting(folder):
    """Buffered and direct I/O that shall not wait."""
    fd = in_pmem(folder / "f")
    direct = os.open(folder / "f", os.O_RDWR | os.O_DIRECT)
    answers = [error_of(os.preadv, fd, [bytearray(PAGE)], 0, os.RWF_NOWAIT),
               error_of(os.preadv, direct, [aligned(length=PAGE)], 0, os.RWF_NOWAIT),
               error_of(pwritev2, fd, b"", 100, os.RWF_NOWAIT)]
    for each in (fd, direct):
        os.close(each)
    return answers


def far_offsets(folder):
    """Calls at and beyond the largest offset, and far behind the end."""
    answers, last = {}, (1 << 63) - 1
    for at in (BEYOND, (16 << 40) - PAGE, (16 << 40) - PAGE - 1, 1 << 52, last - PAGE, last - 10, last):
        path = folder / f"f{at}"
        fd = in_pmem(path)
        direct = os.open(path, os.O_RDWR | os.O_DIRECT)
        got = answers[hex(at)] = {}
        got["allocate"] = error_of(fallocate, fd, KEEP_SIZE, at, PAGE)
        got["punch"] = error_of(fallocate, fd, PUNCH_HOLE | KEEP_SIZE, at, PAGE)
        got["truncate"] = error_of(os.ftruncate, fd, at)
        got["write"] = error_of(lambda: os.pwrite(fd, b"w" * 5000, at))
        got["fsync"] = error_of(os.fsync, fd)
        got["written"] = error_of(lambda: os.pwrite(fd, b"w" * 50, at)), error_of(os.fsync, fd)
        got["size"] = os.fstat(fd).st_size
        got["read"] = error_of(lambda: os.pread(fd, 3 * PAGE, at)) or os.pread(fd, 3 * PAGE, at).decode()[:10]
        got["direct"] = error_of(lambda: os.preadv(direct, [aligned(length=PAGE)], at & ~4095))
        got["data"] = [error_of(lambda: os.lseek(fd, min(at, PAGES * PAGE), how)) for how in (os.SEEK_DATA, os.SEEK_HOLE)]
        got["where"] = [error_of(lambda: os.lseek(fd, PAGES * PAGE, how)) or os.lseek(fd, PAGES * PAGE, how) // PAGE
                        for how in (os.SEEK_DATA, os.SEEK_HOLE)]
        got["copy"] = error_of(lambda: os.copy_file_range(fd, fd, PAGE, at, 0))
        got["copy there"] = error_of(lambda: os.copy_file_range(fd, fd, 2 * PAGE, 0, at))
        got["advice"] = error_of(os.posix_fadvise, fd, at, last, os.POSIX_FADV_DONTNEED)
        got["collapse"] = error_of(fallocate, fd, COLLAPSE_RANGE, PAGE, PAGE)
        got["insert"] = error_of(fallocate, fd, INSERT_RANGE, PAGE, PAGE)
        got["shorter"] = error_of(os.ftruncate, fd, PAGES * PAGE)
        got["bytes"] = contents(path)
        for each in (fd, direct):
            os.close(each)
        path.unlink()
    return answers


def process_vm_writev(address, data):
    """A debugger's write, to this process."""
    buffer = ctypes.create_string_buffer(data, len(data))
    to, source = Iovec(address, len(data)), Iovec(ctypes.addressof(buffer), len(data))
    return checked(_libc.process_vm_writev(os.getpid(), ctypes.byref(source), ctypes.c_ulong(1), ctypes.byref(to), ctypes.c_ulong(1),
                                           ctypes.c_ulong(0)))


def poke(address, data):
    """/proc/self/mem, as ptrace(POKE) does it."""
    fd = os.open("/proc/self/mem", os.O_RDWR)
    try:
        os.pwrite(fd, data, address)
    finally:
        os.close(fd)


def register_buffer(address, length):
    """io_uring's registered buffers hold pages for long."""
    params = ctypes.create_string_buffer(120)
    ring = syscall(425, 4, ctypes.byref(params))
    try:
        syscall(427, ring, 0, ctypes.byref(Iovec(address, length)), 1)
    finally:
        os.close(ring)


def remap_dontunmap(mapping):
    """mremap(2) that leaves the old place mapped; the new one is read and stored to."""
    new = syscall(25, mapping.address, mapping.length, mapping.length, 1 | 4, 0)
    ctypes.memmove(new + 2 * PAGE, b"moved", 5)
    got = ctypes.string_at(new, 3), ctypes.string_at(mapping.address, 3), mapping.read(2 * PAGE, 5)
    mapping.write(2 * PAGE + 5, b"both")
    got += ctypes.string_at(new + 2 * PAGE, 9),
    checked(_libc.munmap(new, mapping.length))
    return str(got)


def memory(folder):
    """Mappings that others store to, or that the calls' own memory is."""
    path, answers = folder / "f", {}
    fd = in_pmem(path)
    direct = os.open(path, os.O_RDWR | os.O_DIRECT)
    with Mapping(fd, PAGES * PAGE) as mapping, Mapping(fd, PAGES * PAGE, MAP_PRIVATE) as private:
        answers["vm_writev"] = error_of(process_vm_writev, mapping.address + 300, b"vm_writev")
        answers["poke"] = error_of(poke, mapping.address + PAGE + 300, b"poked")
        answers["poke private"] = error_of(poke, private.address + PAGE + 300, b"mine")
        mapping.protect(5 * PAGE, PAGE, 1)
        answers["poke read-only"] = error_of(poke, mapping.address + 5 * PAGE, b"poked")
        mapping.protect(5 * PAGE, PAGE, 3)
        os.fsync(fd)
        answers["private"] = str(private.read(PAGE + 300, 5))
        answers["register"] = error_of(register_buffer, mapping.address, PAGE)
        answers["register private"] = error_of(register_buffer, private.address, PAGE)
        answers["remap"] = remap_dontunmap(mapping)
        os.fsync(fd)
        memory_of = (ctypes.c_char * PAGE).from_address(mapping.address + 3 * PAGE)
        for name, number in (("read", 3), ("read another", 4)):
            answers[name] = error_of(os.preadv, fd, [memory_of], number * PAGE)
            answers["direct " + name] = error_of(os.preadv, direct, [memory_of], number * PAGE)
        for name, number in (("write", 3), ("write another", 6)):
            answers[name] = error_of(os.pwritev, fd, [memory_of], number * PAGE)
            answers["direct " + name] = error_of(os.pwritev, direct, [memory_of], number * PAGE)
        reading, writing = os.pipe()
        vmsplice(writing, mapping.address + 4 * PAGE, PAGE)
        answers["splice"] = error_of(lambda: os.splice(reading, fd, PAGE, offset_dst=7 * PAGE, flags=1))
        vmsplice(writing, mapping.address + 4 * PAGE, PAGE)
        answers["splice to itself"] = error_of(lambda: os.splice(reading, fd, PAGE, offset_dst=4 * PAGE, flags=1))
        for each in (reading, writing):
            os.close(each)
    answers["fsync"] = error_of(os.fsync, fd)
    answers["bytes"] = contents(path), path.read_bytes()[300:309].decode(), path.read_bytes()[PAGE + 300:PAGE + 305].decode()
    for each in (fd, direct):
        os.close(each)
    return answers


def programs(folder):
    """A program's file while it runs, and while it is open to be written."""
    path, answers = folder / "sleep", {}
    shutil.copy("/bin/sleep", path)
    os.chmod(path, 0o755)
    fd = os.open(path, os.O_RDWR)
    os.fsync(fd)
    head = os.pread(fd, 64, 0)
    os.pwrite(fd, head, 0)
    os.fsync(fd)
    answers["open"] = error_of(lambda: subprocess.run([path, "0"], check=False))
    os.close(fd)
    with subprocess.Popen([path, "60"]) as running:
        answers["write"] = opened(path, os.O_RDWR, lambda fd: None)
        answers["truncate"] = error_of(os.truncate, path, 0)
        answers["read"] = opened(path, os.O_RDONLY, os.fsync)
        answers["rename"] = error_of(os.rename, path, folder / "renamed")
        answers["unlink"] = error_of(os.unlink, folder / "renamed")
        running.kill()
    return answers


@pytest.mark.parametrize("probe", [rights, flags, extended_flags, no_waiting, far_offsets, memory, programs])
def test_alike(both, probe):
    """On forebay and on the lower file system alone."""
    alike(both, probe)


def test_buffered_write_that_shall_not_wait(both):
    """It is refused as on ext4, also where the lower file system has such writes."""
    files = [in_pmem(MOUNT / "nowait")] + ([in_pmem(REF / "nowait")] if both.fs == "ext4" else [])
    errors = {error_of(pwritev2, fd, b"new", at, os.RWF_NOWAIT) for fd in files for at in (100, PAGES * PAGE)}
    for fd in files:
        os.close(fd)
    assert errors == {errno.EOPNOTSUPP}
    assert contents(MOUNT / "nowait")[1] == "aaaAA"


def test_rights_idmapped(both):
    """The same on idmapped mounts."""
    if both.fs != "ext4":
        pytest.skip("the VFS sees to it, as on ext4")
    for plain, mapped in zip((REF, MOUNT), IDMAPPED):
        mapped.mkdir(exist_ok=True)
        (plain / "mapped").mkdir()
        run(f"mount --bind -o 'X-mount.idmap=b:0:0:1 b:1000:2000:1 b:{STRANGER}:{STRANGER}:1' {plain}/mapped {mapped}")
    try:
        alike(both, rights, IDMAPPED)
    finally:
        for mapped in IDMAPPED:
            run(f"umount {mapped}", check=False)


def test_same_below_afterwards(both):
    """What the probes have left is below after an unmount, byte for byte as above before it."""
    def tree(root):
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*"))
                if path.is_file() and path.stat().st_size < 1 << 20}
    before = tree(MOUNT)
    both.remount()
    assert tree(LOWER) == before == tree(MOUNT)
