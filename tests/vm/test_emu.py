# SPDX-License-Identifier: GPL-2.0-only
"""Emulated persistent memory, in a machine that has no other."""

import ctypes
import errno
import fcntl
import json
import math
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from clock import BY_THE_CLOCK
from conftest import clean_up
from libc import MAP_SHARED_VALIDATE, MAP_SYNC, Mapping
from mapped import DEBUG
from other_user import as_nobody
from stack import FSCK, LOWER, MKFS, MOUNT, PAGE, SSD, create_emulated, fails, run

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/emu"))
import emulated  # noqa: E402  pylint: disable=wrong-import-position

ROUNDS = int(os.environ.get("FOREBAY_ROUNDS", "30"))
CUTS = os.environ.get("FOREBAY_CUTS", "20")
MIB = 1 << 20


@pytest.fixture(autouse=True)
def module_fixture():
    """The module, and nothing left of a test."""
    assert not Path("/dev/pmem0").exists(), "this boot is of a machine without persistent memory"
    clean_up()
    run("modprobe forebay-emu; modprobe forebay; modprobe dm-forebay-writelog")
    yield
    clean_up()
    for device in json.loads(run("forebay emu list --json")):
        run(f"forebay emu remove {device['device']}")


@pytest.fixture(name="lower")
def lower_fixture():
    """ext4, mounted."""
    for folder in (LOWER, MOUNT):
        folder.mkdir(parents=True, exist_ok=True)
    run(MKFS["ext4"].format(device=SSD, mib=256))
    run(f"mount {SSD} {LOWER}")
    yield LOWER
    clean_up()
    run(FSCK["ext4"].format(device=SSD))


@pytest.fixture(name="mounted")
def mounted_fixture(lower):
    """forebay, its cache an emulated device."""
    cache = create_emulated("--size 32M --backing", SSD)
    run(f"mount -t forebay -o cache={cache},allow_volatile_cache {lower} {MOUNT}")
    return MOUNT


def test_each_cache_has_a_name_of_its_own():
    """Each cache has a UUID, also one that --backing makes, and is found by it."""
    names = [json.loads(run(f"forebay probe --json {create_emulated('--size 8M --backing', SSD)}"))["uuid"] for _ in range(2)]
    assert len(set(names)) == 2 and not any(name.startswith("00000000-0000") for name in names)


def test_quick_start_of_the_readme(lower):
    """The README's own lines, but for the installation; then Redis, and everything is below."""
    block = re.search(r"without persistent memory.*?\n\n((?:    .*\n)+)", (ROOT / "README.md").read_text(encoding="utf-8"))[1]
    for line in block.replace("/srv/ssd", str(lower)).replace("/srv/db", str(MOUNT)).replace("1G", "64M").splitlines():
        if "make install" not in line:
            run(line.split("#")[0])
    assert "ordinary memory" in run("forebay status")
    with subprocess.Popen(["redis-server", "--dir", MOUNT, "--appendonly", "yes", "--appendfsync", "always", "--save", ""],
                          stdout=subprocess.DEVNULL) as redis:
        run("for i in $(seq 300); do redis-cli ping && break; sleep 0.2; done; redis-cli ping")
        assert "50000" in run("redis-benchmark -q -t set -n 2000 -r 50000 -c 1 >/dev/null; redis-cli set last 50000; redis-cli get last")
        redis.kill()
    assert run(f"forebay status --json {MOUNT} | jq '.[0].syncs_absorbed'").strip() != "0"
    run(f"umount {MOUNT}")
    assert b"last" in b"".join(path.read_bytes() for path in (lower / "appendonlydir").iterdir())
    run("forebay emu remove forebay-emu0")


