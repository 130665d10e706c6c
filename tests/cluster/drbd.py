# SPDX-License-Identifier: GPL-2.0-only
"""Redis without a replica, on ext4 on DRBD: what has two copies here is the block device."""

from vm.settings import CHECKOUT

from . import redis
from .patience import wait_until

SCRIPT = CHECKOUT / "tests/cluster/nodes/drbd"
DATABASE = CHECKOUT / "tests/cluster/nodes/redis"


class Storage:
    """DRBD over a write log. Small: a replaced node gets every block."""

    nvme = 64 << 20

    def __init__(self, fenced):
        """`fenced`: without the other node the primary's writes wait, until an operator says that the other one is off."""
        self._fencing = "resource-and-stonith" if fenced else "dont-care"

    def prepare(self, node, state):
        node.run(f"{SCRIPT} up {state} {self._fencing} writelog")


class Engine:
    name, port, has_copy = "drbd", redis.Engine.port, False

    def __init__(self, _synchronous):
        pass

    def connect(self, node):
        return redis.Connection(node.ports[self.port])

    def begin(self, primary, standby):
        wait_until(lambda: state(primary) == "Connected Inconsistent/Inconsistent", "DRBD to connect", [primary, standby])
        primary.run(f"{SCRIPT} first")
        primary.run(f"{DATABASE} primary")

    def resume(self, node):
        """Nothing is to be done until the node is promoted."""

    def promote(self, node):
        node.run(f"{SCRIPT} promote")
        node.run(f"{DATABASE} primary")

    def rejoin(self, node, primary, replaced):
        """DRBD connects and copies by itself."""

    def follows(self, _standby, primary):
        return state(primary) == "Connected UpToDate/UpToDate"


def state(node):
    """Of the connection and of both disks."""
    return node.run(f"{SCRIPT} state")
