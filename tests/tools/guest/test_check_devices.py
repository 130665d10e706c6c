# SPDX-License-Identifier: GPL-2.0-only
"""forebay check of a device with bad blocks. Runs in the test machine, as test_devices.py does.

The kernel's list of bad blocks stands in a made-up /sys: that of a disk, or that of the disk around a partition.
"""

import os
from pathlib import Path

import pytest

from conftest import LEFT, MIB
from machine import needs, sh

NVME = Path("/dev/nvme0n1")
DEVICE = Path("/dev/mapper/spoilt")
SIZE = 8 * MIB
AT = 2040 * MIB // 512          # where it begins on the SSD

pytestmark = needs(NVME)


@pytest.fixture(name="spoilt")
def spoilt_fixture():
    """A device for a cache."""
    sh("dmsetup", "create", "spoilt", "--table", f"0 {SIZE // 512} linear {NVME} {AT}")
    sh("dmsetup", "mknodes")
    yield
    sh("dmsetup", "remove", "spoilt")


@pytest.mark.parametrize("option", ["--json", "--repair"])
@pytest.mark.parametrize("start", [None, 2048])
def test_lost_pages(forebay, cache, tmp_path, spoilt, start, option):
    """Two bad sectors of one page are one lost page, and no repair brings it back. A clean page isn't lost."""
    del spoilt
    image = cache("bind", "file 0 0 live", "page 0 0 7 out-of-sync", "page 1 0 8 clean", size=SIZE)
    data = SIZE // 512 - 8 * forebay("status", "--json", image).json[0]["pages_total"]
    sh("dd", f"if={image}", f"of={DEVICE}", "bs=1M", "conv=fsync")
    number = os.stat(DEVICE).st_rdev
    disk = tmp_path / "root/sys/devices/vdz"
    device = disk / "vdz1" if start else disk
    device.mkdir(parents=True)
    link = tmp_path / f"root/sys/dev/block/{os.major(number)}:{os.minor(number)}"
    link.parent.mkdir(parents=True)
    link.symlink_to(device)
    if start:
        (device / "start").write_text(f"{start}\n")
    bad = [(start or 0) + data + sector for sector in (1, 4, 9)]
    (disk / "badblocks").write_text("".join(f"{sector} 1\n" for sector in bad))
    result = forebay("check", option, DEVICE, FOREBAY_SYSROOT=str(tmp_path / "root"))
    assert result.status == LEFT
    if option == "--json":
        assert not result.json["clean"] and [(one["record"], one["number"]) for one in result.json["findings"]] == [("page", 0)]
    else:
        assert f"{DEVICE}: 1 page of files lost" in result.out and "clean\n" not in result.out
