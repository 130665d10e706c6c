# SPDX-License-Identifier: GPL-2.0-only
"""The demo's results in words, for a reader who doesn't know the workloads' names."""

TITLES = {
    "redis-set-c1": "Redis SET, every write durable, 1 client",
    "redis-set-c50": "Redis SET, every write durable, 50 clients",
    "fio-fdatasync-j1": "4 KiB random writes, each durable (fdatasync), 1 job",
    "fio-fdatasync-j2": "4 KiB random writes, each durable (fdatasync), 2 jobs",
}
MEASURED = {
    "redis-set-c1": "Redis SETs of one client",
    "redis-set-c50": "Redis SETs of 50 clients",
    "fio-fdatasync-j1": "4 KiB writes with fdatasync of one job",
    "fio-fdatasync-j2": "the same of two jobs",
}


def title(workload: str) -> str:
    return TITLES.get(workload, workload)


def seen(results: dict) -> str:
    """A paragraph of what was measured, and what the power cut left."""
    ratios = {(entry["workload"], entry["system"]): entry["ratio"] for entry in results["ratios"] if entry["to"] == "ext4"}
    said = ["Each write was made durable."]
    if ours := [f"{_number(ratios[workload, 'forebay'])} times as many {what}" for workload, what in MEASURED.items()
                if (workload, "forebay") in ratios]:
        said.append(f"In a second, Forebay did {_list(ours)} as ext4 on the SSD alone.")
    for system, words in (("dm-writecache", "on the same persistent memory"), ("tmpfs", "the limit, which makes nothing durable")):
        if others := [_number(ratios[workload, system]) for workload in MEASURED if (workload, system) in ratios]:
            said.append(f"{system}, {words}, did {_list(others)} times as many.")
    if cut := results.get("power_cut"):
        lost = f"{cut['lost']:,} of them were lost" if cut["lost"] else "none of them was lost"
        said.append(f"Then the plug was pulled: Redis on Forebay had acknowledged {cut['acknowledged']:,} SETs, and {lost}.")
    return " ".join(said)


def _list(parts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _number(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"
