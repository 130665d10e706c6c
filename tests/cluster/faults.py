# SPDX-License-Identifier: GPL-2.0-only
"""The etcd cluster of a run: its start, the faults, and when it counts as whole again."""

import random
import time

from vm.cluster import Cluster
from vm.settings import CHECKOUT, MIB, Settings

from . import etcd
from .patience import wait_until

NODES = 3
MEMBER = CHECKOUT / "tests/cluster/member"
WORK = 20                       # acknowledged operations after a fault that show that the cluster goes on
ISOLATED = 30                   # seconds: longer than an election takes


class EtcdCluster:
    """Off, until start()."""

    def __init__(self, system, folder, seed, nodes=NODES):
        self.system, self._chance = system, random.Random(seed)
        settings = Settings(mem=640 * MIB, smp=1, pmem=256 * MIB, nvme=1024 * MIB)
        self._cluster = Cluster(nodes, settings, folder, forward=(etcd.PORT,))
        self.ports = [node.ports[etcd.PORT] for node in self._cluster.nodes]

    def __enter__(self):
        self._cluster.__enter__()
        return self

    def __exit__(self, *exception):
        self._cluster.__exit__(*exception)

    def start(self):
        """Boots the nodes, with a member of etcd on each."""
        self._boot("new")

    def stop(self):
        """Cuts all power; NodeFailure if a kernel reported something."""
        for node in self._cluster.nodes:
            node.cut()

    def change(self, system):
        """Ends etcd on all nodes, and starts a new cluster without data on another system."""
        for node in self._cluster.nodes:
            node.run(f"{MEMBER} end {self.system} {len(self.ports)}")
        self.system = system
        for node in self._cluster.nodes:
            self._start(node, "new")
        self._wait_for_members()

    def leader(self):
        """Its number."""
        return self._leader().number

    # The faults. `clients` are at work all the time; each returns when all members answer again, with the node's name.

    def cut_leader(self, clients):
        return self._cut(self._leader(), clients)

    def cut_random(self, clients):
        return self._cut(self._chance.choice(self._cluster.nodes), clients)

    def cut_all(self, _clients):
        self.stop()
        self._boot("again")
        return "all nodes"

    def isolate(self, clients):
        """The leader's network in two of three cases, that of any node otherwise; its clients still reach it."""
        node = self._leader() if self._chance.random() < 2 / 3 else self._chance.choice(self._cluster.nodes)
        self._cluster.isolate(node.number, [other.number for other in self._cluster.nodes if other is not node])
        until = time.monotonic() + ISOLATED
        self._wait_for_work(clients)
        time.sleep(max(0, until - time.monotonic()))
        self._cluster.rejoin(node.number)
        self._wait_for_members()
        return node.name

    def replace(self, clients):
        """Any node's power and both its devices: a new member with empty ones takes its place."""
        return self._cut(self._chance.choice(self._cluster.nodes), clients, "replaced")

    def connect(self, number):
        return etcd.Connection(self.ports[number - 1])

    def _boot(self, state):
        self._cluster.boot()
        for node in self._cluster.nodes:
            self._start(node, state)
        self._wait_for_members()

    def _cut(self, node, clients, comes_back="again"):
        node.cut()
        self._wait_for_work(clients)
        if comes_back == "replaced":
            other = next(other for other in self._cluster.nodes if other is not node)
            other.run(f"{MEMBER} forget {node.name}")
        node.boot().answers()
        self._start(node, comes_back)
        self._wait_for_members()
        return node.name

    def _start(self, node, state):
        node.run(f"{MEMBER} {state} {self.system} {len(self.ports)}")

    def _leader(self):
        return self._until(self._find_leader, "a leader")

    def _find_leader(self):
        for node in self._cluster.nodes:
            try:
                if self.connect(node.number).leads():
                    return node
            except (OSError, ValueError):
                pass
        return None

    def _wait_for_work(self, clients):
        goal = clients.history.acknowledged + WORK
        self._until(lambda: clients.history.acknowledged >= goal, "the others to go on")

    def _wait_for_members(self):
        """Until each member answers a read that takes the cluster's agreement."""
        for node in self._cluster.nodes:
            self._until(lambda: self._serves(node), f"the member on {node.name}")

    def _serves(self, node):
        try:
            self.connect(node.number).call("kv/range", key=etcd.encoded("a"))
        except (OSError, ValueError):
            return False
        return True

    def _until(self, condition, what):
        return wait_until(condition, what, self._cluster.nodes)
