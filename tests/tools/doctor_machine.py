# SPDX-License-Identifier: GPL-2.0-only
"""A made-up machine for forebay doctor, on which nothing is wrong."""

import os
import shutil
import subprocess
from pathlib import Path

from conftest import MIB
from test_status import MOUNTED

RELEASE = "6.12.5-amd64"
MODULES = ("forebay", "dm-forebay-writelog", "dm-forebay-transit")
CACHE_UUID = "11111111-1111-4111-8111-111111111111"
LOG_LINE = ("/dev/mapper/fast", "/srv/fast", "ext4", "x-systemd.requires=forebay-writelog@fast.service", "0", "2")


def run(*words):
    subprocess.run(words, check=True, capture_output=True)


class Machine:
    """Files of /sys, /proc, /etc, /dev and /lib below a folder, and the command that takes them for the machine's."""

    def __init__(self, root, images, library, forebay):
        self.root, self.images, self.forebay = root, images, forebay
        self.environment = {"FOREBAY_SYSROOT": str(root), "LD_PRELOAD": str(library), "FAKE_MAPPER": str(root / "mapper"),
                            "PATH": f"{root}/bin:{os.environ['PATH']}"}
        self.write("bin/modinfo", '#!/bin/sh\nsed -n "s/^$2: *//p" "$3"\n')
        os.chmod(root / "bin/modinfo", 0o755)
        self.kernel()
        self.devices()
        self.settings()

    def write(self, path, text="\n"):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if text.endswith("\n") else f"{text}\n")

    def remove(self, path):
        file = self.root / path
        shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink()

    def replace(self, path, old, new):
        text = (self.root / path).read_text()
        assert old in text
        self.write(path, text.replace(old, new))

    def link(self, path, target):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(self.root / target)

    def image(self, disk, name):
        (self.root / "dev").mkdir(exist_ok=True)
        run("cp", "--sparse=always", self.images / name, self.root / "dev" / disk)

    def kernel(self):
        self.write("proc/sys/kernel/osrelease", RELEASE)
        self.write(f"boot/vmlinuz-{RELEASE}")
        for module in MODULES:
            self.write(f"lib/modules/{RELEASE}/updates/{module}.ko", "srcversion: ABC\nsigner: the owner")
            self.write(f"sys/module/{module.replace('-', '_')}/srcversion", "ABC")
        self.modules_of(RELEASE, MODULES)

    def modules_of(self, release, modules):
        self.write(f"lib/modules/{release}/modules.dep", "".join(f"updates/{module}.ko:\n" for module in modules))

    def disk(self, name, number, folder, **attributes):
        for attribute, value in {"dev": number, **attributes}.items():
            self.write(f"{folder}/{attribute.replace('__', '/')}", str(value))
        (self.root / folder / "holders").mkdir()
        self.link(f"sys/class/block/{name}", folder)
        self.link(f"sys/dev/block/{number}", folder)

    def memory(self, index):
        """A namespace in fsdax mode in a region of its own."""
        region = f"sys/devices/ndbus0/region{index}"
        self.write(f"{region}/persistence_domain", "memory_controller")
        self.write(f"{region}/numa_node", "0")
        for attribute, value in {"size": 8 * MIB, "mode": "memory", "holder": f"pfn{index}.0"}.items():
            self.write(f"{region}/namespace{index}.0/{attribute}", str(value))
        self.write(f"{region}/pfn{index}.0/align", "2097152")
        for device in f"region{index}", f"region{index}/namespace{index}.0", f"region{index}/pfn{index}.0":
            self.link(f"sys/bus/nd/devices/{Path(device).name}", f"sys/devices/ndbus0/{device}")
        self.disk(f"pmem{index}", f"259:{index}", f"{region}/pfn{index}.0/block/pmem{index}", queue__dax=1, badblocks="")

    def devices(self):
        """/srv/db is a cache on pmem0 over nvme0n1; /dev/mapper/fast is a write log on pmem1 over nvme1n1, at /srv/fast."""
        self.write("sys/devices/ndbus0/provider", "ACPI.NFIT")
        self.link("sys/bus/nd/devices/ndbus0", "sys/devices/ndbus0")
        for index in range(2):
            self.memory(index)
            self.write(f"sys/devices/pci/nvme{index}/numa_node", "0")
            self.write(f"sys/devices/system/node/node{index}/distance", "10 21" if index == 0 else "21 10")
        self.disk("nvme0n1", "259:10", "sys/devices/pci/nvme0/nvme0n1", wwid="TEST-lower")
        self.disk("nvme1n1", "259:11", "sys/devices/pci/nvme1/nvme1n1", wwid="TEST-one")
        self.disk("dm-0", "253:0", "sys/devices/virtual/dm-0", dm__name="fast", dm__uuid="FOREBAY-fast")
        for below in "pmem1", "nvme1n1":
            self.link(f"sys/class/block/{below}/holders/dm-0", "sys/devices/virtual/dm-0")
            self.link(f"sys/devices/virtual/dm-0/slaves/{below}", f"sys/class/block/{below}")
        for disk, name in {"pmem0": "cache", "pmem1": "log", "nvme0n1": "lower", "nvme1n1": "origin"}.items():
            self.image(disk, name)
        self.write("dev/mapper/control")
        for key, value in MOUNTED.items():
            self.write(f"sys/fs/forebay/pmem0/{key}", str(value))
        self.target("ok write 3/16 3145728/16777216 4 medium_errors 0 lost_reads 0")

    def target(self, status, name="fast", target="forebay-wlog", table="259:11 259:1 0"):
        for file, text in {"target": target, "status": status, "table": table}.items():
            (self.root / "mapper" / name).mkdir(parents=True, exist_ok=True)
            (self.root / "mapper" / name / file).write_text(text)

    def settings(self):
        self.write("proc/self/mountinfo", "1 0 259:99 / / rw - ext4 /dev/vda1 rw\n"
                   "30 1 259:10 / /srv/ssd rw - ext4 /dev/nvme0n1 rw\n"
                   "40 1 0:50 / /srv/db rw - forebay /srv/ssd rw,cache=/dev/pmem0,mode=auto\n"
                   "41 1 253:0 / /srv/fast rw - ext4 /dev/mapper/fast rw")
        self.write("run/systemd/system/x")
        for kind in "writelog", "transit":
            self.write(f"usr/lib/systemd/system/forebay-{kind}@.service")
        self.write("etc/forebay/writelog/fast", 'ORIGIN=/dev/nvme1n1\nLOG="/dev/pmem1"')
        self.write("etc/lvm/lvm.conf", '\tglobal_filter = [ "r|^/dev/nvme1n1$|", "a|.*|" ]')
        self.fstab()

    def fstab(self, lower="defaults", upper=f"cache=UUID={CACHE_UUID}", swapped=False, passno=0, log=LOG_LINE):
        lines = [f"/dev/disk/by-id/nvme-lower /srv/ssd ext4 {lower} 0 2", f"/srv/ssd /srv/db forebay {upper} 0 {passno}"]
        self.write("etc/fstab", "\n".join([*(reversed(lines) if swapped else lines), " ".join(log)]))

    def mount_lower(self, options, fstype="ext4"):
        self.replace("proc/self/mountinfo", "ext4 /dev/nvme0n1 rw", f"{fstype} /dev/nvme0n1 {options}")

    def idle_log(self, name):
        """The mapped device doesn't exist."""
        self.remove("sys/class/block/dm-0")
        self.remove("mapper/fast")
        for below in "pmem1", "nvme1n1":
            self.remove(f"sys/class/block/{below}/holders/dm-0")
        self.replace("proc/self/mountinfo", "41 1 253:0 / /srv/fast rw - ext4 /dev/mapper/fast rw\n", "")
        self.image("pmem1", name)

    def __call__(self, *options, **environment):
        return self.forebay("doctor", *options, **self.environment, **environment)
