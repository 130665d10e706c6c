# SPDX-License-Identifier: GPL-2.0-only
"""stress-ng's file-system class and what else of it works on files, each for a second, some side by side. One that fails
is run on the lower file system itself: what fails there too says nothing about forebay."""

import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from place import Failure, call, expect

# Not about a file system that one is given a folder of: pseudo file systems, mounts, I/O classes.
LEFT_OUT = {"bind-mount", "binderfs", "procfs", "sysfs", "eventfd", "ioprio", "umount", "rawdev"}
ON_FILES = ["aio", "aiol", "io-uring", "seek", "readahead", "revio", "msync", "mmap", "mmapfork", "sendfile", "splice", "madvise", "loop",
            "exec"]
OPTIONS = {"mmap": ["--mmap-file", "--mmap-bytes", "4m"], "hdd": ["--hdd-bytes", "8m"], "seek": ["--seek-size", "4m"],
           "iomix": ["--iomix-bytes", "8m"], "fallocate": ["--fallocate-bytes", "8m"],
           "readahead": ["--readahead-bytes", "4m"], "revio": ["--revio-bytes", "4m"], "msync": ["--msync-bytes", "4m"],
           "sync-file": ["--sync-file-bytes", "4m"], "sendfile": ["--sendfile-size", "1m"]}
# The processes of these share a folder, which the first one removes at its end. A process that is a second
# late, on a busy host, finds no folder.
ALONE = {"fcntl"}
SMALL = {"dentry", "dir", "fallocate", "fiemap", "fpunch", "handle", "hdd", "iomix", "rename", "xattr", "mmap", "msync", "aio", "lockf",
         "link", "chmod", "copy-file"}
SIDE_BY_SIDE = 3


def run(place):
    names = stressors()
    if place.small:
        names = [name for name in names if name in SMALL]
    failed, there_too, skipped, slow = {}, [], [], []

    def one(name):
        begin = time.monotonic()
        try:
            said = stress(place.folder, name)
            if "skipped" in said and "passed" not in said:
                skipped.append(name)
        except Failure as failure:
            if fails_sometimes(place.plain, name):
                there_too.append(name)
            else:
                failed[name] = str(failure)
        if time.monotonic() - begin > 15:
            slow.append(f"{name} {time.monotonic() - begin:.0f} s")

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(one, names))
    place.note(f"{len(names)} stressors")
    for what, found in (("fail on the lower file system too", there_too), ("have nothing to do here", skipped), ("slow", slow)):
        if found:
            place.note(f"{what}: {', '.join(found)}")
    expect(len(there_too) + len(skipped) <= len(names) // 2, f"too few of {len(names)} stressors show anything")
    expect(not failed, "\n".join(f"{name} fails on forebay and not on {place.fs}:\n{text}" for name, text in failed.items()))


def fails_sometimes(folder, name):
    """io-uring, for one, may find its own file unlinked (STATX, ENOENT): on ext4 alone in 6 of 6 runs in a quiet guest, and
    in fewer in a busy one."""
    for _ in range(10):
        try:
            stress(folder, name)
        except Failure as failure:
            return "dispatching" in str(failure)        # and not that it doesn't know an option
    return False


def stressors():
    said = subprocess.run(["stress-ng", "--class", "filesystem?"], capture_output=True, text=True)
    listed = re.search(r"stressors: (.*)", said.stdout + said.stderr)
    expect(listed, f"stress-ng does not list its class: {said}")
    return sorted((set(listed[1].split()) | set(ON_FILES)) - LEFT_OUT)


def stress(folder, name):
    count = 1 if name in ALONE else 2
    return call("stress-ng", f"--{name}", count, "--timeout", "1s", "--temp-path", folder, "--verify", *OPTIONS.get(name, []), cwd=folder)
