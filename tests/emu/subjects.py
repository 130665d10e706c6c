# SPDX-License-Identifier: GPL-2.0-only
"""The subjects of the power cuts, over emulated devices: forebay over ext4, and the write log.

Each is set up once. Of each cut a copy is opened beside it, read and closed again.
"""

import mmap
import os
import subprocess
from pathlib import Path

import emulated
from blocks import BLOCK

MIB = 1 << 20


def run(*command):
    """Runs a command that must succeed."""
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


class Subject:
    """Two devices, storage and PMem, and two more of each size to cut into."""

    def __init__(self, storage, pmem):
        self.storage, self.pmem = emulated.create(storage), emulated.create(pmem)
        self.pairs = [(self.storage, emulated.create(storage)), (self.pmem, emulated.create(pmem))]

    def devices(self, copy):
        """Paths of storage and PMem."""
        return [emulated.path(pair[copy]) for pair in self.pairs]

    def cut(self, seed):
        """Power goes."""
        emulated.cut(self.pairs, seed)


class FileSystem(Subject):
    """Blocks of files, overwritten and appended and synced with fdatasync; the last ones are files of their
    own, each replaced by rename.

    A pinned file leaves less of the cache than these files need, so the cache is full most of the time.
    """

    NAME, BLOCKS, NAMED, PER_FILE = "forebay", 216, 16, 100
    ROOM = 130          # pages of the cache

    def __init__(self):
        super().__init__(16 * MIB, 5 * MIB)
        storage, pmem = self.devices(0)
        run("mkfs.ext4", "-Fq", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", storage)
        run("forebay", "format", pmem)
        self.open_copy(0)
        for number in range(self.BLOCKS // self.PER_FILE):
            with open(f"{self.folder(0)}/{number}", "wb") as file:
                os.fsync(file.fileno())
        self._pin_ballast()
        self.root = os.open(self.folder(0), os.O_RDONLY)
        os.fsync(self.root)

    @staticmethod
    def folder(copy):
        """Where it is mounted."""
        return f"/mnt/fb{copy}"

    def open_copy(self, copy=1):
        """Mounts."""
        storage, pmem = self.devices(copy)
        lower = f"/mnt/lower{copy}"
        for folder in (lower, self.folder(copy)):
            os.makedirs(folder, exist_ok=True)
        emulated.mount(storage, lower, "ext4")
        emulated.mount(lower, self.folder(copy), "forebay", f"cache={pmem},allow_volatile_cache")

    def close_copy(self, copy=1):
        """Unmounts, which writes everything back."""
        emulated.umount(self.folder(copy))
        emulated.umount(f"/mnt/lower{copy}")

    def end(self):
        """No more cuts."""
        os.close(self.root)
        self.close_copy(0)

    def _pin_ballast(self):
        pages = int(Path(f"/sys/fs/forebay/forebay-emu{self.pmem}/pages_total").read_text(encoding="ascii")) - self.ROOM
        emulated.mount("none", self.folder(0), "forebay", f"pin_limit={pages * BLOCK}", emulated.MS_REMOUNT)
        ballast = Path(f"{self.folder(0)}/ballast")
        ballast.write_bytes(bytes(pages * BLOCK))
        run("forebay", "pin", ballast)
        run("forebay", "drain", self.folder(0))

    def write(self, block, data):
        """Writes a block; the write is durable on return."""
        if block >= self.BLOCKS - self.NAMED:
            self._replace(block, data)
            return
        fd = os.open(f"{self.folder(0)}/{block // self.PER_FILE}", os.O_WRONLY)
        os.pwrite(fd, data, block % self.PER_FILE * BLOCK)
        os.fdatasync(fd)
        os.close(fd)

    def _replace(self, block, data):
        name = f"{self.folder(0)}/n{block}"
        fd = os.open(f"{name}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(fd, data)
        os.fsync(fd)
        os.close(fd)
        os.rename(f"{name}.new", name)
        os.fsync(self.root)

    def read(self):
        """(block, its bytes), of all; a block that a file doesn't reach is zeros."""
        for number in range((self.BLOCKS - self.NAMED) // self.PER_FILE):
            data = Path(f"{self.folder(1)}/{number}").read_bytes().ljust(self.PER_FILE * BLOCK, b"\0")
            for index in range(self.PER_FILE):
                yield number * self.PER_FILE + index, data[index * BLOCK:(index + 1) * BLOCK]
        for block in range(self.BLOCKS - self.NAMED, self.BLOCKS):
            name = Path(f"{self.folder(1)}/n{block}")
            yield block, name.read_bytes() if name.exists() else bytes(BLOCK)


class WriteLog(Subject):
    """Direct writes of a block each to a write log over the storage, smaller than it."""

    NAME, BLOCKS = "writelog", 320

    def __init__(self):
        super().__init__(self.BLOCKS * BLOCK, MIB)
        run("forebay", "writelog", "format", "--chunk-size", "16384", self.devices(0)[1])
        self.fd = self._open(0, os.O_WRONLY)
        self.copy = None

    def _open(self, copy, mode):
        storage, pmem = self.devices(copy)
        device = emulated.map_device(f"log{copy}", self.BLOCKS * BLOCK // 512, "forebay-wlog",
                                     f"{storage} {pmem} 4 block_size 4096 allow_volatile 1")
        return os.open(device, mode | os.O_DIRECT)

    def open_copy(self):
        """Replays the log."""
        self.copy = self._open(1, os.O_RDONLY)

    def close_copy(self):
        """Drops the copy without writing it back."""
        os.close(self.copy)
        emulated.unmap_device("log1")

    def end(self):
        """No more cuts."""
        os.close(self.fd)
        emulated.unmap_device("log0")

    def write(self, block, data):
        """Writes a block; the write is durable on return."""
        buffer = mmap.mmap(-1, BLOCK)
        buffer[:] = data
        os.pwrite(self.fd, buffer, block * BLOCK)

    def read(self):
        """(block, its bytes), of all."""
        buffer = mmap.mmap(-1, self.BLOCKS * BLOCK)
        os.preadv(self.copy, [buffer], 0)
        for block in range(self.BLOCKS):
            yield block, buffer[block * BLOCK:(block + 1) * BLOCK]
