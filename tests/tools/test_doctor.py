# SPDX-License-Identifier: GPL-2.0-only
"""forebay doctor: a made-up machine (doctor_machine.py), and one mistake at a time planted in it."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from conftest import CHECKOUT, DONE, MIB, USAGE
from doctor_machine import CACHE_UUID, LOG_LINE, MODULES, RELEASE, Machine, run

WARNINGS, ERRORS = 1, 2
ORIGIN_UUID = "33333333-3333-4333-8333-333333333333"


@pytest.fixture(scope="module")
def images(command, make_store, make_log, tmp_path_factory):
    """A cache with data and an empty one, a write log that holds writes and an empty one, file systems of the lower disk and
    of the origin."""
    folder = tmp_path_factory.mktemp("images")
    for name, size in {"cache": 8, "cache-full": 8, "log": 4, "log-full": 4, "lower": 8, "casefold": 8, "origin": 8, "swap": 8}.items():
        with open(folder / name, "wb") as image:
            image.truncate(size * MIB)
    for name in "cache", "cache-full":
        run(command, "format", "--uuid", CACHE_UUID, folder / name)
    run(make_store, folder / "cache-full", *"bind file 0 0 live page 0 0 7 out-of-sync".split())
    for name in "log", "log-full":
        run(command, "writelog", "format", folder / name)
        run(make_log, folder / name, *"bind 16384 TEST-one".split())
    run(make_log, folder / "log-full", *"open 0 write 8 8".split())
    run("mkfs.ext4", "-q", folder / "lower")
    run("mkswap", folder / "swap")
    run("mkfs.ext4", "-q", "-O", "casefold", folder / "casefold")
    run("mkfs.ext4", "-q", "-U", ORIGIN_UUID, "-L", "fast", folder / "origin")
    return folder


@pytest.fixture
def machine(tmp_path, images, fake_mapper, forebay):
    return Machine(tmp_path / "root", images, fake_mapper, forebay)


def test_nothing_is_wrong(machine):
    result = machine()
    assert (result.status, result.err) == (DONE, "")
    assert re.fullmatch(r"\d+ checks: 0 errors, 0 warnings\n", result.out)
    shown = machine("--json").json
    assert (shown["findings"], shown["unseen"], shown["errors"], shown["warnings"]) == ([], [], 0, 0)


def attribute(path, value):
    return lambda m: m.write(path, value)


def module_of_another_kernel(m):
    m.modules_of(RELEASE, ())
    m.modules_of("6.12.9-amd64", MODULES)


def newer_kernel(m):
    m.modules_of("6.12.10-amd64", ())
    m.write("boot/vmlinuz-6.12.10-amd64")
    m.write("var/lib/dkms/forebay/x")
    m.write("lib/modules/6.12.10-amd64/build/x")


def unsigned(m, demand):
    demand(m)
    m.write(f"lib/modules/{RELEASE}/updates/forebay.ko", "srcversion: ABC")


def secure_boot(m):
    file = m.root / "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\x06\0\0\0\x01")


def other_mode(m, mode, holder):
    """A third namespace, which nothing uses."""
    m.memory(2)
    m.write("sys/bus/nd/devices/namespace2.0/mode", mode)
    m.write("sys/bus/nd/devices/namespace2.0/holder", holder)
    m.remove("sys/class/block/pmem2")


def small_partition(m):
    m.disk("pmem0p1", "259:20", "sys/devices/ndbus0/region0/pfn0.0/block/pmem0/pmem0p1", partition=1, start=34)
    m.write("dev/pmem0p1")


def emulated(m):
    m.write("sys/class/block/pmem0/emu/persistence", "memory_controller")
    m.write("sys/fs/forebay/pmem0/volatile_cache", "1")


def without_cache(m):
    m.remove("sys/fs/forebay/pmem0")
    m.replace("proc/self/mountinfo", "40 1 0:50 / /srv/db rw - forebay /srv/ssd rw,cache=/dev/pmem0,mode=auto\n", "")
    m.write("etc/fstab", " ".join(LOG_LINE))


def foreign(m, image, mount=None):
    """The memory of the cache holds something else."""
    without_cache(m)
    m.image("pmem0", image)
    if mount:
        m.write("proc/self/mountinfo", (m.root / "proc/self/mountinfo").read_text() + mount)


def no_memory(m, region=None):
    """Neither namespaces nor mounts, nor a write log."""
    without_cache(m)
    m.idle_log("log")
    for path in "etc/fstab", "etc/forebay", "sys/bus/nd/devices", "sys/class/block/pmem0", "sys/class/block/pmem1", "sys/devices/ndbus0":
        m.remove(path)
    if region:
        m.write(f"{region}/size", "8388608")


def unmounted(m):
    m.remove("sys/fs/forebay/pmem0")
    m.replace("proc/self/mountinfo", "40 1 0:50 / /srv/db rw - forebay /srv/ssd rw,cache=/dev/pmem0,mode=auto\n", "")
    m.image("pmem0", "cache-full")


def origin_mounted(m):
    m.idle_log("log-full")
    m.write("proc/self/mountinfo", (m.root / "proc/self/mountinfo").read_text() + "42 1 259:11 / /mnt rw - ext4 /dev/nvme1n1 rw")


def linked_origin(m):
    m.link("dev/disk/by-id/nvme-one", "dev/nvme1n1")
    m.fstab(log=("/dev/disk/by-id/nvme-one", *LOG_LINE[1:]))


def partition_of_origin(m):
    m.link("dev/disk/by-partuuid/5c3c-01", "dev/nvme1n1")
    m.fstab(log=("PARTUUID=5c3c-01", *LOG_LINE[1:]))


def cache_in_partition(m):
    """The disk's list has the bad blocks."""
    m.write("sys/class/block/pmem0/badblocks", "8 8")
    m.disk("pmem0p1", "259:20", "sys/devices/ndbus0/region0/pfn0.0/block/pmem0/pmem0p1", partition=1, start=2048)
    (m.root / "dev/pmem0").rename(m.root / "dev/pmem0p1")
    m.write("dev/pmem0", "a partition table")
    m.remove("sys/fs/forebay/pmem0")
    m.replace("proc/self/mountinfo", "cache=/dev/pmem0,", "cache=/dev/pmem0p1,")
    m.write("sys/fs/forebay/pmem0p1/pages_total", "1000")


