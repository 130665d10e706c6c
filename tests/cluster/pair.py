# SPDX-License-Identifier: GPL-2.0-only
"""Two nodes, a primary and its standby, through failovers. What runs on them is an engine's (postgres.py, redis.py, drbd.py,
gluster.py)."""

import time

from vm.cluster import Cluster
from vm.settings import CHECKOUT, MIB, Settings

from .patience import LIMIT, wait_until, works
from .writers import Writers

STORAGE = CHECKOUT / "tests/cluster/nodes/storage"
ISOLATED = 15                   # seconds between the cut of the network and that of the power; DRBD takes 7 to notice
WORK = 20                       # acknowledged writes of each engine that show that a node goes on
# I/O over the network waits for a node's boot, which the guest's kernel isn't to take for a hang.
ARGUMENTS = "sysctl.kernel.hung_task_timeout_secs=600"


class Storage:
    """Each node's own file system, on one of the systems of nodes/data.sh."""

    nvme = 1024 << 20

    def __init__(self, system):
        self._system = system

    def prepare(self, node, state):
        node.run(f"{STORAGE} {state} {self._system}")


class Pair:
    """Off, until start()."""

    def __init__(self, engines, storage, folder):
        self._engines, self._storage = engines, storage
        settings = Settings(mem=640 * MIB, smp=1, pmem=256 * MIB, nvme=storage.nvme, append=ARGUMENTS)
        self._cluster = Cluster(2, settings, folder, forward=tuple(engine.port for engine in engines))
        self._primary, self._standby = self._cluster.nodes
        self._serves = False                    # the primary
        self.writers = {engine.name: Writers(lambda engine=engine: self._connect(engine)) for engine in engines}

    def __enter__(self):
        self._cluster.__enter__()
        return self

    def __exit__(self, *exception):
        self._cluster.__exit__(*exception)

    def start(self):
        """Boots both, with an empty database on each, and starts the writers."""
        self._cluster.boot()
        for node in self._cluster.nodes:
            self._storage.prepare(node, "new")
        for engine in self._engines:
            engine.begin(self._primary, self._standby)
        self.wait_for_standby()
        self._serves = True
        for writers in self.writers.values():
            writers.start()
        self._wait_for_work()

    def stop(self):
        """Ends the writers and cuts all power; what each engine's primary had, and its standby: {name: [Found, ...]}."""
        for writers in self.writers.values():
            writers.stop()
        has = {engine.name: self._found(engine) for engine in self._engines}
        for node in self._cluster.nodes:
            if node.is_on():
                node.cut()
        return has

    def wait_for_standby(self):
        """Until it has all that was acknowledged, and will have what will be."""
        for engine in self._engines:
            self._until(lambda: works(lambda: engine.follows(self._standby, self._primary)),
                        f"{engine.name}'s standby on {self._standby.name}")

    # The faults. After each the standby is the primary, and takes writes alone; rejoin() brings the other one back.

    def cut_primary(self):
        """The primary's power."""
        self._primary.cut()
        self._promote()

    def isolate_primary(self):
        """The network between the two, and some seconds later the primary's power."""
        self._cluster.isolate(self._primary.number, [self._standby.number])
        time.sleep(ISOLATED)
        self._primary.cut()
        self._cluster.rejoin(self._primary.number)
        self._promote()

    def cut_both(self):
        """The power of both; the standby comes back, and the primary never."""
        for node in self._cluster.nodes:
            node.cut()
        self._standby.boot().answers()
        self._storage.prepare(self._standby, "again")
        for engine in self._engines:
            engine.resume(self._standby)
        self._promote()

    def rejoin(self, replaced):
        """The former primary's node becomes the standby, with its devices or (if replaced) with empty ones."""
        self._standby.boot().answers()
        self._storage.prepare(self._standby, "replaced" if replaced else "again")
        for engine in self._engines:
            engine.rejoin(self._standby, self._primary, replaced)
        self.wait_for_standby()
        self._wait_for_work()

    def _promote(self):
        self._serves = False
        self._primary, self._standby = self._standby, self._primary
        for engine in self._engines:
            engine.promote(self._primary)
        self._serves = True
        self._wait_for_work()

    def _connect(self, engine):
        if not self._serves:
            raise OSError("no node is the primary")
        return engine.connect(self._primary)

    def _wait_for_work(self):
        for name, writers in self.writers.items():
            goal = writers.ledger.acknowledged() + WORK
            self._until(lambda: writers.ledger.acknowledged() >= goal, f"{name} to go on")

    def _found(self, engine):
        primary = engine.connect(self._primary).found()
        if not self._standby.is_on() or not engine.has_copy:
            return [primary]
        # The standby applies at its own pace what it has already stored.
        until = time.monotonic() + LIMIT
        while (copy := engine.connect(self._standby).found()) != primary and time.monotonic() < until:
            time.sleep(1)
        return [primary, copy]

    def _until(self, condition, what):
        wait_until(condition, what, self._cluster.nodes, "/run/*.log /run/postgresql/log")
