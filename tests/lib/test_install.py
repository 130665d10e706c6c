# SPDX-License-Identifier: GPL-2.0-only
"""`make install`, into a folder: the command, the library, the manuals, and each module as DKMS builds it from what was installed."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"forebay", "dm-forebay-writelog", "dm-forebay-transit", "forebay-emu"}
FILES = ("sbin/forebay", "share/man/man8/forebay.8", "share/man/man5/forebay.5", "share/man/man3/forebay_pin.3",
         "share/bash-completion/completions/forebay", "lib/libforebay.so", "lib/pkgconfig/forebay.pc", "include/forebay.h")


def test_install(tmp_path):
    """Twice: the second time DKMS has the version already, of other sources perhaps."""
    kernels = [path.parent.name for path in Path("/lib/modules").glob("6.12.*/build")]
    for kernel in kernels:
        (tmp_path / "modules" / kernel).mkdir(parents=True)
    (tmp_path / "tree").mkdir()
    dkms = f"dkms --dkmstree {tmp_path}/tree --sourcetree {tmp_path}/usr/src --installtree {tmp_path}/modules --no-depmod"
    for _ in range(2):
        done = subprocess.run(["make", "-C", ROOT, "install", f"DESTDIR={tmp_path}", "PREFIX=/usr", f"DKMS={dkms}"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, done.stdout
    for name in FILES:
        assert os.path.exists(tmp_path / "usr" / name), name
    for kernel in kernels:
        assert {path.name.split(".")[0] for path in (tmp_path / "modules" / kernel).rglob("*.ko*")} == MODULES
    help_text = subprocess.run([tmp_path / "usr/sbin/forebay", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "format" in help_text
