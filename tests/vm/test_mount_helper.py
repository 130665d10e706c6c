# SPDX-License-Identifier: GPL-2.0-only
"""mount.forebay: its messages, the options that it passes on, and the name by which it calls its cache."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from stack import LOWER, MOUNT, PMEM, run, small_cache

HELPER = "/sbin/mount.forebay"
OTHER = Path("/mnt/elsewhere")

pytestmark = pytest.mark.skipif(not os.access(HELPER, os.X_OK), reason="no mount.forebay: make tools")


@pytest.fixture(name="ready")
def ready_fixture(stack):
    """A formatted cache and a lower file system, not mounted together."""
    stack.umount()
    return stack


def refused(options, status=32, helper="mount -t forebay", where=MOUNT):
    """What standard error says of a mount that must fail; and the words are in the kernel's log too."""
    run("dmesg -C")
    done = subprocess.run(f"{helper} -o {options} {LOWER} {where}", shell=True, text=True, capture_output=True, check=False)
    assert done.returncode == status, done
    lines = done.stderr.splitlines()
    assert lines and all(line.startswith(f"mount.forebay: {where}: ") for line in lines), done.stderr
    assert "forebay: forebay" not in done.stderr and "missing codepage" not in done.stderr
    return done.stderr.replace(f"mount.forebay: {where}: ", "")


def options_of(where=MOUNT, kind="OPTIONS"):
    """As the kernel shows them: of the mount and of the file system."""
    return set(run(f"findmnt -n --kernel -o {kind} {where}").strip().split(","))


def noted():
    """What libmount keeps of mounts, for programs."""
    utab = Path("/run/mount/utab")
    return utab.read_text(encoding="ascii") if utab.exists() else ""


def test_the_modules_own_words(ready):
    said = refused("cache=/dev/nothing")
    assert said == "cannot open cache device /dev/nothing: there is no such device\n"
    assert f"forebay: {said.strip()}" in run("dmesg")
    assert "no block device" in refused("cache=/dev/null")
    assert "no cache device given" in refused("ro")
    assert "Unknown parameter 'nonsense'" in refused(f"cache={PMEM},nonsense")
    assert refused(f"cache={PMEM},mode=sometimes") == "mode=sometimes is neither auto nor explicit\n"
    assert refused(f"cache={PMEM},names=forget") == "names=forget is neither replay nor discard\n"
    assert "Bad value for 'mode': forebay(5) has the options" in refused(f"cache={PMEM},mode=")
    assert "pin_limit=x is no size" in refused(f"cache={PMEM},pin_limit=x")
    run(f"mount -o remount,ro {LOWER}")
    assert f"{LOWER} is on a read-only file system; remount it read-write" in refused(f"cache={PMEM}")
    run(f"mount -o remount,rw {LOWER}")
    run(f"dd if=/dev/zero of={PMEM} bs=1M count=4 conv=fsync 2>/dev/null")
    assert f"run forebay format {PMEM}" in refused(f"cache={PMEM}")
    run(f"forebay format {PMEM}")
    ready.mount()
    OTHER.mkdir(exist_ok=True)
    assert "is mounted with forebay already (cache pmem0)" in refused(f"cache={PMEM}", where=OTHER)


def test_what_the_helper_says_itself(ready):
    assert "there is no mount point" in refused(f"cache={PMEM}", helper=HELPER, where="/mnt/nowhere")
    assert "is not a directory" in refused(f"cache={PMEM}", helper=HELPER, where="/etc/passwd")
    assert "cache is longer than 255 bytes" in refused("cache=/dev/" + "x" * 255)
    assert "mount(8) itself does bind and move" in refused("bind", 1, helper=HELPER)
    for arguments in "", "one", "one two three", "--nonsense a b":
        done = subprocess.run(f"{HELPER} {arguments}", shell=True, text=True, capture_output=True, check=False)
        assert done.returncode == 1 and "usage: mount.forebay LOWER MOUNTPOINT" in done.stderr
    assert not os.path.ismount(MOUNT)
    ready.mount()


