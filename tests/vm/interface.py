# SPDX-License-Identifier: GPL-2.0-only
"""Calls of libforebay, with their errors; and the rows of the table of forebay(3) that tests show."""

import ctypes
import struct
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_lib = ctypes.CDLL(str(ROOT / "build/lib/libforebay.so"), use_errno=True)
_lib.forebay_mmap.restype = ctypes.c_void_p
_lib.forebay_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for _name in ("pin", "unpin", "attach", "detach"):
    getattr(_lib, "forebay_" + _name).argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_long, ctypes.c_uint]
_lib.forebay_drop.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_long, ctypes.c_void_p]
_lib.forebay_range_info.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_long, ctypes.c_uint, ctypes.c_void_p]


def call(name, fd, offset=0, length=0, flags=0):
    """The errno of a library call, 0 if it succeeds; for info, the struct's numbers besides."""
    function = getattr(_lib, "forebay_" + name)
    ctypes.set_errno(0)
    memory = ctypes.create_string_buffer(128)
    if name == "drop":
        result = function(fd, offset, length, memory)
        return ctypes.get_errno() if result else struct.unpack_from("IIQQQQQ", memory.raw)[4:]
    if name == "range_info":
        result = function(fd, offset, length, flags, memory)
    else:
        result = function(fd, offset, length, flags)
    assert result in (0, -1)
    return ctypes.get_errno() if result else 0


def mapped(fd, length, flags=0, protection=3):
    """The errno of forebay_mmap(); unmaps."""
    ctypes.set_errno(0)
    address = _lib.forebay_mmap(None, length, protection, flags, fd, 0)
    if address == ctypes.c_void_p(-1).value:
        return ctypes.get_errno()
    ctypes.CDLL(None).munmap(ctypes.c_void_p(address), ctypes.c_size_t(length))
    return 0


SHOWN = set()


def shows(*rows):
    """Rows of the table, as "what: result", that a test shows."""
    def decorate(test):
        SHOWN.update((row, test.__name__[5:]) for row in rows)
        return test
    return decorate
