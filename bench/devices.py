# SPDX-License-Identifier: GPL-2.0-only
"""On the host: the images behind the guest's SSD and PMem, so that their own first use costs nothing in a measurement.

The SSD's image is written all over once and kept. With a sparse file the host would allocate blocks within the guest's
flushes, which a real SSD does not do. The PMem's image is memory: the host would write a file on disk back meanwhile. The
memory lasts as long as this process, through any number of boots.
"""

import os
import sys
from pathlib import Path

from vm.qemu import pmem_bytes
from vm.settings import Settings

CHUNK = 4 << 20


class Devices:
    """A folder for vm's --keep. One process at a time may use it."""

    def __init__(self, folder: Path, pmem: int, nvme: int, **machine):
        """Sizes in bytes; other settings of the guest."""
        self.folder, self._pmem, self._nvme = folder, pmem, nvme
        self._machine = machine
        folder.mkdir(parents=True, exist_ok=True)
        self._take()
        _write_all_over(folder / "nvme.img", nvme)
        self._memory = os.memfd_create("forebay-bench-pmem")
        os.posix_fallocate(self._memory, 0, pmem_bytes(self.settings()))
        pmem = folder / "pmem.img"
        pmem.unlink(missing_ok=True)
        pmem.symlink_to(f"/proc/{os.getpid()}/fd/{self._memory}")

    def settings(self, **others) -> Settings:
        return Settings(pmem=self._pmem, nvme=self._nvme, keep=self.folder, **self._machine, **others)

    def close(self) -> None:
        (self.folder / "pmem.img").unlink(missing_ok=True)
        os.close(self._memory)
        os.close(self._lock)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def _take(self) -> None:
        self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT)
        try:
            os.lockf(self._lock, os.F_TLOCK, 0)
        except BlockingIOError:
            raise RuntimeError(f"{self.folder} is in use by another benchmark") from None


def _write_all_over(path: Path, size: int) -> None:
    """Fills what is a hole: all of it at first, later what a guest's file system had zeroed."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if os.fstat(fd).st_size != size:
            print(f"bench: writing the emulated SSD all over, once ({size >> 30} GiB)", file=sys.stderr)
            os.truncate(fd, 0)
            os.truncate(fd, size)
        chunk = os.urandom(CHUNK)
        while (start := os.lseek(fd, 0, os.SEEK_HOLE)) < size:
            end = min(_data_after(fd, start, size), start + CHUNK)
            os.pwrite(fd, chunk[:end - start], start)
        os.fsync(fd)
    finally:
        os.close(fd)


def _data_after(fd: int, start: int, size: int) -> int:
    try:
        return os.lseek(fd, start, os.SEEK_DATA)
    except OSError:         # ENXIO: none
        return size
