# SPDX-License-Identifier: GPL-2.0-only
"""What a writer will do to names and attributes: drawn from a seed, as the little programs that do such things do it.

Each `_scene` is one of them: a mail that is delivered, a file that is replaced, a transaction of SQLite with its journal.
The sync calls of a scene are left out by chance (Shape.syncs), so scenes that sync stand among others that don't.
"""

from dataclasses import dataclass

from .model import FILE, FOLDER, NO_XATTR, Tree
from .ops import NAME_MAX_PLANNED, SET_TIMES, SLOTS, Op

PAGE = 4096
FILES, FOLDERS = 40, 12         # a writer's, about
DEPTH = 4                       # of folders
NS = 10 ** 9
FILE_MODES = (0o600, 0o640, 0o644, 0o666, 0o755, 0o444)
# Every user may make files in every folder, since objects are made by their owners.
FOLDER_MODES = (0o777, 0o773, 0o733, 0o737)

SCENES = {"new_file": 16, "mail": 12, "replace": 12, "journal": 10, "rewrite": 8, "folders": 6, "move_folder": 4, "remove": 8,
          "remove_tree": 2, "link": 5, "move": 8, "exchange": 2, "other_kinds": 3, "attributes": 10, "xattr": 6, "nameless": 5,
          "shrink": 3, "sync_folder": 3, "syncfs": 0.3}


@dataclass
class Shape:
    """How a plan is drawn."""
    syncs: float = 1.0          # share of the usual sync calls; 0: none
    xattrs: bool = True
    file_max: int = 24 << 10    # bytes of a file, about