def lvm(m, settings):
    """The origin is a physical volume."""
    label = bytearray(8 * MIB)
    uuid = b"abcdefghijklmnopqrstuvwxyz012345"
    body = (32).to_bytes(4, "little") + b"LVM2 001" + uuid + (8 * MIB).to_bytes(8, "little")
    label[512:520], label[520:528], label[532:532 + len(body)] = b"LABELONE", (1).to_bytes(8, "little"), body
    crc = 0xf597a6cf
    for byte in label[532:1024]:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xedb88320 if crc & 1 else 0)
    label[528:532] = crc.to_bytes(4, "little")
    (m.root / "dev/nvme1n1").write_bytes(label)
    m.write("etc/lvm/lvm.conf", settings)


MISTAKES = {
    "the module is for another kernel":
        (module_of_another_kernel, "module", "error", "forebay", "reboot into 6.12.9-amd64"),
    "the module is nowhere": (lambda m: m.modules_of(RELEASE, ()), "module", "error", "forebay", "make install"),
    "the module was not built for the newest kernel":
        (newer_kernel, "next-kernel", "warning", "6.12.10-amd64", "dkms autoinstall -k 6.12.10-amd64"),
    "the module is not loaded":
        (lambda m: m.remove("sys/module/forebay"), "module-loaded", "warning", "forebay", "modprobe forebay"),
    "an older module is loaded":
        (attribute("sys/module/dm_forebay_writelog/srcversion", "OLD"), "module-version", "warning", "dm-forebay-writelog",
         "modprobe -r dm-forebay-writelog"),
    "secure boot and no signature": (lambda m: unsigned(m, secure_boot), "signature", "error", "forebay", "mokutil --import"),
    "sig_enforce and no signature":
        (lambda m: unsigned(m, attribute("sys/module/module/parameters/sig_enforce", "Y")), "signature", "error", "forebay",
         "mokutil --import"),
    "raw mode": (lambda m: other_mode(m, "raw", ""), "memory-mode", "warning", "namespace2.0",
                 "ndctl create-namespace -f -e namespace2.0 -m fsdax"),
    "sector mode": (lambda m: other_mode(m, "safe", "btt2.0"), "memory-mode", "warning", "namespace2.0", "-m fsdax"),
    "devdax mode": (lambda m: other_mode(m, "dax", "dax2.0"), "memory-mode", "warning", "namespace2.0", "-m fsdax"),
    "virtio-pmem": (attribute("sys/devices/ndbus0/provider", "virtio-pmem"), "memory-mode", "error", "namespace1.0", "host"),
    "small pages": (attribute("sys/bus/nd/devices/pfn0.0/align", "4096"), "alignment", "warning", "namespace0.0", "--align=2M"),
    "a partition in the middle of a page": (small_partition, "alignment", "error", "/dev/pmem0p1", "parted"),
    "no persistence domain":
        (attribute("sys/bus/nd/devices/region0/persistence_domain", ""), "persistence", "warning", "namespace0.0", "firmware"),
    "a read-only region": (attribute("sys/bus/nd/devices/region0/read_only", "1"), "persistence", "error", "namespace0.0", "dmesg"),
    "bad blocks": (attribute("sys/class/block/pmem0/badblocks", "8 8\n64 1"), "bad-blocks", "error", "/dev/pmem0",
                   "also in files, so not before that"),
    "bad blocks around a cache in a partition": (cache_in_partition, "bad-blocks", "error", "/dev/pmem0", "forebay check /dev/pmem0p1"),
    "bad blocks of a write log": (attribute("sys/class/block/pmem1/badblocks", "8 8"), "bad-blocks", "error", "/dev/pmem1",
                                  "compare with a backup"),
    "memmap=": (attribute("sys/devices/ndbus0/provider", "e820"), "volatile", "warning", "namespace0.0", "trying"),
    "an emulated device": (emulated, "volatile", "warning", "/dev/pmem0", "forebay format"),
    "the disk of a cache is far away":
        (attribute("sys/devices/pci/nvme0/numa_node", "1"), "distance", "warning", "/dev/pmem0", "node 1"),
    "the disk of a write log is far away":
        (attribute("sys/devices/pci/nvme1/numa_node", "1"), "distance", "warning", "/dev/pmem1", "node 1"),
    "writeback fails": (attribute("sys/fs/forebay/pmem0/last_error", "-28"), "writeback", "error", "/srv/db", "Make room"),
    "lost pages": (attribute("sys/fs/forebay/pmem0/pages_lost", "2"), "lost-pages", "error", "/srv/db", "from a backup"),
    "unplaced pages":
        (attribute("sys/fs/forebay/pmem0/pages_unplaced", "1"), "lost-pages", "warning", "/srv/db", "--discard-unplaced"),
    "syncs find the cache full": (attribute("sys/fs/forebay/pmem0/cache_full", "5"), "cache-size", "warning", "/srv/db", "larger"),
    "a cache of unwritten pages":
        (attribute("sys/fs/forebay/pmem0/pages_out_of_sync", "901"), "cache-size", "warning", "/srv/db", "larger"),
    "no name log over this file system":
        (attribute("sys/fs/forebay/pmem0/names_state", "unfit: is neither ext4 nor xfs"), "name-log", "warning", "/srv/db", "xfs"),
    "a cache with data is not mounted":
        (unmounted, "unmounted", "error", "/dev/pmem0", f"mount -t forebay -o cache=UUID={CACHE_UUID}"),
    "nobarrier": (lambda m: m.mount_lower("rw,nobarrier"), "barriers", "error", "/srv/db", "remount,barrier /srv/ssd"),
    "barrier=0": (lambda m: m.mount_lower("rw,barrier=0"), "barriers", "error", "/srv/db", "remount,barrier /srv/ssd"),
    "data=journal": (lambda m: m.mount_lower("rw,data=journal"), "lower-options", "warning", "/srv/db", "data=journal"),
    "dax": (lambda m: m.mount_lower("rw,dax=always"), "lower-options", "error", "/srv/db", "dax"),
    "discard": (lambda m: m.mount_lower("rw,discard"), "lower-options", "warning", "/srv/db", "fstrim.timer"),
    "a lower file system that doesn't do":
        (lambda m: m.mount_lower("rw", "tmpfs"), "lower-type", "error", "/srv/db", "in /etc/fstab"),
    "a lower file system that is read-only": (lambda m: m.mount_lower("ro"), "lower-type", "error", "/srv/db", "remount,rw"),
    "casefold": (lambda m: m.image("nvme0n1", "casefold"), "casefold", "error", "/srv/db", "tune2fs -O ^casefold /dev/nvme0n1"),
    "a line without a cache": (lambda m: m.fstab(upper="defaults"), "fstab-cache", "error", "/srv/db", "cache=UUID="),
    "a cache by its number":
        (lambda m: m.fstab(upper="cache=/dev/pmem0"), "fstab-cache", "warning", "/srv/db", f"cache=UUID={CACHE_UUID}"),
    "a cache that does not exist":
        (lambda m: m.fstab(upper="cache=/dev/disk/by-id/pmem-x"), "fstab-cache", "error", "/srv/db", "forebay probe"),
    "a cache by a UUID that no device has":
        (lambda m: m.fstab(upper="cache=UUID=22222222-2222-4222-8222-222222222222"), "fstab-cache", "error", "/srv/db", "forebay probe"),
    "fsck of a mount": (lambda m: m.fstab(passno=2), "fstab-cache", "warning", "/srv/db", "0 0"),
    "lines in the wrong order": (lambda m: m.fstab(swapped=True), "fstab-order", "warning", "/srv/db", "put the line of /srv/ssd first"),
    "nofail above only":
        (lambda m: m.fstab(upper=f"cache=UUID={CACHE_UUID},nofail"), "fstab-nofail", "warning", "/srv/db", "nofail to the line of /srv/ssd"),
    "nofail below only": (lambda m: m.fstab(lower="nofail"), "fstab-nofail", "warning", "/srv/db", "nofail to the line of /srv/db"),
    "a line that doesn't ask for its unit":
        (lambda m: m.fstab(log=(*LOG_LINE[:3], "defaults", "0", "2")), "fstab-unit", "error", "/srv/fast",
         "x-systemd.requires=forebay-writelog@fast.service"),
    "nofail, and services start before":
        (lambda m: m.fstab(log=(*LOG_LINE[:3], LOG_LINE[3] + ",nofail", "0", "2")), "fstab-unit", "warning", "/srv/fast",
         "x-systemd.before=local-fs.target"),
    "a unit that nothing starts":
        (lambda m: m.fstab(log=("#",)), "units", "warning", "/etc/forebay/writelog/fast", "systemctl enable forebay-writelog@fast.service"),
    "no unit": (lambda m: m.remove("usr/lib/systemd/system/forebay-writelog@.service"), "units", "error", "/etc/forebay/writelog/fast",
                "make install"),
    "a setting without a device":
        (attribute("etc/forebay/writelog/fast", "ORIGIN=/dev/nvme1n1"), "settings", "error", "/etc/forebay/writelog/fast", "LOG="),
    "a setting of a device that does not exist":
        (attribute("etc/forebay/writelog/fast", "ORIGIN=/dev/sdz\nLOG=/dev/pmem1"), "settings", "error", "/etc/forebay/writelog/fast",
         "ls -l /dev/disk/by-id"),
    "a write log that failed": (lambda m: m.target("failed write 3/16 3/16 0 "), "targets", "error", "fast", "writes go on by themselves"),
    "an origin that fails": (lambda m: m.target("error write 3/16 3/16 0 "), "targets", "error", "fast", "writelog status fast"),
    "a damaged write log": (lambda m: m.target("ok write 3/16 3/16 2 medium_errors 1"), "targets", "error", "fast", "ndctl list -M"),
    "a full write log": (lambda m: m.target("ok write 15/16 3/16 2 medium_errors 0"), "targets", "warning", "fast", "writelog flush fast"),
    "a transit cache whose device fails":
        (lambda m: m.target("error transit 1/16 2 refused 1", "quick", "forebay-transit", "259:10 0"), "targets", "error", "quick",
         "transit status quick"),
    "an origin visible without its log":
        (lambda m: m.idle_log("log-full"), "origin-visible", "error", "/dev/nvme1n1", "forebay writelog create NAME /dev/nvme1n1 /dev/pmem1"),
    "an origin mounted without its log": (origin_mounted, "origin-visible", "error", "/dev/nvme1n1", "umount /mnt"),
    "a line with the origin's UUID":
        (lambda m: m.fstab(log=(f"UUID={ORIGIN_UUID}", *LOG_LINE[1:])), "origin-fstab", "error", "/srv/fast", "/dev/mapper/NAME"),
    "a line with the origin's label":
        (lambda m: m.fstab(log=("LABEL=fast", *LOG_LINE[1:])), "origin-fstab", "error", "/srv/fast", "/dev/mapper/NAME"),
    "a line with a link to the origin": (linked_origin, "origin-fstab", "error", "/srv/fast", "/dev/mapper/NAME"),
    "a line with the origin's partition": (partition_of_origin, "origin-fstab", "error", "/srv/fast", "/dev/mapper/NAME"),
    "LVM may take the origin":
        (lambda m: lvm(m, '# global_filter = [ "r|/dev/nvme1n1|" ]\nglobal_filter = [ "a|.*|", "r|^/dev/nvme1n1$|" ]'), "origin-lvm",
         "error", "/dev/nvme1n1", "global_filter"),
}