def test_options_of_all_file_systems(ready):
    ready.mount("ro,nosuid,nodev,noexec,noatime,nodiratime,sync,lazytime,mode=explicit,pin_limit=1m")
    assert {"ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime"} <= options_of(kind="VFS-OPTIONS")
    assert {"ro", "sync", "lazytime", "mode=explicit", "pin_limit=1024k", f"cache={PMEM}"} <= options_of(kind="FS-OPTIONS")
    ready.umount()
    run(f"mount -r -t forebay -o cache={PMEM},strictatime {LOWER} {MOUNT}")
    assert "ro" in options_of() and not {"relatime", "noatime"} & options_of()
    ready.umount()
    ready.mount("defaults,suid,dev,exec,async")
    assert {"rw", "relatime"} <= options_of() and not {"nosuid", "nodev", "noexec", "sync"} & options_of()


def test_options_that_are_for_others(ready):
    ready.mount('x-systemd.requires=/dev/pmem0,_netdev,nofail,auto,nouser,comment=hello,X-mount.mkdir,x-initrd.mount,x-a=\'"b,c"\'')
    assert f"cache={PMEM}" in options_of()
    assert "_netdev" in noted()
    ready.umount()
    assert str(MOUNT) not in noted()
    ready.mount("X-mount.mkdir")


def test_remount(ready):
    ready.mount("noatime")
    run(f"mount -o remount,ro,mode=explicit {MOUNT}")
    assert {"ro", "mode=explicit"} <= options_of(kind="FS-OPTIONS") and {"ro", "noatime"} <= options_of(kind="VFS-OPTIONS")
    run(f"mount -o remount,rw,noexec,atime,relatime {MOUNT}")
    assert {"rw", "mode=explicit"} <= options_of(kind="FS-OPTIONS")
    assert {"rw", "noexec", "relatime"} <= options_of(kind="VFS-OPTIONS")
    run(f"mount -o remount,exec,sync,nodiratime {MOUNT}")
    assert "sync" in options_of() and "nodiratime" in options_of() and "noexec" not in options_of()
    run(f"mount -o remount,async {MOUNT}")
    assert "sync" not in options_of()
    run(f"mount -o remount,bind,ro {MOUNT}")
    assert "ro" in options_of(kind="VFS-OPTIONS") and "rw" in options_of(kind="FS-OPTIONS")
    run(f"mount -o remount,rw {MOUNT}")
    (MOUNT / "f").write_text("x", encoding="ascii")


def test_remount_with_dirsync(ready):
    """The kernel refuses that by itself, and says nothing."""
    ready.mount()
    done = subprocess.run(f"mount -o remount,dirsync {MOUNT}", shell=True, text=True, capture_output=True, check=False)
    assert done.returncode == 32 and done.stderr == f"mount.forebay: {MOUNT}: dirsync isn't supported: mount the file system below with it\n"


def test_remount_and_the_cache(ready):
    """A remount may name the mount's cache in another way, but can't change the cache."""
    ready.mount()
    shutil.copyfile("/etc/fstab", "/run/fstab.before")
    os.symlink(PMEM, "/run/by-another-name")
    try:
        uuid = forebay_json("status", PMEM)[0]["cache_uuid"]
        for name in "/run/by-another-name", f"UUID={uuid}":
            Path("/etc/fstab").write_text(f"{LOWER} {MOUNT} forebay cache={name},mode=explicit 0 0\n", encoding="ascii")
            run(f"mount -o remount {MOUNT}")
            assert "mode=explicit" in options_of()
            run(f"mount -o remount,mode=auto {MOUNT}")
        done = subprocess.run(f"mount -o remount,cache=/dev/nvme0n1 {MOUNT}", shell=True, text=True, capture_output=True, check=False)
        assert done.returncode == 32 and "the cache of a mount can't be changed" in done.stderr
        run("mount -a")
        assert len(run(f"findmnt -n {MOUNT}").splitlines()) == 1
    finally:
        os.unlink("/run/by-another-name")
        shutil.copyfile("/run/fstab.before", "/etc/fstab")


def test_propagation(ready):
    ready.mount("shared")
    assert run(f"findmnt -n -o PROPAGATION {MOUNT}").strip() == "shared"
    run(f"mount --make-private {MOUNT}")
    assert run(f"findmnt -n -o PROPAGATION {MOUNT}").strip() == "private"


def test_bind_does_not_come_here(ready):
    ready.mount()
    OTHER.mkdir(exist_ok=True)
    run(f"mount --bind -o ro {MOUNT} {OTHER} && mount -o remount,bind,ro {OTHER}")
    assert "ro" in options_of(OTHER) and "rw" in options_of(MOUNT)
    run(f"umount {OTHER}")


