# SPDX-License-Identifier: GPL-2.0-only
"""What a writer will do: drawn from a seed, over the files it finds.

The same pages are written again and again, since the second and the hundredth rewrite of a page must be as durable as
the first; and a sync call mostly follows the file that was just written, as programs do it.
"""

from dataclasses import dataclass

from .ops import FRESH, NAMES, PAGE, Code, Op

FILES = 6                       # a writer's, about
BATCH_MIN, BATCH_MAX = 8, 200   # pages, of a batch that is scattered
NOISE = 1 << 20                 # bytes of random data that writes take theirs from

WEIGHTS = {
    Code.WRITE: 30, Code.WRITE_SYNC: 4, Code.WRITE_DSYNC: 4, Code.WRITE_RWF_DSYNC: 3, Code.WRITE_DIRECT: 3,
    Code.APPEND: 7, Code.TRUNCATE: 3, Code.PUNCH: 3, Code.STORE: 14, Code.MSYNC: 6, Code.FSYNC: 10, Code.FDATASYNC: 12,
    Code.SYNC_DIRECTORY: 2, Code.SYNCFS: 0.3, Code.CREATE: 3, Code.RENAME: 4, Code.LINK: 2, Code.UNLINK: 3,
    Code.CLOSE: 1,
}
MAP_SYNC_WEIGHT = 8
SYNCS = (Code.WRITE_SYNC, Code.WRITE_DSYNC, Code.WRITE_RWF_DSYNC, Code.MSYNC, Code.FSYNC, Code.FDATASYNC,
         Code.SYNC_DIRECTORY, Code.SYNCFS, Code.STORE_FLUSH)


@dataclass
class Shape:
    file_max: int = 256 << 10   # bytes
    map_sync: bool = False      # the file system under test takes MAP_SYNC
    syncs: float = 1.0          # share of the usual number of sync calls
    batches: float = 0          # how often many pages are written and then synced at once, in a piece or scattered
    flushed: bool = False       # nothing but flushed stores to sparse files, which were synced when they were empty

    def weights(self):
        if self.flushed:
            return {Code.STORE_FLUSH: 1}
        weights = dict(WEIGHTS)
        if self.map_sync:
            weights[Code.STORE_FLUSH] = MAP_SYNC_WEIGHT
        return {code: weight * (self.syncs if code in SYNCS else 1) for code, weight in weights.items()}


