# SPDX-License-Identifier: GPL-2.0-only
"""The private network of a cluster: a switch for Ethernet frames, whose ports are Unix sockets in a folder.

QEMU's `-netdev dgram` sends each frame to a socket of the switch and receives frames on a socket of its own. No frame
leaves the folder. The switch drops the frames between two nodes whose connection is cut.
"""

import os
import selectors
import socket
import threading

from .shares import quote

LONGEST = 1 << 16               # bytes of a frame
PATIENCE = 0.2                  # seconds for a guest to take a frame before it is dropped


def address(number):
    return f"10.77.0.{number}"


def mac(number):
    return bytes((0x52, 0x54, 0, 0x77, 0, number))


def free_port():
    """A TCP port of this machine's loopback that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def forward_arguments(ports):
    """For QEMU: a card over which the host reaches TCP ports of the guest, {the guest's: the host's}. The guest reaches nothing."""
    rules = "".join(f",hostfwd=tcp:127.0.0.1:{host}-10.0.2.15:{guest}" for guest, host in ports.items())
    return ["-netdev", f"user,id=host,restrict=on{rules}", "-device", "virtio-net-pci,netdev=host,romfile="]


class Switch:
    """Nodes have the numbers from 1."""

    def __init__(self, folder, nodes):
        self._folder, self._nodes = folder, range(1, nodes + 1)
        self._cut = frozenset()             # of pairs; replaced as a whole, so the thread needs no lock
        self._sockets = {}
        self._wake, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._carry, name="switch", daemon=True)

    def start(self):
        for number in self._nodes:
            port = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            port.bind(self._port(number))
            port.settimeout(PATIENCE)
            self._sockets[number] = port
        self._thread.start()

    def stop(self):
        os.close(self._stop)
        self._thread.join()
        os.close(self._wake)
        for port in self._sockets.values():
            port.close()

    def cut(self, one, other):
        """Nothing passes between two nodes, in both directions."""
        self._cut |= {frozenset((one, other))}

    def join(self, one, other):
        self._cut -= {frozenset((one, other))}

    def arguments(self, number):
        """For QEMU: the node's network card."""
        readable = ":".join(f"{byte:02x}" for byte in mac(number))
        return ["-netdev", f"dgram,id=net,local.type=unix,local.path={quote(self._guest(number))},"
                           f"remote.type=unix,remote.path={quote(self._port(number))}",
                "-device", f"virtio-net-pci,netdev=net,mac={readable},romfile="]

    def _port(self, number):
        return str(self._folder / f"port{number}")

    def _guest(self, number):
        return str(self._folder / f"card{number}")

    def _carry(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake, selectors.EVENT_READ)
            for number, port in self._sockets.items():
                selector.register(port, selectors.EVENT_READ, number)
            while True:
                for key, _ in selector.select():
                    if key.data is None:
                        return
                    self._forward(key.data, key.fileobj.recv(LONGEST))

    def _forward(self, source, frame):
        for target in self._targets(source, frame[:6]):
            if frozenset((source, target)) in self._cut:
                continue
            try:
                self._sockets[target].sendto(frame, self._guest(target))
            except OSError:         # the node is off, or it doesn't take frames: a network loses them
                pass

    def _targets(self, source, destination):
        """The node with that address, or all others for a broadcast."""
        if destination[0] & 1:
            return [number for number in self._nodes if number != source]
        return [number for number in self._nodes if mac(number) == destination]
