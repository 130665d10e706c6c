# SPDX-License-Identifier: GPL-2.0-only
"""How this host runs a guest: KVM where it works, else QEMU's own translator.

/dev/kvm may exist and still not work: a guest then hangs in its boot loader. So KVM is tried once, with a time
limit, on a guest of a few bytes that powers off by itself. The answer is kept outside the tree.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from . import tsc
from .settings import CACHE

KVM = ["-accel", "kvm", "-cpu", "host"]
TCG = ["-accel", "tcg,thread=multi", "-cpu"]

# A boot sector that writes to QEMU's debug-exit port: mov al,1; out 0xf4,al; hlt; jmp back to hlt.
PROBE = bytes([0xB0, 0x01, 0xE6, 0xF4, 0xF4, 0xEB, 0xFD]).ljust(510, b"\0") + b"\x55\xaa"
PROBE_STATUS = 3        # (1 << 1) | 1
PROBE_SECONDS = 5


def arguments(hypervisor=True):
    """QEMU's arguments for the processor; it may be told to keep quiet about being a hypervisor's."""
    chosen = KVM if kvm_works() else [*TCG, emulated("max")]
    return chosen if hypervisor else [*chosen[:-1], f"{chosen[-1]},-hypervisor"]


def emulated(model):
    """A processor model as QEMU's translator can be trusted with it: without CMPXCHG16B.

    QEMU 7.2 computes that instruction's flags from a stale state. An interrupt right behind it saves them with garbage in
    the system's bits, and the kernel goes on with DF, NT, TF or VM set: copies run backwards, or a double fault ends it.
    Linux's slab allocator uses the instruction at each allocation if the processor has it.
    """
    return f"{model},-cx16"


def kernel_arguments():
    """What the guest's kernel must be told about the processor."""
    return [] if kvm_works() else tsc.kernel_arguments()


def kvm_works():
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    remembered = CACHE / "kvm"
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    try:
        answer, where = remembered.read_text().split()
        if where == boot_id:
            return answer == "yes"
    except (OSError, ValueError):
        pass
    works = _probe()
    CACHE.mkdir(parents=True, exist_ok=True)
    remembered.write_text(f"{'yes' if works else 'no'} {boot_id}\n")
    return works


def _probe():
    with tempfile.NamedTemporaryFile() as sector:
        sector.write(PROBE)
        sector.flush()
        try:
            done = subprocess.run(
                ["qemu-system-x86_64", *KVM, "-M", "q35", "-m", "64M", "-nodefaults", "-display", "none",
                 "-no-reboot", "-device", "isa-debug-exit,iobase=0xf4,iosize=1",
                 "-drive", f"file={sector.name},format=raw,if=ide,readonly=off"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                timeout=PROBE_SECONDS)
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == PROBE_STATUS
