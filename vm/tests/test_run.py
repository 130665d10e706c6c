# SPDX-License-Identifier: GPL-2.0-only
"""What vm/run promises, tried out: /usr/bin/python3 -m pytest vm/tests. Each test boots a machine or two.

The host may be busy. So nothing has to happen within seconds, only before PATIENCE, and a test asks again and again for
what it waits for in the guest.
"""

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))

from vm import console                          # noqa: E402
from vm.accel import kvm_works                  # noqa: E402
from vm.machine import Machine                  # noqa: E402
from vm.settings import Settings, parse_size    # noqa: E402


PATIENCE = 300      # seconds; a machine that takes longer hangs


def run(*arguments, **options):
    return subprocess.run([CHECKOUT / "vm/run", "--timeout", str(PATIENCE), *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **options)


def test_status_is_the_commands():
    assert run("--", "sh", "-c", "exit 37").returncode == 37


def test_output_is_the_commands_alone_byte_for_byte():
    script = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 4096); sys.stderr.write('aside')"
    done = run("--", "python3", "-c", script)
    assert hashlib.md5(done.stdout).digest() == hashlib.md5(bytes(range(256)) * 4096).digest()
    assert done.stderr == b"aside"


def test_output_streams():
    heard = CHECKOUT / "build/vm/heard"
    command = f"rm -f {heard}; echo 1; until [ -e {heard} ]; do sleep 0.1; done; echo 2"
    arrived = []
    with Machine(Settings(timeout=PATIENCE), [command]) as machine:
        for line in machine.lines():
            arrived.append(line)
            heard.touch()
    assert arrived == ["1", "2"] and machine.wait().status == 0


def test_what_is_left_running_ends_and_what_is_left_mounted_is_told():
    done = run("--", "mkfs.ext4 -q /dev/nvme0n1; mount /dev/nvme0n1 /mnt; sleep 1000 & echo started")
    assert done.returncode == 0 and done.stdout == b"started\n"
    assert b"/mnt (ext4 on /dev/nvme0n1) was left mounted" in done.stderr


def test_command_without_reader_ends():
    process = subprocess.Popen([CHECKOUT / "vm/run", "--timeout", str(PATIENCE), "--", "yes"], stdout=subprocess.PIPE)
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait() != 124


def test_the_checkout_is_writable_and_the_hosts_root_is_not():
    mark = CHECKOUT / "build/vm/mark"
    mark.unlink(missing_ok=True)
    assert run("--", f"echo seen >{mark}; echo no >/etc/forebay-vm-mark; cat /etc/forebay-vm-mark").stdout == b"no\n"
    assert mark.read_text() == "seen\n"
    assert not Path("/etc/forebay-vm-mark").exists()


@pytest.mark.parametrize("share", ["virtiofs", "9p"])
def test_both_ways_to_share_folders(share):
    done = run("--", "python3 -c 'import json; print(json.dumps(1))'; ls vm; mkdir -p /run/host; "
               f"mount -t {share} -o rw host /run/host 2>/dev/null; echo no >/run/host/etc/forebay-vm-mark",
               env={**os.environ, "FOREBAY_VM_SHARE": share})
    assert done.stdout.startswith(b"1\n") and b"machine.py" in done.stdout
    assert not Path("/etc/forebay-vm-mark").exists()


@pytest.mark.parametrize("said, status", [
    ("BUG: KASAN: slab-use-after-free in forebay_fsync+0x1/0x2", 99), ("WARNING: CPU: 0 PID: 7 at fs/x.c:1", 99),
    ("forebay: cache_pages (Tainted): Objects remaining on __kmem_cache_shutdown()", 99), ("forebay: mounted", 5)])
def test_what_the_kernel_reports_outweighs_the_commands_status(said, status):
    done = run("--", f"echo '{said}' >/dev/kmsg; exit 5")
    assert done.returncode == status
    assert (said.encode() in done.stderr) == (status == 99)


def test_panic_ends_the_run():
    begin = time.monotonic()
    done = run("--", "echo c >/proc/sysrq-trigger; sleep 1000")
    assert done.returncode == 99 and b"sysrq triggered crash" in done.stderr
    assert time.monotonic() - begin < PATIENCE


def test_a_crash_before_the_command_is_tried_again_and_told():
    done = run("--append", "rdinit=/missing root=/dev/none", "--", "true")
    assert done.returncode == 99 and b"Kernel panic" in done.stderr
    assert done.stderr.count(b"once more") == 2


def test_expected_report_leaves_the_status():
    assert run("--expect-report", "--", "echo 'WARNING: here' >/dev/kmsg; exit 5").returncode == 5


def test_timeout():
    assert run("--timeout", "8", "--", "sleep 1000").returncode == 124


def test_silence():
    """A command that goes on writing may take longer."""
    done = run("--silence", "30", "--", "for i in 1 2 3 4; do echo $i; sleep 10; done; sleep 1000")
    assert (done.returncode, done.stdout) == (124, b"1\n2\n3\n4\n")


def test_machine_that_reboots_under_the_command():
    assert run("--", "echo b >/proc/sysrq-trigger; sleep 1000").returncode == 98


MOUNT = "mkdir -p /run/p /run/n; mount -o dax /dev/pmem0 /run/p; mount /dev/nvme0n1 /run/n; "


