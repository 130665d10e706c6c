# SPDX-License-Identifier: GPL-2.0-only
"""What may be there after a power cut, of names and attributes.

The model follows one writer's operations. Objects (files, folders, links) have numbers that they keep.

Names. A writer's operations are done one after the other, and both journals and the name log keep their order. So what is
found is the writer's tree after some first operations of all that it did: one of the states of `History`. Which of them is
the earliest that may be found, sync calls decide:

    fsync of a file         the tree as after the last change of a name of this file
    fdatasync of a file     the tree as after the file's creation
    fsync of a folder       the tree as after the last change of an entry of this folder, or of its own name
    syncfs                  the tree as it is

This is N1 to N3 in one: after fsync a file has the names that it had, or later ones; a folder has the entries of then, or of
a later moment; and no change is there without those before it.

Attributes. Each of an object's attributes is on its own: what it was at the object's last fsync, or what it was set to
since. The file system below may write an inode early, so attributes have no order with names. An mtime that a write, or a
change of a folder's entries, leaves to the clock is later than each that utimes sets. A folder that
moves keeps its mtime. When folders of different parents are exchanged, xfs moves it, ext4 doesn't, and neither does replay.

Contents. As in the other campaign (../model.py, File): what was synced, or what was written since. Data carry the number of
the file that they were written to, so a violation can say whose bytes it found.
"""

from ..model import File
from .ops import SET_TIMES, data_of, target_of

ROOT = 0
ANY = None
CLOCK = "the clock's"
FILE, FOLDER, SYMLINK, FIFO = "fdlp"
KINDS = {"create": FILE, "tmpfile": FILE, "mkdir": FOLDER, "symlink": SYMLINK, "fifo": FIFO}


class Tree:
    """The names of one writer, as they are now: (folder, name) -> object."""

    def __init__(self, entries=None, kinds=None):
        self.entries = dict(entries or {})
        self.kinds = {ROOT: FOLDER, **(kinds or {})}
        self.slots = {}

    def place(self, path):
        """The folder that a path leads to, and its last component."""
        folder = ROOT
        *folders, name = path.split("/")
        for each in folders:
            folder = self.entries[folder, each]
        return folder, name

    def find(self, path):
        """The object at a path or in a slot; None: nothing."""
        if path.startswith("@"):
            return self.slots[path]
        return ROOT if path == "." else self.entries.get(self.place(path))

    def apply(self, op):
        """Does what one operation does to names; returns the objects that have other names or entries than before, and of
        these the folders that have other entries."""
        if op.code in KINDS:
            self.kinds[op.id] = KINDS[op.code]
        if op.code in ("create", "tmpfile") and op.y >= 0:
            self.slots[f"@{op.y}"] = op.id
        if op.code == "open":
            self.slots[f"@{op.y}"] = self.find(op.path)
        if op.code == "close":
            del self.slots[op.path]
        if op.code in ("create", "mkdir", "symlink", "fifo"):
            return self._bind(self.place(op.path), op.id)
        if op.code == "link":
            return self._bind(self.place(op.path2), self.find(op.path))
        if op.code in ("unlink", "rmdir"):
            return self._bind(self.place(op.path), None)
        if op.code in ("rename", "noreplace", "exchange"):
            return self._rename(op)
        return set(), set()

    def _rename(self, op):
        old, new = self.place(op.path), self.place(op.path2)
        moved, replaced = self.entries[old], self.entries.get(new)
        if moved == replaced:           # two names of one file: rename() does nothing
            return set(), set()
        changes = self._bind(old, replaced if op.code == "exchange" else None), self._bind(new, moved)
        return tuple(set.union(*each) for each in zip(*changes))

    def _bind(self, place, id_):
        folder = place[0]
        changed = {folder, id_, self.entries.pop(place, None)}
        if id_ is not None:
            self.entries[place] = id_
        return changed - {None}, {folder}


class History:
    """The states that a writer's tree had: states[i] is the tree after i changes."""

    def __init__(self, entries):
        self.states = [dict(entries)]
        self.durable = 0                # states[durable] or a later one must be found
        self.changed = {}               # object: the state after the last change of its names or entries
        self.made = {}                  # object: the state after its creation

    def change(self, entries, objects):
        self.states.append(dict(entries))
        self.changed |= dict.fromkeys(objects, len(self.states) - 1)

    def sync(self, at):
        self.durable = max(self.durable, at)

    def check(self, found):
        """What is wrong with the names found, as texts."""
        if found in self.states[self.durable:]:
            return
        nearest = min(self.states[self.durable:], key=lambda state: len(found.items() ^ state.items()))
        early = " (so it was before the last synced change)" if found in self.states else ""
        wrong = sorted({place for place, _ in found.items() ^ nearest.items()})
        yield f"names are as at no moment since the last sync{early}: " + "; ".join(
            f"'{name}' in {folder} is {found.get((folder, name))}, not {nearest.get((folder, name))}" for folder, name in wrong)