def test_mount_wants_to_be_told(lower):
    cache = create_emulated("--size 16M")
    run(f"forebay format {cache}")
    said = fails(f"mount -t forebay -o cache={cache} {lower} {MOUNT}")
    assert "ordinary memory" in said and "allow_volatile_cache" in said
    run(f"mount -t forebay -o cache={cache},allow_volatile_cache {lower} {MOUNT}")
    assert "goes with the power" in run("dmesg")
    assert "allow_volatile_cache" in run("grep ' forebay ' /proc/mounts")
    assert "goes with the power" in run("forebay status")
    assert run(f"forebay status --json {MOUNT} | jq '.[0].volatile_cache'") == "1\n"


def test_write_log_wants_to_be_told():
    log = create_emulated("--size 16M")
    run(f"forebay writelog format {log}")
    assert "allow_volatile" in fails(f"forebay writelog create wl {SSD} {log}")
    run(f"forebay writelog create --option allow_volatile=1 wl {SSD} {log}")
    assert "go with the power" in run("dmesg")
    run("dd if=/dev/urandom of=/tmp/emu.data bs=1M count=4 status=none; "
        "dd if=/tmp/emu.data of=/dev/mapper/wl bs=64k oflag=direct status=none; "
        "forebay writelog remove wl; cmp -n 4M /tmp/emu.data /dev/nvme0n1")


def test_remove_is_refused_while_in_use(mounted):
    said = fails("forebay emu remove 0")
    assert f"is the cache of {mounted}" in said
    assert json.loads(run("forebay emu list --json"))[0]["used"]
    run(f"umount {mounted}; forebay emu remove 0")
    assert "there is no /dev/forebay-emu0" in fails("forebay emu remove 0")
    assert "is not an emulated device" in fails("forebay emu remove /dev/nvme0n1")


def test_another_file_system():
    """It is in use then; and what docs/emu.md says of its DAX mappings."""
    device = create_emulated("--size 16M")
    run(f"mkfs.ext4 -Fq -b 4096 {device} && mkdir -p /mnt/other && mount -o dax {device} /mnt/other && echo contents >/mnt/other/f")
    assert json.loads(run("forebay emu list --json"))[0]["used"]
    assert "/mnt/other" in fails("forebay emu remove 0")
    read = "import mmap; file = open('/mnt/other/f', 'rb'); mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)[0]"
    assert subprocess.run(["python3", "-c", read], check=False).returncode == -signal.SIGBUS
    run("umount /mnt/other")
    assert not json.loads(run("forebay emu list --json"))[0]["used"]


def test_what_cannot_be_made():
    assert "no room for" in fails("forebay emu create --size 1T")
    for node in (7, 10 ** 6, 2 * 10 ** 9):
        assert f"no NUMA node {node}" in fails(f"forebay emu create --size 1M --node {node}")
    assert "is not a block device" in fails("forebay emu create --size 8M --backing /dev/null")
    for option in ("--size 0", "--size 5000", "--size 1M --bandwidth 1k", "--size 1M --persistence x", "--size 1M --read-delay-ns 1g"):
        assert f"{option.split()[-2]} needs " in fails(f"forebay emu create {option}")
    # A cache that is too small takes the device with it.
    assert "too small" in fails(f"forebay emu create --size 1M --backing {SSD}")
    assert json.loads(run("forebay emu list --json")) == []


