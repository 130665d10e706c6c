# SPDX-License-Identifier: GPL-2.0-only
"""Redis with a replica, or alone: a connection, and how nodes change their roles.

Every error after a command was sent is an OSError or a ValueError: the outcome is unknown then.
"""

from bench import resp
from vm.settings import CHECKOUT

from .ledger import Found

ANSWER = 60             # seconds
SCRIPT = CHECKOUT / "tests/cluster/nodes/redis"
BATCH = 500             # keys that one MGET reads


class Connection:
    def __init__(self, port, copies=lambda: 0):
        """`copies()`: how many replicas must have a write before it counts as acknowledged."""
        self._redis, self._copies = resp.Connection("127.0.0.1", port, ANSWER), copies
        self.call("PING")           # an error while Redis reads its log

    def close(self):
        self._redis.close()

    def call(self, *words):
        try:
            return self._redis.call(*words)
        except resp.ErrorReply as problem:
            raise ValueError(f"Redis: {problem}") from None

    def write(self, writer, number, value):
        for words in (("MULTI",), ("SET", f"row:{writer}:{number}", value), ("SET", f"counter:{writer}", number), ("EXEC",)):
            self.call(*words)
        if copies := self._copies():
            self.call("WAIT", copies, 0)

    def found(self):
        found = Found()
        keys = self.call("KEYS", "row:*") + self.call("KEYS", "counter:*")
        for start in range(0, len(keys), BATCH):
            some = keys[start:start + BATCH]
            for key, value in zip(some, self.call("MGET", *some)):
                kind, *numbers = key.decode().split(":")
                if kind == "row":
                    found.rows[int(numbers[0]), int(numbers[1])] = value.decode()
                else:
                    found.counters[int(numbers[0])] = int(value)
        return found

    def info(self, section):
        return dict(line.partition(":")[::2] for line in self.call("INFO", section).decode().splitlines())


class Engine:
    name, port, has_copy = "redis", 6379, True

    def __init__(self, synchronous):
        self._synchronous = synchronous
        self._copies = {}           # by the number of the node that is the primary

    def connect(self, node):
        return Connection(node.ports[self.port], lambda: self._copies.get(node.number, 0))

    def begin(self, primary, standby):
        self.resume(primary)
        self.rejoin(standby, primary, replaced=True)

    def resume(self, node):
        """Starts it after a boot with what is there. As a primary: the run promotes it, or it stays one."""
        node.run(f"{SCRIPT} primary")

    def promote(self, node):
        """The node takes writes, and acknowledges what it alone has."""
        node.run(f"{SCRIPT} promote")
        self._copies[node.number] = 0

    def rejoin(self, node, primary, replaced):
        """The node becomes a replica; from now on writes wait for it."""
        node.run(f"{SCRIPT} replica {primary.name}")
        self._copies[primary.number] = int(self._synchronous)

    def follows(self, standby, primary):
        """True if the replica has all that was acknowledged, in its log, and will have what will be."""
        replica = Connection(standby.ports[self.port])
        replication, log = replica.info("replication"), replica.info("persistence")
        replica.close()
        # A replica's log lacks what came with the first copy until it is rewritten: WAIT doesn't say so.
        if replication["master_link_status"] != "up" or log["aof_rewrite_in_progress"] != "0" or log["aof_rewrite_scheduled"] != "0":
            return False
        at_primary = Connection(primary.ports[self.port])
        at_primary.call("SET", "mark", "")
        had = at_primary.call("WAIT", 1, 10000)
        at_primary.close()
        return had >= 1
