# SPDX-License-Identifier: GPL-2.0-only
"""`make install`, into a folder: the command, the library, the manuals, the units, and each module as DKMS builds it from what was
installed; and `make uninstall`, which leaves files of others."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"forebay", "dm-forebay-writelog", "dm-forebay-transit", "forebay-emu", "forebay-ranges"}
FILES = ("sbin/forebay", "share/man/man8/forebay.8", "share/man/man8/forebay-writelog.8", "share/man/man8/forebay-unpin.8",
         "share/man/man5/forebay.5", "share/man/man3/forebay_pin.3",
         "share/bash-completion/completions/forebay", "lib/libforebay.so", "lib/libforebay-log.so",
         "lib/forebay/libforebay-log-preload.so", "lib/pkgconfig/forebay-log.pc", "share/man/man8/forebay-log-preload.8", "lib/pkgconfig/forebay.pc", "include/forebay.h",
         "lib/systemd/system/forebay-writelog@.service", "lib/systemd/system/forebay-transit@.service",
         "lib/systemd/system-generators/forebay-generator")
# Not ours
FOREIGN = ("usr/sbin/foreign", "usr/lib/foreign.so", "usr/include/linux/foreign.h", "usr/share/man/man8/foreign.8",
           "usr/lib/systemd/system/foreign@.service", "usr/src/foreign-1/Kbuild", "etc/forebay/writelog/fast")


def make(target, folder, *settings):
    done = subprocess.run(["make", "-C", ROOT, target, f"DESTDIR={folder}", "PREFIX=/usr", *settings], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}


def test_install(tmp_path):
    """Installed twice: DKMS then has the version already, maybe of other sources. Uninstalled twice: then there is nothing to remove."""
    kernels = [path.parent.name for path in Path("/lib/modules").glob("6.12.*/build")]
    for kernel in kernels:
        (tmp_path / "modules" / kernel).mkdir(parents=True)
    (tmp_path / "tree").mkdir()
    for name in FOREIGN:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("foreign", encoding="utf-8")
    dkms = f"DKMS=dkms --dkmstree {tmp_path}/tree --sourcetree {tmp_path}/usr/src --installtree {tmp_path}/modules --no-depmod"
    for _ in range(2):
        make("install", tmp_path, dkms)
    for name in (*FILES, "../sbin/mount.forebay", "share/man/man8/mount.forebay.8", "lib/udev/rules.d/64-forebay.rules"):
        assert os.path.exists(tmp_path / "usr" / name), name
    for kernel in kernels:
        built = list((tmp_path / "modules" / kernel).rglob("*.ko*"))
        assert {path.name.split(".")[0] for path in built} == MODULES
        # By which `scripts/setup --left` tells it from the one that is loaded
        for path in built:
            assert subprocess.run(["modinfo", "-F", "srcversion", path], stdout=subprocess.PIPE, check=True).stdout.strip(), path
    help_text = subprocess.run([tmp_path / "usr/sbin/forebay", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "format" in help_text
    for _ in range(2):
        make("uninstall", tmp_path, dkms)
        assert files(tmp_path) == set(FOREIGN)


def test_dkms_is_left_alone(tmp_path):
    """With DESTDIR: DKMS would build for this machine, and remove from it, so it is not called unless named (DKMS=)."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "dkms").write_text(f"#!/bin/sh\necho $* >>{tmp_path}/called\n", encoding="utf-8")
    (programs / "dkms").chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    for target in "dkms", "uninstall":
        subprocess.run(["make", "-s", "-C", ROOT / "packaging", target, f"DESTDIR={tmp_path}/root", "PREFIX=/usr"], check=True,
                       env={**os.environ, "PATH": path})
        assert (target == "dkms") == (tmp_path / "root/usr/src").is_dir() or not files(tmp_path / "root")
    assert not (tmp_path / "called").exists()
    subprocess.run(["make", "-s", "-C", ROOT / "packaging", "uninstall", f"DESTDIR={tmp_path}/root", "DKMS=dkms"], check=True,
                   env={**os.environ, "PATH": path})
    assert (tmp_path / "called").exists()