class Attributes:
    """The values that each attribute of one object may have, the oldest first."""

    FIELDS = ("mode", "owner", "group", "atime", "mtime", "xattr")

    def __init__(self, **values):
        self.values = {field: [values.get(field, ANY)] for field in self.FIELDS}

    def set(self, **values):
        for field, value in values.items():
            self.values[field].append(value)

    def sync(self):
        self.values = {field: values[-1:] for field, values in self.values.items()}

    def check(self, found):
        """What is wrong with the attributes found (field -> value), as texts."""
        for field, allowed in self.values.items():
            by_clock = CLOCK in allowed and found[field] >= SET_TIMES.stop * 10 ** 9
            if ANY not in allowed and found[field] not in allowed and not by_clock:
                yield f"{field} is {found[field]}, may be {allowed if len(allowed) < 8 else allowed[-8:]}"


NO_XATTR = -1


class Writer:
    """One writer's folder: feed it operations with apply(), then check() what was found."""

    def __init__(self, start, noise, old_end=False):
        """`start`: a found.Found."""
        self.noise, self.old_end = noise, old_end
        self.tree = Tree(start.entries, {id_: found.kind for id_, found in start.objects.items()})
        self.history = History(start.entries)
        self.files = {id_: File(found.content, old_end, after_cut=True) for id_, found in start.objects.items() if found.kind == FILE}
        self.targets = {id_: found.content for id_, found in start.objects.items() if found.kind == SYMLINK}
        # To read a file may have changed its atime.
        self.attributes = {id_: Attributes(**{**found.attributes, "atime": ANY}) for id_, found in start.objects.items()}
        self.attributes[ROOT] = Attributes()

    def apply(self, op, returned=True):
        """One operation that began and, if `returned`, was answered before the cut."""
        changed, folders = self.tree.apply(op)
        if op.code in KINDS:
            self._make(op)
        if changed:
            self.history.change(self.tree.entries, changed)
        for id_ in changed - folders if op.code == "exchange" and len(folders) == 2 else ():
            if self.tree.kinds[id_] == FOLDER:
                self.attributes[id_].set(mtime=ANY)
        for id_ in folders:
            self.attributes[id_].set(mtime=CLOCK)
        if op.code in ("create", "mkdir", "symlink", "fifo"):
            self.history.made[op.id] = len(self.history.states) - 1
        self._write(op)
        self._set(op)
        if returned:
            self._sync(op)

    def _make(self, op):
        mode = 0o777 if op.code == "symlink" else op.x
        self.attributes[op.id] = Attributes(mode=mode, owner=0, group=0, mtime=CLOCK, xattr=NO_XATTR)
        if op.code in ("create", "tmpfile"):
            self.files[op.id] = File(old_end=self.old_end)
        elif op.code == "symlink":
            self.targets[op.id] = target_of(op.id, op.x).encode()

    def _write(self, op):
        if op.code not in ("write", "truncate"):
            return
        id_ = self.tree.find(op.path)
        if op.code == "write":
            self.files[id_].write(op.x, data_of(self.noise, op))
        else:
            self.files[id_].truncate(op.x)
        self.attributes[id_].set(mtime=CLOCK)

    def _set(self, op):
        if op.code not in ("chmod", "chown", "utimes", "xattr"):
            return
        values = {"chmod": {"mode": op.x}, "chown": {"owner": op.n, "group": op.x}, "utimes": {"atime": op.x, "mtime": op.y},
                  "xattr": {"xattr": op.x}}
        self.attributes[self.tree.find(op.path)].set(**values[op.code])

    def _sync(self, op):
        if op.code == "syncfs":
            self.history.sync(len(self.history.states) - 1)
            for each in (*self.files.values(), *self.attributes.values()):
                each.sync()
        elif op.code in ("fsync", "fdatasync"):
            id_ = self.tree.find(op.path)
            if id_ in self.tree.entries.values() or id_ == ROOT:    # else it has no name that could be promised
                self.history.sync((self.history.changed if op.code == "fsync" else self.history.made).get(id_, 0))
            if id_ in self.files:
                self.files[id_].sync()
            if op.code == "fsync":
                self.attributes[id_].sync()

    def check(self, found):
        """`found`: a found.Found. Texts, one a violation."""
        violations = list(self.history.check(found.entries))
        for id_, what in sorted(found.objects.items()):
            if id_ not in self.attributes:
                violations.append(f"object {id_} was never made")
                continue
            violations += [f"object {id_} ({found.path(id_)}): {text}" for text in self._check(id_, what)]
        return violations

    def _check(self, id_, what):
        if what.kind != self.tree.kinds[id_]:
            yield f"is of kind {what.kind}, not {self.tree.kinds[id_]}"
            return
        if what.kind == FILE:
            wrong = list(self.files[id_].check(what.content))
            yield from wrong
            if wrong:
                yield from self._others_bytes(id_, what.content)
        elif what.kind == SYMLINK and what.content != self.targets[id_]:
            yield f"leads to {what.content}, not {self.targets[id_]}"
        yield from self.attributes[id_].check(what.attributes)

    def _others_bytes(self, id_, content):
        for other in self.files:
            if other != id_ and other.to_bytes(4, "little") in content:
                yield f"has bytes that were written to file {other}"
