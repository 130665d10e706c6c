# SPDX-License-Identifier: GPL-2.0-only
"""What the stories of this folder have in common: where the checkout is, and what is done in a machine."""

import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))

from vm.system import System                            # noqa: E402

RELEASE = os.environ.get("FOREBAY_DEBIAN", "12")
ORIGIN, SSD = (f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_forebay-nvme{n}" for n in range(2))


@contextmanager
def machine(image, name, settings, kernel="6.12"):
    """A machine with fresh disks, which are in build/systemd/NAME; what it said stays there."""
    folder = CHECKOUT / "build/systemd" / name
    shutil.rmtree(folder, ignore_errors=True)
    with System(image, folder, settings, kernel) as system:
        yield system
    (folder / "root.qcow2").unlink()


def write_file(system, path, text, append=False):
    """A file in the machine."""
    system.run(f"mkdir -p $(dirname {path}); cat {'>>' if append else '>'}{path} <<'END'\n{text}END")
