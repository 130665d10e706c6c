# SPDX-License-Identifier: GPL-2.0-only
"""Results as a picture, of panels that fit the workloads.

Panels have lines over depth, jobs or size (bench/axes.py), stacked bars where the time of phases is known, the rate over time,
the distribution of response times, or else a bar for each system.

Ours is in colour, peers are grey, limits are dashed. Whiskers and bands go from the least run to the largest.
"""

import textwrap
from itertools import cycle
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot               # noqa: E402
from matplotlib.patches import Patch        # noqa: E402

from . import axes, quiet, words            # noqa: E402
from .table import number, rounds           # noqa: E402

REAL = ("kvm", "none")  # accelerators with which numbers are those of the processor; none: no guest
LOGARITHMIC = 50        # times the least value is the largest: then the scale is
WIDE = 20               # characters of a name under a bar
TITLE = 75              # of the title over a column
OURS = ("#0b6e99", "#d9730d", "#0f7b6c", "#ad1a72", "#6940a5")
PEER, LIMIT = ("#5f6875", "#8a94a3", "#a9b2bf", "#737d8a", "#979fab"), "#c3c9d1"
LIMITS = ("tmpfs", "ext4-dax", "ext4-pmem", "xfs-dax", "xfs-pmem", "transit-none",
          "devdax")        # what they lack is durability, blocks, files or a cache
EMPTY = "#eef0f3"       # fills a limit's bar
MARKS = "osD^vXP*"
PHASES = ("metadata", "cache_write", "evict_and_write", "bypass", "enqueue", "flush", "other")
PHASE_COLOURS = ("#0b6e99", "#52b5c9", "#d9730d", "#ad1a72", "#0f7b6c", "#6940a5", "#dfe3e8")


