# SPDX-License-Identifier: GPL-2.0-only
"""The operations of ops.h, for the host: same numbers, same record."""

import re
import struct
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

HEADER = (Path(__file__).parent / "ops.h").read_text()
RECORD = struct.Struct("<BBBBIIII")
PROGRESS = struct.Struct("<QQQ40x")

PAGE = 4096
NAMES = int(re.search(r"#define NAMES\s+(\d+)", HEADER)[1])
BOARD_GO = int(re.search(r"#define BOARD_GO\s+(\d+)", HEADER)[1])
FILE_MAX = 1 << int(re.search(r"#define FILE_MAX\s+\(1u << (\d+)\)", HEADER)[1])
FRESH = 1

Code = IntEnum("Code", re.findall(r"^\tOP_(\w+),", HEADER, re.MULTILINE), start=0)


@dataclass(slots=True)
class Op:
    code: int
    name: int = 0
    name2: int = 0
    offset: int = 0
    length: int = 0
    noise: int = 0
    id: int = 0
    flags: int = 0

    def pack(self):
        return RECORD.pack(self.code, self.flags, self.name, self.name2, self.id, self.offset, self.length, self.noise)

    def __str__(self):
        code = Code(self.code)
        text = f"{code.name.lower()} n{self.name}"
        if code in (Code.RENAME, Code.LINK):
            text += f" n{self.name2}"
        if code is Code.CREATE:
            text += f" file {self.id}"
        if self.length or code is Code.TRUNCATE:
            text += f" {self.offset}+{self.length}"
        return text + (" fresh" if self.flags & FRESH else "")


def unpack(data):
    for code, flags, name, name2, id_, offset, length, noise in RECORD.iter_unpack(data):
        yield Op(code, name, name2, offset, length, noise, id_, flags)
