# SPDX-License-Identifier: GPL-2.0-only
"""Several machines on one private network:

    with Cluster(3, Settings(mem=512 << 20, smp=1), folder) as cluster:
        cluster.node(1).run("ping -c 1 node2")      # as root, in the node
        cluster.node(1).cut()                       # its power is gone; the others go on
        cluster.node(1).boot()                      # again, on the same devices
        cluster.isolate(2, [1, 3])                  # the network between node 2 and the two others is cut
        cluster.rejoin(2)

Node K is `nodeK` in all of /etc/hosts; its devices' images and consoles are in `folder/nodeK`. The other parts of a
machine are vm/machine.py's.
"""

import base64
import shutil
import socket
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from . import network
from .machine import Machine
from .settings import CHECKOUT, SetupError
from .shares import quote

LIMIT = 600             # seconds: longer than any boot or command takes on a busy host


class NodeFailure(Exception):
    """A node ended, hangs, or a command in it failed."""


class Node:
    def __init__(self, number, settings, sockets, arguments, hosts, forward=()):
        """`arguments`: QEMU's, for the network card. `hosts`: lines for /etc/hosts. `forward`: the node's TCP ports that the host
        reaches, at 127.0.0.1 and the port that `ports` has for each, also while the node is isolated."""
        self.number, self.name = number, f"node{number}"
        self.address = network.address(number)
        self.settings, self.boots, self.results = settings, 0, []
        self.ports = {port: network.free_port() for port in forward}
        self._arguments, self._hosts = [*arguments, *(network.forward_arguments(self.ports) if forward else [])], hosts
        self._socket = sockets / f"agent{number}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._socket))
        self._listener.listen(1)
        self._machine = self._agent = self._answers = None

    def boot(self, command=(), stdout=None, stderr=None):
        """Starts the machine and returns at once; answers() waits until the node can be asked."""
        self._keep_console()
        self.boots += 1
        agent = ["-chardev", f"socket,id=agent,path={quote(self._socket)}", "-device", "virtserialport,chardev=agent,name=agent"]
        settings = replace(self.settings, qemu=[*self.settings.qemu, *self._arguments, *agent])
        job = [str(CHECKOUT / "vm/node"), str(self.number), self._hosts, *command]
        self._machine = Machine(settings, job, stdout, stderr)
        self._machine.start()
        return self

    def answers(self):
        """Returns when the node has joined the network."""
        until = time.monotonic() + LIMIT
        while not self._greeted():          # a boot that crashed is tried again by the machine
            if not self._machine.running() or time.monotonic() > until:
                raise NodeFailure(f"{self.name} didn't come up ({self._machine.console})")
        return self

    def run(self, command, check=True, limit=LIMIT):
        """The output of a command, both streams, without its last newline."""
        status, output = self.status(command, limit)
        if check and status:
            raise NodeFailure(f"{self.name}: {command}: status {status}\n{output}")
        return output

    def status(self, command, limit=LIMIT):
        """The status and output of a command. One at a time: a long one is started with setsid and &."""
        try:
            self._agent.settimeout(limit)
            self._agent.sendall(base64.b64encode(command.encode()) + b"\n")
            word, _, rest = self._answers.readline().decode().partition(" ")
        except OSError as problem:
            raise NodeFailure(f"{self.name}: {command}: {problem}") from None
        if word != "done":
            raise NodeFailure(f"{self.name} ended during: {command} ({self._machine.console})")
        status, _, output = rest.partition(" ")
        return int(status), base64.b64decode(output).decode(errors="replace").rstrip("\n")

    def cut(self):
        """The power is gone. The Result of the machine; a kernel report is a failure."""
        self._machine.cut()
        return self.wait()

    def leave(self):
        """The node may power off."""
        self.run("echo >/run/node/leave")

    def wait(self):
        """The Result, once the machine is gone."""
        result = self._machine.wait()
        self._hang_up()
        self._machine = None
        self.results.append(result)
        if result.reports and not self.settings.expect_report:
            raise NodeFailure("\n".join([f"{self.name}: the kernel reported ({result.console}):", *result.reports]))
        return result

    def is_on(self):
        return self._machine is not None

    def close(self):
        if self._machine:
            self._machine.cut()
            self._machine.wait()
            self._machine = None
        self._hang_up()
        self._listener.close()

    def _greeted(self):
        self._listener.settimeout(1)
        try:
            self._agent = self._listener.accept()[0]
        except TimeoutError:
            return False
        self._agent.settimeout(LIMIT)
        self._answers = self._agent.makefile("rb")
        try:
            return self._answers.readline().startswith(b"up ")
        except OSError:
            return False

    def _hang_up(self):
        for end in (self._answers, self._agent):
            if end:
                end.close()
        self._answers = self._agent = None

    def _keep_console(self):
        """console.log is the last boot's; those before have numbers."""
        console = self.settings.keep / "console.log"
        if console.exists():
            number = 1
            while (self.settings.keep / f"console-{number}.log").exists():
                number += 1
            console.rename(self.settings.keep / f"console-{number}.log")


class Cluster:
    def __init__(self, nodes, settings, folder, settings_of=None, forward=()):
        """`settings_of`: {number: Settings} for nodes that differ from the others. `forward`: as for a Node."""
        if not 1 <= nodes <= 99:
            raise SetupError(f"a cluster has 1 to 99 nodes, not {nodes}")
        self._sockets = Path(tempfile.mkdtemp(prefix="forebay-net-"))
        self._switch = network.Switch(self._sockets, nodes)
        hosts = "\n".join(f"{network.address(number)} node{number}" for number in range(1, nodes + 1))
        self.nodes = [
            Node(number, replace((settings_of or {}).get(number, settings), keep=Path(folder) / f"node{number}"), self._sockets,
                 self._switch.arguments(number), hosts, forward)
            for number in range(1, nodes + 1)]

    def __enter__(self):
        """The network is there. Without boot() the nodes are off."""
        self._switch.start()
        return self

    def __exit__(self, *exception):
        for node in self.nodes:
            node.close()
        self._switch.stop()
        shutil.rmtree(self._sockets, ignore_errors=True)

    def boot(self):
        """All nodes; returns when each of them answers."""
        for node in self.nodes:
            node.boot()
        for node in self.nodes:
            node.answers()
        return self

    def node(self, number):
        return self.nodes[number - 1]

    def isolate(self, number, others):
        """Cuts the network between a node and some others, in both directions."""
        for other in others:
            self._switch.cut(number, other)

    def rejoin(self, number):
        for node in self.nodes:
            self._switch.join(number, node.number)