# What is no mistake, but what an administrator may look for: the exit status stays 0.
NOTES = {
    "a file system": (lambda m: foreign(m, "lower"), "/dev/pmem0", "holds a file system (ext4)", "forebay format --force /dev/pmem0"),
    "a mounted file system": (lambda m: foreign(m, "lower", "50 1 259:0 / /srv/dax rw - ext4 /dev/pmem0 rw,dax=always"), "/dev/pmem0",
                              "holds a file system (ext4), mounted at /srv/dax", "umount /srv/dax"),
    "swap": (lambda m: foreign(m, "swap"), "/dev/pmem0", "holds data of type swap", "swapoff /dev/pmem0"),
    "no persistent memory": (no_memory, "this machine", "no persistent memory", "forebay emu create"),
    "a region without a namespace": (lambda m: no_memory(m, "sys/bus/nd/devices/region0"), "this machine", "no persistent memory in use",
                                     "ndctl create-namespace -m fsdax --map=mem"),
}

# What one mistake brings along: the unit of a line that names the origin is asked for by no line.
BESIDES = {f"a line with {what}": {"units"} for what in ("the origin's UUID", "the origin's label", "a link to the origin",
                                                                     "the origin's partition")}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake(machine, mistake):
    """It is found, on the right object, with a command; and nothing else is found."""
    plant, check, severity, thing, command = MISTAKES[mistake]
    plant(machine)
    result = machine("--json")
    shown = result.json
    assert not result.err and not shown["unseen"]
    assert {finding["check"] for finding in shown["findings"]} - BESIDES.get(mistake, set()) == {check}
    finding = next(finding for finding in shown["findings"] if finding["check"] == check and finding["object"] == thing)
    assert finding["severity"] == severity and finding["found"] and command in "\n".join(finding["mend"])
    severe = any(finding["severity"] == "error" for finding in shown["findings"])
    assert result.status == (ERRORS if severe else WARNINGS)
    assert shown["errors"] + shown["warnings"] == len(shown["findings"])


