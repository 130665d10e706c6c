# SPDX-License-Identifier: GPL-2.0-only
"""Two NVDIMMs change places, and so do /dev/pmem0 and /dev/pmem1. What is named by UUID or by id is there
with its data. What is named /dev/pmem1 is refused, with the reason.

One story, in this order: a cache named by UUID= for /srv/db on one NVDIMM; on the other a cache named
/dev/pmem1 for /srv/two, and a write log named by id for /srv/fast.
"""

import json

import pytest

from steps import ORIGIN, RELEASE, SSD, machine, write_file
from vm import debian
from vm.settings import GIB, MIB, Settings
from vm.system import LIMIT

NAMESPACES = """ndctl disable-region all && ndctl init-labels all && ndctl enable-region all
ndctl create-namespace -r region0 -m fsdax --map=mem -s 96M
ndctl create-namespace -r region1 -m fsdax --map=mem -s 96M
ndctl create-namespace -r region1 -m fsdax --map=mem -s 96M"""

# /srv/two is tried first: so it is that mount which could take the cache of /srv/db.
FSTAB = """{ssd}  /srv/ssd  ext4  defaults  0  2
/srv/ssd/db  /srv/db  forebay  cache=UUID={uuid}  0  0
/srv/ssd/two  /srv/two  forebay  cache=/dev/pmem1,nofail,x-systemd.before=srv-db.mount  0  0
/dev/mapper/fast  /srv/fast  ext4  x-systemd.requires=forebay-writelog@fast.service  0  2
"""


@pytest.fixture(name="swapped", scope="module")
def fixture_swapped():
    """The machine, cut while both caches hold what storage lacks; the NVDIMMs have changed places since."""
    image = debian.build(RELEASE, install=True)
    settings = Settings(pmem=224 * MIB, nvdimms=(0, 1), nvme=GIB, nvme_count=2, mem=GIB)
    with machine(image, "swapped", settings) as system:
        system.boot()
        assert system.settle() == "running", system.run("systemctl --failed")
        system.names = prepare(system)
        for mount in ("db", "two"):
            fill(system, f"/srv/{mount}/data", "a")
            system.run(f"forebay pin /srv/{mount}/data")        # stays in persistent memory
            fill(system, f"/srv/{mount}/data", "b")
        fill(system, "/srv/fast/data", "b")
        assert "0" not in system.run("cat /sys/fs/forebay/*/pages_out_of_sync").split()
        system.cut()
        system.settings.nvdimms = (1, 0)
        yield system


def prepare(system):
    """The lines of README; returns which devices the UUID of the cache and the id of the write log mean."""
    system.run(f"udevadm wait --timeout={LIMIT} /dev/pmem0 /dev/pmem1 {ORIGIN} {SSD}")
    system.run(f"set -e\n{NAMESPACES}\nudevadm settle")
    spaces = {space["blockdev"]: space["uuid"] for space in json.loads(system.run("ndctl list -N"))}
    assert sorted(spaces) == ["pmem0", "pmem1", "pmem1.1"]
    log = f"/dev/disk/by-id/pmem-{spaces['pmem1.1']}"
    system.run(f"forebay format /dev/pmem0 && forebay format /dev/pmem1 && forebay writelog format {log}")
    uuid = system.run("forebay probe /dev/pmem0").rpartition("UUID ")[2]
    system.run(f"udevadm wait --timeout={LIMIT} /dev/disk/by-uuid/{uuid}")
    assert system.run("lsblk -ndo FSTYPE,UUID /dev/pmem0").split() == ["forebay", uuid]
    system.run("mkdir -p /srv/ssd /srv/db /srv/two /srv/fast && chattr +i /srv/two")
    system.run(f"mkfs.ext4 -q {SSD} && mount {SSD} /srv/ssd")
    system.run("mkdir /srv/ssd/db /srv/ssd/two && umount /srv/ssd")
    write_file(system, "/etc/forebay/writelog/fast",
               f'ORIGIN={ORIGIN}\nLOG={log}\nOPTIONS="--option block_size=4096"\n')
    system.run("systemctl start forebay-writelog@fast && mkfs.ext4 -q /dev/mapper/fast")
    write_file(system, "/etc/fstab", FSTAB.format(ssd=SSD, uuid=uuid), append=True)
    system.run("systemctl daemon-reload && systemctl start srv-db.mount srv-two.mount srv-fast.mount")
    names = {f"/dev/disk/by-uuid/{uuid}": ("/dev/pmem0", "/dev/pmem1"),
             log: ("/dev/pmem1.1", "/dev/pmem0.1")}
    check_names(system, names, 0)
    return names


def check_names(system, names, places):
    for name, devices in names.items():
        assert system.run(f"readlink -f {name}") == devices[places]


def fill(system, path, letter):
    """A page of a file, durable when this returns; a page that is there is written anew, in place."""
    page = f"head -c 4096 /dev/zero | tr '\\0' {letter}"
    system.run(f"{page} | dd of={path} bs=4096 iflag=fullblock conv=notrunc,fsync status=none")


def check_data(system, path):
    assert system.run(f"cat {path}") == 4096 * "b"


def test_swapped(swapped):
    """The system answers and the data are there. A message says why /srv/two is missing."""
    swapped.boot()
    assert swapped.settle() == "degraded"
    check_names(swapped, swapped.names, 1)
    check_data(swapped, "/srv/db/data")
    check_data(swapped, "/srv/fast/data")
    failed = swapped.run("systemctl --failed --plain --no-legend")
    units = {line.split()[0] for line in failed.splitlines()}
    assert units == {"srv-two.mount", "forebay-unmounted@srv-two.service"}
    reason = swapped.run("journalctl -b -o cat -u srv-two.mount")
    assert "mount.forebay: /srv/two: pmem1 holds data of another directory" in reason, reason
    assert swapped.run("ls -A /srv/two") == ""
    status = swapped.run("forebay status")
    mounted, _, idle = status.partition("\n\n")
    assert mounted.startswith("/srv/db\n") and "cache" in mounted and "/dev/pmem1" in mounted, status
    assert idle.startswith("/dev/pmem0\n  not mounted\n"), status
    assert "/srv/ssd/two is older" in swapped.run("forebay status /srv/ssd/two", check=False)


def test_in_their_old_places(swapped):
    """All mounts come up, and /srv/two has the data from before the cut."""
    swapped.shut_down()
    swapped.settings.nvdimms = (0, 1)
    swapped.boot()
    assert swapped.settle() == "running", swapped.run("systemctl --failed")
    check_names(swapped, swapped.names, 0)
    for mount in ("db", "two", "fast"):
        check_data(swapped, f"/srv/{mount}/data")
    swapped.shut_down()
