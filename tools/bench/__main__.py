"""`python -m tools.bench [--only SECTION ...] [--full]`: each section prints a table and writes its results."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tools.bench.canaries import discovery, drains
from tools.bench.cycles import backlog, cases, cycle, decide, quiet, records, storm
from tools.bench.environment import environment
from tools.bench.faces import commands, page, rest, streams
from tools.bench.plots import draw
from tools.bench.rollouts import measured as rollouts
from tools.bench.scale import devices, hosts, replicas
from tools.bench.targets import Judgement, Verdict, judged, judgement_table

RESULTS = Path("tools/bench/results")
_LEAST_WIDTH = 140

SECTIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "decide": decide.measure,
    "commands": commands.measure,
    "cycle": cycle.measure,
    "records": records.measure,
    "rollouts": rollouts.measure,
    "storm": storm.measure,
    "cases": cases.measure,
    "quiet": quiet.measure,
    "rest": rest.measure,
    "hosts": hosts.measure,
    "replicas": replicas.measure,
    "devices": devices.measure,
    "backlog": backlog.measure,
    "discovery": discovery.measure,
    "drains": drains.measure,
    "streams": streams.measure,
    "page": page.measure,
}
"""By name: `measure(full=...)`: JSON with "rows" for the table, "passes" for the targets, and perhaps "details"."""


def main() -> None:
    """Run the sections that are asked for, one after the other; each result is written as soon as it is there.

    Exits with 1 when a target is missed by more than its noise.
    """
    parser = argparse.ArgumentParser(prog="make bench", description="Measure, and write it down.")
    parser.add_argument(
        "--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="these sections and no others"
    )
    parser.add_argument("--full", action="store_true", help="every size, more often")
    arguments = parser.parse_args()
    console = Console(width=max(Console().width, _LEAST_WIDTH))
    RESULTS.mkdir(parents=True, exist_ok=True)
    judgements: list[Judgement] = []
    for name in arguments.only:
        before = environment()
        result = SECTIONS[name](full=arguments.full)
        written = RESULTS / f"{name}.json"
        written.write_text(json.dumps({"section": name, **before, **result}, indent=2) + "\n")
        show(console, f"{name} ({written})", result)
        judgements += judged(name, result.get("passes", {}))
    for picture in draw(RESULTS):
        console.print(f"drawn: {picture}")
    console.print(judgement_table(judgements))
    if any(found.verdict is Verdict.MISSED for found in judgements):
        sys.exit(1)


def show(console: Console, title: str, result: Mapping[str, Any]) -> None:
    """The rows as a table, with a column for each name that any of them has; whatever else there is as JSON."""
    rows = result.get("rows", ())
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if columns:
        table = Table(*columns, title=title)
        for row in rows:
            table.add_row(*(_text(row.get(column)) for column in columns))
        console.print(table)
    rest = {key: value for key, value in result.items() if key not in ("rows", "passes", "details")}
    if rest:
        console.print_json(data=rest)


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case float():
            return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
        case int():
            return f"{value:,}"
    return str(value)


if __name__ == "__main__":
    main()
