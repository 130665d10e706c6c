# SPDX-License-Identifier: GPL-2.0-only
"""The debug kernel notices faults, and vm/run tells: each fault of faulty/ makes a run fail with status 99.

The module is built in build/vm/faulty and loaded by path, so that it never gets among the modules vm/run hands out.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

import sys
CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))

from vm.kernel import DEBUG_KERNEL              # noqa: E402
from vm.machine import Machine                  # noqa: E402
from vm.settings import BUILD, Settings         # noqa: E402

pytestmark = pytest.mark.skipif(not (DEBUG_KERNEL / "release").exists(), reason="no debug kernel: make debug-kernel")


@pytest.fixture(scope="module")
def module():
    folder = BUILD / "faulty"
    shutil.copytree(Path(__file__).parent / "faulty", folder, dirs_exist_ok=True)
    subprocess.run(["make", "-s", "-C", DEBUG_KERNEL / "build", f"M={folder}", "modules"], check=True)
    return folder / "forebay-faulty.ko"


def run(command):
    machine = Machine(Settings(kernel="debug", mem=1 << 30, timeout=300), [command], stdout=lambda data: None)
    with machine:
        return machine.wait()


@pytest.mark.parametrize("fault, told", [
    ("leak", "unreferenced object"),
    ("overrun", "KASAN: slab-out-of-bounds"),
    ("lock-order", "possible circular locking dependency"),
    ("sleep-atomic", "scheduling while atomic"),
    ("shift", "UBSAN: shift-out-of-bounds"),
    ("objects", "Objects remaining"),
])
def test_fault_is_told(module, fault, told):
    result = run(f"insmod {module} do={fault}")
    assert result.status == 99
    assert any(told in line for line in result.reports), "\n".join(result.reports)


def test_no_fault_is_no_report(module):
    assert run(f"insmod {module}; rmmod forebay_faulty; exit 5").status == 5
