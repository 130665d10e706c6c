# SPDX-License-Identifier: GPL-2.0-only
"""`bench/run --on host`, with this machine as the host: null_blk, loop and forebay-emu devices, in use and free."""

import contextlib

import pytest
from bench import host
from stack import LOWER, MOUNT, create_emulated, run


@pytest.fixture(name="null")
def null_fixture():
    """A block device in memory."""
    run("modprobe null_blk nr_devices=1 gb=1 memory_backed=1")
    yield "/dev/nullb0"
    run("rmmod null_blk")


@pytest.fixture(name="loop")
def loop_fixture(tmp_path):
    """A loop device."""
    device = run(f"modprobe loop && truncate -s 64M {tmp_path}/image && losetup -f --show {tmp_path}/image").strip()
    yield device
    run(f"losetup -d {device}")


@pytest.fixture(name="emulated")
def emulated_fixture():
    """Memory with DAX."""
    run("modprobe forebay-emu")
    device = create_emulated("--size 128M")
    yield device
    run(f"forebay emu remove {device}")


@contextlib.contextmanager
def after(command, undo):
    """Something on a device."""
    run(command)
    try:
        yield
    finally:
        run(undo)


def test_free_devices(null, loop, emulated):
    """Nothing is on them, and one has DAX."""
    for device in (null, loop, emulated):
        assert (host.in_use(device), host.holds(device)) == ("", ""), device
    assert [host.has_dax(device) for device in (null, loop, emulated)] == [False, False, True]
    host.Host(null, emulated).look(overwrite=False)
    with pytest.raises(host.Refused, match="no DAX"):
        host.Host(emulated, null).look(overwrite=True)


def test_devices_in_use(null, loop, emulated):
    """Mounted, as swap, below another device, as a cache."""
    with after(f"mkfs.ext4 -q {loop} && mkdir -p {LOWER} && mount {loop} {LOWER}", f"umount {LOWER}"):
        assert host.in_use(loop) == f"is in use as {LOWER}"
        with after(f"forebay format {emulated} && mkdir -p {MOUNT} && "
                   f"mount -t forebay -o cache={emulated},allow_volatile_cache {LOWER} {MOUNT}", f"umount {MOUNT}"):
            assert host.in_use(emulated).startswith("can't be had alone")
        with pytest.raises(host.Refused, match="in use as"):
            host.Host(loop, emulated).look(overwrite=True)
    assert (host.in_use(loop), host.holds(loop), host.holds(emulated)) == ("", "ext4", "data of an unknown kind")
    with after(f"mkswap {null} && swapon {null}", f"swapoff {null}"):
        assert host.in_use(null) == "is in use as [SWAP]"
    assert host.holds(null) == "swap"
    with after(f"dmsetup create over --table '0 2048 linear {null} 0'", "dmsetup remove over"):
        assert host.in_use(null) == "has /dev/mapper/over on it"
    with pytest.raises(host.Refused, match="holds swap: --overwrite"):
        host.Host(null, emulated).look(overwrite=False)


def test_a_plan_is_carried_out(null, emulated):
    """Two systems on these devices; Forebay has its cache in the second."""
    run(f"wipefs -a {null}")
    plan = {"workloads": ["names-sqlite-persist"], "systems": ["ext4", "forebay"], "rounds": 1, "least_rounds": 1, "seconds": 0.2, "budget": 60}
    samples, guest = host.Host(null, emulated).carry_out(plan)
    by_system = {event["system"]: event["sample"] for event in samples}
    assert guest["rounds"] == 1 and by_system["ext4"]["value"] > 0
    assert by_system["forebay"]["syncs_absorbed"] > 0
