# SPDX-License-Identifier: GPL-2.0-only
"""In the guest: the two halves of the pulled plug.

    write       a fresh forebay over ext4, Redis on it, clients that SET until the power goes. Each line of output is
                the number of a SET that was acknowledged, and so were all before it.
    verify N    the same devices after the cut: mounts them, starts Redis, and reads all SETs up to N.
"""

import json
import os
import sys
import time

from . import resp, systems
from .redis_cut_values import CLIENTS, key, value
from .workloads.redis import Server

BATCH = 200             # keys that one MGET reads
KEEP_SHOWN = 10


def write() -> None:
    with systems.clean("forebay") as folder:
        os.mkdir(f"{folder}/redis")
        with Server(f"{folder}/redis"):
            clients = [resp.Connection() for _ in range(CLIENTS)]
            number = 0
            while True:
                for client in clients:
                    number += 1
                    client.send("SET", key(number), value(number))
                for client in clients:
                    if client.reply() != b"OK":
                        raise RuntimeError("Redis did not say OK")
                print(number, flush=True)


def verify(last: int) -> None:
    begin = time.monotonic()
    with systems.forebay_as_it_is() as folder:
        mounted = time.monotonic() - begin
        with Server(f"{folder}/redis") as server:
            lost = [number for number, found in stored(server.connection, last) if found != value(number)]
            keys = server.connection.call("DBSIZE")
    print(json.dumps({"checked": last, "lost": len(lost), "lost_first": lost[:KEEP_SHOWN], "keys_found": keys,
                      "mount_seconds": round(mounted, 3)}), flush=True)


def stored(connection, last: int):
    for start in range(1, last + 1, BATCH):
        numbers = range(start, min(start + BATCH, last + 1))
        yield from zip(numbers, connection.call("MGET", *map(key, numbers)))


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write()
    else:
        verify(int(sys.argv[2]))