class Plan:
    """Makes `count` operations for a writer that begins with the `start` that a dump found."""

    def __init__(self, random, start, first_id, shape=None):
        self.random, self.shape = random, shape or Shape()
        self.tree = Tree(start.entries, {id_: found.kind for id_, found in start.objects.items()})
        self.sizes = {id_: len(found.content) for id_, found in start.objects.items() if found.kind == FILE}
        self.next_id, self.turn = first_id, 0
        self.made = []
        scenes = {name: weight for name, weight in SCENES.items() if name != "xattr" or self.shape.xattrs}
        self.scenes, self.weights = list(scenes), list(scenes.values())

    def ops(self, count):
        while len(self.made) < count:
            if len(self._paths(FILE)) < 3:
                scene = "new_file"
            else:
                scene = self.random.choices(self.scenes, self.weights)[0]
            getattr(self, "_scene_" + scene)()
        return self.made[:count]

    # The scenes.

    def _scene_new_file(self):
        path = self._new_path()
        if path and len(self.sizes) < FILES:
            slot = self._create(path)
            self._writes(slot, path)
            self._sync_file(slot, path)
            self._sync_folder(path, 0.3)
            self._close(slot)

    def _scene_mail(self):
        """Maildir: tmp/, new/."""
        box = self._folder_named("mail")
        for name in ("tmp", "new"):
            if self._find(f"{box}/{name}") is None:
                self._mkdir(f"{box}/{name}")
            elif self._kind(f"{box}/{name}") != FOLDER:     # exchanged for something else
                return
        name = f"m{self._id()}"
        slot = self._create(f"{box}/tmp/{name}")
        self._writes(slot, f"{box}/tmp/{name}")
        self._sync_file(slot, f"{box}/tmp/{name}")
        self._close(slot)
        self._do(Op("rename", f"{box}/tmp/{name}", f"{box}/new/{name}"))
        self._sync_folder(f"{box}/new/{name}", 0.8)
        mails = [path for path in self._paths(FILE) if path.startswith(f"{box}/new/")]
        if len(mails) > 6:
            self._do(Op("unlink", self.random.choice(mails)))

    def _scene_replace(self):
        old = self._some(FILE)
        new = old and f"{old}.n{self._id()}"
        if new and len(new) < NAME_MAX_PLANNED:
            slot = self._create(new)
            self._writes(slot, new)
            self._sync_file(slot, new, 0.9)
            self._do(Op("rename", new, old))
            self._sync_folder(old, 0.7)
            if self.random.random() < 0.3:
                self._sync_file(slot, old)
            self._close(slot)

    def _scene_journal(self):
        """A transaction of SQLite: the journal is deleted, truncated, or stays with another head."""
        base = self._some(FILE)
        if base is None or len(base) > NAME_MAX_PLANNED - 9:
            return
        journal = f"{base}-journal"
        there = self._find(journal) is not None
        if there and self._kind(journal) != FILE:       # exchanged for something else
            return
        slot = self._open(journal) if there else self._create(journal)
        self._write(slot, journal, 0, self.random.randint(512, 2 * PAGE))
        self._sync_file(slot, journal)
        self._sync_folder(base, 0.5)
        for _ in range(self.random.randint(1, 3)):
            self._write(None, base, self.random.randrange(4) * PAGE, PAGE)
        self._do_sync(Op("fdatasync", base))
        end = self.random.choice(("unlink", "unlink", "truncate", "write"))
        if end == "unlink":
            self._close(slot)
            self._do(Op("unlink", journal))
            self._sync_folder(base, 0.7)
        else:
            if end == "truncate":
                self._truncate(slot, journal, 0)
            else:
                self._write(slot, journal, 0, 28)
            self._sync_file(slot, journal)
            self._close(slot)

    def _scene_rewrite(self):
        path = self._some(FILE)
        slot = self._open(path) if self.random.random() < 0.3 else None
        self._writes(slot, path)
        self._sync_file(slot, path, 0.8)
        self._close(slot)

    def _scene_shrink(self):
        path = self._some(FILE)
        size = self.sizes[self._find(path)]
        self._truncate(None, path, self.random.choice((0, self.random.randrange(size + 1), size + self.random.randrange(PAGE))))
        if self.random.random() < 0.6:
            self._writes(None, path)
        self._sync_file(None, path, 0.7)

    def _scene_folders(self):
        path = self._new_path()
        for _ in range(self.random.randint(1, 3)):
            if not path or path.count("/") >= DEPTH or len(self._paths(FOLDER)) >= FOLDERS:
                return
            self._mkdir(path)
            if self.random.random() < 0.6:
                slot = self._create(f"{path}/f")
                self._writes(slot, f"{path}/f")
                self._sync_file(slot, f"{path}/f", 0.6)
                self._close(slot)
            if self.random.random() < 0.3:
                self._do_sync(Op("fsync", path))
            path = f"{path}/d{self._id()}"
        self._sync_folder(path, 0.4)

    def _scene_move_folder(self):
        old = self._some(FOLDER)
        new = old and self._new_path()
        if new and not new.startswith(f"{old}/") and self._height(old) + new.count("/") <= DEPTH + 2:
            self._do(Op("rename", old, new))
            if self.random.random() < 0.5:
                self._do_sync(Op("fsync", new))
            self._sync_folder(new, 0.4)
            self._sync_folder(old, 0.2)

    def _scene_remove(self):
        path = self._some(FILE, FOLDER)
        if self._kind(path) == FOLDER:
            if self._below(path):
                return
            self._do(Op("rmdir", path))
        else:
            self._do(Op("unlink", path))
        self._sync_folder(path, 0.4)

    def _scene_remove_tree(self):
        top = self._some(FOLDER)
        if top is None:
            return
        for path in sorted(self._below(top), key=lambda path: -path.count("/")) + [top]:
            self._do(Op("rmdir" if self._kind(path) == FOLDER else "unlink", path))
        self._sync_folder(top, 0.4)

    def _scene_link(self):
        old, new = self._some(FILE), self._new_path()
        if new:
            self._do(Op("link", old, new))
            self._sync_file(None, self.random.choice((old, new)), 0.5)
            self._sync_folder(new, 0.2)

    def _scene_move(self):
        old = self._some(FILE)
        new = self._new_path() if self.random.random() < 0.7 else self._some(FILE)
        if new and self._find(new) != self._find(old):
            self._do(Op("noreplace" if self._find(new) is None and self.random.random() < 0.2 else "rename", old, new))
            self._sync_file(None, new, 0.4)
            self._sync_folder(self.random.choice((old, new)), 0.4)

    def _scene_exchange(self):
        one, other = self._some(FILE, FOLDER), self._some(FILE, FOLDER)
        if f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/") or self._find(one) == self._find(other):
            return
        self._do(Op("exchange", one, other))
        self._sync_folder(self.random.choice((one, other)), 0.6)

    def _scene_other_kinds(self):
        path = self._new_path()
        if path and self.random.random() < 0.7:
            self._do(Op("symlink", path, id=self._id(), x=self.random.choice((12, 40, 59, 60, 61, 200))))
        elif path:
            self._do(Op("fifo", path, id=self._id(), x=0o644))
        if path:
            self._sync_folder(path, 0.6)
        others = [path for path in self._paths() if self._kind(path) not in (FILE, FOLDER)]
        if len(others) > 5:
            self._do(Op("unlink", self.random.choice(others)))

    def _scene_attributes(self):
        path = self._some(FILE, FOLDER)
        for _ in range(self.random.choice((1, 1, 2, 3))):
            self._do(self.random.choice((self._chmod, self._chown, self._utimes))(path))
        if self.random.random() < 0.8:
            self._do_sync(Op("fsync", path))

    def _scene_xattr(self):
        path = self._some(FILE, FOLDER)
        for _ in range(self.random.choice((1, 1, 2))):
            self._do(Op("xattr", path, x=NO_XATTR if self.random.random() < 0.2 else self.random.randrange(10 ** 6)))
        if self.random.random() < 0.6:
            self._do_sync(Op("fsync", path))

    def _scene_nameless(self):
        """O_TMPFILE, written, and given a name."""
        path = self._new_path()
        if not path or len(self.sizes) >= FILES:
            return
        slot, id_ = self._slot(), self._id()
        self._do(Op("tmpfile", path.rpartition("/")[0] or ".", id=id_, x=self.random.choice(FILE_MODES), y=slot))
        self.sizes[id_] = 0
        slot = f"@{slot}"
        self._writes(slot, None)
        if self.random.random() < 0.5:
            self._do_sync(Op("fsync", slot))
        if self.random.random() < 0.9:
            self._do(Op("link", slot, path))
            if self.random.random() < 0.7:
                self._do_sync(Op("fsync", self.random.choice((slot, path))))
            self._sync_folder(path, 0.2)
        self._close(slot)

    def _scene_sync_folder(self):
        self._do_sync(Op("fsync", self._some(FOLDER) or "."))

    def _scene_syncfs(self):
        self._do_sync(Op("syncfs", "."))

    # Parts of scenes.

    def _create(self, path):
        """Returns the slot that holds the new file, or None."""
        slot, id_ = self._slot() if self.random.random() < 0.7 else -1, self._id()
        self._do(Op("create", path, id=id_, x=self.random.choice(FILE_MODES), y=slot))
        self.sizes[id_] = 0
        return None if slot < 0 else f"@{slot}"

    def _mkdir(self, path):
        self._do(Op("mkdir", path, id=self._id(), x=self.random.choice(FOLDER_MODES)))

    def _open(self, path):
        slot = self._slot()
        self._do(Op("open", path, y=slot))
        return f"@{slot}"

    def _close(self, slot):
        if slot:
            self._do(Op("close", slot))

    def _writes(self, slot, path):
        size = self.sizes[self._find(slot or path)]
        for _ in range(self.random.choice((0, 1, 1, 1, 2, 3))):
            kind = self.random.random()
            if kind < 0.5:
                offset, length = size, self.random.randint(1, 2 * PAGE)
            elif kind < 0.7:
                offset, length = 0, self.random.randint(1, max(1, size))
            else:
                offset, length = self.random.randrange(size + PAGE), self.random.randint(1, PAGE)
            if offset + length <= self.shape.file_max:
                self._write(slot, path, offset, length)

    def _write(self, slot, path, offset, length):
        id_ = self._find(slot or path)
        self.sizes[id_] = max(self.sizes[id_], offset + length)
        self._do(Op("write", self._either(slot, path), id=id_, n=self.random.getrandbits(32), x=offset, y=length))

    def _truncate(self, slot, path, size):
        self.sizes[self._find(slot or path)] = size
        self._do(Op("truncate", self._either(slot, path), x=size))

    def _sync_file(self, slot, path, share=0.9):
        if self.random.random() < share:
            self._do_sync(Op(self.random.choice(("fsync", "fsync", "fsync", "fdatasync")), self._either(slot, path)))

    def _sync_folder(self, path, share):
        """The one that a path's last component lies in, if it is still there."""
        folder = path.rpartition("/")[0] or "."
        if self.random.random() < share and self._there(folder):
            self._do_sync(Op("fsync", folder))

    def _chmod(self, path):
        return Op("chmod", path, x=self.random.choice(FOLDER_MODES if self._kind(path) == FOLDER else FILE_MODES))

    def _chown(self, path):
        return Op("chown", path, id=self._find(path), n=self.random.randrange(2), x=self.random.choice((0, 7, 1000, 70000)))

    def _utimes(self, path):
        return Op("utimes", path, x=self._time(), y=self._time())

    def _time(self):
        return self.random.choice(SET_TIMES) * NS + self.random.randrange(NS)

    def _do_sync(self, op):
        if self.random.random() < self.shape.syncs:
            self._do(op)

    def _do(self, op):
        self.tree.apply(op)
        self.made.append(op)
        if op.code in ("unlink", "rename", "close"):
            kept = {*self.tree.entries.values(), *self.tree.slots.values()}
            self.sizes = {id_: size for id_, size in self.sizes.items() if id_ in kept}

    # Where.

    def _id(self):
        self.next_id += 1
        return self.next_id - 1

    def _slot(self):
        """A free one: no scene holds more than two files."""
        self.turn = (self.turn + 1) % SLOTS
        return self.turn

    def _either(self, slot, path):
        return slot if slot and (path is None or self.random.random() < 0.7) else path

    def _find(self, path):
        return self.tree.find(path)

    def _there(self, path):
        try:
            return self.tree.find(path) is not None
        except KeyError:
            return False

    def _kind(self, path):
        return self.tree.kinds[self.tree.find(path)]

    def _paths(self, *kinds):
        """Of all objects, or of those kinds."""
        folders = {0: ""}
        paths, left = [], dict(self.tree.entries)
        while left:
            here = [(place, id_) for place, id_ in left.items() if place[0] in folders]
            assert here, f"folders that no path leads to: {left}"
            for (folder, name), id_ in here:
                del left[folder, name]
                path = folders[folder] + name
                if self.tree.kinds[id_] == FOLDER:
                    folders[id_] = path + "/"
                if not kinds or self.tree.kinds[id_] in kinds:
                    paths.append(path)
        return paths

    def _some(self, *kinds):
        paths = self._paths(*kinds)
        return self.random.choice(paths) if paths else None

    def _below(self, folder):
        return [path for path in self._paths() if path.startswith(f"{folder}/")]

    def _height(self, folder):
        """Of the tree in a folder."""
        return max((path.count("/") - folder.count("/") for path in self._below(folder)), default=0)

    def _new_path(self):
        """A name that is free, in some folder; often a short one that was used before."""
        folders = [path for path in self._paths(FOLDER) if path.count("/") < DEPTH]
        folder = self.random.choice(["", *(f"{path}/" for path in folders)])
        path = folder + self.random.choice((f"n{self.random.randrange(12)}", f"n{self.random.randrange(12)}", f"name-{self._id()}"))
        return path if self._find(path) is None and len(path) < NAME_MAX_PLANNED else None

    def _folder_named(self, name):
        if self._find(name) is None:
            self._mkdir(name)
        return name if self._kind(name) == FOLDER else self._folder_named(f"{name}x")
