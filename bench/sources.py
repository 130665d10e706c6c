# SPDX-License-Identifier: GPL-2.0-only
"""On the host: an archive of kernel sources to unpack, not compressed, out of the headers that the build needs."""

import os
import sys
import tarfile
from pathlib import Path

from .workloads.untar import ARCHIVE, FILES


def headers(count: int) -> tuple[Path, list[Path]]:
    """The folder of the newest kernel's headers, and so many files in it."""
    tree = max(Path("/usr/src").glob("linux-headers-6.12*-common"), default=None)
    if tree is None:
        raise FileNotFoundError("no /usr/src/linux-headers-6.12*-common: scripts/setup installs it")
    files = sorted(path for path in (tree / "include").rglob("*") if path.is_file())[:count]
    if len(files) < count:
        raise FileNotFoundError(f"{tree}/include has only {len(files)} files")
    return tree, files


def make() -> None:
    """Creates the archive if it is not there."""
    archive = Path(ARCHIVE)
    if archive.exists():
        return
    tree, files = headers(FILES)
    archive.parent.mkdir(parents=True, exist_ok=True)
    unfinished = archive.with_suffix(f".{os.getpid()}")
    with tarfile.open(unfinished, "w") as tar:
        for path in files:
            tar.add(path, path.relative_to(tree))
    unfinished.replace(archive)
    print(f"bench: made {archive.resolve()}", file=sys.stderr)
