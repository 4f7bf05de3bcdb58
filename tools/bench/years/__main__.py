"""`make years`: whether anything grows without end, at ten rollouts a minute and with what is kept counted in minutes.

A stack of its own with Envoy in a temporary folder. Every 10 s the size of each table, of the logs, of Valkey and of
each process in memory goes into tools/bench/results/years.csv, at the end into docs/pictures/years.png.
Exit code 1 when something is larger in the last third of the time than in the one before, by more than a tenth; a
process, when the least that it needs is larger by a megabyte, and by what caches hold of each rollout: 24 KiB in the
server for proxies, 12 in a worker. Receipts are left out: 1,000 of each deployment are kept. The memory of the first
250 rollouts says little: malloc's gaps grow in workers, and Flower fills its list of 5,000 tasks.
"""

import argparse
import csv
import os
import sys
import time
from pathlib import Path

import psycopg
import redis
from rich.console import Console

from cli.demo.stage import DemoStage, open_stage
from cli.terminal.exits import interruptible
from tools.bench.years.load import FleetLife
from tools.bench.years.picture import draw
from tools.bench.years.sizes import Sources
from tools.bench.years.verdict import growths

_SAMPLE_SECONDS = 10.0
_DAY_MINUTES = 24 * 60
_SHOWN = ("bytes of the database", "bytes of logs of the stack", "bytes of Valkey")


def main() -> int:
    """Run, print and write down; the exit code."""
    arguments = _parse()
    for name in ("DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)
    os.environ |= _kept(arguments.keep)
    console = Console(width=None if sys.stdout.isatty() else 160)
    with interruptible(), open_stage(console) as stage:
        names, seconds, rows, rollouts = _watch(stage, arguments, console)
    _write(arguments.result, names, seconds, rows)
    picture = draw(names, seconds, rows, arguments.picture)
    console.print(f"{arguments.result} and {picture}")
    found = growths(names, rows, rollouts)
    for growth in found:
        console.print(f"{'✗' if growth.goes_on else '✔'} {growth.name:<40} {growth.before:>14,} {growth.after:>14,}")
    return 1 if any(growth.goes_on for growth in found) else 0


def _kept(minutes: float) -> dict[str, str]:
    """So little that a year passes in an hour."""
    days = str(minutes / _DAY_MINUTES)
    kinds = ("HISTORY", "ROUTES", "ROLLOUTS", "REVISIONS", "COMMANDS", "DESTROYED", "ENDED")
    counts = {f"ROLLWAY_KEEP_{kind}_COUNT": "10" for kind in kinds[:4]}
    logs = {"ROLLWAY_LOG_MEGABYTES": "0.1", "ROLLWAY_KEEP_LOGS_DAYS": days}
    return {**{f"ROLLWAY_KEEP_{kind}_DAYS": days for kind in kinds}, **counts, **logs}


def _watch(
    stage: DemoStage, arguments: argparse.Namespace, console: Console
) -> tuple[list[str], list[float], list[list[int]], int]:
    began = time.monotonic()
    seconds: list[float] = []
    rows: list[list[int]] = []
    with (
        psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as postgres,
        redis.Redis.from_url(os.environ["REDIS_URL"]) as valkey,
    ):
        sources, life = Sources(stage.home, postgres, valkey), FleetLife()
        names = list(sources.sample())
        life.begin()
        for _ in life.rollouts(arguments.minutes * 60, 60 / arguments.rate):
            if time.monotonic() - began < len(rows) * _SAMPLE_SECONDS:
                continue
            sample = sources.sample()
            seconds.append(time.monotonic() - began)
            rows.append([sample.get(name, 0) for name in names])
            if len(rows) % 6 == 1:
                shown = ", ".join(f"{sample[name]:,} {name}" for name in _SHOWN)
                console.print(f"  {seconds[-1] / 60:5.1f} min  {life.begun} rollouts, {shown}")
        console.print(f"{life.begun} rollouts, {life.refused} commands refused")
    return names, seconds, rows, life.begun


def _write(path: Path, names: list[str], seconds: list[float], rows: list[list[int]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["seconds", *names])
        writer.writerows([round(second, 1), *row] for second, row in zip(seconds, rows, strict=True))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make years", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60, help="how long (60)")
    parser.add_argument("--rate", type=float, default=10, help="rollouts a minute (10)")
    parser.add_argument("--keep", type=float, default=3, help="minutes that what has ended is kept, at least 1.5 (3)")
    parser.add_argument(
        "--result", type=Path, default=Path("tools/bench/results/years.csv"), help="where the samples go"
    )
    parser.add_argument("--picture", type=Path, default=Path("docs/pictures/years.png"), help="where the picture goes")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
