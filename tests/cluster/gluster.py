# SPDX-License-Identifier: GPL-2.0-only
"""Redis without a replica, on a GlusterFS volume: what has two copies here is the file, on the brick of each node."""

from vm.settings import CHECKOUT

from . import redis

SCRIPT = CHECKOUT / "tests/cluster/nodes/gluster"
DATABASE = CHECKOUT / "tests/cluster/nodes/redis"
FOLDER = "/srv/volume/redis"


class Engine:
    name, port, has_copy = "gluster", redis.Engine.port, False

    def __init__(self, synchronous):
        self._copies = 2 if synchronous else 1
        # Redis ends when a write fails: a busy node isn't to be taken for a lost one. Without waiting for it nothing fails, and it has
        # to be noticed within pair.ISOLATED.
        self._ping = 30 if synchronous else 5

    def connect(self, node):
        return redis.Connection(node.ports[self.port])

    def begin(self, primary, standby):
        for node in (primary, standby):
            node.run(f"{SCRIPT} start")
        primary.run(f"{SCRIPT} first {standby.name} {self._copies} {self._ping}")
        primary.run(f"{DATABASE} primary {FOLDER}")

    def resume(self, node):
        node.run(f"{SCRIPT} start alone")

    def promote(self, node):
        node.run(f"{SCRIPT} promote")
        node.run(f"{DATABASE} primary {FOLDER}")

    def rejoin(self, node, primary, replaced):
        """Only a node whose devices are lost needs more than its glusterd: it heals what has changed by itself."""
        if replaced:
            primary.run(f"{SCRIPT} forget {node.name}")
        node.run(f"{SCRIPT} start")
        if replaced:
            primary.run(f"{SCRIPT} join {node.name}")

    def follows(self, _standby, primary):
        return primary.status(f"{SCRIPT} whole {self._copies}")[0] == 0