def test_fake_sloppy_verbose(ready):
    run(f"mount -f -t forebay -o cache={PMEM} {LOWER} {MOUNT}")
    assert not os.path.ismount(MOUNT)
    out = run(f"mount -s -v -t forebay -o cache={PMEM},nonsense,fun=x {LOWER} {MOUNT}")
    assert "left out: Unknown parameter 'nonsense'" in out and f"{LOWER} mounted at {MOUNT}" in out
    ready.umount()
    run(f"mount -n -t forebay -o cache={PMEM},_netdev {LOWER} {MOUNT}")
    assert str(MOUNT) not in noted()


def test_relative_paths(ready):
    os.chdir(LOWER.parent)
    run(f"{HELPER} {LOWER.name} {MOUNT.name} -o cache={PMEM}")
    assert run(f"findmnt -n -o SOURCE {MOUNT}").strip() == str(LOWER)
    assert ready.status()[0]["lower"] == str(LOWER)


def test_another_namespace(ready):
    with subprocess.Popen(["unshare", "-m", "sh", "-c", "echo here; read end"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        process.stdout.readline()
        run(f"mount -N {process.pid} -t forebay -o cache={PMEM} {LOWER} {MOUNT}")
        assert not os.path.ismount(MOUNT)
        assert "forebay" in run(f"nsenter -t {process.pid} -m findmnt -n {MOUNT}")
        process.communicate("\n")
    ready.mount()


def forebay_json(*words):
    """What a verb says in JSON."""
    return json.loads(run(" ".join(["forebay", *words, "--json"])))


def test_cache_by_uuid(ready):
    """Without udev, the helper looks for the UUID on the devices themselves."""
    uuid = forebay_json("status", PMEM)[0]["cache_uuid"]
    for text in uuid, uuid.upper(), f'"{uuid}"':
        run(f"mount -t forebay -o 'cache=UUID={text}' {LOWER} {MOUNT}")
        assert f"cache={PMEM}" in options_of()
        ready.umount()
    missing = "00000000-1111-2222-3333-444444444444"
    assert f"there is no cache with the UUID {missing}" in refused(f"cache=UUID={missing}")
    assert "there is no device with PARTUUID=nothing" in refused("cache=PARTUUID=nothing")


def test_cache_by_a_uuid_that_two_have(ready):
    """Two devices with one UUID: neither is taken. Of a device and a mapped device over it, the mapped
    one is taken."""
    cache = small_cache(12)
    run(f"forebay format --force {cache}")
    uuid = forebay_json("status", cache)[0]["cache_uuid"]
    run(f"mount -t forebay -o cache=UUID={uuid} {LOWER} {MOUNT}")
    assert f"cache={cache}" in options_of()
    ready.umount()
    run(f"dmsetup create copy --table '0 24576 linear {PMEM} 24576' && dmsetup mknodes && "
        f"dd if={cache} of=/dev/mapper/copy bs=1M conv=fsync 2>/dev/null")
    said = refused(f"cache=UUID={uuid}")
    assert "both " in said and "/dev/mapper/copy" in said and f"are caches with the UUID {uuid}" in said
    # One that can't be read now is not waited for.
    run("dmsetup suspend copy")
    try:
        run(f"timeout 100 mount -t forebay -o cache=UUID={uuid} {LOWER} {MOUNT}")
    finally:
        run("dmsetup resume copy")
    assert f"cache={cache}" in options_of()


def test_the_modules_are_for_another_kernel(ready):
    release = os.uname().release
    lists = Path(f"/lib/modules/{release}")
    run("rmmod forebay")
    kept = {name: (lists / name).read_bytes() for name in ("modules.dep", "modules.alias.bin", "modules.dep.bin", "modules.alias")}
    elsewhere = Path("/lib/modules/9.9.9-other")
    try:
        for name in kept:
            (lists / name).unlink()
        assert f"the kernel has no file system forebay. This kernel is {release}, and Forebay's modules are installed for no kernel" \
            in refused(f"cache={PMEM}")
        elsewhere.mkdir()
        (elsewhere / "modules.dep").write_text("updates/dkms/forebay.ko.xz:\n", encoding="ascii")
        assert f"This kernel is {release}, and the modules are for 9.9.9-other: reboot into 9.9.9-other." in refused(f"cache={PMEM}")
    finally:
        for name, contents in kept.items():
            (lists / name).write_bytes(contents)
        shutil.rmtree(elsewhere, ignore_errors=True)
    ready.mount()       # the kernel loads the module by itself
