# SPDX-License-Identifier: GPL-2.0-only
"""Two nodes: a target that exports a device, by NVMe over TCP or by Ceph, and a host with ext4 and Redis on that device."""

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from vm.cluster import Cluster
from vm.settings import CHECKOUT, MIB, Settings, SetupError

from . import redis
from .pair import ARGUMENTS, WORK
from .patience import wait_until
from .writers import Writers

NODES = CHECKOUT / "tests/cluster/nodes"
TRACE = "/sys/kernel/tracing"
SYNCS = 20


@dataclass
class Way:
    """How a device is exported."""
    script: Path
    program: str        # that the host has to have
    ssds: int           # of the target
    mem: int            # bytes, of the target


WAYS = {"nvme": Way(NODES / "nvme", "nvme", 2, 512 * MIB), "ceph": Way(NODES / "ceph", "ceph-osd", 3, 2048 * MIB)}


class Exported:
    """Off, until start()."""

    def __init__(self, way, system, folder):
        if not shutil.which(WAYS[way].program):
            raise SetupError(f"{WAYS[way].program} is missing: run scripts/setup --for {'ceph' if way == 'ceph' else 'cluster'}")
        self._script, self._system = WAYS[way].script, system
        target = Settings(mem=WAYS[way].mem, smp=1, pmem=256 * MIB, nvme=512 * MIB, nvme_count=WAYS[way].ssds, append=ARGUMENTS)
        # The host has no device of its own: what it finds is the target's.
        host = replace(target, mem=512 * MIB, pmem=0, nvme=0)
        self._engine = redis.Engine(synchronous=False)
        self._cluster = Cluster(2, target, folder, {2: host}, forward=(self._engine.port,))
        self._target, self._host = self._cluster.nodes
        self.writers = Writers(lambda: self._engine.connect(self._host))

    def __enter__(self):
        self._cluster.__enter__()
        return self

    def __exit__(self, *exception):
        self._cluster.__exit__(*exception)

    def start(self):
        self._cluster.boot()
        self._export("new")
        self._host.run(f"{self._script} host new {self._target.name} {self._system}")
        self._engine.resume(self._host)
        self.writers.start()
        self._wait_for_work()

    def stop(self):
        """Ends the writers and cuts all power. What the database had."""
        self.writers.stop()
        found = self._engine.connect(self._host).found()
        for node in self._cluster.nodes:
            node.cut()
        return found

    def syncs_at_the_ssd(self):
        """How many flushes and how many writes with FUA the target's SSD gets for SYNCS of the host's of each kind (NVMe)."""
        self._target.run(f"echo >{TRACE}/trace; echo 1 >{TRACE}/events/block/block_rq_issue/enable")
        device = self._host.run(f"{self._script} device 2")
        self._host.run(f"for turn in $(seq {SYNCS}); do dd if=/dev/zero of={device} bs=4k count=1 conv=fdatasync; done")
        self._host.run(f"dd if=/dev/zero of={device} bs=4k count={SYNCS} oflag=direct,dsync")
        self._target.run(f"echo 0 >{TRACE}/events/block/block_rq_issue/enable")
        number = self._target.run(f"cat /sys/block/$(basename $({self._script} bare))/dev").replace(":", ",")
        # The letters of a request: F before W or alone is a flush, F after W is FUA.
        kinds = re.findall(rf"block_rq_issue: {number} (\w+) ", self._target.run(f"cat {TRACE}/trace"))
        return sum(kind.startswith("F") for kind in kinds), sum(bool(re.match("F?WF", kind)) for kind in kinds)

    # The faults

    def cut_target(self):
        """The target's power. The host stays, and its writes wait until the target is back."""
        self._target.cut()
        self._target.boot().answers()
        self._export("again")
        self._wait_for_work()

    def cut_host(self):
        """The host's power. The target stays."""
        self._host.cut()
        self._host.boot().answers()
        self._mount()

    def cut_both(self):
        """The power of both."""
        for node in self._cluster.nodes:
            node.cut()
        self._cluster.boot()
        self._export("again")
        self._mount()

    def _export(self, state):
        self._target.run(f"{self._script} target {state} {self._system}")

    def _mount(self):
        # A device in memory is empty after its power cut, and has to be made anew.
        state = "new" if self._system == "memory" and not self._has_file_system() else "again"
        self._host.run(f"{self._script} host {state} {self._target.name} {self._system}")
        self._engine.resume(self._host)
        self._wait_for_work()

    def _has_file_system(self):
        return self._target.status("blkid /dev/ram0")[0] == 0

    def _wait_for_work(self):
        goal = self.writers.ledger.acknowledged() + WORK
        wait_until(lambda: self.writers.ledger.acknowledged() >= goal, "the host to go on", self._cluster.nodes)
