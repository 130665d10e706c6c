# SPDX-License-Identifier: GPL-2.0-only
"""dpkg unpacks packages into a root of its own. It syncs each file before the file gets its name, and its records of packages.

The packages have kernel headers in them, aren't compressed and run no scripts. bench/debs.py makes them on the host.
"""

import io
import os
import tarfile
import time

from .. import cost
from ..commands import run
from .names import result

PACKAGES, FILES, AT_ONCE = 48, 20, 4        # of a package; packages that one dpkg is given
ARCHIVES = os.path.join(os.path.dirname(__file__), "../../build/bench/debs")
IN_MEMORY = "/dev/shm/bench-debs"


def unpack():
    """Files/s of `dpkg --unpack`; packages/s besides. When all are unpacked, the next root is begun."""
    def measure(folder: str, seconds: float) -> dict:
        if not os.path.isdir(IN_MEMORY):
            run("cp", "-r", ARCHIVES, IN_MEMORY)
        roots = [new_root(folder, 0)]
        os.sync()
        times, end = [], time.monotonic() + seconds
        with cost.Spent() as spent:
            while not times or time.monotonic() < end:
                first = len(times) * AT_ONCE % PACKAGES
                if times and not first:
                    roots.append(new_root(folder, len(roots)))
                begin = time.monotonic_ns()
                unpack_into(roots[-1], range(first, first + AT_ONCE))
                times.append(time.monotonic_ns() - begin)
        done = len(times) * AT_ONCE
        for number, root in enumerate(roots):
            check(root, min(PACKAGES, done - number * PACKAGES))
        figures = result(times)
        packages = figures["value"] * AT_ONCE
        return figures | {"value": packages * FILES, "packages": packages} | spent.each(done * FILES)
    return measure


def archive(number: int) -> str:
    return f"bench{number}.deb"


def new_root(folder: str, number: int) -> str:
    """A root folder in which dpkg knows of no package."""
    root = f"{folder}/root{number}"
    for name in ("info", "updates", "triggers"):
        os.makedirs(f"{root}/var/lib/dpkg/{name}")
    for name in ("status", "available"):
        with open(f"{root}/var/lib/dpkg/{name}", "w"):
            pass
    return root


def unpack_into(root: str, packages, archives: str = IN_MEMORY) -> None:
    run("dpkg", f"--root={root}", "--no-force-unsafe-io", "--log=/dev/null", "--no-triggers", "--unpack",
        *(f"{archives}/{archive(number)}" for number in packages))


def check(root: str, packages: int, archives: str = IN_MEMORY) -> None:
    """So many packages are unpacked as dpkg knows, and their files have the contents of the archives; there are no other files."""
    states = run("dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f",
                 "${Package} ${db:Status-Status}\n").splitlines()
    if sorted(states) != sorted(f"bench{number} unpacked" for number in range(packages)):
        raise ValueError(f"dpkg: {len(states)} packages after {packages}, or in other states: {states[-1:]}")
    must = {}
    for number in range(packages):
        must |= contents(f"{archives}/{archive(number)}")
    usr = os.path.join(root, "usr")
    found = {os.path.relpath(os.path.join(place, name), root) for place, _, names in os.walk(usr) for name in names}
    if found != must.keys():
        raise ValueError(f"dpkg: {len(found)} files, not the {len(must)} of {packages} packages")
    for name, content in must.items():
        with open(os.path.join(root, name), "rb") as file:
            if file.read() != content:
                raise ValueError(f"dpkg: {name} isn't what the package has")


def contents(path: str) -> dict[str, bytes]:
    """The files of a package that isn't compressed: the third member of the archive is a tar."""
    with open(path, "rb") as file:
        file.seek(8)
        while header := file.read(60):
            size = int(header[48:58])
            if header.startswith(b"data.tar"):
                break
            file.seek(size + size % 2, 1)
        with tarfile.open(fileobj=io.BytesIO(file.read(size))) as tar:
            return {os.path.normpath(member.name): tar.extractfile(member).read() for member in tar if member.isfile()}
