# SPDX-License-Identifier: GPL-2.0-only
"""What vm/cluster.py promises, tried out with two nodes that stay on for all tests of this file."""

import os
import sys
import urllib.request
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))

from vm.cluster import Cluster, NodeFailure     # noqa: E402
from vm.settings import MIB, Settings           # noqa: E402

PORT = 8000
PING = "/run/vm/busybox ping -c 1 -W 10 "
CONTENTS = "head -c 4 /dev/nvme0n1; head -c 4 /dev/pmem0"


@pytest.fixture(scope="module")
def cluster():
    folder = CHECKOUT / f"build/vm/devices-{os.getpid()}-nodes"         # a later machine tidies it up
    with Cluster(2, Settings(mem=512 * MIB, smp=1, pmem=128 * MIB, nvme=256 * MIB), folder, forward=(PORT,)) as made:
        yield made.boot()


def test_a_command_has_its_status_and_output(cluster):
    assert cluster.node(1).run("hostname; echo aside >&2") == "node1\naside"
    assert cluster.node(2).status("hostname; exit 7") == (7, "node2")
    with pytest.raises(NodeFailure, match="node2: false: status 1"):
        cluster.node(2).run("false")


def test_the_network_between_two_nodes_is_cut_and_joined(cluster):
    cluster.node(1).run(PING + "node2")
    cluster.isolate(1, [2])
    assert cluster.node(1).status(PING + "node2")[0] != 0
    assert cluster.node(2).status(PING + "node1")[0] != 0
    cluster.rejoin(1)
    cluster.node(1).run(PING + "node2")


def test_the_host_reaches_a_port_of_an_isolated_node(cluster):
    node = cluster.node(2)
    node.run(f"cd /proc/sys/kernel && setsid python3 -m http.server {PORT} >/dev/null 2>&1 & sleep 5")
    cluster.isolate(2, [1])
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{node.ports[PORT]}/hostname", timeout=100) as answer:
            assert answer.status == 200
    finally:
        cluster.rejoin(2)


def test_a_node_comes_back_after_a_power_cut_with_its_devices(cluster):
    one, two = cluster.node(1), cluster.node(2)
    one.run("printf disk | dd of=/dev/nvme0n1 conv=fsync status=none; printf pmem | dd of=/dev/pmem0 conv=fsync status=none")
    assert one.run(CONTENTS) == "diskpmem"
    began = two.run("cat /proc/sys/kernel/random/boot_id")
    assert one.cut().was_cut and not one.is_on()
    assert two.status(PING + "node1")[0] != 0
    one.boot().answers()
    assert one.run(CONTENTS) == "diskpmem"
    one.run(PING + "node2")
    assert two.run("cat /proc/sys/kernel/random/boot_id") == began