@pytest.mark.parametrize("what", NOTES)
def test_note(machine, what):
    plant, thing, found, command = NOTES[what]
    plant(machine)
    result, shown = machine(), machine("--json").json
    (note,) = shown["findings"]
    assert (note["check"], note["severity"], note["object"]) == ("memory-use", "note", thing)
    assert found in note["found"] and command in "\n".join(note["mend"])
    assert (shown["notes"], shown["errors"], shown["warnings"], shown["unseen"]) == (1, 0, 0, [])
    assert result.status == DONE and result.out.startswith(f"note {thing}: ") and result.out.endswith(": 0 errors, 0 warnings, 1 note\n")


def test_every_check_has_a_mistake(machine):
    """A check that no mistake triggers could be one that never finds anything."""
    assert {check["name"] for check in machine("--json").json["checks"]} == {mistake[1] for mistake in MISTAKES.values()} | {"memory-use"}


@pytest.mark.parametrize("plant", [
    lambda m: lvm(m, 'global_filter = [ "r|^/dev/nvme1n1$|", "a|.*|" ]'),
    lambda m: m.idle_log("log"),
    lambda m: m.remove("etc/fstab") or m.remove("etc/forebay/writelog/fast"),
    lambda m: m.fstab(lower="nofail", upper=f"cache=UUID={CACHE_UUID},nofail"),
    lambda m: m.mount_lower("rw,dax=inode"),
    lambda m: m.remove("etc/forebay/writelog/fast") or m.remove("run/systemd"),
    secure_boot,
    lambda m: m.write("etc/forebay/writelog/fast", "LOG=/dev/none\n ORIGIN='/dev/nvme1n1' \n\tLOG= \"/dev/pmem1\"\n"),
], ids=["a filter refuses the origin", "an idle log is empty", "nothing at boot", "nofail twice", "dax=inode", "no systemd",
        "secure boot and a signature", "settings as systemd reads them"])
