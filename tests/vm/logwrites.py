# SPDX-License-Identifier: GPL-2.0-only
"""The record of dm-log-writes: every write to a device, in the order in which flushes made them durable."""

import struct

SECTOR = 512
MAGIC = 0x6a736677736872
DISCARD, MARK = 4, 8


def entries(device):
    """Yields each entry as (flags, sector, bytes written or the mark's text). A write is listed when a
    flush has made it durable."""
    with open(device, "rb", buffering=1 << 20) as log:
        magic, _, count, size = struct.unpack_from("<QQQI", log.read(SECTOR))
        assert (magic, size) == (MAGIC, SECTOR), "no log of dm-log-writes with sectors of 512 bytes"
        for _ in range(count):
            head = log.read(SECTOR)
            sector, sectors, flags, length = struct.unpack_from("<QQQQ", head)
            if flags & MARK:
                yield flags, sector, head[32:32 + length].rstrip(b"\0").decode()
            elif flags & DISCARD:
                yield flags, sector, b""
            else:
                yield flags, sector, log.read(sectors * SECTOR)
