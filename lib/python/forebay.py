# SPDX-License-Identifier: GPL-2.0-only
"""libforebay in Python: which ranges of a file belong in persistent memory. forebay(3) is the contract.

A file is anything with fileno(), or a descriptor. Offsets and lengths are bytes; a call applies to all pages that the range
touches, and a length of 0 means up to the end. The caller must have the file open for writing, own it, or be able to open it
for writing; else the call fails with EPERM. Failures raise OSError with the errno of forebay(3): ENOTTY off forebay.
"""

import enum
import os
from typing import NamedTuple, NoReturn, Protocol, Union

from _forebay import ffi, lib


class HasFileno(Protocol):
    """An open file, a socket, ..."""

    def fileno(self) -> int:
        """The file descriptor."""


File = Union[int, HasFileno]


class Attributes(enum.IntFlag):
    """Attributes of ranges of a file."""
    ATTACHED = lib.FOREBAY_RANGE_ATTACHED
    PINNED = lib.FOREBAY_RANGE_PINNED
    MAPPED = lib.FOREBAY_RANGE_MAPPED
    LOCKED = lib.FOREBAY_RANGE_LOCKED


class Dropped(NamedTuple):
    """Dropped pages, and pages that stay: pinned or locked, or busy."""
    dropped: int
    pinned: int
    busy: int


class Info(NamedTuple):
    """Pages by state in the range of offset and length; attributes are those that any page of it has."""
    offset: int
    length: int
    attributes: Attributes
    clean: int
    out_of_sync: int
    dirty: int
    pinned: int
    busy: int
    volatile_pages: int
    lost: int


def mmap(file: File, length: int, offset: int = 0, *, writable: bool = True) -> memoryview:
    """Map a range so that each flushed store is durable. EOPNOTSUPP: not on forebay.

    The view's release() unmaps the range, and so does leaving `with`. Views made of it keep the mapping until they are
    released, too. os.fsync() of the file makes stores durable; so does libpmem, without a system call. As in C, the range may
    end behind the file. Access behind the end of the file, or where it was truncated, raises SIGBUS.
    """
    protection = lib.PROT_READ | (lib.PROT_WRITE if writable else 0)
    address = lib.forebay_mmap(ffi.NULL, length, protection, 0, _descriptor(file), offset)
    if address == lib.MAP_FAILED:
        _fail(file)
    # Each view refers to the buffer, and the buffer to the pointer. With the last reference, the range is unmapped.
    owner = ffi.gc(address, lambda pointer, unmap=lib.munmap: unmap(pointer, length))
    view = memoryview(ffi.buffer(owner, length))
    return view if writable else view.toreadonly()


def pin(file: File, offset: int = 0, length: int = 0, *, keep: bool = False) -> None:
    """Bring a range into persistent memory and keep it there, until unpin() or the opener's close. ENOMEM: over a limit."""
    _call(lib.forebay_pin, file, offset, length, lib.FOREBAY_KEEP if keep else 0)


def unpin(file: File, offset: int = 0, length: int = 0, *, keep: bool = False) -> None:
    """Undo pin(); with keep=True, a pin() with keep=True."""
    _call(lib.forebay_unpin, file, offset, length, lib.FOREBAY_KEEP if keep else 0)


def attach(file: File, offset: int = 0, length: int = 0, *, keep: bool = False) -> None:
    """Writes to a range go to persistent memory, until detach() or the opener's close."""
    _call(lib.forebay_attach, file, offset, length, lib.FOREBAY_KEEP if keep else 0)


def detach(file: File, offset: int = 0, length: int = 0, *, keep: bool = False) -> None:
    """Undo attach(); with keep=True, an attach() with keep=True."""
    _call(lib.forebay_detach, file, offset, length, lib.FOREBAY_KEEP if keep else 0)


def drop(file: File, offset: int = 0, length: int = 0) -> Dropped:
    """Write a range back and take it out of persistent memory."""
    result = ffi.new("struct forebay_dropped *")
    _call(lib.forebay_drop, file, offset, length, result)
    return Dropped(result.dropped, result.pinned, result.busy)


def range_info(file: File, offset: int = 0, length: int = 0, *, run: bool = False) -> Info:
    """Read the state of a range; with run=True, only of its first pages with equal attributes."""
    info = ffi.new("struct forebay_info *")
    _call(lib.forebay_range_info, file, offset, length, lib.FOREBAY_INFO_RUN if run else 0, info)
    answer = Info(*(getattr(info, name) for name in Info._fields))
    return answer._replace(attributes=Attributes(answer.attributes))


def _descriptor(file: File) -> int:
    return file if isinstance(file, int) else file.fileno()


def _call(function, file: File, *arguments) -> None:
    if function(_descriptor(file), *arguments):
        _fail(file)


def _fail(file: File) -> NoReturn:
    raise OSError(ffi.errno, os.strerror(ffi.errno), getattr(file, "name", file))
