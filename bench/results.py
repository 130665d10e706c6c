# SPDX-License-Identifier: GPL-2.0-only
"""An experiment from plan to files: results.json, chart.png, and the table on the terminal."""

import json
from dataclasses import asdict
from pathlib import Path

from vm.settings import CHECKOUT

from . import debs, engine, helpers, packages, picture, quiet, sources, stats, table, ycsb_client
from .boot import carry_out, now
from .devices import Devices
from .experiments import Experiment
from .host import Host
from .progress import say, seconds
from .versions import host, versions

BUILD = CHECKOUT / "build" / "bench"
MACHINE = ("pmem", "nvme", "mem", "smp", "qemu", "persistence")         # settings of the guest that go to the results


def devices(experiment: Experiment, **machine) -> Devices:
    return Devices(BUILD / f"images-{experiment.nvme_mib}", experiment.pmem_mib << 20, experiment.nvme_mib << 20, **machine)


def measure(name: str, experiment: Experiment, plan: dict, on: Devices | Host) -> dict:
    """Boots, unless it is measured on this host; measures, and returns the results as they go to JSON."""
    bare = isinstance(on, Host)
    if not bare:
        packages.make(plan["workloads"])
    helpers.make(plan["workloads"])
    if any(workload.startswith(engine.WORKLOADS) for workload in plan["workloads"]):
        engine.make()
    if "untar" in plan["workloads"]:
        sources.make()
    if any(workload.startswith("ycsb-") for workload in plan["workloads"]):
        ycsb_client.make()
    if "dpkg-unpack" in plan["workloads"]:
        debs.make()
    say(f"{name}: {len(plan['workloads'])} workloads on {len(plan['systems'])} systems, up to {plan['rounds']} rounds")
    began, before = now(), host()
    first = quiet.look()
    samples, guest = on.carry_out(plan) if bare else carry_out(plan, on)
    seen = quiet.verdict(first, quiet.look(), before["cpus"])
    found = stats.rows(samples, plan)
    machine = {"ssd": on.ssd, "pmem": on.pmem} if bare else {key: asdict(on.settings())[key] for key in MACHINE}
    if bare:
        before["accelerator"] = "none"
    return {
        "experiment": name, "began": began, "seconds": round(seconds(), 1), "host": seen,
        "rows": found, "ratios": stats.ratios(found), "targets": stats.verdicts(found, experiment.targets),
        "versions": versions() | packages.versions(plan["workloads"]) | {"kernel": guest["kernel"]},
        "settings": plan | machine | {"rounds": guest["rounds"], "host": before},
    }


def publish(results: dict, folder: Path, verdicts: bool = True) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    keep_traces(results["rows"], folder / "traces")
    path = folder / "results.json"
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(results, indent=1) + "\n")
    unfinished.replace(path)
    picture.draw(results, folder / "chart.png")
    table.show(results, verdicts)
    print(f"{path}\n{folder / 'chart.png'}")


def keep_traces(rows: list[dict], folder: Path) -> None:
    """Moves traces of the kernel's functions from the rows to files of their own."""
    for row in rows:
        if lines := row.pop("trace", None):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{row['workload']}-{row['system']}.txt").write_text("\n".join(lines) + "\n")