@pytest.mark.parametrize("persistence", ["mem-ctrl", "cpu"])
def test_devices_survive_a_cut(tmp_path, persistence):
    settings = Settings(keep=tmp_path, timeout=PATIENCE, persistence=persistence)
    loop = "i=0; while :; do i=$((i+1)); for d in p n; do echo $i >/run/$d/a; sync /run/$d/a; done; echo $i; done"
    with Machine(settings, ["mkfs.ext4 -q -b 4096 /dev/pmem0; mkfs.ext4 -q /dev/nvme0n1; " + MOUNT + loop]) as machine:
        for line in machine.lines():
            acknowledged = int(line)
            if acknowledged == 10:
                machine.cut()
    assert machine.wait().was_cut
    look = MOUNT + ("cat /run/p/a /run/n/a; ndctl list | grep fsdax; cat /sys/block/pmem0/dax/write_cache "
                    "/sys/bus/nd/devices/region0/persistence_domain; umount /run/p /run/n")
    with Machine(settings, [look]) as machine:
        on_pmem, on_nvme, mode, write_cache, domain = machine.lines()
    assert int(on_pmem) >= acknowledged and int(on_nvme) >= acknowledged
    assert "fsdax" in mode
    assert (write_cache, domain) == {"mem-ctrl": ("1", "memory_controller"), "cpu": ("0", "cpu_cache")}[persistence]


def test_devices_as_asked():
    done = run("--pmem", "256M", "--raw-pmem", "--nvme-count", "2", "--nvme", "64M", "--virtio-pmem", "128M", "--smp", "1",
               "--", "modprobe virtio_pmem; until [ -b /dev/pmem1 ]; do sleep 0.1; done; "
               "cat /sys/bus/nd/devices/namespace0.0/mode; nproc; lsblk -bno NAME,SIZE")
    lines = done.stdout.decode().split("\n")
    assert lines[:2] == ["raw", "1"]
    sizes = dict(line.split() for line in lines[2:] if line)
    assert sizes == {"pmem0": str(256 << 20), "pmem1": str(128 << 20), "nvme0n1": str(64 << 20), "nvme1n1": str(64 << 20)}


def test_no_pmem():
    assert run("--no-pmem", "--", "! [ -e /dev/pmem0 ]").returncode == 0


def test_cxl(tmp_path):
    """The persistent memory of a CXL device, with an NVDIMM's manners; what was flushed to it is kept."""
    keep = ("--cxl", "--pmem", "256M", "--nvme", "64M", "--keep", str(tmp_path))
    done = run(*keep, "--", "cxl list -R | grep commit && "
                            "dd if=/dev/zero bs=4k count=1 status=none | tr '\\0' x >/dev/pmem0; sync")
    assert done.returncode == 0, done.stderr.decode()
    again = run(*keep, "--", "head -c 4 /dev/pmem0")
    assert again.returncode == 0 and again.stdout == b"xxxx", again.stderr.decode()


def test_no_instruction_that_the_emulator_gets_wrong():
    """vm/accel.py says why."""
    if kvm_works():
        pytest.skip("the processor is a real one")
    assert run("--", "grep", "-c", "cx16", "/proc/cpuinfo").stdout.strip() == b"0"


def test_trace_events_leave_the_scheduler_alone():
    """Also those of an instance, which takes its options from the whole: vm/README.md says why."""
    done = run("--", """set -e
        modprobe dm-mod; cd /sys/kernel/tracing
        mkdir instances/other
        for place in . instances/other; do echo 1 >$place/events/module/module_load/enable; done
        modprobe dm-delay
        grep -c '<...>-.*module_load' trace instances/other/trace""")
    assert done.stdout == b"trace:1\ninstances/other/trace:1\n", done.stderr.decode()


def test_what_programs_need():
    done = run("--", """set -e
        dmsetup create pair --table '0 2048 linear /dev/nvme0n1 0'; [ -b /dev/mapper/pair ]; dmsetup remove pair
        unshare -Ur true
        redis-server --daemonize yes >/dev/null; until [ "$(redis-cli ping)" = PONG ]; do sleep 0.1; done
        mkfs.xfs -q /dev/nvme0n1; mount /dev/nvme0n1 /mnt; umount /mnt""")
    assert done.returncode == 0, done.stderr.decode()


def test_signal_ends_everything():
    process = subprocess.Popen([CHECKOUT / "vm/run", "--", "echo up; sleep 1000"], stdout=subprocess.PIPE)
    process.stdout.readline()
    process.terminate()
    assert process.wait(timeout=PATIENCE) == 143


def test_sizes():
    assert [parse_size(text) for text in ("17", "4K", "512M", "1G", "1GiB")] == [17, 4096, 512 << 20, 1 << 30, 1 << 30]
    with pytest.raises(ValueError):
        parse_size("much")


def test_leaks_are_ours_or_nobodys():
    ours = "unreferenced object 0x1 (size 8):\n  comm \"mount\"\n    [<1>] forebay_mount+0x1/0x2 [forebay]\n"
    other = "unreferenced object 0x2 (size 8):\n  comm \"swapper\"\n    [<1>] acpi_init+0x1/0x2\n"
    assert console.our_leaks(other + ours + other) == ours.splitlines()
    assert console.our_leaks(other) == []


@pytest.mark.parametrize("code, guilty", [("00 0f <1f> 44", True), ("00 cc <1f> 44", False), ("<1f> 44", False)])
def test_a_breakpoint_that_is_not_there_is_the_emulators(code, guilty):
    lines = ["[   14.28] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI", "[   14.28] RIP: 0010:__schedule+0x339/0xbf0",
             f"[   14.28] Code: {code}"]
    assert console.is_the_emulators(lines) == guilty and not console.is_the_emulators(lines[1:])