def test_hostile_ioctls():
    """The ioctls refuse wrong sizes, flags and pointers, and any caller but root."""
    fd = os.open("/dev/forebay-emu-control", os.O_RDWR)

    def error(request, argument):
        with pytest.raises(OSError) as caught:
            fcntl.ioctl(fd, request, argument)
        return caught.value.errno

    good = struct.Struct("=IIQQQQiI")
    for fields in ((good.size, 0, 0, 0, 0, 0, -1, 0), (good.size, 4, PAGE, 0, 0, 0, -1, 0), (8, 0, PAGE, 0, 0, 0, -1, 0),
                   (good.size, 0, 1 << 63, 0, 0, 0, -1, 0), (good.size, 0, PAGE, 1 << 40, 0, 0, -1, 0),
                   (good.size, 0, PAGE, 0, 0, 5, -1, 0), (good.size, 0, PAGE, 0, 0, 0, -2, 0), (good.size, 0, PAGE, 0, 0, 0, 9999, 0)):
        assert error(emulated.CREATE, bytearray(good.pack(*fields))) == errno.EINVAL
    assert error(emulated.CREATE, 8) == errno.EFAULT
    assert error(emulated.REMOVE, 12345) == errno.ENODEV
    assert error(emulated.CUT, bytearray(struct.pack("=IIQ", 48, 5, 0) + bytes(32))) == errno.EINVAL
    assert error(emulated.CUT, bytearray(struct.pack("=IIQ", 48, 1, 0) + bytes(32))) == errno.ENODEV
    libc = ctypes.CDLL(None, use_errno=True)
    create_emulated("--size 1M")
    assert libc.ioctl(fd, ctypes.c_ulong(emulated.REMOVE), ctypes.c_ulong(1 << 32)) == -1 and ctypes.get_errno() == errno.ENODEV
    assert error(0x6563, 0) == errno.ENOTTY
    assert as_nobody(lambda: error(emulated.CREATE, bytearray(good.pack(good.size, 0, PAGE, 0, 0, 0, -1, 0)))) == errno.EPERM
    os.close(fd)


def test_mappings(mounted):
    """MAP_SYNC is accepted, and a child's stores are visible. A cached page can't be a buffer of direct
    I/O, and the error says so."""
    fd = os.open(mounted / "f", os.O_RDWR | os.O_CREAT)
    os.write(fd, bytes(8 * PAGE))
    os.fsync(fd)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.pread.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
    ssd = os.open(SSD, os.O_RDONLY | os.O_DIRECT)
    with Mapping(fd, 8 * PAGE, flags=MAP_SHARED_VALIDATE | MAP_SYNC) as mapping:
        mapping.write(0, b"a" * PAGE)
        pid = os.fork()
        if not pid:
            mapping.write(PAGE, b"b" * PAGE)
            os._exit(0)
        os.waitpid(pid, 0)
        assert os.pread(fd, 2 * PAGE, 0) == b"a" * PAGE + b"b" * PAGE
        assert libc.pread(ssd, mapping.address, PAGE, 0) == -1 and ctypes.get_errno() in (errno.EFAULT, errno.EEXIST)
    os.close(ssd)
    os.close(fd)
    run(f"forebay pin {mounted}/f && forebay unpin {mounted}/f")


def test_contents_stay_until_removed(lower):
    """A device keeps out-of-sync pages, too, over a mount that ended without writing back."""
    cache = create_emulated("--size 16M --track")
    copy = create_emulated("--size 16M --track")
    run(f"forebay format {cache}; mount -t forebay -o cache={cache},allow_volatile_cache {lower} {MOUNT}")
    (MOUNT / "f").write_bytes(b"old" * 1000)
    os.sync()
    with open(MOUNT / "f", "r+b", buffering=0) as file:
        for contents in (b"abc", b"new"):       # the first sync of a new file goes below
            os.pwrite(file.fileno(), contents, 0)
            os.fsync(file.fileno())
    assert run(f"forebay status --json {MOUNT} | jq '.[0].pages_out_of_sync'") == "1\n"
    run(f"forebay emu cut 0:1; umount {MOUNT}")
    with open(lower / "f", "r+b", buffering=0) as file:
        file.write(b"old")
    run(f"mount -t forebay -o cache={copy},allow_volatile_cache {lower} {MOUNT}")
    assert (MOUNT / "f").read_bytes()[:6] == b"newold"