class Plan:
    """Makes `count` operations for a writer whose directory has `names` (name -> file) of `sizes` (file -> bytes)."""

    def __init__(self, random, names, sizes, first_id, shape=None):
        self.random, self.names, self.sizes = random, dict(names), dict(sizes)
        self.next_id = first_id
        self.shape = shape or Shape()
        weights = self.shape.weights()
        self.codes, self.weights = list(weights), list(weights.values())
        self.last = None            # name last written
        self.hot = {}               # name -> page that is written again and again

    def ops(self, count):
        made = self._sparse_files() if self.shape.flushed else []
        while len(made) < count:
            if self.names and self.shape.batches and self.random.random() < self.shape.batches:
                made += self._batch()
            code = self.random.choices(self.codes, self.weights)[0]
            if not self.names or len(self.sizes) < 2:
                code = Code.CREATE
            op = getattr(self, "_" + _MAKERS[code])(code)
            if op:
                made.append(op)
        return made

    def _sparse_files(self):
        """As many files as there may be, each a hole, with a name and a size that are durable."""
        made = []
        while len(self.sizes) < FILES:
            create = self._create(Code.CREATE)
            size = self.sizes[self.names[create.name]] = self.random.randrange(PAGE, self.shape.file_max)
            made += [create, Op(Code.TRUNCATE, create.name, length=size), Op(Code.FSYNC, create.name)]
        return made

    def _batch(self):
        """A segment of a log, or the pages of a B-tree, made durable by one sync call."""
        name, size = self._target()
        pages = size // PAGE
        if pages < BATCH_MIN or self.random.random() < 0.4:
            length = self.random.randrange(BATCH_MIN * PAGE, self.shape.file_max // 2)
            offset = self.random.randrange(min(size + 1, self.shape.file_max - length))
            made = [self._data(Code.WRITE, name, offset, length)]
        else:
            count = min(pages // 2, self.random.randint(BATCH_MIN, BATCH_MAX))
            made = [self._data(Code.WRITE, name, page * PAGE, self.random.choice((PAGE, self.random.randint(1, PAGE))))
                    for page in self.random.sample(range(pages), count)]
        return [*made, Op(self.random.choice((Code.FDATASYNC, Code.FDATASYNC, Code.FSYNC)), name)]

    # Each returns an operation, or nothing if there is no room for one of its kind.

    def _write(self, code):
        name, size = self._target()
        offset, length = self._place(min(size + 4 * PAGE, self.shape.file_max))
        if code == Code.WRITE_DIRECT:
            offset, length = offset // PAGE * PAGE, -(-length // PAGE) * PAGE
        elif code == Code.APPEND:
            offset = size
        return self._data(code, name, offset, length)

    def _store(self, code):
        name, size = self._target()
        if not size:
            return None
        offset, length = self._place(size)
        return self._data(code, name, offset, min(length, size - offset))

    def _data(self, code, name, offset, length):
        if offset + length > self.shape.file_max:
            return None
        self.last = name
        id_ = self.names[name]
        self.sizes[id_] = max(self.sizes[id_], offset + length)
        return Op(code, name, offset=offset, length=length, noise=self.random.randrange(NOISE - length),
                  flags=self._fresh(0.3))

    def _truncate(self, code):
        name, size = self._target()
        length = self.random.choice((
            0, self.random.randrange(size + 1), max(0, size - self.random.randrange(2 * PAGE)), size // PAGE * PAGE,
            min(size + self.random.randrange(3 * PAGE), self.shape.file_max)))
        self.sizes[self.names[name]] = length
        return Op(code, name, length=length, flags=self._fresh(0.3))

    def _punch(self, code):
        name, size = self._target()
        if not size:
            return None
        offset, length = self._place(size)
        if self.random.random() < 0.5:
            offset, length = offset // PAGE * PAGE, PAGE * self.random.randint(1, 4)
        return Op(code, name, offset=offset, length=length)

    def _msync(self, code):
        name, size = self._target()
        if not size:
            return None
        if self.random.random() < 0.3:
            return Op(code, name, length=-(-size // PAGE) * PAGE)
        offset, length = self._place(size)
        first = offset // PAGE * PAGE
        return Op(code, name, offset=first, length=-(-(offset + length - first) // PAGE) * PAGE)

    def _sync(self, code):
        name, _ = self._target()
        return Op(code, name, flags=self._fresh(0.4))

    def _whole(self, code):
        return Op(code)

    def _create(self, code):
        free = self._free_name()
        if free is None or len(self.sizes) >= FILES:
            return None
        id_ = self.names[free] = self.next_id
        self.next_id += 1
        self.sizes[id_] = 0
        self.last = free
        return Op(code, free, id=id_, flags=self._fresh(0.5))

    def _rename(self, code):
        name, _ = self._target()
        other = self.random.choice(list(self.names)) if self.random.random() < 0.5 else self._free_name()
        # Between two names of one file, rename() does nothing.
        if other is None or self.names.get(other) == self.names[name]:
            return None
        self._drop(other)
        self.names[other] = self.names.pop(name)
        self.last = other
        return Op(code, name, other)

    def _link(self, code):
        name, _ = self._target()
        free = self._free_name()
        if free is None or len(self.names) >= 2 * FILES:
            return None
        self.names[free] = self.names[name]
        return Op(code, name, free)

    def _unlink(self, code):
        name = self.random.choice(list(self.names))
        self._drop(name)
        return Op(code, name)

    # Where.

    def _target(self):
        if self.last not in self.names or self.random.random() < 0.3:
            self.last = self.random.choice(list(self.names))
        return self.last, self.sizes[self.names[self.last]]

    def _place(self, end):
        """Offset and length of some bytes before `end`."""
        pages = -(-end // PAGE)
        page = self.hot.get(self.last)
        if page is None or page >= pages or self.random.random() < 0.4:
            page = self.hot[self.last] = self.random.randrange(pages)
        kind = self.random.random()
        if kind < 0.25:
            offset, length = page * PAGE, PAGE
        elif kind < 0.4:
            offset, length = page * PAGE + self.random.randrange(PAGE), self.random.randint(1, 4 * PAGE)
        else:
            offset, length = page * PAGE + self.random.randrange(PAGE), self.random.randint(1, 512)
        offset = min(offset, end - 1)
        return offset, max(1, min(length, end - offset))

    def _fresh(self, share):
        return FRESH if self.random.random() < share else 0

    def _free_name(self):
        free = [name for name in range(NAMES) if name not in self.names]
        return self.random.choice(free) if free else None

    def _drop(self, name):
        id_ = self.names.pop(name, None)
        if id_ is not None and id_ not in self.names.values():
            del self.sizes[id_]


_MAKERS = {
    **dict.fromkeys((Code.WRITE, Code.WRITE_SYNC, Code.WRITE_DSYNC, Code.WRITE_RWF_DSYNC, Code.WRITE_DIRECT,
                     Code.APPEND), "write"),
    **dict.fromkeys((Code.STORE, Code.STORE_FLUSH), "store"),
    **dict.fromkeys((Code.FSYNC, Code.FDATASYNC), "sync"),
    **dict.fromkeys((Code.SYNC_DIRECTORY, Code.SYNCFS, Code.CLOSE), "whole"),
    **{code: code.name.lower() for code in (Code.TRUNCATE, Code.PUNCH, Code.MSYNC, Code.CREATE, Code.RENAME, Code.LINK,
                                            Code.UNLINK)},
}