def test_no_mistake(machine, plant):
    plant(machine)
    shown = machine("--json").json
    assert shown["findings"] == [] and shown["unseen"] == []


@pytest.mark.parametrize("use", ["mapped", "mounted"])
def test_sector_mode_in_use(machine, use):
    """A namespace in sector mode that a transit cache is mapped over, or that is a disk."""
    other_mode(machine, "safe", "btt2.0")
    machine.write("sys/bus/nd/devices/btt2.0/block/pmem2s/x")
    machine.disk("pmem2s", "259:22", "sys/devices/ndbus0/region2/btt2.0/block/pmem2s")
    if use == "mapped":
        machine.write("sys/class/block/pmem2s/holders/dm-1")
    else:
        machine.replace("proc/self/mountinfo", "41 1 ", "42 1 259:22 / /srv/sector rw - ext4 /dev/pmem2s rw\n41 1 ")
    assert machine("--json").json["findings"] == []


def test_text(machine):
    """A line for the finding, indented lines for what to do, and a count."""
    machine.mount_lower("rw,discard,nobarrier")
    result = machine()
    assert result.status == ERRORS
    lines = result.out.splitlines()
    assert lines[0].startswith("error /srv/db: its lower file system, /srv/ssd, is mounted without barriers")
    assert lines[0].endswith("[barriers]") and lines[1] == "    mount -o remount,barrier /srv/ssd"
    assert lines[-1].endswith(" checks: 1 error, 1 warning")


