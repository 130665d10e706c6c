# SPDX-License-Identifier: GPL-2.0-only
"""What dump.c told of the writers' folders."""

from dataclasses import dataclass, field

from .model import FILE, FOLDER, NO_XATTR, ROOT, SYMLINK
from .ops import OWNER_BIT


@dataclass
class Object:
    """One inode."""
    kind: str
    inode: int = 0
    links: int = 1
    attributes: dict = field(default_factory=dict)
    content: bytes = b""                # of a file, or a symbolic link's target


@dataclass
class Found:
    """One writer's folder."""
    entries: dict = field(default_factory=dict)         # (folder, name) -> object
    objects: dict = field(default_factory=dict)         # number -> Object
    faults: list = field(default_factory=list)          # what no folder may look like, as texts

    def path(self, id_):
        """One path of an object, for messages."""
        names = []
        while id_ != ROOT and len(names) < 100:
            folder, name = next(place for place, each in self.entries.items() if each == id_)
            names.insert(0, name)
            id_ = folder
        return "/".join(names)

    def look_for_faults(self):
        """Every object has as many names as its link count says."""
        for id_, what in sorted(self.objects.items()):
            names = list(self.entries.values()).count(id_)
            if what.kind == FOLDER:
                if names != 1:
                    self.faults.append(f"folder {id_} has {names} names")
                names = 2 + sum(folder == id_ and self.objects[each].kind == FOLDER
                                for (folder, _), each in self.entries.items())
            if what.links != names:
                self.faults.append(f"object {id_} ({self.path(id_)}) has a link count of {what.links}, not {names}")


def load(prefix, writers):
    """PREFIX.index and PREFIX.data as one Found a writer."""
    found = [Found() for _ in range(writers)]
    data = prefix.with_suffix(".data").read_bytes()
    for line in prefix.with_suffix(".index").read_text().splitlines():
        writer, parent, name, *rest = line.split()
        kind, (owner, inode, links, mode, group, atime, mtime, xattr, size, at) = rest[0], map(int, rest[1:])
        this, id_ = found[int(writer)], owner & ~OWNER_BIT
        this.entries[int(parent) & ~OWNER_BIT, name] = id_
        what = Object(kind, inode, links, {"mode": mode, "owner": owner // OWNER_BIT, "group": group, "atime": atime,
                                           "mtime": mtime, "xattr": xattr},
                      data[at:at + size] if kind in (FILE, SYMLINK) else b"")
        known = this.objects.setdefault(id_, what)
        if known.inode != inode:
            this.faults.append(f"object {id_} is there twice, as inodes {known.inode} and {inode}")
    for each in found:
        each.look_for_faults()
    return found


__all__ = ["Found", "NO_XATTR", "Object", "load"]
