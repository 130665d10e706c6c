# SPDX-License-Identifier: GPL-2.0-only
"""One run of the test machine.

    with Machine(Settings(keep=folder), ["sh", "-c", "..."]) as machine:
        for line in machine.lines():            # the command's standard output as it comes
            if ready_to_fail(line):
                machine.cut()                   # the power is gone: QEMU is killed, nothing is flushed
    result = machine.wait()

A thread of its own starts QEMU, carries its streams, and outlives it; QEMU is killed when that thread is gone,
so no machine outlives its Python program.
"""

import os
import pwd
import queue
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import console, kernel as kernels, qemu
from .initramfs import Archive
from .settings import BUILD, CHECKOUT, Settings

HERE = Path(__file__).resolve().parent
BUSYBOX = Path("/bin/busybox")

TIMED_OUT, REPORTED, DIED = 124, 99, 98


@dataclass
class Result:
    status: int                 # the command's; or TIMED_OUT, REPORTED, DIED
    reports: list = field(default_factory=list)     # excerpts of the kernel's log
    console: Path | None = None
    was_cut: bool = False
    boot_seconds: float | None = None   # from start to the command
    seconds: float = 0.0


class Machine:
    def __init__(self, settings=None, command=("true",), stdout=None, stderr=None):
        """`stdout` and `stderr` are called with the bytes as they come. Without `stdout`, lines() has them;
        without `stderr`, they go to this process's."""
        self.settings = settings or Settings()
        self.command = list(command)
        self._lines = queue.Queue()
        self._partial = b""
        self._on_stdout = stdout or self._queue_lines
        self._on_stderr = stderr or _to_stderr
        self._status = None
        self._cut = self._timed_out = False
        self._failure = None
        self._process = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._live, name="machine", daemon=True)
        self._result = None
        self._boot_seconds = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *exception):
        if self._thread.is_alive():
            self.cut()
        self.wait()

    def start(self):
        settings = self.settings
        self._kernel = kernels.find(settings.kernel)
        self._sockets = Path(tempfile.mkdtemp(prefix="forebay-vm-"))
        BUILD.mkdir(parents=True, exist_ok=True)
        if settings.keep:
            self._images_in = Path(settings.keep)
            self._images_in.mkdir(parents=True, exist_ok=True)
            self.console = self._images_in / "console.log"
        else:
            self._images_in = Path(tempfile.mkdtemp(prefix="devices-", dir=BUILD))
            self.console = BUILD / f"console-{os.getpid()}-{self._images_in.name[8:]}.log"
        initrd = self._sockets / "initrd"
        initrd.write_bytes(self._initramfs())
        images = qemu.make_images(settings, self._images_in)
        self._listeners = {name: _listen(self._sockets / name) for name in qemu.PORTS}
        self._argv = qemu.arguments(settings, self._kernel, initrd, images, self._sockets, self.console)
        self._begin = time.monotonic()
        self._thread.start()
        self._started.wait()
        return self

    def lines(self):
        """Lines of the command's standard output as they come, without their ends, until the machine is gone."""
        while (line := self._lines.get()) is not None:
            yield line

    def cut(self):
        """The power cut: QEMU is gone at once. Nothing that the guest had not yet given to a device remains."""
        self._cut = True
        self._kill()

    def wait(self):
        self._thread.join()
        if self._failure:
            raise self._failure
        return self._result

    # Inside.

    def _kill(self):
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)

    def _initramfs(self):
        settings, kernel = self.settings, self._kernel
        archive = Archive()
        for folder in ("proc", "sys", "dev", "bin"):
            archive.folder(folder)
        archive.console()
        archive.file("bin/busybox", BUSYBOX, 0o755)
        archive.file("init", HERE / "init", 0o755)
        boot = kernel.boot_modules()
        for path in boot:
            archive.file(f"modules/{path.name}", path)

        # /lib is a link on a merged system, and a link is what must be followed, not hidden by a folder.
        lib = str(Path("/lib").resolve() / "modules" / kernel.release)
        index, ours = kernels.staged_modules(kernel)
        for path in sorted(index.iterdir()):
            if path.is_symlink():
                archive.link(f"staged{lib}/{path.name}", os.readlink(path))
            else:
                archive.file(f"staged{lib}/{path.name}", path)
        for path in ours:
            archive.file(f"staged{lib}/updates/{path.name}", path)

        nvme = [f"nvme{number}n1" for number in range(settings.nvme_count if settings.nvme else 0)]
        archive.file("job/settings", "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in {
            "CHECKOUT": CHECKOUT, "JOB_CWD": settings.cwd, "BOOT_MODULES": " ".join(path.name for path in boot),
            "PMEM": int(bool(settings.pmem)), "RAW_PMEM": int(settings.raw_pmem), "NVME": " ".join(nvme),
            "KMEMLEAK": int(qemu.is_debug(settings)), "NINEP_MSIZE": 512 << 10, "RUN_FOLDERS": _run_folders(),
        }.items()))
        archive.file("job/guest", HERE / "guest")
        archive.file("job/job", self._job())
        return archive.bytes()

    def _job(self):
        lines = ["# Written by vm/machine.py: what this machine was asked to run.",
                 f"export PATH={shlex.quote(str(CHECKOUT / 'build/tools'))}:$PATH"]
        lines += [f"export {name}={shlex.quote(value)}" for name, value in self.settings.environment.items()]
        if len(self.command) == 1:      # as ssh does it: one word may be a whole script
            lines.append(f"exec /bin/sh -c {shlex.quote(self.command[0])}")
        else:
            lines.append(f"exec {shlex.join(self.command)}")
        return "\n".join(lines) + "\n"

    def _live(self):
        """The thread: from QEMU's start to the result."""
        try:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *self._argv],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self._started.set()
            self._carry()
            self._finish()
        except BaseException as failure:        # handed to whoever waits
            self._failure = failure
            self._kill()
        finally:
            self._started.set()
            self._clean_up()
            if self._partial:
                self._lines.put(self._partial.decode(errors="replace"))
            self._lines.put(None)

    def _carry(self):
        """Carries the streams until QEMU has ended or the time is up."""
        deadline = self._begin + self.settings.timeout if self.settings.timeout else None
        control = b""
        with selectors.DefaultSelector() as selector:
            for name, listener in self._listeners.items():
                selector.register(listener, selectors.EVENT_READ, ("listen", name))
            selector.register(self._process.stderr, selectors.EVENT_READ, ("qemu", None))
            while selector.get_map():
                left = deadline - time.monotonic() if deadline else None
                ready = selector.select(left if left is None else max(0, left))
                if not ready:
                    self._timed_out = True
                    self._kill()
                    deadline = None
                for key, _ in ready:
                    kind, name = key.data
                    if kind == "listen":
                        selector.unregister(key.fileobj)
                        selector.register(key.fileobj.accept()[0], selectors.EVENT_READ, ("port", name))
                        continue
                    data = os.read(key.fd, 1 << 16)
                    if not data:
                        selector.unregister(key.fileobj)
                        key.fileobj.close()
                        if kind == "qemu":      # QEMU is gone; a port it never opened would be waited for
                            for other in [k for k in selector.get_map().values() if k.data[0] == "listen"]:
                                selector.unregister(other.fileobj)
                    elif kind == "qemu":
                        self._on_stderr(data)
                    elif name == "out":
                        self._on_stdout(data)
                    elif name == "err":
                        self._on_stderr(data)
                    else:
                        *whole, control = (control + data).split(b"\n")
                        for line in whole:
                            self._heard(line.decode())
        self._process.wait()

    def _heard(self, line):
        word, _, rest = line.partition(" ")
        if word == "ready":
            self._boot_seconds = time.monotonic() - self._begin
        elif word == "exit":
            self._status = int(rest)
        elif word == "done":            # all is synced: powering off would only take time
            self._kill()

    def _finish(self):
        log = self.console.read_text(errors="replace") if self.console.exists() else ""
        found = console.reports(log)
        if found and not self.settings.expect_report:
            status = REPORTED
        elif self._timed_out:
            status = TIMED_OUT
        elif self._status is None:
            status = DIED
        else:
            status = self._status
        self._result = Result(status, found, self.console, self._cut, self._boot_seconds,
                              time.monotonic() - self._begin)

    def _clean_up(self):
        for listener in self._listeners.values():
            listener.close()
        shutil.rmtree(self._sockets, ignore_errors=True)
        if not self.settings.keep:
            shutil.rmtree(self._images_in, ignore_errors=True)

    def _queue_lines(self, data):
        *whole, self._partial = (self._partial + data).split(b"\n")
        for line in whole:
            self._lines.put(line.decode(errors="replace"))


def _to_stderr(data):
    sys.stderr.buffer.write(data)
    sys.stderr.buffer.flush()


def _listen(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(1)
    return listener


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
