# SPDX-License-Identifier: GPL-2.0-only
"""A lower file system on a device, a cache, and forebay on both; what every test begins with."""

import json
import mmap
import os
import subprocess
from pathlib import Path

LOWER, MOUNT = Path("/mnt/lower"), Path("/mnt/fb")
SSD, SSD2, PMEM = "/dev/nvme0n1", "/dev/nvme1n1", "/dev/pmem0"
PAGE = 4096

MKFS = {
    "ext4": "mkfs.ext4 -Fq -b 4096 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard {device} {mib}M",
    "ext2": "mkfs.ext2 -Fq -b 4096 -E nodiscard {device} {mib}M",
    "xfs": "mkfs.xfs -fqK -d size={mib}m {device}",
    "btrfs": "mkfs.btrfs -fqK -b {mib}M {device}",
    "f2fs": "mkfs.f2fs -fq {device}",
}
FSCK = {
    "ext4": "e2fsck -fn {device}",
    "ext2": "e2fsck -fn {device}",
    "xfs": "xfs_repair -n {device}",
    "btrfs": "btrfs check --readonly {device}",
    "f2fs": "fsck.f2fs --dry-run {device}",
}


def run(command, check=True):
    """Runs a shell command; returns its output, standard error included."""
    done = subprocess.run(command, shell=True, check=False, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if check and done.returncode:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}\n{run('dmesg | tail -5', False)}")
    return done.stdout


def create_emulated(*options):
    """Makes a device of forebay-emu; returns its path. On a slow host the command tells its progress on standard error."""
    words = f"forebay emu create --json {' '.join(options)}".split()
    done = subprocess.run(words, check=False, text=True, capture_output=True)
    if done.returncode:
        raise AssertionError(f"{' '.join(words)}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["device"]


def close_files(folder):
    """Closes the files below a folder that a test which failed has left open, so that the next test can unmount."""
    for fd in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{fd}").startswith(folder):
                os.close(int(fd))
        except OSError:
            pass        # that of the listing itself


def fails(command):
    """Runs a command that must fail; returns its output and what the kernel said meanwhile."""
    run("dmesg -C")
    done = subprocess.run(command, shell=True, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode, f"{command} succeeded"
    return done.stdout + run("dmesg")


def drop_caches():
    """Drops the clean page cache, dentries and inodes."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")


def counter(cache, name):
    """A number in the sysfs folder of the mount with that cache."""
    return int((Path("/sys/fs/forebay") / block_name(cache) / name).read_text(encoding="ascii"))


def block_name(device):
    """What the kernel calls a block device."""
    number = os.stat(device).st_rdev
    return os.path.basename(os.readlink(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"))


def read_mapped(path):
    """Reads a file through a mapping: what may be a lower file is not read with read(2), because of lockdep.

    xfs holds the inode's lock while read(2) copies to user memory. A fault on a forebay mapping takes a
    lock of forebay, and below it that lock of xfs. Only a task that reads a lower file into a forebay
    mapping could deadlock. But lockdep goes by lock classes, and reports the cycle once any task calls
    read(2) on xfs.
    """
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return b""
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapping:
            return mapping[:]


def read_below(name):
    """The same for a file of the lower file system."""
    return read_mapped(LOWER / name)


def small_cache(mib):
    """Makes a cache device of that size from a part of the PMem device."""
    run(f"dmsetup create small --table '0 {mib * 2048} linear {PMEM} 0'")
    run("dmsetup mknodes")
    return "/dev/mapper/small"


class Stack:
    """One lower file system, one cache, one mount."""

    def __init__(self, fs="ext4", mib=512, cache=PMEM, device=SSD, lower_options="", names=""):
        self.fs, self.mib, self.cache, self.device = fs, mib, cache, device
        self.lower_options = lower_options
        self.names = names      # size of the cache's name log; none: it has none

    def make(self):
        """Formats both and mounts."""
        for folder in (LOWER, MOUNT):
            folder.mkdir(parents=True, exist_ok=True)
        run(MKFS[self.fs].format(device=self.device, mib=self.mib))
        self.mount_lower()
        run("modprobe forebay")
        run(f"forebay format --force {'--names ' + self.names if self.names else ''} {self.cache}")
        self.mount()
        return self

    def mount_lower(self):
        """Mounts the lower file system."""
        run(f"mount -t {self.fs} {'-o ' + self.lower_options if self.lower_options else ''} {self.device} {LOWER}")

    def mount(self, options=""):
        """Mounts forebay."""
        run(f"mount -t forebay -o cache={self.cache}{',' + options if options else ''} {LOWER} {MOUNT}")

    def umount(self):
        """Unmounts forebay."""
        run(f"umount {MOUNT}")

    def remount(self):
        """Unmounts and mounts; in between, all data are below."""
        self.umount()
        drop_caches()
        self.mount()

    def fsck(self):
        """Unmounts the lower file system, checks it and mounts it again."""
        run(f"umount {LOWER}")
        run(FSCK[self.fs].format(device=self.device))
        self.mount_lower()

    def destroy(self):
        """Unmounts all that is still mounted; the lower file system must be clean then."""
        if os.path.ismount(MOUNT):
            self.umount()
        if os.path.ismount(LOWER):
            run(f"umount {LOWER}")
            run(FSCK[self.fs].format(device=self.device))

    @property
    def sysfs(self):
        """The mount's folder in sysfs."""
        return Path("/sys/fs/forebay") / block_name(self.cache)

    def value(self, name):
        """A counter."""
        return counter(self.cache, name)

    def status(self):
        """forebay status --json"""
        return json.loads(run(f"forebay status --json {self.cache}"))

    def drain(self, check=True):
        """forebay drain"""
        return run(f"forebay drain {MOUNT}", check)

    def writes(self):
        """Writes and flushes that the device has had."""
        fields = Path(f"/sys/block/{block_name(self.device)}/stat").read_text(encoding="ascii")
        numbers = [int(f) for f in fields.split()]
        return numbers[4] + numbers[15]
