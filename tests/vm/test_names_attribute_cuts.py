# SPDX-License-Identifier: GPL-2.0-only
"""What of attributes, extended ones, ACLs and flags in a cache with a name log is there after a power cut that comes right after
a call (names_pair.py).

The worker trims the log ten seconds after its first record, and a slow machine takes a second for a program. So few are run
before the first cut, and what was there is looked at after it.
"""

import os
import stat

from names_pair import BOTH, XfsPair, acl_of, flags_of, pair_fixture, settle, sync, write, xattrs_of
from stack import MOUNT, run
from test_emu import module_fixture

emulated_devices = module_fixture
two_file_systems = pair_fixture


def test_attributes(pair):
    write(MOUNT / "f", b"f")
    os.mkdir(MOUNT / "d")
    settle()
    for name in ("f", "d"):
        os.chmod(MOUNT / name, 0o710)
        os.chown(MOUNT / name, 5, 6)
        os.utime(MOUNT / name, ns=(10 ** 18 + 3, 10 ** 18 + 4))
        sync(MOUNT / name)
    for left in pair.after_cuts():
        for name in ("f", "d"):
            status = os.stat(left / name)
            assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o710, 5, 6), name
            assert (status.st_atime_ns, status.st_mtime_ns) == (10 ** 18 + 3, 10 ** 18 + 4), name


@BOTH
def test_extended_attributes(pair):
    """Set, changed and removed: of a file and a folder that storage has, and of new ones. Those of folders on xfs aren't in
    the log."""
    names = ("f", "new") if isinstance(pair, XfsPair) else ("f", "d", "new", "newd")
    write(MOUNT / "f", b"f")
    os.mkdir(MOUNT / "d")
    for name in set(names) - {"new", "newd"}:
        os.setxattr(MOUNT / name, "user.goes", b"goes")
        os.setxattr(MOUNT / name, "user.stays", b"stays")
    settle()
    write(MOUNT / "new", b"new")
    os.mkdir(MOUNT / "newd")
    for name in names:
        os.setxattr(MOUNT / name, "user.number", b"16")
        os.setxattr(MOUNT / name, "user.empty", b"")
        os.setxattr(MOUNT / name, "trusted.long", b"l" * 2000)
        os.setxattr(MOUNT / name, "user.number", b"17")
        if name in ("f", "d"):
            os.removexattr(MOUNT / name, "user.goes")
        sync(MOUNT / name)
    before = os.stat(MOUNT / "f")
    os.setxattr(MOUNT / "f", "user.later", b"not synced")
    expected = {"user.number": b"17", "user.empty": b"", "trusted.long": b"l" * 2000}
    for left in pair.after_cuts():
        for name in names:
            found = xattrs_of(left / name)
            found.pop("user.later", None)
            assert found == expected | ({"user.stays": b"stays"} if name in ("f", "d") else {}), name
        assert (left / "f").read_bytes() == b"f" and (left / "new").read_bytes() == b"new"
        after = os.stat(left / "f")
        assert after.st_mtime_ns == before.st_mtime_ns
        assert "user.later" in os.listxattr(left / "f") or after.st_ctime_ns == before.st_ctime_ns


@BOTH
def test_acls(pair):
    """Of a file that storage has and of a new one: with a chmod that changes the mask, and one that goes."""
    write(MOUNT / "f", b"f")
    write(MOUNT / "goes", b"goes")
    os.mkdir(MOUNT / "d")
    run(f"setfacl -m u:1000:r {MOUNT}/goes")
    if isinstance(pair, XfsPair):       # the log doesn't hold it
        run(f"setfacl -d -m u:1001:rw {MOUNT}/d")
    settle()
    write(MOUNT / "new", b"new")
    run(f"setfacl -m u:1000:rwx,g:1002:r {MOUNT}/f {MOUNT}/new")
    for name in ("f", "new"):
        os.chmod(MOUNT / name, 0o735)
        os.chown(MOUNT / name, 5, 6)
        sync(MOUNT / name)
    run(f"setfacl -b {MOUNT}/goes")
    if not isinstance(pair, XfsPair):
        run(f"setfacl -d -m u:1001:rw {MOUNT}/d")
    sync(MOUNT / "goes")
    sync(MOUNT / "d")
    expected = {}
    for left in pair.after_cuts():
        expected = expected or {name: acl_of(MOUNT / name) for name in ("f", "new", "goes", "d")}
        assert "user:1000:rwx" in expected["f"] and "mask::-wx" in expected["f"] and "default:user:1001:rw-" in expected["d"]
        assert {name: acl_of(left / name) for name in expected} == expected
        for name in ("f", "new"):
            status = os.stat(left / name)
            assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o735, 5, 6)


@BOTH
def test_inherited(pair):
    """New objects in a folder with a default ACL and a flag; the file's fsync is all that makes them durable."""
    os.mkdir(MOUNT / "top")
    run(f"setfacl -d -m u:1001:rw {MOUNT}/top && chattr +d {MOUNT}/top")
    settle()
    os.mkdir(MOUNT / "top/d")
    write(MOUNT / "top/d/f", b"f" * 5000)
    os.mkfifo(MOUNT / "top/fifo", 0o622)
    sync(MOUNT / "top")
    acls, flags = {}, {}
    for left in pair.after_cuts():
        acls = acls or {name: acl_of(MOUNT / "top" / name) for name in ("d", "d/f", "fifo")}
        assert "default:user:1001:rw-" in acls["d"] and all("user:1001:rw-" in acl for acl in acls.values())
        flags = flags or {name: flags_of(MOUNT / "top" / name) for name in ("d", "d/f")}
        assert "d" in flags["d/f"]
        assert {name: acl_of(left / "top" / name) for name in acls} == acls
        assert {name: flags_of(left / "top" / name) for name in flags} == flags
        assert (left / "top/d/f").read_bytes() == b"f" * 5000


