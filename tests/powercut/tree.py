# SPDX-License-Identifier: GPL-2.0-only
"""What dump.c told of the writers' directories."""

from dataclasses import dataclass, field


@dataclass
class Directory:
    names: dict = field(default_factory=dict)       # name -> file
    contents: dict = field(default_factory=dict)    # file -> bytes
    faults: list = field(default_factory=list)      # what no directory may look like, as texts


def load(prefix, writers):
    """PREFIX.index and PREFIX.data as one Directory a writer."""
    directories = [Directory() for _ in range(writers)]
    inodes, links = {}, {}
    data = prefix.with_suffix(".data").read_bytes()
    for line in prefix.with_suffix(".index").read_text().splitlines():
        writer, name, file, inode, nlink, size, at = line.split()
        directory, file = directories[int(writer)], int(file)
        directory.names[int(name.removeprefix("n"))] = file
        if inodes.setdefault(file, inode) != inode:
            directory.faults.append(f"file {file} is there twice, as inodes {inodes[file]} and {inode}")
        if int(at) >= 0:
            directory.contents[file] = data[int(at):int(at) + int(size)]
            links[file] = int(nlink)
    for directory in directories:
        for file in sorted(set(directory.names.values())):
            if file not in directory.contents:
                directory.faults.append(f"file {file} is an inode that has a name elsewhere, too")
            count = list(directory.names.values()).count(file)
            if links[file] != count:
                directory.faults.append(f"file {file} has {count} names and a link count of {links[file]}")
    return directories
