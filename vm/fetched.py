# SPDX-License-Identifier: GPL-2.0-only
"""Kernels of newer releases of Debian, with what it takes to build modules for them (scripts/setup --for kernels).

A kernel lies in ~/.cache/forebay/linux/SERIES, 7.3 for example: `root` is a folder with the packages of the kernel, its
headers, the compiler that built it and make, unpacked and not installed; `release` is the kernel's name, written last.
The host's apt is asked where the archive is; lists and packages are kept apart from the host's own.
"""

import os
import re
import shutil
import subprocess
import sys

from .debian import RELEASES, Apt, archives
from .settings import CACHE, SetupError

FETCHED = CACHE / "linux"
SERIES = ["7.2", "7.3"]
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
# What the build runs beside the compiler. dpkg's maintainer scripts don't run: the links that they make are in LINKS.
TOOLS = "base-files libc6 binutils dash bash coreutils sed gawk grep findutils perl-base make".split()
LINKS = {"sh": "dash", "awk": "gawk"}
# Where a series is looked for, in this order: suites, with {} for Debian 13's name, and apt's target among them.
PLACES = [(["{}", "{}-updates", "{}-security", "{}-backports"], "{}-backports"), (["sid"], "sid")]


def fetched(series):
    """The folder of a kernel, if it was fetched; else None."""
    folder = FETCHED / series
    return folder if (folder / "release").exists() else None


def names():
    """The series that are there, the oldest first."""
    found = [path.parent.name for path in FETCHED.glob("*/release")]
    return sorted(found, key=lambda name: [int(part) for part in name.split(".")])


def fetch(wanted, again=False):
    """Fetches the newest kernel of each series that is not there."""
    wanted = [series for series in wanted if again or not fetched(series)]
    if not wanted:
        return
    if os.geteuid() != 0:
        raise SetupError("run me as root: the build changes its root folder, and mounts the checkout there")
    for suites, target in PLACES:
        if wanted:
            apt = Archive(suites, target)
            wanted = [series for series in wanted if not _fetch_from(apt, series)]
    if wanted:
        raise SetupError(f"the archive has no kernel {', '.join(wanted)}")


def _fetch_from(apt, series):
    """False: it isn't there."""
    release = apt.newest(series)
    if not release:
        return False
    folder = FETCHED / series
    shutil.rmtree(folder, ignore_errors=True)
    root = folder / "root"
    root.mkdir(parents=True)
    print(f"scripts/setup: fetching Linux {release} into {folder}", flush=True)
    packages = apt.download([*TOOLS, f"linux-image-{release}", f"linux-headers-{release}"])
    for package in sorted(packages, key=lambda path: not path.name.startswith("base-files_")):     # has the links /lib, /bin
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
        package.unlink()
    for name, program in LINKS.items():
        (root / "usr/bin" / name).unlink(missing_ok=True)
        (root / "usr/bin" / name).symlink_to(program)
    subprocess.run(["/sbin/depmod", "-b", root, release], check=True)
    (folder / "release").write_text(f"{release}\n")
    return True


class Archive(Apt):
    """apt for some suites, of which it prefers one; with packages and a (void) state of its own."""

    def __init__(self, suites, target):
        target = target.format(RELEASES["13"])
        place = FETCHED / "apt" / target
        self.packages = place / "cache/archives"
        (self.packages / "partial").mkdir(parents=True, exist_ok=True)
        (place / "status").touch()
        super().__init__(place, self._sources([suite.format(RELEASES["13"]) for suite in suites]), {
            "Dir::State": place, "Dir::State::status": place / "status", "Dir::Cache": place / "cache",
            "Dir::Etc::preferences": "/dev/null", "Dir::Etc::preferencesparts": "/dev/null", "APT::Install-Recommends": "false",
            "APT::Default-Release": target, "Acquire::Languages": "none"})

    @staticmethod
    def _sources(suites):
        """Lines for sources.list; suites beside those that apt uses here are at the same address as the release."""
        known = {line.split()[2]: line.split()[1] for line in archives("13")}
        for suite in suites:
            address = known.get(suite) or (None if suite.endswith(("-updates", "-security")) else known.get(RELEASES["13"]))
            if address:
                yield f"deb [signed-by={KEYS}] {address} {suite} main"

    def newest(self, series):
        """The newest release of a series: 7.3.4+deb13-amd64; None if there is none."""
        pattern = rf"^linux-image-{re.escape(series)}\.[0-9]+\+deb[0-9]+(\.[0-9]+)?-amd64$"
        found = [line.split()[0].removeprefix("linux-image-")
                 for line in self.run("apt-cache", "search", "--names-only", pattern).splitlines()]
        return max(found, key=lambda name: [int(part) for part in re.findall(r"\d+", name)], default=None)

    def download(self, packages):
        """The files of packages and of all that they depend on."""
        self.run("apt-get", "-q", "-y", "--download-only", "install", *packages)
        return list(self.packages.glob("*.deb"))


def image(folder, release):
    """The kernel that boots; newer packages have it beside the modules."""
    places = [folder / f"root/usr/lib/modules/{release}/vmlinuz", folder / f"root/boot/vmlinuz-{release}"]
    return next((path for path in places if path.exists()), places[0])


if __name__ == "__main__":
    try:
        fetch(sys.argv[1:] or SERIES)
    except SetupError as problem:
        sys.exit(f"scripts/setup: {problem}")
