# SPDX-License-Identifier: GPL-2.0-only
"""One run of the test machine.

    machine = Machine(Settings(keep=folder), ["sh", "-c", "..."])
    with machine:
        for line in machine.lines():            # the command's standard output as it comes
            if far_enough(line):
                machine.cut()                   # the power is gone: QEMU is killed, nothing is flushed
    result = machine.wait()

A thread of its own starts QEMU, carries its streams and outlives it. The processes it starts are killed by the kernel
when it is gone, so no machine outlives the Python program that asked for it.
"""

import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import console, kernel as kernels, qemu, stage
from .ports import Ports
from .settings import BUILD, Settings, SetupError
from .shares import Shares

TIMED_OUT, REPORTED, DIED = 124, 99, 98
LOGS_KEPT = 30
BOOTS = 3


@dataclass
class Result:
    status: int                         # the command's; or TIMED_OUT, REPORTED, DIED
    reports: list = field(default_factory=list)     # lines: excerpts of the kernel's log, leaks
    console: Path | None = None
    was_cut: bool = False
    boot_seconds: float | None = None   # from start to the command
    seconds: float = 0.0


class Machine:
    def __init__(self, settings=None, command=("true",), stdout=None, stderr=None, again=None):
        """`stdout` and `stderr` are called with bytes as they come, in the machine's thread. Without `stdout`, lines()
        has them; without `stderr`, they go to this process's. `again` is called before a boot is tried once more: what
        QEMU was connected to may have to be started anew."""
        self.settings = settings or Settings()
        self.command = list(command)
        self.console = None
        self._lines = queue.Queue()
        self._partial = {"out": b"", "control": b""}
        self._stdout = stdout or self._queue_lines
        self._stderr = stderr or _to_stderr
        self._again = again
        self._leaks = b""
        self._status = self._boot_seconds = self._result = self._failure = self._process = None
        self._cut = self._timed_out = False
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._live, name="machine", daemon=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *exception):
        if self._thread.is_alive():
            self.cut()
        if exception[0] is None:
            self.wait()
        else:
            self._thread.join()

    def start(self):
        """Returns when QEMU runs. SetupError if it cannot."""
        self._begin = time.monotonic()
        self._thread.start()
        self._started.wait()
        if self._failure:
            self.wait()
        return self

    def lines(self):
        """Lines of the command's standard output as they come, without their ends, until the machine is gone."""
        while (line := self._lines.get()) is not None:
            yield line

    def cut(self):
        """The power cut: QEMU is gone at once. Nothing that the guest had not yet given to a device remains."""
        self._cut = True
        self._kill()

    def running(self):
        """False once the machine is gone for good: a boot that crashed is tried again."""
        return self._thread.is_alive()

    def wait(self):
        """The Result, once the machine is gone."""
        self._thread.join()
        if self._failure:
            raise self._failure
        return self._result

    # The rest runs in the machine's own thread.

    def _live(self):
        images_in = None
        try:
            _check_programs()
            kernel = kernels.find(self.settings.kernel)
            images_in = self._places()
            images = qemu.make_images(self.settings, images_in)
            for attempt in range(BOOTS):
                self._run(kernel, images)
                if attempt + 1 == BOOTS or not self._crashed_in_boot():
                    break
                print("vm: the machine crashed before it came to the command; once more", file=sys.stderr, flush=True)
                if self._again:
                    self._again()
            self._result = self._conclude()
        except BaseException as failure:        # raised again in wait()
            self._failure = failure
        finally:
            if images_in and not self.settings.keep:
                shutil.rmtree(images_in, ignore_errors=True)
            self._started.set()
            if self._partial["out"]:
                self._lines.put(self._partial["out"].decode(errors="replace"))
            self._lines.put(None)

    def _run(self, kernel, images):
        """QEMU, until it is gone."""
        temporary = Path(tempfile.mkdtemp(prefix="forebay-vm-"))
        ports, shares = Ports(temporary), Shares(temporary)
        try:
            ports.open()
            shares.start()
            initrd = temporary / "initrd"
            initrd.write_bytes(stage.initramfs(self.settings, kernel, self.command, shares.kind))
            argv = qemu.arguments(self.settings, kernel, initrd, images, shares, ports, self.console)
            self._process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *argv], stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self._started.set()
            if self._cut:
                self._kill()
            timeout = self.settings.timeout
            ports.carry(self._process, timeout and self._begin + timeout, self.settings.silence, self._receive, self._late)
        finally:
            self._kill()
            ports.close()
            shares.stop()
            shutil.rmtree(temporary, ignore_errors=True)

    def _crashed_in_boot(self):
        """True if the guest's kernel or QEMU itself crashed before any module of ours was loaded.

        On a busy host QEMU's translator lets a guest run into a breakpoint of its kernel's self-patching, and once QEMU
        ended with a segmentation fault while the guest looked for its devices.
        """
        if self._boot_seconds is not None or self._cut or self._timed_out:
            return False
        return self._process.poll() in (-signal.SIGSEGV, -signal.SIGABRT) or bool(console.reports(self._log()))

    def _places(self):
        """The folder for the devices' images; also decides where the console's log goes."""
        BUILD.mkdir(parents=True, exist_ok=True)
        if self.settings.keep:
            self.settings.keep.mkdir(parents=True, exist_ok=True)
            self.console = self.settings.keep / "console.log"
            return self.settings.keep
        _tidy()
        images_in = Path(tempfile.mkdtemp(prefix=f"devices-{os.getpid()}-", dir=BUILD))
        self.console = BUILD / f"console-{images_in.name.removeprefix('devices-')}.log"
        return images_in

    def _receive(self, name, data):
        if name == "out":
            self._stdout(data)
        elif name == "leaks":
            self._leaks += data
        elif name == "control":
            for line in self._whole_lines("control", data):
                self._heard(line.decode())
        else:
            self._stderr(data)

    def _heard(self, line):
        word, _, rest = line.partition(" ")
        if word == "ready":
            self._boot_seconds = time.monotonic() - self._begin
        elif word == "exit":
            self._status = int(rest)
        elif word == "done":            # all is synced: powering off would only take time
            self._kill()

    def _late(self):
        self._timed_out = True
        self._kill()

    def _kill(self):
        if self._process and self._process.poll() is None:
            self._process.kill()

    def _log(self):
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def _conclude(self):
        reports = console.reports(self._log()) + console.our_leaks(self._leaks.decode(errors="replace"))
        if reports and not self.settings.expect_report:
            status = REPORTED
        elif self._timed_out:
            status = TIMED_OUT
        elif self._status is None:
            status = DIED
        else:
            status = self._status
        return Result(status, reports, self.console, self._cut, self._boot_seconds, time.monotonic() - self._begin)

    def _queue_lines(self, data):
        for line in self._whole_lines("out", data):
            self._lines.put(line.decode(errors="replace"))

    def _whole_lines(self, name, data):
        *whole, self._partial[name] = (self._partial[name] + data).split(b"\n")
        return whole


def _to_stderr(data):
    sys.stderr.buffer.write(data)
    sys.stderr.buffer.flush()


def _check_programs():
    for program in ("qemu-system-x86_64", "setpriv", "busybox", "depmod", "modinfo"):
        if not shutil.which(program, path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin"):
            raise SetupError(f"{program} is missing: run scripts/setup")


def _tidy():
    """Removes what programs that were killed left behind, and old logs."""
    for folder in BUILD.glob("devices-*-*"):
        if not Path("/proc", folder.name.split("-")[1]).exists():
            shutil.rmtree(folder, ignore_errors=True)
    for log in sorted(BUILD.glob("console-*.log"), key=lambda path: path.stat().st_mtime)[:-LOGS_KEPT]:
        log.unlink(missing_ok=True)
