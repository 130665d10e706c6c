# SPDX-License-Identifier: GPL-2.0-only
"""How fast this host's time stamp counter runs. QEMU's translator shows it to the guest as it is.

A guest measures the counter at boot against an emulated timer. On a busy host the result has been 75 MHz instead of 2600.
Then all clocks of the guest run 35 times too fast, and every timeout in it ends at once. So the guest is told the rate.
"""

import ctypes
import mmap
import platform
import time

# rdtsc; shl rdx,32; or rax,rdx; ret
CODE = bytes([0x0F, 0x31, 0x48, 0xC1, 0xE2, 0x20, 0x48, 0x09, 0xD0, 0xC3])
APART = 0.02            # seconds between the two looks
TRIES = 10


def kernel_arguments():
    """For a guest under QEMU's translator."""
    return [f"tsc_early_khz={_khz()}"] if platform.machine() == "x86_64" else []


def _khz():
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as memory:
        memory.write(CODE)
        code = ctypes.c_char.from_buffer(memory)
        counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(code))
        ticks, when = _look(counter)
        time.sleep(APART)
        later_ticks, later = _look(counter)
        del code
    return round((later_ticks - ticks) * 1_000_000 / (later - when))


def _look(counter):
    """The counter and the nanosecond it had that value: of several tries, the one that was disturbed least."""
    looks = []
    for _ in range(TRIES):
        before = counter()
        when = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        after = counter()
        looks.append((after - before, (before + after) // 2, when))
    _, ticks, when = min(looks)
    return ticks, when