@BOTH
def test_flags(pair):
    """Flags of a file and of a folder that storage has, and of new ones, set and cleared."""
    write(MOUNT / "f", b"f")
    os.mkdir(MOUNT / "d")
    run(f"chattr +A {MOUNT}/f {MOUNT}/d")
    settle()
    write(MOUNT / "new", b"new")
    os.mkdir(MOUNT / "newd")
    names = ("f", "d", "new", "newd")
    paths = " ".join(f"{MOUNT / name}" for name in names)
    run(f"chattr +d {paths} && chattr -A {paths}")      # ext4 commits its journal at +S
    for name in names:
        sync(MOUNT / name)
    for left in pair.after_cuts():
        for name in names:
            assert flags_of(left / name) == {"d"}, name


@BOTH
def test_capabilities(pair):
    """One that was set, and one that a write has taken away."""
    for name in ("keeps", "loses"):
        write(MOUNT / name, b"f")
    run(f"setcap cap_net_raw+ep {MOUNT}/keeps cap_net_raw+ep {MOUNT}/loses")
    settle()
    write(MOUNT / "new", b"new")
    run(f"setcap cap_net_admin+ep {MOUNT}/new")
    sync(MOUNT / "new")
    with open(MOUNT / "loses", "ab", buffering=0) as file:
        file.write(b"more")
        os.fsync(file.fileno())
    for left in pair.after_cuts():
        assert "cap_net_raw" in run(f"getcap {left}/keeps") and "cap_net_admin" in run(f"getcap {left}/new")
        assert run(f"getcap {left}/loses") == "" and (left / "loses").read_bytes() == b"fmore"


@BOTH
def test_later_attributes_on_storage(pair):
    """A hash of the integrity subsystem isn't in the log: the fsync waits for storage. Then storage has later attributes
    than the log, and keeps them."""
    write(MOUNT / "f", b"f")
    settle()
    os.setxattr(MOUNT / "f", "user.number", b"16")
    sync(MOUNT / "f")
    os.setxattr(MOUNT / "f", "security.ima", b"\4\4" + bytes(32))
    os.setxattr(MOUNT / "f", "user.number", b"17")
    sync(MOUNT / "f")
    for left in pair.after_cuts(committed=False):
        assert os.getxattr(left / "f", "user.number") == b"17" and "security.ima" in os.listxattr(left / "f")


@BOTH
def test_brick(pair):
    """A file as GlusterFS keeps one: a second name, attributes that change with each write and with the name, and an entry in an
    index, which is another name of a file without a mode. A folder has a symbolic link to it. Only the file is ever synced."""
    for folder in ("d", "names", "index"):
        os.mkdir(MOUNT / folder)
    write(MOUNT / "index/base", b"")
    os.chmod(MOUNT / "index/base", 0)
    settle()
    os.mkdir(MOUNT / "d/new")
    os.setxattr(MOUNT / "d/new", "trusted.gfid", b"folder")
    os.symlink("../d/new", MOUNT / "names/folder")
    fd = os.open(MOUNT / "d/new/f", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    os.setxattr(fd, "trusted.gfid2path.1", b"d/f", os.XATTR_CREATE)
    os.setxattr(fd, "trusted.gfid", b"file", os.XATTR_CREATE)
    os.link(MOUNT / "d/new/f", MOUNT / "names/file")
    for number in range(3):
        os.link(MOUNT / "index/base", MOUNT / "index/file")
        os.setxattr(fd, "trusted.afr.dirty", b"\0\0\0\1")
        os.pwrite(fd, b"%d" % number * 3000, number * 3000)
        os.setxattr(fd, "trusted.glusterfs.mdata", b"%d" % number * 57)
        os.fsync(fd)
        os.setxattr(fd, "trusted.afr.dirty", bytes(4))
        os.unlink(MOUNT / "index/file")
    os.rename(MOUNT / "d/new/f", MOUNT / "d/g")
    os.removexattr(MOUNT / "names/file", "trusted.gfid2path.1")
    os.setxattr(MOUNT / "names/file", "trusted.gfid2path.2", b"d/g", os.XATTR_CREATE)
    os.posix_fallocate(fd, 0, 9000)
    os.fsync(fd)
    os.close(fd)
    for left in pair.after_cuts():
        assert not (left / "d/new/f").exists() and os.path.samefile(left / "d/g", left / "names/file")
        assert os.stat(left / "d/g").st_nlink == 2 and (left / "d/g").read_bytes() == b"0" * 3000 + b"1" * 3000 + b"2" * 3000
        assert xattrs_of(left / "d/g") == {"trusted.gfid": b"file", "trusted.gfid2path.2": b"d/g", "trusted.afr.dirty": bytes(4),
                                           "trusted.glusterfs.mdata": b"2" * 57}
        assert os.readlink(left / "names/folder") == "../d/new" and xattrs_of(left / "d/new") == {"trusted.gfid": b"folder"}
        assert os.listdir(left / "index") == ["base"] and stat.S_IMODE(os.stat(left / "index/base").st_mode) == 0
