# SPDX-License-Identifier: GPL-2.0-only
"""One name of every kind that a tree can hold, left for the comparison after unmount. Changed files keep
their new times."""

import mmap
import os
import socket
import stat

from place import call, expect


def run(place):
    top = place.folder
    for number in range(8):
        file = top / f"file{number}"
        file.write_bytes(b"%d" % number * (1000 * number))
        with open(file, "r+b") as stream:
            os.fsync(stream)
            stream.write(b"in PMem already")        # a page in the cache is changed: the lower file learns of it late
    os.chmod(top / "file1", 0o4711)
    os.chown(top / "file2", 1234, 4321)
    os.utime(top / "file3", ns=(123456789, 987654321987654321))
    os.setxattr(top / "file4", "user.forebay", b"a value")
    os.setxattr(top / "file4", "trusted.forebay", b"\0\1\2")
    call("setfacl", "-m", "u:1234:rw,g:4321:x", top / "file5")
    os.link(top / "file6", top / "another name")
    os.symlink("file7", top / "symlink")
    os.mkfifo(top / "fifo", 0o640)
    os.mknod(top / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(top / "socket"))
    with open(top / "sparse", "wb") as stream:
        stream.truncate(10 << 20)
        stream.seek(5 << 20)
        stream.write(b"in the middle")
        os.fsync(stream.fileno())
    with open(top / "mapped", "w+b") as stream:
        stream.truncate(64 << 10)
        with mmap.mmap(stream.fileno(), 0) as area:
            for rewrite in range(3):
                area[5000:5008] = b"mapped %d" % rewrite
                area.flush()
    deep = top / "/".join(["folder"] * 20)
    deep.mkdir(parents=True)
    (deep / ("n" * 255)).write_text("a long name")
    call("setfacl", "-d", "-m", "u:1234:rwx", top / "folder")
    for number in range(place.size(500, 100)):
        (top / "folder" / f"{number}").touch()
    expect(len(os.listdir(top / "folder")) == place.size(500, 100) + 1, "names are missing in a folder")
