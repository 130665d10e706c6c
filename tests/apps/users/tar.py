# SPDX-License-Identifier: GPL-2.0-only
"""tar: a tree goes in, is compared with the archive, goes through a pipe and comes out the same."""

from place import call, expect
import tree


def run(place):
    archive = place.folder / "tree.tar"
    source = "/usr/include/" + place.size("linux", "asm-generic")
    call("tar", "-C", source, "-cf", archive, ".")
    for copy in ("first", "second"):
        (place.folder / copy).mkdir()
    call("tar", "-C", place.folder / "first", "-xf", archive)
    call("sync", "-f", place.folder)
    call("tar", "-C", place.folder / "first", "-df", archive)
    call("sh", "-c", "tar --xattrs -C first -cf - . | tar --xattrs -C second -xpf -", cwd=place.folder)
    first, second = (strip(tree.describe(place.folder / copy)) for copy in ("first", "second"))
    lines = tree.differences(first, second)
    expect(not lines, "\n".join(lines))
    place.note(f"{len(first)} names")


def strip(entries):
    """Without what differs between a tree and its copy."""
    for found in entries.values():
        found.pop("inode", None)
    return entries
