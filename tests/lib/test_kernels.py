# SPDX-License-Identifier: GPL-2.0-only
"""compat/features.sh: what it finds in the headers of a kernel, and that it writes only what has changed."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OLD = {"REMOVE_PRIVS_FLAGS", "STATIC_CRC32C", "CREATE_EXCL", "PFN_T", "PAGEMAP_HINT"}


def features(include, output):
    """The names of what a kernel has."""
    subprocess.run(["sh", ROOT / "compat/features.sh", include, output], check=True)
    return set(re.findall(r"^#define COMPAT_HAS_(\w+) 1$", output.read_text(encoding="utf-8"), re.MULTILINE))


def test_a_kernel_6_12(tmp_path):
    trees = sorted(Path("/usr/src").glob("linux-headers-6.12*-common/include/linux"))
    if not trees:
        pytest.skip("no headers of Linux 6.12: scripts/setup")
    assert features(trees[-1], tmp_path / "features.h") == OLD


def test_each_feature_is_asked_for_and_each_question_is_one(tmp_path):
    asked = set(re.findall(r"^\thas (\w+) ", (ROOT / "compat/features.sh").read_text(encoding="utf-8"), re.MULTILINE))
    asked |= set(re.findall(r"define COMPAT_HAS_([A-Z]\w+) 1'", (ROOT / "compat/features.sh").read_text(encoding="utf-8")))
    used = {name for path in (ROOT / "compat").glob("*.h") if path.name != "features.h"
            for name in re.findall(r"COMPAT_HAS_(\w+)", path.read_text(encoding="utf-8"))}
    assert asked == used


def test_no_other_file_asks():
    listed = subprocess.run(["git", "-C", ROOT, "grep", "-lE", "COMPAT_HAS_|LINUX_VERSION_CODE|KERNEL_VERSION", "--", "*.c", "*.h"],
                            stdout=subprocess.PIPE, text=True, check=False).stdout.split()
    assert [name for name in listed if not name.startswith("compat/")] == []


def test_written_only_if_it_changes(tmp_path):
    include, output = tmp_path / "linux", tmp_path / "features.h"
    include.mkdir()
    (include / "namei.h").write_text("struct dentry *start_creating(struct mnt_idmap *idmap);\n", encoding="utf-8")
    assert features(include, output) == {"START_CREATING"}
    os.utime(output, (1, 1))
    features(include, output)
    assert output.stat().st_mtime == 1
    (include / "fs.h").write_text("#define ATTR_CTIME_SET\t(1 << 10)\n", encoding="utf-8")
    assert features(include, output) == {"START_CREATING", "CTIME_SET"}
