# SPDX-License-Identifier: GPL-2.0-only
"""Writes the first file system of the guest: a cpio archive with busybox, the modules for booting, and the job."""

import os
import stat
from pathlib import Path


class Archive:
    """A 'newc' cpio archive, built in memory. Folders on the way to a file are made as needed."""

    def __init__(self):
        self._parts = []
        self._seen = set()

    def folder(self, name, mode=0o755):
        name = name.strip("/")
        if not name or name in self._seen:
            return
        self.folder(os.path.dirname(name))
        self._entry(name, stat.S_IFDIR | mode, b"")

    def file(self, name, data, mode=0o644):
        if isinstance(data, Path):
            data = data.read_bytes()
        elif isinstance(data, str):
            data = data.encode()
        self._entry_in_folder(name, stat.S_IFREG | mode, data)

    def link(self, name, target):
        self._entry_in_folder(name, stat.S_IFLNK | 0o777, os.fsencode(target))

    def console(self):
        self._entry_in_folder("dev/console", stat.S_IFCHR | 0o600, b"", device=(5, 1))

    def bytes(self):
        self._entry("TRAILER!!!", 0, b"")
        return b"".join(self._parts)

    def _entry_in_folder(self, name, mode, data, device=(0, 0)):
        name = name.strip("/")
        self.folder(os.path.dirname(name))
        self._entry(name, mode, data, device)

    def _entry(self, name, mode, data, device=(0, 0)):
        self._seen.add(name)
        encoded = name.encode() + b"\0"
        fields = (len(self._seen), mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(encoded), 0)
        header = b"070701" + b"".join(b"%08X" % value for value in fields) + encoded
        self._parts += [header, bytes(-len(header) % 4), data, bytes(-len(data) % 4)]
