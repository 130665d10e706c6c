# SPDX-License-Identifier: GPL-2.0-only
"""Results on the terminal."""

from rich import box
from rich.console import Console
from rich.table import Table

from . import quiet, words
from .stats import REFERENCES

COST = "cost_cpu_us"        # bench/cost.py


def show(results: dict, verdicts: bool = True) -> None:
    console = Console(highlight=False, width=None if Console().is_terminal else 110)
    for part in tables(results):
        console.print(part)
    host, settings = results["settings"]["host"], results["settings"]
    emulated = "" if host["accelerator"] in ("kvm", "none") else " An emulated machine: only the ratios mean something."
    console.print(f"Median of {rounds(settings)}, and their range. Linux {results['versions']['kernel']}, "
                  f"{host['accelerator']}.{emulated}", style="dim")
    for problem in quiet.problems(quiet.of(results)):
        console.print(f"busy host: {problem}. Don't quote these results.", style="bold red")
    for verdict in results["targets"] if verdicts else []:
        console.print(describe(verdict), style="green" if verdict["ok"] else "bold red")
    if verdicts and "power_cut" in results:
        cut = results["power_cut"]
        console.print(f"power cut: {cut['acknowledged']:,} SETs acknowledged, {cut['lost']} lost",
                      style="bold red" if cut["lost"] else "green")


def tables(results: dict) -> list[Table]:
    """One; or one for each workload if there are words for all, which would make a column too wide."""
    workloads = list(dict.fromkeys(row["workload"] for row in results["rows"]))
    if not workloads or not all(workload in words.TITLES for workload in workloads):
        return [_table(results, results["rows"], ("workload", "system"), None)]
    return [_table(results, [row for row in results["rows"] if row["workload"] == workload], ("system",), words.title(workload))
            for workload in workloads]


def _table(results: dict, rows: list[dict], keys: tuple[str, ...], title: str | None) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold")
    for heading in keys:
        table.add_column(heading, no_wrap=True, min_width=len("dm-writecache"))
    for heading, width in (("median", 7), ("range", 17), ("", 0), *((f"× {to}", 0) for to in REFERENCES)):
        table.add_column(heading, justify="left" if heading == "" else "right", no_wrap=True, min_width=width)
    costs = any(COST in row for row in rows)
    if costs:
        table.add_column("CPU µs/op", justify="right", no_wrap=True, min_width=6)
    ratios = {(entry["workload"], entry["system"], entry["to"]): entry["ratio"] for entry in results["ratios"]}
    last = None
    for row in rows:
        workload, system = row["workload"], row["system"]
        if last not in (None, workload):
            table.add_section()
        named = {"workload": workload if workload != last else "", "system": system}
        table.add_row(*(named[key] for key in keys), number(row["value"]),
                      f"{number(row['spread'][0])} – {number(row['spread'][1])}", row["metric"],
                      *(number(ratios.get((workload, system, to))) for to in REFERENCES),
                      *([number(row.get(COST))] if costs else []),
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
