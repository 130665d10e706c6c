# SPDX-License-Identifier: GPL-2.0-only
"""The host's folders in the guest: by virtiofs where its daemon runs here, else by 9p, which needs nothing but QEMU.

Measured under emulation, through the guest's overlay, against 9p with its best cache mode: virtiofs lists folders 3.5
times as fast and reads files 1.6 times as fast. It needs no modules at boot.
FOREBAY_VM_SHARE=9p in the environment chooses 9p.
"""

import os
import subprocess
import time

from .settings import CHECKOUT

DAEMONS = ("/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd")
SECONDS_TO_LISTEN = 3

# tag: (folder, may the guest write, what virtiofs and 9p may cache: everything for the host's root, which stays as it
# is for the minute a guest lives; for the checkout, which host and guest both write, only what is asked for anew)
SHARES = {
    "host": ("/", False, "always"),
    "checkout": (CHECKOUT, True, "auto"),
}


# virtiofsd cannot share read-only, so it sees a read-only root; only the folder for its socket stays writable, and /run,
# where it wants to leave its process id: one of its own, since the host's may be part of the root.
READ_ONLY = ["unshare", "--mount", "--propagation", "private", "sh", "-ec",
             'mount --bind "$0" "$0"; mount -t tmpfs run /run; mount -o remount,bind,ro /; exec "$@"']


class Shares:
    """`start` chooses between the two; the thread that calls it must outlive QEMU."""

    def __init__(self, sockets):
        self._sockets = sockets
        self._daemons = []
        self.kind = "9p"

    def start(self):
        program = next((path for path in DAEMONS if os.access(path, os.X_OK)), None)
        if program and os.geteuid() == 0 and os.environ.get("FOREBAY_VM_SHARE") != "9p":
            self._daemons = [self._daemon(program, tag) for tag in SHARES]
            if all(self._listens(daemon, tag) for daemon, tag in zip(self._daemons, SHARES)):
                self.kind = "virtiofs"
            else:
                self.stop()

    def stop(self):
        for daemon in self._daemons:
            daemon.kill()
            daemon.wait()
        self._daemons = []

    def qemu_arguments(self, memory_bytes):
        if self.kind == "9p":
            return [argument for tag in SHARES for argument in _ninep(tag)]
        argv = ["-object", f"memory-backend-memfd,id=ram,size={memory_bytes},share=on", "-machine", "memory-backend=ram"]
        for tag in SHARES:
            argv += ["-chardev", f"socket,id=fs-{tag},path={quote(self._socket(tag))}",
                     "-device", f"vhost-user-fs-pci,chardev=fs-{tag},tag={tag},queue-size=1024"]
        return argv

    def _socket(self, tag):
        return self._sockets / f"fs-{tag}"

    def _daemon(self, program, tag):
        folder, writable, cache = SHARES[tag]
        limits = [] if writable else [*READ_ONLY, str(self._sockets)]
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *limits, program, f"--socket-path={self._socket(tag)}", "-f",
             "-o", f"source={folder}", "-o", f"cache={cache}", "-o", "sandbox=chroot"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _listens(self, daemon, tag):
        until = time.monotonic() + SECONDS_TO_LISTEN
        while time.monotonic() < until and daemon.poll() is None:
            if self._socket(tag).exists():
                return True
            time.sleep(0.01)
        return False


def mount_options(kind, tag):
    """What the guest's init passes to mount -o."""
    _, writable, _ = SHARES[tag]
    mode = "rw" if writable else "ro"
    if kind == "virtiofs":
        return mode
    cache = "mmap" if writable else "loose"
    return f"{mode},trans=virtio,version=9p2000.L,msize=512000,cache={cache}"


def _ninep(tag):
    folder, writable, _ = SHARES[tag]
    model = "passthrough" if os.geteuid() == 0 else "none"
    readonly = "" if writable else ",readonly=on"
    return ["-fsdev", f"local,id={tag},path={quote(folder)},security_model={model},multidevs=remap{readonly}",
            "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def quote(path):
    """A comma ends a value on QEMU's command line, two stand for one."""
    return str(path).replace(",", ",,")
