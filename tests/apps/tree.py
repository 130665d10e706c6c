# SPDX-License-Identifier: GPL-2.0-only
"""What a tree holds: every name with its attributes and a checksum of its contents; and how two trees
differ."""

import hashlib
import os
import stat

SHOWN = 30


def describe(top):
    """{relative path: {attribute: value}} of everything below `top`, itself too."""
    entries = {".": entry(top)}
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            entries[os.path.relpath(path, top)] = entry(path)
    return entries


def entry(path):
    info = os.lstat(path)
    kind = stat.S_IFMT(info.st_mode)
    found = {"mode": oct(info.st_mode), "owner": (info.st_uid, info.st_gid), "mtime": info.st_mtime_ns, "xattrs": xattrs(path)}
    if not stat.S_ISDIR(kind):
        found.update(inode=info.st_ino, links=info.st_nlink, size=info.st_size)
    if stat.S_ISREG(kind):
        found["sha256"] = checksum(path)
    elif stat.S_ISLNK(kind):
        found["target"] = os.readlink(path)
    elif stat.S_ISBLK(kind) or stat.S_ISCHR(kind):
        found["device"] = info.st_rdev
    return found


def xattrs(path):
    return {name: os.getxattr(path, name, follow_symlinks=False).hex() for name in os.listxattr(path, follow_symlinks=False)}


def checksum(path):
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def size(entries):
    return sum(found.get("size", 0) for found in entries.values() if "sha256" in found)


def differences(before, after):
    """Lines, one for each name that isn't the same; the first ones only."""
    lines = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old is None or new is None:
            lines.append(f"{path}: {'only afterwards' if old is None else 'gone'}")
        elif old != new:
            what = [f"{key} {old.get(key)} -> {new.get(key)}" for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
            lines.append(f"{path}: {', '.join(what)}")
    more = len(lines) - SHOWN
    return lines[:SHOWN] + ([f"... and {more} more"] if more > 0 else [])