@pytest.mark.parametrize("folder", ["tools", "lib", "packaging"])
def test_folders_that_make_takes_for_others(tmp_path, folder):
    """With a space, DESTDIR would be two names: the first of them, a folder of others, must stay."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/foreign").touch()
    for destination, word in (f"{tmp_path}/a b", "spaces"), ("stage", "absolute"):
        for target in "uninstall", "install":
            done = subprocess.run(["make", "-C", ROOT / folder, target, f"DESTDIR={destination}"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            assert done.returncode and word in done.stdout
    assert files(tmp_path) == {"a/foreign"}


def test_uninstall_disables_the_units(tmp_path):
    """What `systemctl enable` has made stays for units of others, and for those of a package."""
    wants = tmp_path / "etc/systemd/system/local-fs.target.wants"
    wants.mkdir(parents=True)
    for name, folder in ("forebay-writelog@fast", "/usr/lib"), ("forebay-transit@quick", "/lib"), ("foreign@fast", "/usr/lib"), \
            ("forebay-writelog@other", "/usr/local/lib"):
        (wants / f"{name}.service").symlink_to(f"{folder}/systemd/system/{name.split('@')[0]}@.service")
    subprocess.run(["make", "-s", "-C", ROOT / "packaging", "uninstall", f"DESTDIR={tmp_path}", "PREFIX=/usr"], check=True)
    assert {path.name for path in wants.iterdir()} == {"foreign@fast.service", "forebay-writelog@other.service"}


def test_uninstall_deletes_the_metrics(tmp_path):
    """node_exporter would go on to report the last numbers."""
    folder = tmp_path / "var/lib/prometheus/node-exporter"
    folder.mkdir(parents=True)
    for name in "forebay.prom", "foreign.prom":
        (folder / name).touch()
    subprocess.run(["make", "-s", "-C", ROOT / "packaging", "uninstall", f"DESTDIR={tmp_path}", "PREFIX=/usr"], check=True)
    assert [path.name for path in folder.iterdir()] == ["foreign.prom"]


def test_uninstall_takes_the_python_module_too(tmp_path):
    subprocess.run(["make", "-s", "-C", ROOT / "lib", "O=../build/lib", "install-python", f"DESTDIR={tmp_path}", "PREFIX=/usr"], check=True)
    assert {os.path.basename(name) for name in files(tmp_path)} == {"forebay.py", "_forebay.abi3.so"}
    make("uninstall", tmp_path, "DKMS=true")
    assert files(tmp_path) == set()


def test_one_kernel_that_fails(tmp_path):
    """The others get the modules, and make fails. A kernel whose headers are gone has only a link left."""
    for kernel in "6.12.1-a", "6.12.2-b", "6.12.3-c":
        (tmp_path / "kernels" / kernel / "build").mkdir(parents=True)
        (tmp_path / "kernels" / kernel / "build/Makefile").touch()
    (tmp_path / "kernels/6.12.4-d").mkdir()
    (tmp_path / "kernels/6.12.4-d/build").mkdir()
    dkms = tmp_path / "fake-dkms"
    dkms.write_text(f"#!/bin/sh\necho $* >>{tmp_path}/called\ncase $* in *-b) exit 1 ;; esac\n", encoding="utf-8")
    dkms.chmod(0o755)
    done = subprocess.run(["make", "-s", "-C", ROOT / "packaging", "dkms", f"DESTDIR={tmp_path}/root", f"DKMS={dkms}",
                           f"LIB_MODULES={tmp_path}/kernels"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode != 0 and "the modules are not installed for 6.12.2-b;" in done.stdout
    called = (tmp_path / "called").read_text(encoding="utf-8")
    assert [line.split()[-1] for line in called.splitlines() if line.startswith("install")] == ["6.12.1-a", "6.12.2-b", "6.12.3-c"]


def test_the_cache_of_libraries_is_left_alone(tmp_path):
    """With DESTDIR: that of this machine has nothing to do with it."""
    (tmp_path / "ldconfig").write_text(f"#!/bin/sh\ntouch {tmp_path}/called\n", encoding="utf-8")
    (tmp_path / "ldconfig").chmod(0o755)
    make("uninstall", tmp_path / "root", f"PATH={tmp_path}:{os.environ['PATH']}")
    assert not (tmp_path / "called").exists()
