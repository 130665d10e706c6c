# SPDX-License-Identifier: GPL-2.0-only
"""The streams between guest and host: virtio-serial ports, each a Unix socket on which QEMU calls us.

`out` and `err` are the command's, byte for byte. `control` carries lines: "ready", "exit STATUS", "done". `leaks` has
what kmemleak found, on a kernel that has it.
"""

import os
import selectors
import socket
import time

NAMES = ("out", "err", "control", "leaks")


class Ports:
    def __init__(self, folder):
        self.paths = {name: folder / name for name in NAMES}
        self._listeners = {}

    def open(self):
        for name, path in self.paths.items():
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(path))
            listener.listen(1)
            self._listeners[name] = listener

    def close(self):
        for listener in self._listeners.values():
            listener.close()

    def carry(self, process, deadline, silence, receive, late):
        """Hands what comes to receive(name, bytes), as 'qemu' what QEMU itself has to say on standard error.
        Returns when QEMU is gone and all is handed over. At the deadline, or when nothing has come for `silence` seconds,
        calls late(), once, and goes on. Either may be None."""
        heard = time.monotonic()
        with selectors.DefaultSelector() as selector:
            for name, listener in self._listeners.items():
                selector.register(listener, selectors.EVENT_READ, name)
            selector.register(process.stderr, selectors.EVENT_READ, "qemu")
            while selector.get_map():
                ends = [end for end in (deadline, silence and heard + silence) if end is not None]
                ready = selector.select(max(0, min(ends) - time.monotonic()) if ends else None)
                if not ready:
                    late()
                    deadline = silence = None
                heard = time.monotonic()
                for key, _ in ready:
                    if key.fileobj is self._listeners.get(key.data):
                        selector.unregister(key.fileobj)
                        selector.register(key.fileobj.accept()[0], selectors.EVENT_READ, key.data)
                        continue
                    data = os.read(key.fd, 1 << 16)
                    if data:
                        receive(key.data, data)
                        continue
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                    if key.data == "qemu":      # QEMU is gone: it opens no more ports
                        for listener in self._listeners.values():
                            if listener in selector.get_map():
                                selector.unregister(listener)
        process.wait()
