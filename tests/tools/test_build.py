# SPDX-License-Identifier: GPL-2.0-only
"""What make builds again."""

import os
import subprocess

import pytest

from conftest import CHECKOUT


@pytest.mark.parametrize("folder, header, built", [("tools", "base/verb.h", "emu/cut.o"), ("lib", "log/state.h", "log/log.o")])
def test_a_header_that_changed(tmp_path, folder, header, built):
    """What includes it is compiled again, however the build folder is spelt: `make tools` and the tests do that differently."""
    relative = os.path.relpath(tmp_path, CHECKOUT / folder)
    make = ["make", "-s", "-C", CHECKOUT / folder]
    subprocess.run([*make, "-j2", f"O={relative}"], check=True)
    for spelt in relative, tmp_path:
        done = subprocess.run([*make, "-n", "-W", header, f"O={spelt}"], check=True, stdout=subprocess.PIPE, text=True)
        assert f"{built} " in done.stdout, spelt
