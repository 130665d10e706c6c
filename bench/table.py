# SPDX-License-Identifier: GPL-2.0-only
"""Results on the terminal."""

from rich import box
from rich.console import Console
from rich.table import Table

from . import quiet
from .stats import REFERENCES


def show(results: dict) -> None:
    console = Console(highlight=False, width=None if Console().is_terminal else 110)
    console.print(rows(results))
    host, settings = results["settings"]["host"], results["settings"]
    emulated = "" if host["accelerator"] in ("kvm", "none") else " An emulated machine: only the ratios mean something."
    console.print(f"Median of {rounds(settings)}, and their range. Linux {results['versions']['kernel']}, "
                  f"{host['accelerator']}.{emulated}", style="dim")
    for problem in quiet.problems(quiet.of(results)):
        console.print(f"busy host: {problem}. Don't quote these results.", style="bold red")
    for verdict in results["targets"]:
        console.print(describe(verdict), style="green" if verdict["ok"] else "bold red")
    if "power_cut" in results:
        cut = results["power_cut"]
        console.print(f"power cut: {cut['acknowledged']:,} SETs acknowledged, {cut['lost']} lost",
                      style="bold red" if cut["lost"] else "green")


def rows(results: dict) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("workload", "system"):
        table.add_column(heading, no_wrap=True)
    for heading in ("median", "range", "", *(f"× {to}" for to in REFERENCES)):
        table.add_column(heading, justify="left" if heading == "" else "right", no_wrap=True)
    ratios = {(entry["workload"], entry["system"], entry["to"]): entry["ratio"] for entry in results["ratios"]}
    last = None
    for row in results["rows"]:
        workload, system = row["workload"], row["system"]
        if last not in (None, workload):
            table.add_section()
        table.add_row(workload if workload != last else "", system, number(row["value"]),
                      f"{number(row['spread'][0])} – {number(row['spread'][1])}", row["metric"],
                      *(number(ratios.get((workload, system, to))) for to in REFERENCES),
                      style="bold" if system == "forebay" else None)
        last = workload
    return table


def rounds(settings: dict) -> str:
    return "1 round" if settings["rounds"] == 1 else f"{settings['rounds']} rounds"


def describe(verdict: dict) -> str:
    figure = "" if verdict["figure"] == "value" else f" ({verdict['figure']})"
    return (f"{verdict['workload']}{figure}: {verdict['of']} ≥ {number(verdict['at_least'])} × {verdict['to']}"
            f"{' at ' + verdict['to_workload'] if verdict['to_workload'] != verdict['workload'] else ''}: "
            f"{number(verdict['ratio'])} × {'ok' if verdict['ok'] else 'MISSED'}")


def number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
