# SPDX-License-Identifier: GPL-2.0-only
"""What may be there after a power cut.

The model follows one writer's operations. For everything it knows what must be there (what a sync call vouched for)
and what may be there besides (what came later and was not synced). After a cut, check() tells every difference that no
order of writing back explains.

Contents. A byte has its synced value, or that of any unsynced write, truncation or punch over it, each on its own. Pages
are written back in any order, at any moment, and an unsynced store to PMem may persist in part. Bytes between the synced
and the present end of file may be zero.

Size. It is the synced size, or the size after any later change. While the file grows, it may lie between: at a multiple of a
page (a file system moves the end of file up as it writes pages back) or at the end of a hole (ext4 moves it up to there).

Behind the end. A cut may leave unsynced bytes behind the end of file in the last page, because storage has the bytes and
not the size. ext4 moves the end of file up in an allocated block without waiting for its data. So until a file
that was there before is synced with a larger size, these bytes may be anything. (Forebay has no part in such a page.)

Names. Name operations are durable in the order they were made: what is found is the state after some of the first of
them. That is what a journal gives (ext4, xfs) and what Forebay must not take away.

`ordered=False` is for btrfs, whose log makes single files durable: then each name is looked at alone. Two things it does
not keep (6.12, seen without Forebay too): a file that had several names may get one back that was removed before the
fsync; and a name that changed since it was synced may be lost or lead where it led before, if the change is not synced.

`old_end=True` is for ext4 where Forebay isn't between it and the calls. After an append to a later page that isn't synced,
ext4 (6.12.117) lets the synchronous write or msync of a range that ends in the block of the old end leave the end where it
was: the write allocates no block, and only an allocation moves the end of file on disk. Seen on ext4 alone: size 19161
after `write 22349; O_DSYNC write 16384..20480`. fsync is not concerned, since it writes the later page, too.

Which call vouches for what:
    fsync, syncfs                   contents, size, the file's names
    fdatasync                       contents, size, and that the file exists
    O_SYNC, O_DSYNC write           the same of the range, the size as far as it is needed to read the range
    msync                           the same, the size as far as something was stored in the range: xfs moves the end of file
                                    up as it writes pages back, and a hole has none
    flushed MAP_SYNC store          the same; the size only where the store faults, in a new mapping: a page that is mapped
                                    already takes the store without the kernel's knowing that the file grew meanwhile
    fsync of the directory          its names
"""

from .ops import FRESH, PAGE, Code

RANGE_SYNCS = (Code.WRITE_SYNC, Code.WRITE_DSYNC, Code.WRITE_RWF_DSYNC, Code.STORE_FLUSH)
DATA_WRITES = (Code.WRITE, Code.WRITE_DIRECT, Code.APPEND, Code.STORE) + RANGE_SYNCS


