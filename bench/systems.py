# SPDX-License-Identifier: GPL-2.0-only
"""The systems that are compared: each is set up in the guest from a clean state, and taken down again.

A system is a context manager that yields an empty folder (or a device: a character device for devdax, a block device if
its name begins with bare or small). All systems use the same SSD and the same PMem; both are wiped before each. The SSD has been
written all over beforehand (bench/devices.py), and nothing is discarded. So no system's result includes the time in which the host
allocates the image. ext4 and xfs have default options wherever they appear; mkfs initialises what ext4 would in the background.
"""

import json
import os
import stat
import subprocess
import time
from contextlib import contextmanager

from .commands import CommandFailed, run
from .wipe import wipe, write_again, xfs_log

# The guest's devices; those that `bench/run --on host` names.
SSD, PMEM = os.environ.get("BENCH_SSD", "/dev/nvme0n1"), os.environ.get("BENCH_PMEM", "/dev/pmem0")
LOWER, PLACE = "/mnt/bench-lower", "/mnt/bench"
MAPPED = "/dev/mapper/bench"
SMALL_MIB = 64          # of a cache that is soon full
EMU_MIB = 256
PINNED = "BENCH_PINNED"         # in the environment: a workload that can pins its files
MKFS_EXT4 = ("mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard")


@contextmanager
def ext4_on(device: str, *mkfs: str):
    """A new ext4, where workloads work."""
    run(*MKFS_EXT4, *mkfs, device)
    with mounted("ext4", device, PLACE):
        yield PLACE


def ext4():
    """ext4 on the SSD"""
    return ext4_on(SSD)


@contextmanager
def xfs():
    """xfs on the SSD"""
    run("mkfs.xfs", "-q", "-f", "-K", SSD)
    write_again(SSD, *xfs_log(SSD))
    with mounted("xfs", SSD, PLACE):
        yield PLACE


