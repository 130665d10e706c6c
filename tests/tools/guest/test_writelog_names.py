# SPDX-License-Identifier: GPL-2.0-only
"""forebay writelog create: how an origin is recognised. Runs in the test machine, as test_devices.py does.

What disks say of themselves stands in a made-up /sys; the log is an image, so that what fits together goes no further than
the refusal of an image. The log itself can't tell the difference.
"""

import os
from pathlib import Path

import pytest

from conftest import FAILED, MIB
from machine import needs, sh

NVME = Path("/dev/nvme0n1")
ORIGIN = Path("/dev/mapper/nameless")
SECTORS = 4 * MIB // 512
AT = 2048 * MIB // 512          # where it begins on the SSD
NO_NAME = "a disk without a name"

pytestmark = needs(NVME)


@pytest.fixture(scope="module", autouse=True)
def origin():
    """A mapped device without a UUID."""
    sh("dmsetup", "create", "nameless", "--table", f"0 {SECTORS} linear {NVME} {AT}")
    sh("dmsetup", "mknodes")
    yield
    sh("dmsetup", "remove", "nameless")


@pytest.fixture
def create(forebay, log, tmp_path):
    """create(bound, attributes): `create` with a log that was bound so and holds a write, and an origin on a disk with these attributes."""
    number = os.stat(ORIGIN).st_rdev
    disk = tmp_path / "sys/devices/vdz/vdz1"
    disk.mkdir(parents=True)
    link = tmp_path / f"sys/dev/block/{os.major(number)}:{os.minor(number)}"
    link.parent.mkdir(parents=True)
    link.symlink_to(disk)

    def run(bound, attributes, *options, sectors=SECTORS):
        for name, text in attributes.items():
            (disk / name).parent.mkdir(exist_ok=True)
            (disk / name).write_text(f"{text}\n")
        image = log(f"bind {sectors} {bound}", "open 0", "write 0 8")
        result = forebay("writelog", "create", *options, "new", ORIGIN, image, FOREBAY_SYSROOT=str(tmp_path))
        assert result.status == FAILED and ("is an image" in result.err) != ("another origin" in result.err)
        return result.err
    return run


@pytest.mark.parametrize("attributes, name", [
    ({"dm/uuid": "LVM-x", "wwid": "y"}, "LVM-x"),
    ({"wwid": "eui.17", "serial": "x"}, "eui.17"),
    ({"wwid": "", "device/wwid": "t10.ATA a disk"}, "t10.ATA_a_disk"),
    ({"md/uuid": "7d9b3d29-8a5c-4f6f-9c0e-2a1a7a4f0b11"}, "md-7d9b3d29-8a5c-4f6f-9c0e-2a1a7a4f0b11"),
    ({"device/cid": "150100424a4e42"}, "mmc-150100424a4e42"),
    ({"serial": "vol-17"}, "serial-vol-17"),
    ({"partition": "2", "../serial": "vol-17"}, "serial-vol-17-part2"),
    ({"partition": "2", "../wwid": "eui.17"}, "eui.17-part2"),
    ({"md/uuid": "00000000-0000-0000-0000-000000000000", "serial": ""}, NO_NAME),
    ({}, NO_NAME),
])
def test_names(create, attributes, name):
    said = create("another", attributes)
    assert f"It was used with another ({SECTORS} sectors); this is {name} ({SECTORS} sectors)." in said
    if name != NO_NAME:
        for sectors in (SECTORS, SECTORS - 8):      # the origin may have grown
            said = create(name, {}, sectors=sectors)
            assert "is an image" in said and "no name" not in said
    assert "is an image" in create("another", {}, "--any-origin")


def test_a_long_name_is_told_from_another(create):
    text = "a long name " * 8
    assert "another origin" in create("another", {"wwid": text + "1"})
    kept = create("another", {}).split("this is ")[1].split()[0]
    assert "is an image" in create(kept, {})
    assert "another origin" in create(kept, {"wwid": text + "2"})


@pytest.mark.parametrize("attributes", [{}, {"serial": "vol-17"}])
def test_a_log_without_a_name(create, attributes):
    """Logs from before more sources of names were known: accepted if the size fits, with a message."""
    said = create("-", attributes)
    assert "is an image" in said and "holds writes to a disk that it has no name of" in said
    assert ("From now on the log knows its name." in said) == bool(attributes)
    said = create("-", {}, sectors=SECTORS + 8)
    assert f"It was used with {NO_NAME} ({SECTORS + 8} sectors); this is " in said
    assert "is an image" in create("-", {}, "--any-origin", sectors=SECTORS + 8)


def test_a_partition_of_a_disk_without_a_name(forebay, log, tmp_path):
    """The partition table names it: here one of a PC's, by hand."""
    table = bytearray(4 * MIB)
    table[440:444] = (0x12345678).to_bytes(4, "little")
    table[446:462] = bytes([0, 0, 0, 0, 0x83, 0, 0, 0]) + (2048).to_bytes(4, "little") + (2048).to_bytes(4, "little")
    table[510:512] = b"\x55\xaa"
    (tmp_path / "disk").write_bytes(table)
    sh("modprobe", "loop")
    disk = sh("losetup", "--find", "--show", "--partscan", tmp_path / "disk").strip()
    try:
        result = forebay("writelog", "create", "new", f"{disk}p1", log("bind 2048 another", "open 0", "write 0 8"))
        assert "this is partuuid-12345678-01 (2048 sectors)." in result.err
        result = forebay("writelog", "create", "new", disk, log("bind 2048 another", "open 0", "write 0 8"))
        assert f"this is {NO_NAME} (8192 sectors)." in result.err
    finally:
        sh("losetup", "--detach", disk)
