# SPDX-License-Identifier: GPL-2.0-only
"""The command in containers: root without its rights, without /sys, without the nodes in /dev."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import FAILED, build_library
from test_status import MOUNT_LINE, kernel     # noqa: F401: a fixture

assert callable(kernel)
SYSFS = ("cannot see the devices of the kernel: sysfs is not mounted at /sys\n"
         "    Run: mount --types=sysfs none /sys (in a container: give it the /sys of the machine)\n")
USER, NAMESPACE, CAPABILITY, RULES = ("This needs root.", "not of a user namespace", "the capability CAP_SYS_ADMIN", "Even root may not do this")
ROOTS = {USER: ["setpriv", "--reuid=65534", "--clear-groups"], NAMESPACE: ["unshare", "--user", "--map-root-user"],
         CAPABILITY: ["setpriv", "--bounding-set=-sys_admin"], RULES: []}


def can(*words):
    return subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0


def as_one_of(advice):
    if os.geteuid() and advice != NAMESPACE or not can(*ROOTS[advice]) or advice == RULES and not can(*ROOTS[CAPABILITY]):
        pytest.skip(f"this user can't try it: {advice}")
    return ROOTS[advice]


def run(*words, **environment):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=60,
                          env={**os.environ, "LC_ALL": "C.UTF-8", **environment})


@pytest.fixture(scope="session", name="refusing")
def refusing_fixture():
    """An environment in which no file of this name can be opened: the kernel refuses."""
    library = build_library("refuse_open")
    return lambda name: {"LD_PRELOAD": str(library), "REFUSE_OPEN": name}


@pytest.mark.parametrize("advice", ROOTS)
def test_who_lacks_which_right(command, blank, refusing, advice):
    """Root is never told to become root."""
    before = as_one_of(advice)
    image = blank()
    for path in image, *image.parents[:3]:
        path.chmod(0o777)
    for words, path in (["check", image], image), (["emu", "remove", "0"], "/dev/forebay-emu-control"):
        done = run(*before, command, *words, **refusing(str(path)))
        assert done.returncode == FAILED and f"cannot open {path}: Operation not permitted" in done.stderr
        said = done.stderr.splitlines()[1]
        assert advice in said or advice == USER and said == "    This needs root, or the rights to the device."


@pytest.mark.parametrize("advice", [CAPABILITY, NAMESPACE])
def test_a_mount_without_the_rights(command, tmp_path, advice):
    done = run(*as_one_of(advice), command.parent / "mount.forebay", tmp_path, tmp_path, "-o", "cache=/dev/null")
    assert done.returncode == 32 and advice in done.stderr or "no file system forebay" in done.stderr


def test_device_mapper_cannot_be_asked(mapper, command):
    """A name that can't be looked for is not one that doesn't exist."""
    shutil.rmtree(mapper.folder)
    for words in ["writelog", "flush", "fast"], ["transit", "set", "quick", "workers=1"], ["writelog", "latency", "fast"]:
        done = run(*as_one_of(CAPABILITY), command, *words, **mapper.environment)
        assert done.returncode == FAILED and CAPABILITY in done.stderr
        assert "device-mapper: cannot list its devices" in done.stderr and "is not a device" not in done.stderr


@pytest.mark.parametrize("words", ["status", "status --json", "metrics", "top --count 1", "emu list", "emu list --json", "doctor",
                                   "doctor --json"])
def test_without_sysfs(forebay, kernel, tmp_path, words):   # noqa: F811
    """"There are none" would be a guess."""
    environment = kernel(MOUNT_LINE)
    assert forebay(*words.split(), **environment).status != FAILED
    (tmp_path / "root/sys/devices").rmdir()
    result = forebay(*words.split(), **environment)
    verb = words.split(" -")[0]
    assert (result.status, result.out, result.err) == (FAILED, "", f"forebay {verb}: {SYSFS}")


def test_a_mount_without_sysfs(forebay, kernel, tmp_path):   # noqa: F811
    """Its state isn't known, and neither is whether a device is mounted."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    environment = kernel(f"40 1 0:50 / {folder} rw - forebay /srv/ssd rw,cache=/dev/pmem9")
    (tmp_path / "root/sys/devices").rmdir()
    result = forebay("status", "--json", folder, **environment)
    assert (result.status, result.out, result.err) == (FAILED, "", f"forebay status: {SYSFS}")


def test_without_proc(forebay, kernel, tmp_path):   # noqa: F811
    environment = kernel()
    (tmp_path / "root/proc/self/mountinfo").unlink()
    for verb in "status", "metrics", "doctor":
        result = forebay(verb, **environment)
        assert result.status == FAILED and result.err == (f"forebay {verb}: cannot read what is mounted (/proc/self/mountinfo)\n"
                                                          "    Is proc mounted? Run: mount --types=proc none /proc\n")


def test_tracing_without_sysfs(command):
    """Root is not told to become root."""
    as_one_of(CAPABILITY)
    done = run("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys && exec "$@"', "sh", command, "top", "--callers", "--count", "1")
    assert done.returncode == FAILED and "there is no tracefs in /sys/kernel/tracing" in done.stderr


@pytest.mark.skipif(Path("/dev/forebay-emu-control").exists(), reason="this /dev is the machine's")
def test_a_dev_without_the_control_device(forebay, kernel, tmp_path):   # noqa: F811
    environment = kernel()
    (tmp_path / "root/sys/module/forebay_emu").mkdir(parents=True)
    result = forebay("emu", "create", "--size", "1M", **environment)
    assert result.status == FAILED and "though the module forebay-emu is loaded" in result.err and "modprobe" not in result.err