class File:
    """Contents and size of one file."""

    def __init__(self, content=b"", old_end=False, after_cut=False):
        self.old_end = old_end
        self.unknown = range(len(content), -(-len(content) // PAGE) * PAGE if after_cut else 0)
        self.now = bytearray(content)       # as the writer sees it
        self.synced = bytearray(content)    # beyond its end: zeros
        self.sizes = {len(content)}         # that the file may have
        self.hole_ends = set()
        self.pending = []                   # (start, end, data or None for zeros): may have happened, or not

    def write(self, offset, data):
        end = offset + len(data)
        if end > len(self.now):
            self.now.extend(bytes(end - len(self.now)))
            self.sizes.add(end)
        self.now[offset:end] = data
        self.pending.append((offset, end, data))

    def punch(self, start, end):
        end = min(end, len(self.now))
        if start < end:
            self.hole_ends.add(end)
            self.now[start:end] = bytes(end - start)
            self.pending.append((start, end, None))

    def truncate(self, size):
        if size < len(self.now):
            self.pending.append((size, len(self.now), None))
            del self.now[size:]
        else:
            self.now.extend(bytes(size - len(self.now)))
        self.sizes.add(size)

    def sync(self):
        if len(self.now) > self.unknown.start:
            self.unknown = range(0)
        self.synced = bytearray(self.now)
        self.sizes = {len(self.now)}
        self.hole_ends = set()
        self.pending = []

    def stored_to(self, start, end):
        """Where what was written to the range and isn't synced ends; 0: nothing."""
        return max((min(end, last) for first, last, data in self.pending if data and first < end and last > start), default=0)

    def sync_range(self, start, end, size_to):
        """The range is synced; the size is at least @size_to then, if the file is so long."""
        end = min(end, len(self.now))
        if start >= end:
            return
        if len(self.synced) < end:
            self.synced.extend(bytes(end - len(self.synced)))
        self.synced[start:end] = self.now[start:end]
        self.sizes = {size if self._stays(size, end) else max(size, min(size_to, end)) for size in self.sizes}
        left = []
        for entry in self.pending:
            left += _without(entry, start, end)
        self.pending = left

    def _stays(self, size, end):
        """Whether ext4 may leave the end of file at @size, in the block in which a synced range ends."""
        return self.old_end and len(self.now) > end and size % PAGE and size // PAGE == (end - 1) // PAGE

    def check(self, content):
        """What is wrong with `content`, as texts."""
        size = len(content)
        if not self._may_have_size(size):
            yield f"size is {size}, may be {_short(sorted(self.sizes))}"
        for start in range(0, size, PAGE):
            end = min(start + PAGE, size)
            if content[start:end] not in (self.now[start:end], _padded(self.synced, start, end)):
                wrong = self._wrong_bytes(content, start, end)
                if wrong:
                    yield self._describe(content, start, wrong)

    def _may_have_size(self, size):
        on_the_way = size % PAGE == 0 or size in self.hole_ends
        return size in self.sizes or (min(self.sizes) < size < max(self.sizes) and on_the_way)

    def _wrong_bytes(self, content, start, end):
        unexplained = [at for at in range(start, end)
                       if at not in self.unknown and content[at] != (self.synced[at] if at < len(self.synced) else 0)]
        for first, last, data in self.pending:
            if unexplained and first < end and last > start:
                unexplained = [at for at in unexplained
                               if not (first <= at < last and content[at] == (data[at - first] if data else 0))]
        return unexplained

    def _describe(self, content, start, wrong):
        first, last = wrong[0], wrong[-1]
        found = content[first:min(first + 16, last + 1)]
        must = _padded(self.synced, first, first + len(found))
        kind = "zeros" if not any(content[at] for at in wrong) else "other data"
        return (f"page {start // PAGE}: {len(wrong)} bytes in {first}..{last} are {kind}: "
                f"{found.hex()} where {must.hex()} was synced")


def _without(entry, start, end):
    first, last, data = entry
    if last <= start or first >= end:
        return [entry]
    pieces = [(first, min(last, start)), (max(first, end), last)]
    return [(a, b, data and data[a - first:b - first]) for a, b in pieces if a < b]


def _padded(data, start, end):
    return data[start:end].ljust(end - start, b"\0")


def _short(items):
    return str(items) if len(items) <= 8 else f"one of {len(items)} in {items[0]}..{items[-1]}"


class Names:
    """The names in one directory; `history[i]` is the directory after i operations, file ids by name."""

    def __init__(self, names, ordered=True):
        self.now = dict(names)
        self.ordered = ordered
        self.history = [dict(names)]
        self.durable = 0                # history[durable] at least is on storage
        self.created = {}               # file: index in history
        self.changed = {}               # file: index of its last change of name
        self.durable_of = {}            # unordered: name -> index in history
        self.exists = {}                # unordered: file -> index in history since which it is there durably, if named
        self.left = {}                  # unordered: (name, file) -> index in history since which it is not so, durably

    def change(self, ids, created=None):
        self.history.append(dict(self.now))
        at = len(self.history) - 1
        for id_ in ids:
            self.changed[id_] = at
        if created is not None:
            self.created[created] = at

    def sync_file(self, id_, all_names):
        at = (self.changed if all_names else self.created).get(id_, 0)
        if self.ordered:
            self.durable = max(self.durable, at)
            return
        self.exists[id_] = max(self.exists.get(id_, 0), at)
        states = [{name for name, file in state.items() if file == id_} for state in self.history[self.durable:at + 1]]
        for name in states[-1] if states else ():
            self.durable_of[name] = max(self.durable_of.get(name, 0), at)
        if all(len(names) <= 1 for names in states):
            for name in set().union(*states):
                self.left[name, id_] = max(self.left.get((name, id_), 0), at)

    def sync(self):
        self.durable = len(self.history) - 1

    def possible_ids(self):
        return {file for state in self.history[self.durable:] for file in state.values()}

    def check(self, found):
        if self.ordered:
            if found not in self.history[self.durable:]:
                yield self._describe(found)
            return
        for name in found.keys() | self.now.keys() | self.history[self.durable].keys():
            since = max(self.durable, self.durable_of.get(name, 0))
            if len({state.get(name) for state in self.history[since:]}) > 1:
                since = self.durable
            allowed = {state.get(name) for at, state in enumerate(self.history[since:], since)
                       if at >= self.left.get((name, state.get(name)), 0)}
            if len(allowed) > 1:
                allowed.add(None)
            if found.get(name) not in allowed:
                yield f"n{name} is file {found.get(name)}, may be {_short(sorted(allowed, key=str))}"
        exists = {**dict.fromkeys(self.history[self.durable].values(), self.durable), **self.exists}
        for file, since in exists.items():
            if file not in found.values() and all(file in state.values() for state in self.history[since:]):
                yield f"file {file} is gone with all its names"

    def _describe(self, found):
        def distance(state):
            return sum(state.get(name) != found.get(name) for name in state.keys() | found.keys())

        states = self.history[self.durable:]
        nearest = min(states, key=distance)
        differences = [f"n{name} is file {found.get(name)}, not {nearest.get(name)}"
                       for name in sorted(nearest.keys() | found.keys()) if nearest.get(name) != found.get(name)]
        before = " (that was so before the last synced change of names)" if found in self.history else ""
        return f"names are as at no moment since the last sync{before}: " + "; ".join(differences)


class Writer:
    """One writer's directory: feed it operations with apply(), then check() what was found."""

    def __init__(self, names, files, noise, ordered=True, old_end=False):
        self.names = Names(names, ordered)
        self.files = {id_: File(content, old_end) for id_, content in files.items()}
        self.noise, self.old_end = noise, old_end

    def apply(self, op, returned=True):
        """One operation that began and, if `returned`, was answered before the cut."""
        code, names = Code(op.code), self.names
        file = self.files.get(names.now.get(op.name))
        if code in DATA_WRITES:
            file.write(op.offset, self.noise[op.noise:op.noise + op.length])
        elif code is Code.TRUNCATE:
            file.truncate(op.length)
        elif code is Code.PUNCH:
            file.punch(op.offset, op.offset + op.length)
        elif code is Code.CREATE:
            self.files[op.id] = File(old_end=self.old_end)
            names.now[op.name] = op.id
            names.change([op.id], created=op.id)
        elif code is Code.RENAME:
            id_ = names.now.pop(op.name)
            replaced = names.now.get(op.name2)
            names.now[op.name2] = id_
            names.change([id_] if replaced is None else [id_, replaced])
        elif code is Code.LINK:
            id_ = names.now[op.name2] = names.now[op.name]
            names.change([id_])
        elif code is Code.UNLINK:
            names.change([names.now.pop(op.name)])
        if returned:
            self._sync(op, code, file)

    def _sync(self, op, code, file):
        names, id_ = self.names, self.names.now.get(op.name)
        if code in (Code.FSYNC, Code.FDATASYNC):
            file.sync()
            names.sync_file(id_, all_names=code is Code.FSYNC)
        elif code in RANGE_SYNCS or code is Code.MSYNC:
            end = size_to = op.offset + op.length
            if code is Code.MSYNC:
                size_to = file.stored_to(op.offset, end)
            elif code is Code.STORE_FLUSH and not op.flags & FRESH:
                size_to = 0
            file.sync_range(op.offset, end, size_to)
            names.sync_file(id_, all_names=False)
        elif code is Code.SYNC_DIRECTORY:
            names.sync()
        elif code is Code.SYNCFS:
            names.sync()
            for each in self.files.values():
                each.sync()
        if code in (Code.SYNCFS, Code.SYNC_DIRECTORY):
            self._forget()

    def _forget(self):
        possible = self.names.possible_ids()
        self.files = {id_: file for id_, file in self.files.items() if id_ in possible}

    def check(self, names, contents):
        """`names`: file ids by name, `contents`: bytes by id, as found. Texts, one a violation."""
        violations = list(self.names.check(names))
        for id_ in sorted(set(names.values())):
            if id_ not in self.files:
                violations.append(f"file {id_} was never made, or is gone for good")
                continue
            if id_ not in contents:         # found elsewhere, which tree.py tells
                continue
            known = ", ".join(f"n{name}" for name, file in names.items() if file == id_)
            violations += [f"file {id_} ({known}): {text}" for text in self.files[id_].check(contents[id_])]
        return violations
