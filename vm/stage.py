# SPDX-License-Identifier: GPL-2.0-only
"""What one guest finds when it wakes: its initramfs, with the scripts, the modules, the settings and the job."""

import os
import pwd
import shlex
from pathlib import Path

from . import kernel as kernels
from .initramfs import Archive
from .settings import CHECKOUT
from .shares import mount_options

HERE = Path(__file__).resolve().parent
BUSYBOX = Path("/bin/busybox")


def initramfs(settings, kernel, command, share_kind):
    archive = Archive()
    for folder in ("proc", "sys", "dev", "bin"):
        archive.folder(folder)
    archive.console()
    archive.file("bin/busybox", BUSYBOX, 0o755)
    archive.file("init", HERE / "init", 0o755)
    boot = kernel.boot_modules(share_kind, settings.cxl)
    for path in boot:
        archive.file(f"modules/{path.name}", path)
    _stage_modules(archive, kernel)

    archive.file("job/settings", _shell_settings({
        "CHECKOUT": CHECKOUT,
        "JOB_CWD": settings.cwd,
        "BOOT_MODULES": " ".join(path.name for path in boot),
        "SHARE": share_kind,
        "HOST_OPTIONS": mount_options(share_kind, "host"),
        "CHECKOUT_OPTIONS": mount_options(share_kind, "checkout"),
        "PMEM": int(bool(settings.pmem)),
        "CXL": int(settings.cxl),
        "RAW_PMEM": int(settings.raw_pmem),
        "NVME": " ".join(f"nvme{number}n1" for number in range(settings.nvme_devices())),
        "RUN_FOLDERS": _run_folders(),
    }))
    archive.file("job/guest", HERE / "guest")
    archive.file("job/job", _job(command, settings.environment))
    return archive.bytes()


def _stage_modules(archive, kernel):
    """The layer between the host's root and the guest's changes: /lib/modules/<release> with our modules in it."""
    # /lib may be a link to usr/lib: the link must be followed, not hidden by a folder of that name.
    lib = str(Path("/lib").resolve() / "modules" / kernel.release)
    index, ours = kernels.staged_modules(kernel)
    for path in sorted(index.iterdir()):
        if path.is_symlink():
            archive.link(f"staged{lib}/{path.name}", os.readlink(path))
        else:
            archive.file(f"staged{lib}/{path.name}", path)
    for path in ours:
        archive.file(f"staged{lib}/updates/{path.name}", path)


def _shell_settings(settings):
    return "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in settings.items())


def _job(command, environment):
    lines = ["# Written by vm/stage.py: what this machine was asked to run.",
             f"export PATH={shlex.quote(str(CHECKOUT / 'build/tools'))}:$PATH"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    if len(command) == 1:       # as ssh does it: one word may be a whole script
        lines.append(f"exec /bin/sh -c {shlex.quote(command[0])}")
    else:
        lines.append(f"exec {shlex.join(command)}")
    return "\n".join(lines) + "\n"


def _run_folders():
    """Folders in /run that daemons' packages leave to systemd, as name:uid:gid."""
    folders = []
    for folder, user in (("postgresql", "postgres"), ("redis", "redis")):
        try:
            entry = pwd.getpwnam(user)
            folders.append(f"{folder}:{entry.pw_uid}:{entry.pw_gid}")
        except KeyError:
            pass
    return " ".join(folders)
