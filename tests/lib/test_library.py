# SPDX-License-Identifier: GPL-2.0-only
"""libforebay as a program outside of this tree finds it: installed, by pkg-config, from C and C++, off forebay."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
#include <forebay.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#if _FILE_OFFSET_BITS != 64
#error "off_t is not the library's where it can be shorter"
#endif

int main(int argc, char **argv)
{
	struct forebay_dropped dropped;
	struct forebay_info info;
	int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600);

	if (forebay_pin(fd, 0, 0, 0) != -1 || errno != ENOTTY || forebay_unpin(fd, 0, 0, FOREBAY_KEEP) != -1 || errno != ENOTTY)
		return 1;
	if (forebay_attach(fd, 0, 0, 0) != -1 || errno != ENOTTY || forebay_detach(fd, 0, 0, 0) != -1 || errno != ENOTTY)
		return 2;
	if (forebay_drop(fd, 0, 0, &dropped) != -1 || errno != ENOTTY)
		return 3;
	if (forebay_range_info(fd, 0, 0, FOREBAY_INFO_RUN, &info) != -1 || errno != ENOTTY)
		return 4;
	if (forebay_mmap(0, 4096, PROT_READ | PROT_WRITE, 0, fd, 0) != MAP_FAILED || errno != EOPNOTSUPP)
		return 5;
	if (forebay_mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED || errno != EINVAL)
		return 6;
	return 0;
}
"""


@pytest.fixture(name="installed", scope="module")
def installed_fixture(tmp_path_factory):
    """A folder with all that `make install` puts in place."""
    folder = tmp_path_factory.mktemp("install")
    subprocess.run(["make", "-s", "-C", ROOT / "lib", f"O={folder}/build", f"PREFIX={folder}/usr", "install"], check=True)
    return folder


@pytest.mark.parametrize("compiler", [["gcc", "-std=c99", "-D_DEFAULT_SOURCE"], ["gcc"], ["g++", "-x", "c++", "-std=c++11"],
                                      ["g++", "-x", "c++", "-std=c++20"]], ids=" ".join)
def test_compiles_and_runs_elsewhere(installed, tmp_path, compiler):
    """With all warnings on, found by pkg-config alone."""
    (tmp_path / "program.c").write_text(PROGRAM)
    environment = dict(os.environ, PKG_CONFIG_PATH=f"{installed}/usr/lib/pkgconfig")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "forebay"], env=environment, check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split()
    subprocess.run([*compiler, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o", tmp_path / "program", tmp_path / "program.c",
                    *flags], check=True)
    # Not on tmpfs alone: any file system here is one that is not forebay
    done = subprocess.run([tmp_path / "program", tmp_path / "file"], env=dict(os.environ, LD_LIBRARY_PATH=f"{installed}/usr/lib"),
                          check=False)
    assert done.returncode == 0


def test_manual(installed):
    """Each function has its page."""
    pages = {page.name for page in (installed / "usr/share/man/man3").iterdir()}
    assert pages == {"forebay.3"} | {f"forebay_{name}.3" for name in ("mmap", "pin", "unpin", "attach", "detach", "drop", "range_info")} | {"forebay-log.3"} | \
        {f"forebay_log_{name}.3" for name in ("open", "append", "appendv", "sync", "end", "settle", "close", "recover")}


def test_exports(installed):
    """What is in the header, and nothing else."""
    symbols = subprocess.run(["nm", "-D", "--defined-only", installed / "usr/lib/libforebay.so"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    names = {line.split()[-1] for line in symbols.splitlines()}
    header = (ROOT / "include/forebay.h").read_text(encoding="utf-8")
    assert names and all(f"{name}(" in header for name in names)
