# SPDX-License-Identifier: GPL-2.0-only
"""A machine that boots an image of vm/image, with systemd, again and again with the same disks:

    system = System(debian.build("12", install=True), folder, Settings(pmem=..., nvme_count=2))
    system.boot()
    system.run("systemctl is-active srv-db.mount")      # as root, in the machine
    system.cut()                                        # or reboot(), shut_down()

The root disk is a layer in `folder` over the image, the other devices are as vm/run has them. Nothing waits by the clock: what
is waited for is the machine's answer or its end, and LIMIT only ends a machine that hangs.
"""

import base64
import socket
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from . import accel, console, qemu
from .settings import SetupError
from .shares import quote

LIMIT = 1200            # seconds: longer than any boot or command takes on a busy host


class SystemFailure(Exception):
    """The machine hangs, ended, reported something, or a command in it failed."""


class System:
    """One machine and its disks. Between two boots `kernel` and `settings` may be changed."""

    def __init__(self, image, folder, settings, kernel="6.12"):
        self.image, self.folder, self.kernel = image, folder, kernel
        self.settings = replace(settings, keep=folder)
        self.boots = 0
        self.boot_seconds = None
        self._process = self._agent = self._lines = self._sockets = None
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", image / "root.ext4", folder / "root.qcow2"],
                       check=True)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self._process:
            self.cut()

    @property
    def console(self):
        """The file with what the kernel and systemd said on the console since the last boot."""
        return self.folder / f"console-{self.boots}.log"

    def said(self):
        """Its text."""
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def boot(self):
        """Returns when the machine answers: early, before the file systems are mounted; settle() waits for the rest."""
        self.boots += 1
        begin = time.monotonic()
        self._sockets = tempfile.TemporaryDirectory(prefix="forebay-vm-")
        with socket.socket(socket.AF_UNIX) as listener:
            path = Path(self._sockets.name, "agent")
            listener.bind(str(path))
            listener.listen(1)
            self._process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *self._arguments(path)],
                                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self._agent = self._accept(listener)
        self._lines = self._agent.makefile("rb")
        line = self._answer()
        if not line.startswith("up "):
            raise SystemFailure(f"the machine ended before it answered ({self.console})")
        self.boot_seconds = time.monotonic() - begin
        return self

    def run(self, command, check=True):
        """The output of a command, both streams, without its last newline."""
        status, output = self.status(command)
        if check and status:
            raise SystemFailure(f"{command}: status {status}\n{output}")
        return output

    def status(self, command):
        """The status and output of a command."""
        self._agent.sendall(base64.b64encode(command.encode()) + b"\n")
        word, _, rest = self._answer().partition(" ")
        if word != "done":
            raise SystemFailure(f"the machine ended during: {command} ({self.console})")
        status, _, output = rest.partition(" ")
        return int(status), base64.b64decode(output).decode(errors="replace").rstrip("\n")

    def settle(self):
        """Waits until systemd has nothing left to do; its word for the state: running, degraded, maintenance."""
        return self.run("until state=$(systemctl is-system-running --wait); [ \"$state\" != starting -a \"$state\" != initializing ]; do "
                        "sleep 1; done; until [ -z \"$(systemctl list-jobs --no-legend --plain)\" ]; do sleep 1; done; "
                        "systemctl is-system-running", check=False)

    def cut(self):
        """The power is gone."""
        self._process.kill()
        self._ended()

    def reboot(self):
        """As an administrator does it; returns when the machine answers again."""
        self.shut_down("reboot")
        return self.boot()

    def shut_down(self, how="poweroff"):
        """poweroff or reboot, up to the machine's end."""
        self.run(f"systemctl --no-block {how}")
        try:
            self._process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            raise SystemFailure(f"{how} did not end ({self.console})") from None
        finally:
            self._process.kill()
            self._ended()

    def _accept(self, listener):
        """QEMU calls as soon as it runs, or says why it doesn't."""
        listener.settimeout(1)
        while True:
            try:
                connection = listener.accept()[0]
                connection.settimeout(LIMIT)
                return connection
            except TimeoutError:
                if self._process.poll() is not None:
                    raise SetupError(self._process.stderr.read().decode(errors="replace")) from None

    def _ended(self):
        self._process.wait()
        self._process.stderr.close()
        self._lines.close()
        self._agent.close()
        self._process = None
        self._sockets.cleanup()
        reports = console.reports(self.said())
        if reports:
            raise SystemFailure("\n".join([f"the kernel reported ({self.console}):", *reports]))

    def _answer(self):
        """A line of the agent, or nothing if the machine is gone."""
        try:
            return self._lines.readline().decode()
        except TimeoutError:
            raise SystemFailure(f"no answer in {LIMIT} s ({self.console})") from None
        except ConnectionError:
            return ""

    def _arguments(self, agent):
        settings = self.settings
        images = qemu.make_images(settings, self.folder)
        append = [word for word in qemu.KERNEL_ARGUMENTS if not word.startswith("rdinit=")] + accel.kernel_arguments() + [
            "root=/dev/vda", "ro", "systemd.show_status=1", "sysctl.kernel.hung_task_timeout_secs=300", settings.append]
        return ["qemu-system-x86_64", *accel.arguments(), *qemu.memory_arguments(settings), "-smp", str(settings.smp),
                "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-net", "none",
                "-kernel", str(self.image / f"vmlinuz-{self.kernel}"),
                "-initrd", str(self.image / f"initrd-{self.kernel}"), "-append", " ".join(append),
                "-chardev", f"file,id=console,path={quote(self.console)}", "-serial", "chardev:console",
                "-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,path={quote(agent)}",
                "-device", "virtserialport,chardev=agent,name=forebay-agent",
                "-drive", f"if=none,id=root,format=qcow2,cache=writeback,discard=unmap,file={quote(self.folder / 'root.qcow2')}",
                "-device", "virtio-blk-pci,drive=root,serial=root",
                *qemu.device_arguments(settings, images), *settings.qemu]
