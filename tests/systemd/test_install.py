# SPDX-License-Identifier: GPL-2.0-only
"""What `make install` says and brings, where a kernel 6.12 runs and where Debian 12's own 6.1 does."""

import re

import pytest

from steps import RELEASE, SSD, machine
from vm import debian
from vm.settings import GIB, MIB, Settings
from vm.system import LIMIT

LEFT = "\nForebay is installed. What is left to do:\n"
MOUNT = "mount -t forebay -o cache=/dev/pmem0 /srv/ssd /srv/db"


def install(release):
    """An image in which `make install` was carried out, and what that said."""
    image = debian.build(release, install=True)
    return image, (image / "install.log").read_text(errors="replace")


def test_where_the_right_kernel_runs():
    """The last lines: no reboot, and what to read."""
    _, said = install(RELEASE)
    left = said.partition(LEFT)[2]
    assert re.match(r"  - Linux 6\.12\.\S+ runs, for which the modules are: no reboot is needed\.\n"
                    r"  - Prepare the devices, .*README\.md", left), said[-2000:]
    assert "is brought" not in said


@pytest.mark.skipif(RELEASE != "12", reason="only Debian 12 has a kernel 6.1")
def test_where_the_own_kernel_of_debian_12_runs():
    """A kernel 6.12 is brought, with a word before. Each command asks for a reboot; then all works."""
    image, said = install("12-6.1")
    before, _, after = said.partition("scripts/setup: installing")
    assert re.search(r"runs Linux 6\.1\.\S+, and Forebay's modules are for 6\.12: linux-image-6"
                     r"\.12-amd64 is brought, and is what the next boot starts", before), before
    left = re.match(r"  - Reboot into Linux (6\.12\.\S+): this machine runs (6\.1\.\S+), for which there "
                    r"are no modules\.\n  - Prepare the devices, ", after.partition(LEFT)[2])
    assert left, said[-2000:]
    wanted, running = left.groups()
    reboot = f"This kernel is {running}, and the modules are for {wanted}: reboot into {wanted}."
    settings = Settings(pmem=128 * MIB, nvme=GIB, nvme_count=2, mem=GIB)
    with machine(image, "own-kernel", settings, "6.1") as system:
        system.boot()
        assert system.settle() == "running", system.run("systemctl --failed")
        assert system.run("uname -r") == running
        assert left[0] in system.run("/usr/src/forebay-checkout/scripts/setup --left")
        assert system.run("readlink -f /vmlinuz") == f"/boot/vmlinuz-{wanted}"
        system.run(f"udevadm wait --timeout={LIMIT} /dev/pmem0 {SSD}")
        system.run("ndctl create-namespace -f -e namespace0.0 -m fsdax --map=mem")
        system.run("forebay format /dev/pmem0")
        system.run(f"mkdir -p /srv/ssd /srv/db && mkfs.ext4 -q {SSD} && mount {SSD} /srv/ssd")
        for command in ("forebay status", "forebay emu create --size 1M", MOUNT):
            said = system.run(command, check=False)
            assert reboot in said and "modprobe" not in said, f"{command}: {said}"
        system.shut_down("reboot")
        system.kernel = "6.12"
        system.boot()
        assert system.settle() == "running", system.run("systemctl --failed")
        assert system.run("uname -r") == wanted
        system.run(f"udevadm wait --timeout={LIMIT} /dev/pmem0 {SSD}")
        system.run(f"mount {SSD} /srv/ssd && {MOUNT} && echo there >/srv/db/file && sync /srv/db/file")
        assert "/srv/db\n" in system.run("forebay status")
