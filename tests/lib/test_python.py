# SPDX-License-Identifier: GPL-2.0-only
"""libforebay's Python module off forebay: built, installed, held against the headers. tests/vm/test_python.py goes on."""

import errno
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADERS = "".join((ROOT / "include" / name).read_text(encoding="utf-8") for name in ("forebay.h", "uapi/linux/forebay.h"))
PAGE = 4096


@pytest.fixture(name="installed", scope="module")
def installed_fixture(tmp_path_factory):
    """A folder with the library and the module in it."""
    folder = tmp_path_factory.mktemp("install")
    subprocess.run(["make", "-s", "-C", ROOT / "lib", f"O={folder}/build", f"PREFIX={folder}/usr", "install", "install-python"],
                   check=True)
    return folder


@pytest.fixture(name="forebay", scope="module")
def forebay_fixture(installed):
    """The module, loaded from where it was installed; the dynamic linker does not know that folder."""
    path = str(installed / "usr/lib/python3/dist-packages")
    sys.path.insert(0, path)
    yield importlib.import_module("forebay")
    sys.path.remove(path)


@pytest.fixture(name="file")
def file_fixture(tmp_path):
    """Not on forebay."""
    with open(tmp_path / "file", "w+b", buffering=0) as file:
        file.truncate(PAGE)
        yield file


@pytest.mark.parametrize("name", ["pin", "unpin", "attach", "detach", "drop", "range_info"])
def test_elsewhere(forebay, file, name):
    """ENOTTY with the name of the file, for anything that stands for a file; anything else is refused by Python."""
    for some, what in ((file, file.name), (file.fileno(), file.fileno())):
        with pytest.raises(OSError) as caught:
            getattr(forebay, name)(some)
        assert caught.value.errno == errno.ENOTTY and caught.value.filename == what
        assert os.strerror(errno.ENOTTY) in str(caught.value)
    closed = os.open("/", os.O_RDONLY)
    os.close(closed)
    with pytest.raises(OSError) as caught:
        getattr(forebay, name)(closed)
    assert caught.value.errno == errno.EBADF
    for wrong in ("file", None):
        with pytest.raises((AttributeError, TypeError)):
            getattr(forebay, name)(wrong)
    with pytest.raises(OverflowError):
        getattr(forebay, name)(file, 1 << 63)


def test_mmap_elsewhere(forebay, file, tmp_path):
    """The kernel's own answers."""
    with pytest.raises(OSError) as caught:
        forebay.mmap(file, PAGE)
    assert caught.value.errno == errno.EOPNOTSUPP and caught.value.filename == file.name
    for arguments in ((file, 0), (file, PAGE, 1)):
        with pytest.raises(OSError) as caught:
            forebay.mmap(*arguments)
        assert caught.value.errno == errno.EINVAL
    with pytest.raises(OverflowError):
        forebay.mmap(file, -1)
    with open(tmp_path / "file", "rb") as reading, pytest.raises(PermissionError):
        forebay.mmap(reading, PAGE)


def test_has_what_the_header_has(forebay):
    """Every call, attribute and flag."""
    calls = re.findall(r"\bforebay_(\w+)\(int fd|\bforebay_(mmap)\(void", HEADERS)
    assert len(calls) == 7
    for name in map("".join, calls):
        assert callable(getattr(forebay, name)) and getattr(forebay, name).__doc__
    attributes = dict(re.findall(r"#define FOREBAY_RANGE_(\w+)\s+(\d+)", HEADERS))
    assert len(attributes) == 4
    assert {name: str(value.value) for name, value in forebay.Attributes.__members__.items()} == attributes
    flags = dict(re.findall(r"#define (FOREBAY_(?:KEEP|INFO_\w+))\s+(\d+)", HEADERS))
    assert len(flags) == 2 and all(getattr(forebay.lib, name) == int(value) for name, value in flags.items())
    body = re.search(r"struct forebay_info \{(.*?)\}", HEADERS, re.S)[1]
    assert set(forebay.Info._fields) == set(re.findall(r"(\w+);", body)) - {"size", "flags", "reserved"}


@pytest.mark.parametrize("header, old, new", [
    ("forebay.h", "int forebay_pin(int fd, off_t offset", "int forebay_pin(int fd, off_t *offset"),
    ("forebay.h", "struct forebay_dropped *result", "struct forebay_info *result"),
    ("uapi/linux/forebay.h", "\t__u64\tbusy;", "\t__u64\toccupied;"),
    ("uapi/linux/forebay.h", "#define FOREBAY_KEEP", "#define FOREBAY_KEPT"),
    ("forebay.h", "", "")], ids=["argument", "pointer", "field", "constant", "same"])
def test_built_against_the_header(tmp_path, header, old, new):
    """If the header contradicts the module, compiling the module fails."""
    for name in ("include", "lib", "packaging"):
        shutil.copytree(ROOT / name, tmp_path / name)
    make = ["make", "-s", "-C", tmp_path / "lib", f"O={tmp_path}/build"]
    subprocess.run(make, check=True)
    text = (tmp_path / "include" / header).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "include" / header).write_text(text.replace(old, new), encoding="utf-8")
    done = subprocess.run([*make, "-o", f"{tmp_path}/build/libforebay.so", "python"], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert bool(done.returncode) == (old != new), done.stdout
    assert ("_forebay.c" in done.stdout and "error:" in done.stdout) == (old != new)


def test_library_needs_no_python(tmp_path):
    """`make` and `make install` of the library neither run Python nor leave anything of it."""
    subprocess.run(["make", "-s", "-C", ROOT / "lib", f"O={tmp_path}/build", f"PREFIX={tmp_path}/usr", "PYTHON=false", "install"],
                   check=True)
    assert not [path for path in tmp_path.rglob("*") if "python" in path.name]


@pytest.mark.parametrize("prefix", ["/usr", "/usr/local"])
def test_installed_where_python_looks(tmp_path, prefix):
    """By a package, and by hand."""
    subprocess.run(["make", "-s", "-C", ROOT / "lib", f"O={tmp_path}/build", f"PREFIX={prefix}", f"DESTDIR={tmp_path}/root",
                    "install-python"], check=True)
    folder, = {path.parent for path in (tmp_path / "root").rglob("*forebay*")}
    looked = subprocess.run(["/usr/bin/python3", "-c", "import site; print(*site.getsitepackages(), sep='\\n')"], check=True,
                            text=True, stdout=subprocess.PIPE).stdout.split()
    assert "/" + str(folder.relative_to(tmp_path / "root")) in looked
    assert {path.name for path in folder.iterdir()} == {"forebay.py", "_forebay.abi3.so"}
