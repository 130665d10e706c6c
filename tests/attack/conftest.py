# SPDX-License-Identifier: GPL-2.0-only
"""Makes the modules of tests/vm importable here, and passes on its fixtures."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

VM = Path(__file__).resolve().parents[1] / "vm"
sys.path.insert(0, str(VM))

_spec = importlib.util.spec_from_file_location("vm_conftest", VM / "conftest.py")
_vm = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_vm)

PERSISTENCE, clean_up, pytest_configure = _vm.PERSISTENCE, _vm.clean_up, _vm.pytest_configure
stack_fixture, shared_fixture, folder_fixture = _vm.stack_fixture, _vm.shared_fixture, _vm.folder_fixture
below_fixture, bare_fixture = _vm.below_fixture, _vm.bare_fixture


@pytest.fixture(name="attacker")
def attacker_fixture():
    """The helper program that does one attack at C's speed: attack.c."""
    return Path(__file__).resolve().parents[2] / "build/tests/attack"


@pytest.fixture(name="seed")
def seed_fixture():
    """FOREBAY_SEED, or one that is printed."""
    seed = int(os.environ.get("FOREBAY_SEED") or int.from_bytes(os.urandom(4), "little") & 0x3FFFFFFF)
    print(f"seed {seed}")
    return seed