def draw(results: dict, path: Path) -> None:
    # All panels of the demo are to be read in the same way.
    made = panels(results["rows"], linear=results["experiment"] == "demo")
    columns = min(len(made), 2 if len(made) == 4 else 3)
    lines = -(-len(made) // columns)
    figure, places = pyplot.subplots(lines, columns, figsize=(5.4 * columns, 3.5 * lines + 0.5), squeeze=False, layout="constrained")
    for place in places.flat[len(made):]:
        place.axis("off")
    for place, (paint, what) in zip(places.flat, made):
        paint(place, what)
        place.tick_params(labelsize=8)
        place.spines[["top", "right"]].set_visible(False)
    if made[0][0] is linear_bars:       # else a legend may cover a bar
        places[0, 0].legend(handles=key(results["rows"]), loc="upper left", fontsize=7)
    figure.suptitle(textwrap.fill(headline(results), TITLE * columns), fontsize=9)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(figure)


def headline(results: dict) -> str:
    host = results["settings"]["host"]
    notes = [] if host["accelerator"] in REAL else ["emulated machine: only the ratios mean something"]
    notes += [f"busy host: {problem}" for problem in quiet.problems(quiet.of(results))]
    return "; ".join([f"Forebay, {results['experiment']}: median of {rounds(results['settings'])}, one boot, "
                      f"Linux {results['versions']['kernel']} ({host['accelerator']})", *notes])


def panels(rows: list[dict], linear: bool = False) -> list[tuple]:
    """What to draw, and what of."""
    with_lines, others = axes.panels(rows)
    made = [(lines, panel) for panel in with_lines]
    for workload in others:
        found = [row for row in rows if row["workload"] == workload]
        phased = any("percent_other" in row for row in found)
        timed = any("series" in row for row in found)
        made.append((stacked if phased else over_time if timed else linear_bars if linear else bars, found))
        if any("percentiles_us" in row for row in found):
            made.append((distribution, found))
    return made


def lines(panel, what: axes.Panel) -> None:
    for system, style in styles(list(what.lines)).items():
        points = sorted(what.lines[system].items())
        xs = [x for x, _ in points]
        values = [row[what.figure] for _, row in points]
        panel.plot(xs, values, label=system, **style)
        if what.figure == "value":          # of other figures the median alone is known
            panel.fill_between(xs, *zip(*(row["spread"] for _, row in points)), color=style["color"], alpha=0.15, linewidth=0)
    some = next(iter(next(iter(what.lines.values())).values()))
    panel.set_title(what.title, fontsize=10)
    panel.set(xlabel=what.x, ylabel=some["metric"] if what.figure == "value" else "µs")
    xs = what.points()
    panel.set_xscale("log", base=2)
    panel.set_xticks(xs, [str(x) for x in xs])
    panel.minorticks_off()
    scale(panel, [row[what.figure] for line in what.lines.values() for row in line.values()])
    panel.legend(fontsize=7)
    panel.grid(alpha=0.25)


def styles(systems: list[str]) -> dict[str, dict]:
    """Of the lines: ours first to be told apart by colour, the others by their marks."""
    colours, greys, marks = cycle(OURS), cycle(PEER), cycle(MARKS)
    found = {}
    for system in systems:
        style = {"marker": next(marks), "markersize": 4}
        if is_limit(system):
            style |= {"color": LIMIT, "linestyle": "--", "linewidth": 1.2}
        elif is_ours(system):
            style |= {"color": next(colours), "linewidth": 2}
        else:
            style |= {"color": next(greys), "linewidth": 1.2}
        found[system] = style
    return found


def is_limit(system: str) -> bool:
    return system in LIMITS


def is_ours(system: str) -> bool:
    words = system.removeprefix("bare-").removeprefix("small-")
    return words.startswith(("forebay", "writelog", "transit")) and not is_limit(system)


def colour(system: str) -> str:
    return LIMIT if is_limit(system) else OURS[0] if is_ours(system) else PEER[1]


def key(rows: list[dict]) -> list:
    """Which colour of a bar is whose, in the demo."""
    systems = {row["system"] for row in rows}
    kinds = (("others", PEER[1], None, lambda system: not is_ours(system) and not is_limit(system)),
             ("Forebay", OURS[0], None, is_ours), ("limit: nothing is durable", EMPTY, PEER[1], is_limit))
    return [Patch(facecolor=face, edgecolor=edge, linestyle="--" if edge else "-", label=label)
            for label, face, edge, fits in kinds if any(map(fits, systems))]


def linear_bars(panel, rows: list[dict]) -> None:
    """From zero, however far apart the values are."""
    bars(panel, rows, linear=True)


def bars(panel, rows: list[dict], linear: bool = False) -> None:
    values = [row["value"] for row in rows]
    whiskers = [[row["value"] - row["spread"][0] for row in rows], [row["spread"][1] - row["value"] for row in rows]]
    drawn = panel.bar(names(rows), values, yerr=whiskers, capsize=3, ecolor="#444444", color=[colour(row["system"]) for row in rows])
    for bar, row in zip(drawn, rows):
        if is_limit(row["system"]):
            bar.set(edgecolor=PEER[1], linestyle="--", facecolor=EMPTY)
    base = next((row["value"] for row in rows if row["system"] == "ext4"), None)
    labels = [number(row["value"]) + (f"\n{number(row['value'] / base)} ×" if base and row["system"] != "ext4" else "")
              for row in rows]
    panel.bar_label(drawn, labels, fontsize=8, padding=2)
    panel.set_title(words.title(rows[0]["workload"]), fontsize=10)
    panel.set_ylabel(rows[0]["metric"], fontsize=8)
    largest = max(row["spread"][1] for row in rows)
    if not linear and scale(panel, values):
        panel.set_ylim(min(values) / 3, 5 * largest)
    else:
        panel.set_ylim(0, 1.25 * largest)
    turn(panel, rows)


def stacked(panel, rows: list[dict]) -> None:
    """The time of a write, by phases; a system that measures none has one bar."""
    labels = names(rows)
    low = [0.0] * len(rows)
    for phase, shade in zip(PHASES, PHASE_COLOURS):
        parts = [row["mean_us"] * row.get(f"percent_{phase}", 100 if phase == "other" and "percent_other" not in row else 0) / 100
                 for row in rows]
        panel.bar(labels, parts, bottom=low, color=shade, label=phase.replace("_", " "))
        low = [below + part for below, part in zip(low, parts)]
    panel.set_title(f"{rows[0]['workload']}: where the time of a write goes", fontsize=10)
    panel.set_ylabel("µs a write", fontsize=8)
    panel.legend(fontsize=7)
    turn(panel, rows)


def over_time(panel, rows: list[dict]) -> None:
    """The rate in each window of the median run."""
    with_series = {row["system"]: row for row in rows if "series" in row}
    for system, style in styles(list(with_series)).items():
        row = with_series[system]
        at = [(index + 1) * row["window_s"] for index in range(len(row["series"]))]
        panel.plot(at, row["series"], label=system, **style | {"marker": None, "linewidth": 1.2})
        panel.axhline(row["value"], color=style["color"], linestyle=":", linewidth=1)
    panel.set_title(f"{rows[0]['workload']}: dotted, the mean", fontsize=10)
    panel.set(xlabel="seconds", ylabel=rows[0]["metric"])
    panel.set_ylim(bottom=0)
    panel.legend(fontsize=7)


def distribution(panel, rows: list[dict]) -> None:
    """Which share of the operations took at most so long, in the median run."""
    known = {row["system"]: row["percentiles_us"] for row in rows if "percentiles_us" in row}
    for system, style in styles(list(known)).items():
        points = sorted((float(share), time) for share, time in known[system].items())
        panel.plot([time for _, time in points], [share for share, _ in points], label=system, **style | {"marker": None})
    panel.set_title(f"{rows[0]['workload']}: distribution", fontsize=10)
    panel.set(xlabel="µs at most", ylabel="percent of the operations", xscale="log")
    panel.legend(fontsize=7)
    panel.grid(alpha=0.25)


def scale(panel, values: list[float]) -> bool:
    """Logarithmic, if values are far apart; otherwise the axis begins at 0."""
    far = max(values) > LOGARITHMIC * min(values)
    if far:
        panel.set_yscale("log")
    else:
        panel.set_ylim(bottom=0)
    return far


def names(rows: list[dict]) -> list[str]:
    return [textwrap.fill(row["system"], WIDE) + ("\n(limit)" if is_limit(row["system"]) else "") for row in rows]


def turn(panel, rows: list[dict]) -> None:
    if len(rows) > 4:
        panel.tick_params(axis="x", labelrotation=30)
