# SPDX-License-Identifier: GPL-2.0-only
"""Unmodified PMDK programs and fio's engines for mappings. Through power cuts: tests/pmdk/run."""

import ctypes
import os
import subprocess

import pytest
from libc import MAPPED, info, pages
from stack import PAGE, run

CREATE, SPARSE, EXCL = 1, 4, 2


def libpmem():
    """The library as it comes."""
    lib = ctypes.CDLL("libpmem.so.1", use_errno=True)
    lib.pmem_map_file.restype = ctypes.c_void_p
    lib.pmem_map_file.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p]
    for name in ("pmem_persist", "pmem_is_pmem", "pmem_unmap"):
        getattr(lib, name).argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return lib


def test_is_pmem(folder):
    """libpmem finds it to be persistent memory, by itself."""
    lib, length, is_pmem = libpmem(), ctypes.c_size_t(), ctypes.c_int()
    address = lib.pmem_map_file(os.fsencode(folder / "f"), 1 << 20, CREATE | SPARSE, 0o600, ctypes.byref(length), ctypes.byref(is_pmem))
    assert address and length.value == 1 << 20
    assert is_pmem.value == 1 and lib.pmem_is_pmem(address, length) == 1
    ctypes.memmove(address + 5000, b"persisted", 9)
    lib.pmem_persist(address + 5000, 9)
    fd = os.open(folder / "f", os.O_RDONLY)
    assert os.pread(fd, 9, 5000) == b"persisted" and pages(fd, PAGE, PAGE) == 1
    assert info(fd).attributes == MAPPED
    lib.pmem_unmap(address, length)
    os.close(fd)


@pytest.mark.parametrize("layout", ["obj", "log", "blk"])
def test_pools(folder, layout):
    """pmempool makes, checks and reads pools of each kind."""
    pool = folder / "pool"
    run(f"pmempool create --size 20M {layout} {'512' if layout == 'blk' else ''} {pool}")
    run(f"pmempool check {pool}")
    assert "Pool size" in run(f"pmempool info {pool}") or layout in run(f"pmempool info {pool}").lower()


@pytest.mark.parametrize("engine, options", [
    ("libpmem", "--direct=1"), ("libpmem", "--direct=0 --sync=1"), ("mmap", "--fsync=1"), ("mmap", "--fdatasync=16"),
])
def test_fio(folder, shared, engine, options):
    """fio writes at random, by way of PMem, and verifies what it finds afterwards."""
    absorbed = shared.value("pages_absorbed")
    done = subprocess.run(f"fio --name=f --filename={folder}/f --size=8m --bs=4k --rw=randwrite --ioengine={engine} {options} "
                          "--thread --verify=crc32c --do_verify=1 --verify_fatal=1", shell=True, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    if engine == "libpmem":
        with open(folder / "f", "rb") as file:
            assert pages(file.fileno()) == 2048
    else:       # fio drops its file before it verifies it
        assert shared.value("pages_absorbed") - absorbed > 1900