def test_without_root(command, images, fake_mapper, forebay):
    """What could not be examined is named, and the machine is not called well."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        machine = Machine(Path(folder) / "root", images, fake_mapper, forebay)
        for name in "dev/pmem0", "dev/pmem1", "dev/nvme0n1", "dev/mapper/control", "etc/fstab":
            os.chmod(machine.root / name, 0o600)
        shutil.copy(command, folder)
        program = [f"{folder}/forebay", "doctor"]
        environment = {**os.environ, "FOREBAY_SYSROOT": str(machine.root), "PATH": machine.environment["PATH"]}
        drop = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        done = subprocess.run(program, capture_output=True, text=True, env=environment, cwd="/", check=False, **drop)
        assert done.returncode == WARNINGS and not done.stderr
        for line in ("not examined /etc/fstab: can't be read: Permission denied [fstab-cache]",
                     "not examined /dev/pmem0: can't tell whether it is a cache: Permission denied [unmounted]",
                     "not examined /dev/pmem1: can't tell whether it is a write log: Permission denied [origin-visible]",
                     "not examined /dev/nvme0n1: can't read the superblock of the lower file system: Permission denied [casefold]"):
            assert line in done.stdout
        assert "device-mapper: can't ask it" in done.stdout and "sudo forebay doctor" in done.stdout
        assert re.search(r"checks: 0 errors, 0 warnings, \d+ not examined\n$", done.stdout)


def test_nothing_is_changed(machine):
    """The command writes to no file of the machine."""
    machine.idle_log("log-full")

    def state():
        return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in machine.root.rglob("*")
                if path.is_file() and path.stat().st_size < 64 * MIB}
    before = state()
    assert machine().status == ERRORS
    assert state() == before and len(before) > 50


def test_arguments(forebay):
    result = forebay("doctor", "more")
    assert result.status == USAGE and "unexpected argument 'more'" in result.err


def test_manual_lists_every_check(machine):
    names = {check["name"] for check in machine("--json").json["checks"]}
    text = (CHECKOUT / "docs/man/forebay-doctor.8").read_text()
    table = re.search(r"^\.Sh CHECKS\n(.*?)^\.Sh ", text, re.MULTILINE | re.DOTALL)[1]
    assert {word for line in re.findall(r"^\.It Cm (.*)$", table, re.MULTILINE) for word in line.split(" , ")} == names


def test_commands_with_odd_names(machine):
    """A shell takes a mount point with a space in it for one word."""
    mounts = (machine.root / "proc/self/mountinfo").read_text()
    machine.write("proc/self/mountinfo", mounts.replace("/srv/db", r"/srv/my\040db").replace("/srv/ssd rw - ext4 /dev/nvme0n1 rw",
                                                                                             r"/srv/it's rw - ext4 /dev/nvme0n1 rw,nobarrier")
                  .replace("forebay /srv/ssd", "forebay /srv/it's"))
    machine.write("sys/fs/forebay/pmem0/last_error", "-28")
    steps = [step for finding in machine("--json").json["findings"] for step in finding["mend"]]
    assert "forebay drain '/srv/my db'" in steps and r"mount -o remount,barrier '/srv/it'\''s'" in steps