@contextmanager
def ext4_pmem_journal():
    """ext4 on the SSD, journal on the PMem: data=ordered, a sync still waits for the data's way to the SSD"""
    # The journal's place is known by its UUID, which mkfs takes from the journal device.
    run("mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "journal_dev", PMEM, "32768")     # 128 MiB
    with ext4_on(SSD, "-J", f"device={PMEM}") as place:
        yield place


@contextmanager
def mapped(target: str, cache: str = PMEM, below: str = SSD):
    """A device with a cache before it: the target's parameters come behind its name."""
    sectors = int(run("blockdev", "--getsz", below))
    name, _, parameters = target.partition(" ")
    run("modprobe", {"forebay-wlog": "dm-forebay-writelog"}.get(name, f"dm-{name}"))
    run("dmsetup", "create", "bench", "--table", f"0 {sectors} {name} {parameters.format(below=below, pmem=cache)}")
    try:
        yield MAPPED
    finally:
        run("dmsetup", "remove", "--retry", "bench")


@contextmanager
def small_pmem():
    """The beginning of the PMem as a device of its own."""
    run("dmsetup", "create", "small", "--table", f"0 {SMALL_MIB * 2048} linear {PMEM} 0")
    try:
        yield "/dev/mapper/small"
    finally:
        run("dmsetup", "remove", "--retry", "small")


# Best settings found: the persistent-memory type (p), so that a flush is a fence and no block I/O; blocks of
# 4096 bytes, the file system's; the defaults for the rest. Writeback starts at half full (high_watermark 50),
# which the workloads on file systems don't reach: dm-writecache answers from PMem throughout. Other values of
# autocommit_blocks don't matter when each write is followed by a flush.
WRITECACHE = "writecache p {below} {pmem} 4096 0"
# The same block size; the defaults for the rest.
WRITELOG = "forebay-wlog {below} {pmem} 2 block_size 4096"


@contextmanager
def dm_writecache():
    """ext4 on dm-writecache, the PMem as its cache"""
    with mapped(WRITECACHE) as device:
        with ext4_on(device) as place:
            yield place
        # What mkfs left in the cache, the journal of zeros, need not reach the SSD: the next system wipes both.


@contextmanager
def writelog():
    """ext4 on forebay-wlog, the PMem as its log"""
    run("forebay", "writelog", "format", PMEM)
    with mapped(WRITELOG) as device, ext4_on(device) as place:
        yield place


@contextmanager
def bare_ssd():
    """the SSD itself"""
    yield SSD


@contextmanager
def bare_dm_writecache():
    """dm-writecache itself"""
    with mapped(WRITECACHE) as device:
        yield device


@contextmanager
def bare_writelog():
    """forebay-wlog itself"""
    run("forebay", "writelog", "format", PMEM)
    with mapped(WRITELOG) as device:
        yield device


@contextmanager
def small_dm_writecache():
    """dm-writecache itself, with a small cache"""
    with small_pmem() as cache, mapped(WRITECACHE, cache) as device:
        yield device


@contextmanager
def small_writelog():
    """forebay-wlog itself, with a small log"""
    with small_pmem() as cache:
        run("forebay", "writelog", "format", cache)
        with mapped(WRITELOG, cache) as device:
            yield device


@contextmanager
def forebay():
    """forebay over ext4 on the SSD, the PMem as its cache"""
    with new_forebay(PMEM):
        yield PLACE


@contextmanager
def forebay_cpu():
    """forebay where CPU caches are in the persistence domain (eADR, CXL GPF)"""
    path = f"/sys/block/{os.path.basename(PMEM)}/dax/write_cache"
    set_attribute(path, "0")
    try:
        with forebay() as place:
            yield place
    finally:
        set_attribute(path, "1")


@contextmanager
def forebay_names():
    """forebay with a name log in its cache"""
    run(*MKFS_EXT4, SSD)
    run("forebay", "format", "--names", "auto", PMEM)
    with forebay_as_it_is():
        yield PLACE


@contextmanager
def forebay_small():
    """forebay with a cache of 64 MiB"""
    with small_pmem() as cache, new_forebay(cache):
        yield PLACE


def set_attribute(path: str, value: str) -> None:
    with open(path, "w") as file:
        file.write(value)


def new_forebay(cache: str, *options: str):
    """Forebay over a new ext4, with a new cache on some device."""
    run(*MKFS_EXT4, SSD)
    run("forebay", "format", cache)
    return forebay_as_it_is(cache, *options)


@contextmanager
def forebay_as_it_is(cache: str = PMEM, *options: str):
    """Mounts what is there: after a power cut, say."""
    run("modprobe", "forebay")
    if cache == PMEM and "forebay-emu" in PMEM:
        options = ("allow_volatile_cache", *options)
    with mounted("ext4", SSD, LOWER), mounted("forebay", LOWER, PLACE, ",".join((f"cache={cache}", *options))):
        yield PLACE


@contextmanager
def overlayfs():
    """overlayfs over ext4 on the SSD: what it costs in the kernel's own stacked file system to be stacked"""
    run(*MKFS_EXT4, SSD)
    run("modprobe", "overlay")
    with mounted("ext4", SSD, LOWER):
        below, upper, work = (f"{LOWER}/{name}" for name in ("below", "upper", "work"))
        for folder in (below, upper, work):
            os.mkdir(folder)
        with mounted("overlay", "overlay", PLACE, f"lowerdir={below},upperdir={upper},workdir={work}"):
            yield PLACE


@contextmanager
def tmpfs():
    """tmpfs, the limit: no storage at all"""
    with mounted("tmpfs", "tmpfs", PLACE, "size=75%"):
        yield PLACE


@contextmanager
def ext4_dax():
    """ext4 with DAX on the PMem: all data in PMem, none on the SSD"""
    run(*MKFS_EXT4, PMEM)
    with mounted("ext4", PMEM, PLACE, "dax=always"):
        yield PLACE


@contextmanager
def xfs_on_pmem(options: str):
    """Without reflink, which a file system with DAX had to do without when the thesis was written, and the same without DAX."""
    run("mkfs.xfs", "-q", "-f", "-K", "-m", "reflink=0", PMEM)
    with mounted("xfs", PMEM, PLACE, options):
        yield PLACE


def xfs_dax():
    """xfs with DAX on the PMem: all data in PMem, none on the SSD"""
    return xfs_on_pmem("dax=always")


def xfs_pmem():
    """xfs on the PMem as a plain block device, without DAX"""
    return xfs_on_pmem("dax=never")


@contextmanager
def forebay_pinned():
    """forebay, with the files of a workload pinned if it says so"""
    os.environ[PINNED] = "yes"
    try:
        with forebay() as place:
            yield place
    finally:
        del os.environ[PINNED]


@contextmanager
def forebay_emu():
    """forebay with a device of forebay-emu as its cache"""
    run("modprobe", "forebay-emu")
    cache = json.loads(run("forebay", "emu", "create", "--size", f"{EMU_MIB}M", "--json"))["device"]
    try:
        with new_forebay(cache, "allow_volatile_cache"):
            yield PLACE
    finally:
        run("forebay", "emu", "remove", cache)


@contextmanager
def namespace(mode: str, *options: str):
    """The PMem's namespace in another mode. In fsdax mode again afterwards."""
    run("ndctl", "create-namespace", "-f", "-e", "namespace0.0", "-m", mode, *options)
    try:
        yield
    finally:
        run("ndctl", "create-namespace", "-f", "-e", "namespace0.0", "-m", "fsdax", "--map=mem")


@contextmanager
def btt():
    """The PMem as a BTT: a namespace in sector mode, blocks of 4096 bytes."""
    with namespace("sector", "-l", "4096"):
        yield "/dev/pmem0s"


@contextmanager
def devdax():
    """the PMem as a device-DAX node: memory to map, without a file system"""
    run("modprobe", "device_dax")
    with namespace("devdax", "--map=mem"):
        yield "/dev/dax0.0"


@contextmanager
def ext4_btt():
    """ext4 on the BTT itself"""
    with btt() as device, ext4_on(device) as place:
        yield place


@contextmanager
def ext4_btt_beside():
    """ext4 on the BTT itself, while another process computes: what a busy second processor takes from the first"""
    with ext4_btt() as place, subprocess.Popen(["sh", "-c", "while :; do :; done"]) as computing:
        try:
            yield place
        finally:
            computing.kill()


def ext4_pmem():
    """ext4 on the PMem as a plain block device, without DAX: a block is not atomic"""
    return ext4_on(PMEM)


def over_btt(mib: int = 0, **options: str):
    """A system: ext4 on a transit cache of TRANSIT_MIB (or another size) over the BTT, with some options."""
    words = " ".join(f"{key} {value}" for key, value in {"cache_size": f"{mib or TRANSIT_MIB}M", **options}.items())

    @contextmanager
    def system():
        target = f"forebay-transit {{below}} {len(words.split())} {words}"
        with btt() as below, mapped(target, below=below) as device, ext4_on(device) as place:
            yield place

    system.__doc__ = f"ext4 on forebay-transit over the BTT, {words}"
    return system


# In the paper the cache is 1/128 of the file and always full. Here the file is 256 MiB.
TRANSIT_MIB = 16
STAGING = ("pmbd", "pmbd70", "lru", "coactive")
CACHE_MIB = (64, 128, 256, 512, 1024)

SYSTEMS = {
    "ext4": ext4,
    "xfs": xfs,
    "ext4-pmem-journal": ext4_pmem_journal,
    "dm-writecache": dm_writecache,
    "forebay": forebay,
    "forebay-cpu": forebay_cpu,
    "forebay-small": forebay_small,
    "forebay-names": forebay_names,
    "forebay-pinned": forebay_pinned,
    "overlayfs": overlayfs,
    "ext4-dax": ext4_dax,
    "xfs-dax": xfs_dax,
    "xfs-pmem": xfs_pmem,
    "tmpfs": tmpfs,
    "forebay-emu": forebay_emu,
    "writelog": writelog,
    "bare-ssd": bare_ssd,
    "bare-dm-writecache": bare_dm_writecache,
    "bare-writelog": bare_writelog,
    "small-dm-writecache": small_dm_writecache,
    "small-writelog": small_writelog,
    "devdax": devdax,
    "ext4-btt": ext4_btt,
    "ext4-btt-beside": ext4_btt_beside,
    "ext4-pmem": ext4_pmem,
    "transit": over_btt(),
    "transit-no-ee": over_btt(eager_eviction="off"),
    "transit-no-bp": over_btt(bypass="off"),
    "transit-none": over_btt(policy="none"),
    **{policy: over_btt(policy=policy) for policy in STAGING},
    **{f"{policy}-{mib}m": over_btt(mib, policy=policy) for policy in ("transit", *STAGING) for mib in CACHE_MIB},
}
# The namespace of the PMem is changed for them.
OVER_NAMESPACE = tuple(name for name in SYSTEMS if name.startswith(("devdax", "ext4-btt", "transit", *STAGING)))
KINDS = {"forebay": "forebay", "overlayfs": "overlay", "xfs": "xfs", "tmpfs": "tmpfs"}      # by the name's beginning; others: ext4
BARE = tuple(name for name in SYSTEMS if name.startswith(("bare-", "small-", "devdax")))       # they yield a device, not a folder


@contextmanager
def clean(name: str):
    """The system by that name, on wiped devices, in an empty folder."""
    os.environ["UNIX_IO_NOZEROOUT"] = "1"       # tells mkfs.ext4 to write zeros itself
    for device in (SSD, PMEM):
        wipe(device)
    drop_caches()
    with SYSTEMS[name]() as folder:
        with open("/proc/mounts") as mounts:
            check_mounted(name, folder, mounts.read())
        yield folder


def check_mounted(name: str, folder: str, mounts: str) -> None:
    """A system's folder is a mount of its own kind, with DAX if its name says so, so that no workload measures something else.
    `mounts` is /proc/mounts.
    """
    found = [(kind, options.split(",")) for _, place, kind, options, *_ in map(str.split, mounts.splitlines()) if place == folder]
    kinds = [kind for kind, _ in found]
    must = next((kind for word, kind in KINDS.items() if name.startswith(word)), "ext4")
    if name in BARE:
        is_device = stat.S_ISCHR if name == "devdax" else stat.S_ISBLK
        if kinds or not is_device(os.stat(folder).st_mode):
            raise RuntimeError(f"{name}: {folder} is no {'character' if name == 'devdax' else 'block'} device")
    elif kinds[-1:] != [must]:
        raise RuntimeError(f"{name}: {folder} should be a mount of {must}, and is {kinds[-1] if kinds else 'none'}")
    elif name.endswith("-dax") != ("dax=always" in found[-1][1]):
        raise RuntimeError(f"{name}: {folder} is mounted {'without' if name.endswith('-dax') else 'with'} DAX")


@contextmanager
def mounted(kind: str, device: str, place: str, options: str = ""):
    os.makedirs(place, exist_ok=True)
    run("mount", "-t", kind, *(["-o", options] if options else []), device, place)
    try:
        yield
    finally:
        umount(place)


def umount(place: str) -> None:
    """A program that was just killed may hold the mount for a moment."""
    for attempt in range(20):
        try:
            run("umount", place)
            return
        except CommandFailed:
            if attempt == 19:
                raise
            time.sleep(0.1)


def drop_caches() -> None:
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")