def test_delays(mounted):
    """The delay adds to the time that a write of a page takes, and the bandwidth limits its speed."""
    emu = Path("/sys/block/forebay-emu0/emu")
    fd = os.open(mounted / "f", os.O_RDWR | os.O_CREAT)
    os.write(fd, bytes(64 * PAGE))
    os.fsync(fd)

    def writing():
        begin = time.monotonic()
        for page in range(64):
            os.pwrite(fd, b"x" * PAGE, page * PAGE)
            os.fdatasync(fd)
        return time.monotonic() - begin

    def reading():
        begin = time.monotonic()
        os.pread(fd, 64 * PAGE, 0)
        return time.monotonic() - begin

    def adds(name, value, action, seconds):
        """Whether a setting adds so much to what an action takes. The shortest times of each kind count, taken in turns:
        what else the machine does adds to the others."""
        plain = slow = math.inf
        for turn in range(30):
            plain = min(plain, action())
            (emu / name).write_text(str(value), encoding="ascii")
            slow = min(slow, action())
            (emu / name).write_text("0", encoding="ascii")
            if turn >= 2 and slow - plain > 0.9 * seconds:
                return True
        return False

    writing()                   # moves them in
    assert adds("write_delay_ns", 1000000, writing, 64 * 0.001)
    assert adds("bandwidth", 2 * MIB, writing, 64 * PAGE / (2 * MIB))
    assert adds("read_delay_ns", 1000000, reading, 64 * 0.001)
    with pytest.raises(OSError):
        (emu / "write_delay_ns").write_text("1000001", encoding="ascii")
    os.close(fd)


