# SPDX-License-Identifier: GPL-2.0-only
"""On the host: Debian packages for dpkg to unpack, made of kernel headers. They are not compressed, as that is work for the guest."""

import shutil
from pathlib import Path

from .commands import run
from .progress import say
from .sources import headers
from .workloads.dpkg import ARCHIVES, FILES, PACKAGES, archive

CONTROL = """Package: bench{number}
Version: 1
Architecture: all
Maintainer: bench <bench@localhost>
Description: kernel headers, to be unpacked
"""


def make(place: str = ARCHIVES, packages: int = PACKAGES) -> None:
    """Builds the packages if they are not there."""
    if Path(place).exists():
        return
    tree, files = headers(packages * FILES)
    unfinished = Path(f"{place}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    for number in range(packages):
        work = unfinished / "work"
        for path in files[number * FILES:(number + 1) * FILES]:
            copy = work / f"usr/src/bench{number}" / path.relative_to(tree)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        (work / "DEBIAN").mkdir()
        (work / "DEBIAN/control").write_text(CONTROL.format(number=number))
        run("dpkg-deb", "--root-owner-group", "-Znone", "-b", str(work), str(unfinished / archive(number)))
        shutil.rmtree(work)
    unfinished.rename(place)
    say(f"made {packages} packages in {place}")
