# SPDX-License-Identifier: GPL-2.0-only
"""What tests/cluster/rates measures. Each class is a cluster whose nodes stay on while its SYSTEMS take turns: change() begins anew on
one, with empty devices, and measure() tells how fast it is.
"""

import json
import re
import statistics
import subprocess
from dataclasses import replace

from bench import packages
from vm.cluster import Cluster
from vm.settings import MIB, Settings

from . import drbd, postgres
from .exported import WAYS
from .faults import EtcdCluster
from .golang import built
from .patience import wait_until

CLIENTS = 4
PUTS = 100              # of etcd for each second that is asked for; some systems take longer, some less
ALL = "AA=="            # every key
NVME = WAYS["nvme"].script


class Puts:
    """etcd on three nodes: its own benchmark on the host, each client with one put under way, asks the leader."""

    SYSTEMS, UNIT = ("ext4", "forebay", "writelog"), "puts"

    def __init__(self, folder):
        packages.make(["etcd"])
        self._benchmark = built("benchmark", "go.etcd.io/etcd/v3/tools/benchmark")
        self._etcd = EtcdCluster(self.SYSTEMS[0], folder, 0)

    def __enter__(self):
        self._etcd.__enter__()
        self._etcd.start()
        return self

    def __exit__(self, *exception):
        self._etcd.__exit__(*exception)

    def change(self, system):
        self._etcd.change(system)

    def measure(self, seconds):
        leader = self._etcd.leader()
        self._put(leader, PUTS)         # the first ones are slower
        said = self._put(leader, PUTS * seconds)
        if (count := int(self._etcd.connect(leader).call("kv/range", key=ALL, range_end=ALL, count_only=True)["count"])) < PUTS * seconds:
            raise ValueError(f"{count} keys after {PUTS * seconds} puts")
        return {"rate": round(_figure(r"Requests/sec:\s+([\d.]+)", said), 1), "p50_ms": round(_figure(r"50% in ([\d.]+) secs", said) * 1000, 1),
                "p99_ms": round(_figure(r"99% in ([\d.]+) secs", said) * 1000, 1)}

    def _put(self, leader, total):
        """What the benchmark says of so many puts, each to a key of its own."""
        command = [self._benchmark, f"--endpoints=127.0.0.1:{self._etcd.ports[leader - 1]}", f"--conns={CLIENTS}", f"--clients={CLIENTS}",
                   "put", f"--total={total}", f"--key-space-size={total}", "--sequential-keys", "--val-size=256"]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


class _Nodes:
    """A cluster that is booted once, and its systems in turn: a class says how _begin() one and _end() it."""

    def __init__(self, *cluster):
        """`cluster`: as for Cluster()."""
        self._cluster, self._used = Cluster(*cluster), False

    def __enter__(self):
        self._cluster.__enter__()
        self._cluster.boot()
        return self

    def __exit__(self, *exception):
        self._cluster.__exit__(*exception)

    def change(self, system):
        if self._used:
            self._end(*self._cluster.nodes)
        self._used = True
        self._begin(*self._cluster.nodes, system)


class Transactions(_Nodes):
    """PostgreSQL on ext4 on DRBD, which two nodes have: pgbench on the primary."""

    SYSTEMS, UNIT = ("ext4", "writelog"), "transactions"

    def __init__(self, folder):
        super().__init__(2, Settings(mem=640 * MIB, smp=1, pmem=256 * MIB, nvme=512 * MIB), folder)
        postgres.Engine(synchronous=False)      # makes the database that nodes begin with

    def _end(self, primary, standby):
        primary.run(f"{postgres.SCRIPT} end")
        for node in (primary, standby):
            node.run(f"{drbd.SCRIPT} end")

    def _begin(self, primary, standby, system):
        for node in (primary, standby):
            node.run(f"{drbd.SCRIPT} up new resource-and-stonith {system}")
        wait_until(lambda: drbd.state(primary) == "Connected Inconsistent/Inconsistent", "DRBD to connect", [primary, standby])
        primary.run(f"{drbd.SCRIPT} first")
        primary.run(f"{postgres.SCRIPT} primary")

    def measure(self, seconds):
        primary = self._cluster.node(1)
        lines = primary.run(f"{postgres.SCRIPT} bench {seconds}").splitlines()
        if (state := drbd.state(primary)) != "Connected UpToDate/UpToDate":
            raise ValueError(f"the second node has no copy: DRBD says {state}")
        # Client, number of the transaction, microseconds, and more
        return rate([int(line.split()[2]) / 1000 for line in lines], seconds)


class Syncs(_Nodes):
    """ext4 on a device of another node, by NVMe over TCP: writes of 4 KiB, each followed by an fdatasync."""

    SYSTEMS, UNIT = ("ssd", "writelog"), "fdatasyncs"

    def __init__(self, folder):
        target = Settings(mem=512 * MIB, smp=1, pmem=256 * MIB, nvme=512 * MIB, nvme_count=2)
        super().__init__(2, target, folder, {2: replace(target, pmem=0, nvme=0)})

    def _end(self, target, host):
        host.run(f"{NVME} end-host")
        target.run(f"{NVME} end-target")

    def _begin(self, target, host, system):
        target.run(f"{NVME} target new {system}")
        host.run(f"{NVME} host new {target.name} {system}")

    def measure(self, seconds):
        found = json.loads(self._cluster.node(2).run(f"{NVME} fdatasync {seconds}"))["jobs"][0]
        writes, syncs = found["write"]["total_ios"], found["sync"]["lat_ns"]
        if syncs["N"] < writes - 1:
            raise ValueError(f"{writes} writes, and only {syncs['N']} syncs")
        percent = syncs["percentile"]
        return {"rate": round(found["write"]["iops"], 1), "p50_ms": round(percent["50.000000"] / 1e6, 1),
                "p99_ms": round(percent["99.000000"] / 1e6, 1)}


def rate(times, seconds):
    """Operations a second, and the milliseconds of p50 and p99, of those of each operation."""
    percent = statistics.quantiles(times, n=100, method="inclusive")
    return {"rate": round(len(times) / seconds, 1), "p50_ms": round(percent[49], 1), "p99_ms": round(percent[98], 1)}


def _figure(pattern, said):
    match = re.search(pattern, said)
    if not match:
        raise ValueError(f"no figure in what the benchmark said:\n{said}")
    return float(match[1])
