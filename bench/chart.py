# SPDX-License-Identifier: GPL-2.0-only
"""Results as a picture: a panel a workload, a bar a system, whiskers from the least run to the largest."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot               # noqa: E402

from .table import number, rounds           # noqa: E402

LOGARITHMIC = 50        # times the least value is the largest: then the scale is
OURS, LIMIT, PEER = "#0b6e99", "#c9ced6", "#8a94a3"


def draw(results: dict, path: Path) -> None:
    workloads = list(dict.fromkeys(row["workload"] for row in results["rows"]))
    columns = min(len(workloads), 2 if len(workloads) == 4 else 3)
    lines = -(-len(workloads) // columns)
    figure, panels = pyplot.subplots(lines, columns, figsize=(5.4 * columns, 3.3 * lines + 0.5), squeeze=False,
                                     layout="constrained")
    for panel in panels.flat[len(workloads):]:
        panel.axis("off")
    for panel, workload in zip(panels.flat, workloads):
        bars(panel, workload, [row for row in results["rows"] if row["workload"] == workload])
    accelerator = results["settings"]["host"]["accelerator"]
    note = "" if accelerator == "kvm" else "; emulated machine: only the ratios mean something"
    figure.suptitle(f"Forebay, {results['experiment']}: median of {rounds(results['settings'])}, one boot, "
                    f"Linux {results['versions']['kernel']} ({accelerator}){note}", fontsize=9)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def bars(panel, workload: str, rows: list[dict]) -> None:
    values = [row["value"] for row in rows]
    whiskers = [[row["value"] - row["spread"][0] for row in rows], [row["spread"][1] - row["value"] for row in rows]]
    drawn = panel.bar([row["system"] for row in rows], values, yerr=whiskers, capsize=3, ecolor="#444444",
                      color=[colour(row["system"]) for row in rows])
    base = next((row["value"] for row in rows if row["system"] == "ext4"), None)
    labels = [number(row["value"]) + (f"\n{number(row['value'] / base)} ×" if base and row["system"] != "ext4" else "")
              for row in rows]
    panel.bar_label(drawn, labels, fontsize=8, padding=2)
    panel.set_title(workload, fontsize=10)
    panel.set_ylabel(rows[0]["metric"], fontsize=8)
    if max(values) > LOGARITHMIC * min(values):
        panel.set_yscale("log")
        panel.set_ylim(min(values) / 3, 5 * max(row["spread"][1] for row in rows))
    else:
        panel.set_ylim(0, 1.25 * max(row["spread"][1] for row in rows))
    panel.tick_params(labelsize=8)
    if len(rows) > 5:
        panel.tick_params(axis="x", labelrotation=25)
    panel.spines[["top", "right"]].set_visible(False)


def colour(system: str) -> str:
    return {"forebay": OURS, "tmpfs": LIMIT}.get(system, PEER)