@BY_THE_CLOCK
@pytest.mark.slow       # each copy is checked byte by byte there, so a sync below is faster
def test_large_syncs_go_where_it_is_faster(mounted):
    """A sync of many pages goes below once PMem is known to be slower, and to PMem when that is fast again."""
    fd = os.open(mounted / "f", os.O_RDWR | os.O_CREAT)
    os.write(fd, bytes(32 * MIB))
    os.fsync(fd)
    place, found, pages = 0, [], 64

    def value(name):
        return int(Path(f"/sys/fs/forebay/forebay-emu0/{name}").read_text(encoding="ascii"))

    def absorbed_of(syncs):
        nonlocal place
        before = value("syncs_absorbed")
        for _ in range(syncs):
            earlier = value("syncs_absorbed")
            os.pwrite(fd, bytes(pages * PAGE), place * pages * PAGE)
            os.fdatasync(fd)
            place = (place + (value("syncs_absorbed") > earlier)) % (32 * MIB // pages // PAGE)
        run(f"forebay drop {mounted / 'f'}")
        found.append((value("absorb_max"), value("absorb_page_ns"), value("lower_sync_ns"), value("lower_sync_page_ns")))
        return value("syncs_absorbed") - before

    bandwidth = Path("/sys/block/forebay-emu0/emu/bandwidth")
    assert absorbed_of(20) == 20
    bandwidth.write_text(str(4 * MIB), encoding="ascii")
    absorbed_of(30)
    assert absorbed_of(32) == 1, found
    assert found[-1][0] < pages
    bandwidth.write_text("0", encoding="ascii")
    deadline = time.monotonic() + 120
    while absorbed_of(32) < 32:
        assert time.monotonic() < deadline, found
    os.close(fd)


def test_persistence_is_what_was_asked_for(lower):
    cache = create_emulated("--size 16M --persistence cpu")
    run(f"forebay format {cache}; mount -t forebay -o cache={cache},allow_volatile_cache {lower} {MOUNT}")
    assert "CPU caches" in run("forebay status")


def test_create_and_remove_under_use():
    """Devices are created and removed while other devices are written to, and while programs try to open
    them."""
    stop = threading.Event()
    steady = create_emulated("--size 4M")

    def open_and_close():
        while not stop.is_set():
            for number in range(1, 4):
                try:
                    os.close(os.open(f"/dev/forebay-emu{number}", os.O_RDONLY))
                except OSError as problem:
                    assert problem.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV)

    def write():
        data = mmap.mmap(-1, MIB)
        with open(steady, "r+b", buffering=0) as file:
            while not stop.is_set():
                os.pwrite(file.fileno(), data, 0)

    threads = [threading.Thread(target=open_and_close), threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    removed = 0
    for _ in range(ROUNDS):
        number = emulated.create(2 * MIB, 0)
        while True:
            try:
                emulated.control(emulated.REMOVE, number)
                removed += 1
                break
            except OSError as problem:
                assert problem.errno == errno.EBUSY
    stop.set()
    for thread in threads:
        thread.join()
    assert removed == ROUNDS


@pytest.mark.parametrize("subject", ["forebay", "writelog"])
def test_power_cuts(subject):
    """Makes a few cuts; tests/emu/run makes thousands."""
    said = run(f"python3 -B {ROOT}/tests/emu/guest.py {subject} {CUTS} 1")
    assert f"{subject}: {CUTS} cuts" in said and " 0 violations" in said


def unreclaimable():
    """Bytes of slabs that the kernel can't free."""
    return 1024 * int(re.search(r"SUnreclaim: *(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))[1])


def test_writes_without_flush():
    """What a tracked device was given and not told to flush takes a limited amount of memory. A flush
    makes all of it durable."""
    size = 8 * MIB
    first, second = create_emulated("--size 8M --track"), create_emulated("--size 8M --track")
    page = mmap.mmap(-1, PAGE)
    with open(first, "r+b", buffering=0, opener=lambda path, flags: os.open(path, flags | os.O_DIRECT)) as file:
        before = unreclaimable()
        for number in range(16 * size // PAGE):
            page[:] = struct.pack("<Q", number) * (PAGE // 8)
            os.pwrite(file.fileno(), page, number * PAGE % size)
        # An allocation is of a power of two bytes; the debug kernel's has bytes beside it that are watched.
        assert unreclaimable() - before < (8 if DEBUG else 4) * size
        os.fsync(file.fileno())
        for seed in range(8):
            run(f"forebay emu cut --seed {seed} 0:1")
            assert Path(second).read_bytes() == Path(first).read_bytes()


def test_write_with_fua_makes_no_earlier_write_durable():
    """A write log that is a cleaner writes with FUA and doesn't flush. So an earlier write to the device survives some cuts
    and not others, the cleaner's writes survive all, and each block is old or new as a whole."""
    origin, copy, log = create_emulated("--size 8M --track"), create_emulated("--size 8M --track"), create_emulated("--size 8M")
    run(f"forebay writelog format {log}; forebay writelog create --option allow_volatile=1 --option block_size={PAGE} wl {origin} {log}")
    run("dmsetup message wl 0 cleaner")
    page, survived = mmap.mmap(-1, PAGE), set()
    page[:] = b"1" * PAGE
    for device, block in ((origin, 500), ("/dev/mapper/wl", 600)):
        with open(device, "r+b", buffering=0, opener=lambda path, flags: os.open(path, flags | os.O_DIRECT)) as file:
            os.pwrite(file.fileno(), page, block * PAGE)
    for seed in range(12):
        run(f"forebay emu cut --seed {seed} 0:1")
        left = Path(copy).read_bytes()
        survived.add(left[500 * PAGE:501 * PAGE])
        assert left[600 * PAGE:601 * PAGE] == page[:]
    run("forebay writelog remove wl")
    assert survived == {bytes(PAGE), page[:]}


def test_cut_is_refused():
    create_emulated("--size 4M --track")
    create_emulated("--size 8M --track")
    create_emulated("--size 4M")
    for pair in ("0:1", "0:2", "2:0", "0:0"):
        assert "must be tracked, and of one size" in fails(f"forebay emu cut {pair}")
    assert "doesn't exist" in fails("forebay emu cut 0:7")
    third = create_emulated("--size 4M --track")
    with open(third, "rb"):
        assert "is in use" in fails("forebay emu cut 0:3")
    run("forebay emu cut --seed 5 0:3")
