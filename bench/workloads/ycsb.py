# SPDX-License-Identifier: GPL-2.0-only
"""YCSB's own client and workloads on RocksDB (Caiti figure 9), built on the host by bench/ycsb_client.py.

As with db_bench (transit.py): 20,000 records of 1 KiB, no compression, small buffers, nothing synced. Transactions begin with a
copy of a database that was loaded on the host, the same for all, with its compactions still to be done.

The client ends with status 0 whatever happened: what each operation returned decides.
"""

import os

from ..commands import CommandFailed, run
from .block import settle

HOME = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../build/bench/ycsb"))
LOADED = f"{HOME}/loaded"
IN_MEMORY = "/dev/shm/bench-ycsb"
RECORDS, OPERATIONS = 20000, 20000
# A client lives for seconds: the quick compiler and the plain collector, and no file of its own in /tmp.
JAVA = ("java", "-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
        f"-Djava.library.path={HOME}/lib", "-cp", f"{HOME}/classes:{HOME}/jars/*", "site.ycsb.Client",
        "-db", "forebay.RocksDb", "-threads", "1", "-p", "workload=site.ycsb.workloads.CoreWorkload")
# What YCSB calls workload A, half reads and half updates, and F, half reads and half read-modify-writes; and the kinds of
# operation that its transactions are counted by: a read-modify-write is counted as a read and as an update, too.
PROPORTIONS = {"a": {"readproportion": 0.5, "updateproportion": 0.5},
               "f": {"readproportion": 0.5, "updateproportion": 0, "readmodifywriteproportion": 0.5}}
COUNTED = {"load": ("INSERT",), "a": ("READ", "UPDATE"), "f": ("READ",)}


def load():
    """Records inserted a second, by YCSB's own count, and the response times."""
    def measure(folder: str, seconds: float) -> dict:
        settle()
        return figures(client(f"{folder}/db", "load"))
    return measure


def transactions(workload: str, distribution: str):
    """Transactions a second, by YCSB's own count, and the response times of each kind of operation."""
    def measure(folder: str, seconds: float) -> dict:
        if not os.path.exists(IN_MEMORY):
            run("cp", "-r", LOADED, IN_MEMORY)
        run("cp", "-r", IN_MEMORY, f"{folder}/db")
        settle()
        return figures(client(f"{folder}/db", workload, requestdistribution=distribution))
    return measure


def client(db: str, phase: str, **properties) -> dict:
    """Loads the records, or does a workload's transactions, all of which must succeed; what it said, parsed."""
    properties |= {"rocksdb.dir": db, "recordcount": RECORDS, "operationcount": OPERATIONS, **PROPORTIONS.get(phase, {})}
    output = run(*JAVA, "-load" if phase == "load" else "-t",
                 *(word for name, value in properties.items() for word in ("-p", f"{name}={value}")))
    found = parse(output)
    check(found, COUNTED[phase], RECORDS if phase == "load" else OPERATIONS)
    if phase != "load":
        check(found, ("UPDATE",), None)
    return found


def parse(output: str) -> dict[str, dict[str, float]]:
    """Of each kind of operation, its figures by name: the lines are [KIND], NAME, FIGURE."""
    found: dict[str, dict[str, float]] = {}
    for line in output.splitlines():
        kind, *rest = line.split(", ")
        if kind.startswith("[") and len(rest) == 2:
            found.setdefault(kind.strip("[]"), {})[rest[0]] = float(rest[1])
    return found


def check(found: dict, counted: tuple[str, ...], expected: int | None) -> None:
    """As many as expected must have been done, or any at all, and nothing may have returned anything but OK."""
    done = sum(found.get(kind, {}).get("Return=OK", 0) for kind in counted)
    returned = {f"{kind} {name}": figure for kind, names in found.items() for name, figure in names.items()
                if name.startswith("Return=")}
    if not done or expected not in (None, done) or not all(name.endswith("=OK") for name in returned):
        raise CommandFailed(f"YCSB was to do {expected or 'some'} operations, {' and '.join(counted)}: {returned or 'it did none'}")


def figures(found: dict) -> dict:
    """The result, and for instance read_mean_us and read_modify_write_p99_us."""
    times = {f"{kind.lower().replace('-', '_')}_{short}_us": round(found[kind][name], 1)
             for kind in ("INSERT", "READ", "UPDATE", "READ-MODIFY-WRITE") if kind in found
             for short, name in (("mean", "AverageLatency(us)"), ("p99", "99thPercentileLatency(us)"))}
    return {"value": found["OVERALL"]["Throughput(ops/sec)"], **times}
