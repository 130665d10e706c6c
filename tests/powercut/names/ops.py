# SPDX-License-Identifier: GPL-2.0-only
"""What a writer does, one line an operation: plan.py writes them, writer.c carries them out, model.py judges by them.

    CODE PATH PATH2 ID N X Y        "-" stands for a path that the operation doesn't have

A path is relative to the writer's directory, "." is that directory, and @0, @1, ... are files that the writer holds open.
What the numbers mean is said at FIELDS.
"""

from dataclasses import dataclass

SLOTS = 8                       # files held open: writer.c has the same number
NAME_MAX_PLANNED = 250          # bytes of a path: writer.c reads no longer ones
OWNER_BIT = 1 << 31             # of a uid: changed by chown; the other bits are the object's number
SET_TIMES = range(10 ** 9, 16 * 10 ** 8)    # s: those that utimes sets. What the clock says is later
WRITE_STEP = 64                 # of written data: so often the file's number and the write's are in them

# ID is the number of an object that is made or written, which is its owner.
FIELDS = {
    "create": "X mode, Y slot that holds it open, or -1", "tmpfile": "PATH the folder, X mode, Y slot",
    "mkdir": "X mode", "symlink": "X length of the target", "fifo": "X mode",
    "open": "Y slot", "close": "PATH the slot",
    "write": "N which data, X offset, Y length", "truncate": "X size",
    "unlink": "", "rmdir": "", "link": "PATH may be a slot", "rename": "", "exchange": "", "noreplace": "",
    "chmod": "X mode", "chown": "N 1 or 0, for OWNER_BIT; X group", "utimes": "X atime, Y mtime, in ns", "xattr": "X value, -1 removes it",
    "fsync": "", "fdatasync": "", "syncfs": "",
}
SYNCS = ("fsync", "fdatasync", "syncfs")


@dataclass(slots=True)
class Op:
    """One operation."""
    code: str
    path: str = "-"
    path2: str = "-"
    id: int = 0
    n: int = 0
    x: int = 0
    y: int = 0

    def pack(self):
        return f"{self.code} {self.path} {self.path2} {self.id} {self.n} {self.x} {self.y}\n".encode()

    def __str__(self):
        return self.pack().decode().strip()


def unpack(data):
    """The operations of a plan."""
    for line in data.decode().splitlines():
        code, path, path2, *numbers = line.split()
        yield Op(code, path, path2, *map(int, numbers))


def target_of(id_, length):
    """What a symbolic link of that number and length says."""
    return str(id_).ljust(length, "x")


def data_of(noise, op):
    """What a write writes: a piece of the noise, with the file's number and the write's every WRITE_STEP bytes."""
    start = op.n % (len(noise) - op.y)
    data = bytearray(noise[start:start + op.y])
    mark = op.id.to_bytes(4, "little") + op.n.to_bytes(4, "little")
    for at in range(0, op.y - len(mark) + 1, WRITE_STEP):
        data[at:at + len(mark)] = mark
    return bytes(data)
