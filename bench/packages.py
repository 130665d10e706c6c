# SPDX-License-Identifier: GPL-2.0-only
"""On the host: programs that only the guest is to have, from Debian's archive, unpacked and not installed.

A mail server or a database daemon has no place on a machine that only runs a benchmark. apt says what the
host lacks and fetches it; the guest puts what was unpacked beside what it sees of the host.
"""

import subprocess
from pathlib import Path

from vm.settings import SetupError

from .commands import CommandFailed, run
from .progress import say
from .workloads.guest_only import UNPACKED

# By the first word of a workload's name.
WANTED = {"lmdb": ("python3-lmdb",), "mail": ("postfix",), "etcd": ("etcd-server",), "mbw": ("mbw",),
          "trace": ("trace-cmd",), "kv": ("libpmemobj-dev", "libmemkind-dev")}

# Run by root, apt fetches as the user _apt, and that user can't write to the folder.
DOWNLOAD = ("apt-get", "-q", "-q", "-o", "Acquire::Retries=3", "-o", "APT::Sandbox::User=root", "download")


def make(workloads: list[str]) -> None:
    """Fetches and unpacks what these workloads need, as far as that has not been done."""
    for word in sorted({name.partition("-")[0] for name in workloads} & WANTED.keys()):
        place = Path(UNPACKED, word)
        if not place.exists():
            fetch(WANTED[word], place)


def lacking(workloads: list[str]) -> list[str]:
    """The packages that these workloads need and the host hasn't."""
    wanted = {package for name in workloads for package in WANTED.get(name.partition("-")[0], ())}
    return [package for package in sorted(wanted) if not is_installed(package)]


def is_installed(package: str) -> bool:
    try:
        return run("dpkg-query", "-W", "-f", "${db:Status-Abbrev}", package).startswith("ii")
    except CommandFailed:
        return False


def fetch(packages: tuple[str, ...], place: Path) -> None:
    """The packages, and those that they need and the host hasn't; at last by the name that says that all is there."""
    lacking = missing(run("apt-get", "-s", "-q", "--no-install-recommends", "install", *packages))
    unfinished = place.with_suffix(".new")
    run("rm", "-rf", str(unfinished))
    (unfinished / "root").mkdir(parents=True)
    say(f"fetching for the guest: {' '.join(lacking) or 'nothing, the host has ' + ' '.join(packages)}")
    for package in lacking:
        try:
            subprocess.run([*DOWNLOAD, package], cwd=unfinished, stdin=subprocess.DEVNULL, check=True)
        except subprocess.CalledProcessError:
            raise SetupError(f"apt can't fetch {package}: apt-get update may help") from None
    for archive in unfinished.glob("*.deb"):
        run("dpkg-deb", "-x", str(archive), str(unfinished / "root"))
    unfinished.rename(place)


def missing(simulated: str) -> list[str]:
    """The packages that apt would install, by what it says of a simulated run."""
    return [line.split()[1] for line in simulated.splitlines() if line.startswith("Inst ")]


def versions(workloads: list[str]) -> dict:
    """Of the programs that these workloads run: dpkg's words for what the host has, or for what was unpacked."""
    found = {}
    for package in {package for name in workloads for package in WANTED.get(name.partition("-")[0], ())}:
        archives = [path.name for path in Path(UNPACKED).glob(f"*/{package}_*.deb")]
        try:
            found[package] = archives[0].split("_")[1] if archives else run("dpkg-query", "-W", "-f", "${Version}", package)
        except CommandFailed:
            found[package] = "unknown"
    return found
