# SPDX-License-Identifier: GPL-2.0-only
"""The guest's SSD: ssd.c, running beside QEMU."""

import json
import subprocess
import time

SOCKET_WAIT = 60    # seconds
END_WAIT = 300      # seconds: the SSD takes out of the image what the cut took, on a disk that may be busy


class Drive:
    """Within `with`, QEMU can attach arguments(); lost() waits until what the cut took is gone from the image."""

    def __init__(self, program, image, size, seed, report, socket):
        self.report, self.socket = report, socket
        self._argv = ["setpriv", "--pdeathsig", "KILL", "--", program, socket, image, str(size), str(seed), report]

    def __enter__(self):
        self._start()
        return self

    def again(self):
        """Starts the SSD for another QEMU: the SSD ended with the QEMU before."""
        self._process.wait(timeout=END_WAIT)
        self._start()

    def _start(self):
        self.socket.unlink(missing_ok=True)
        self._process = subprocess.Popen(self._argv)
        deadline = time.monotonic() + SOCKET_WAIT
        while not self.socket.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the SSD does not start")
            time.sleep(0.01)

    def __exit__(self, *exception):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self.socket.unlink(missing_ok=True)

    def arguments(self):
        # Not NVMe: QEMU's NVMe device drops the FUA flag, so the SSD couldn't keep such writes.
        return ["-drive", f"if=none,id=ssd,format=raw,cache=writeback,file=nbd+unix:///?socket={self.socket}",
                "-device", "virtio-blk-pci,drive=ssd"]

    def lost(self):
        if self._process.wait(timeout=END_WAIT):
            raise RuntimeError("the SSD failed")
        return json.loads(self.report.read_text())
