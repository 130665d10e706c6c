# SPDX-License-Identifier: GPL-2.0-only
"""Which versions were written to numbered blocks, and which may be found in them after a cut.

Allowed are the last acknowledged version, a version that was being written, or a mixture of both; nothing
older, and nothing else.
"""

import mmap
import struct

BLOCK = 4096
LOST = 3                # exit status of guest.py if something was lost; Python's own is 1
_UNIT = struct.Struct("<QQ")        # block, version; the block is full of them


def contents(block, version):
    """A block's bytes; version 0 was never written, and is zeros."""
    return _UNIT.pack(block, version) * (BLOCK // _UNIT.size) if version else bytes(BLOCK)


class Versions:
    """Of each block the versions begun and acknowledged; shared by all processes forked later."""

    def __init__(self, blocks):
        self.blocks = blocks
        self.begun = memoryview(mmap.mmap(-1, 8 * blocks)).cast("Q")
        self.acknowledged = memoryview(mmap.mmap(-1, 8 * blocks)).cast("Q")

    def wrong(self, block, data, least):
        """What is wrong with the data found in a block, of which version @least was acknowledged before
        the cut; or None."""
        if data == contents(block, least):
            return None
        words = memoryview(data).cast("Q")
        versions, blocks = set(words[1::2]), set(words[0::2])
        if versions <= set(range(least, self.begun[block] + 1)) and blocks <= {block} | ({0} if not least else set()):
            return None
        return (f"block {block}: versions {sorted(versions)[:4]} of blocks {sorted(blocks)[:4]} were found; {least} was "
                f"acknowledged, {self.begun[block]} is the latest that was begun")
