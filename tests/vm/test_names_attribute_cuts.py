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
