#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""build_forebay.py OUTPUT.c: writes the C source of _forebay, the binding of libforebay that forebay.py uses.

The C compiler checks the declarations below: it takes each "..." from forebay.h, and refuses what contradicts forebay.h.
lib/Makefile compiles the source.
"""

import sys

import cffi

DECLARATIONS = """
typedef int... off_t;

#define FOREBAY_KEEP ...
#define FOREBAY_INFO_RUN ...
#define FOREBAY_RANGE_ATTACHED ...
#define FOREBAY_RANGE_PINNED ...
#define FOREBAY_RANGE_MAPPED ...
#define FOREBAY_RANGE_LOCKED ...

struct forebay_dropped {
    uint64_t dropped, pinned, busy;
    ...;
};

struct forebay_info {
    uint32_t attributes, lost;
    uint64_t offset, length, clean, out_of_sync, dirty, pinned, busy, volatile_pages;
    ...;
};

void *forebay_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
int forebay_pin(int fd, off_t offset, off_t length, unsigned int flags);
int forebay_unpin(int fd, off_t offset, off_t length, unsigned int flags);
int forebay_attach(int fd, off_t offset, off_t length, unsigned int flags);
int forebay_detach(int fd, off_t offset, off_t length, unsigned int flags);
int forebay_drop(int fd, off_t offset, off_t length, struct forebay_dropped *result);
int forebay_range_info(int fd, off_t offset, off_t length, unsigned int flags, struct forebay_info *info);

#define PROT_READ ...
#define PROT_WRITE ...
static void *const MAP_FAILED;
int munmap(void *address, size_t length);
"""

ffi = cffi.FFI()
ffi.cdef(DECLARATIONS)
ffi.set_source("_forebay", "#include <forebay.h>\n#include <sys/mman.h>")

if __name__ == "__main__":
    ffi.emit_c_code(sys.argv[1])
