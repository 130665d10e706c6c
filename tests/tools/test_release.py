# SPDX-License-Identifier: GPL-2.0-only
"""What commands say if a module isn't loaded: which kernel runs, and for which kernels the modules are."""

from pathlib import Path

import pytest

from conftest import DONE, FAILED


@pytest.fixture
def kernels(tmp_path):
    """A machine that runs 6.1.0-9; kernels with modules as told: kernels({"6.12.1": "forebay forebay-emu"})."""
    def make(modules):
        proc = tmp_path / "proc/sys/kernel"
        proc.mkdir(parents=True)
        (tmp_path / "sys/devices").mkdir(parents=True)
        (proc / "osrelease").write_text("6.1.0-9\n")
        (tmp_path / "proc/self").mkdir()
        (tmp_path / "proc/self/mountinfo").touch()
        for release, names in modules.items():
            folder = tmp_path / "lib/modules" / release
            folder.mkdir(parents=True)
            lines = [f"updates/dkms/{name}.ko.xz: kernel/fs/other.ko.xz\n" for name in names.split()]
            (folder / "modules.dep").write_text("kernel/fs/other.ko.xz:\nkernel/fs/overlay/forebay-like.ko:\n" + "".join(lines))
        return {"FOREBAY_SYSROOT": str(tmp_path)}
    return make


needs_no_emu = pytest.mark.skipif(Path("/dev/forebay-emu-control").exists(), reason="forebay-emu is loaded")


@needs_no_emu
def test_the_module_is_there(forebay, kernels):
    result = forebay("emu", "create", "--size", "1M", **kernels({"6.1.0-9": "forebay-emu", "6.12.9": "forebay-emu"}))
    assert result.status == FAILED and "Load it: modprobe forebay-emu\n" in result.err


@needs_no_emu
def test_the_module_is_for_other_kernels(forebay, kernels):
    result = forebay("emu", "create", "--size", "1M", **kernels({"6.12.10": "forebay-emu", "6.12.9": "forebay-emu", "6.13": "forebay"}))
    assert result.status == FAILED
    assert "This kernel is 6.1.0-9, and the modules are for 6.12.9, 6.12.10: reboot into 6.12.10.\n" in result.err
    assert "modprobe" not in result.err


@needs_no_emu
def test_the_module_is_nowhere(forebay, kernels):
    result = forebay("emu", "create", "--size", "1M", **kernels({"6.12.10": ""}))
    assert "This kernel is 6.1.0-9, and Forebay's modules are installed for no kernel: make install" in result.err


def test_status_says_so_too(forebay, kernels):
    """As on a machine where Forebay was just installed."""
    result = forebay("status", **kernels({"6.12.9": "forebay"}))
    assert result.status == DONE
    assert result.out == ("No forebay file system is mounted.\n"
                          "This kernel is 6.1.0-9, and the modules are for 6.12.9: reboot into 6.12.9.\n")
