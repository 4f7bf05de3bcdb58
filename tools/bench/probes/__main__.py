"""One worker probes thousands of replicas, on the embedded Postgres and Valkey: `python -m tools.bench.probes`.

The replicas are ports of one small server process; some of them hang, some answer after 3 s. The probe pass runs in a
process of its own, as a Celery task runs it: once with a runtime that costs nothing, once where each look for a replica
is one for a real process. Prints a table and writes tools/bench/results/probes.json with the machine and the commit.
"""

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import psycopg
from rich.console import Console
from rich.table import Table

from runtime.process.process_runtime import ProcessRuntime
from tests.support.stack.servers import EmbeddedServer, embedded_postgres, embedded_redis
from tools.bench.probes.fleet import processes, seed
from tools.bench.probes.targets import serve
from tools.bench.probes.worker import work
from tools.bench.processor import processor_seconds

RESULT = Path("tools/bench/results/probes.json")
CHECK = {"interval_seconds": 5, "timeout_seconds": 4}
SLOW_SECONDS = 3.0
WARM_UP_SECONDS = 25.0
"""Longer than it takes those that hang to become unhealthy: from then on nothing changes, and nothing is written."""
FREE, REAL = "a runtime that costs nothing", "process runtime"

Figures = dict[str, Any]


def main() -> None:
    """Run, print and write down."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.probes")
    parser.add_argument("--replicas", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=30, help="of measuring, after a warm-up")
    parser.add_argument("--hanging", type=int, default=20, help="replicas that accept and never answer")
    parser.add_argument("--slow", type=int, default=20, help=f"replicas that answer after {SLOW_SECONDS:g} s")
    parser.add_argument("--processes", type=int, default=300, help="real processes, to measure what finding one costs")
    given = parser.parse_args()
    delays = [None] * given.hanging + [SLOW_SECONDS] * given.slow
    delays += [0.0] * (given.replicas - len(delays))
    figures = {**_about(), **vars(given), **_run(delays, given.seconds, given.processes)}
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(figures, indent=2) + "\n")
    _show(figures)


def _run(delays: Sequence[float | None], seconds: float, count: int) -> Figures:
    with (
        tempfile.TemporaryDirectory() as folder,
        embedded_postgres(Path(folder) / "postgres") as postgres,
        embedded_redis(Path(folder) / "valkey") as valkey,
        _process(serve, delays) as (server, pipe),
        processes(count) as (home, ids),
    ):
        seed(postgres, pipe.recv(), CHECK)
        finds = multiprocessing.get_context("spawn").Value("i", 0)
        runs: Figures = {}
        windows = {}
        for name, borrowed in ((FREE, ()), (REAL, tuple(ids))):
            with _process(work, postgres.url, valkey.url, home, borrowed, finds) as (worker, _):
                time.sleep(WARM_UP_SECONDS)
                watched = {"worker": worker, "replicas": server, "postgres": psutil.Process(postgres.pid)}
                windows[name], runs[name] = _measure(watched, postgres, finds, seconds)
        pipe.send("how often?")
        arrivals = pipe.recv()
        runtime = ProcessRuntime(home)
        found = _process_seconds(lambda: [runtime.find(route_id) for route_id in ids]) / count
        everyone = _process_seconds(runtime.everyone) / count
    for name, (began, ended) in windows.items():
        seen = [[at for at in times if began <= at <= ended] for times in arrivals]
        runs[name] |= {"probes_per_second": sum(map(len, seen)) / (ended - began), **_gaps(delays, seen)}
    return {"runs": runs, "find_us": found * 1e6, "everyone_us_each": everyone * 1e6}


def _measure(
    watched: Mapping[str, psutil.Process],
    postgres: EmbeddedServer,
    finds: Any,  # noqa: ANN401  (multiprocessing's Value)
    seconds: float,
) -> tuple[tuple[float, float], Figures]:
    """The window, and what the processes did in it."""
    written, before, asked, began = _updates(postgres), _cpu(watched), finds.value, time.monotonic()
    time.sleep(seconds)
    ended, after, asked = time.monotonic(), _cpu(watched), finds.value - asked
    memory = watched["worker"].memory_info().rss
    time.sleep(1.5)  # Postgres' own counters come a second late
    share = {f"{name}_cpu_share": (after[name] - before[name]) / (ended - began) for name in watched}
    return (began, ended), {
        **share,
        "worker_mib": memory / 2**20,
        "finds_per_second": asked / (ended - began),
        "updates": _updates(postgres) - written,
    }


def _gaps(delays: Sequence[float | None], arrivals: Sequence[Sequence[float]]) -> Figures:
    """Seconds between two probes of a replica."""
    gaps: dict[str, list[float]] = {"healthy": [], "hanging": [], "slow": []}
    for delay, times in zip(delays, arrivals, strict=True):
        kind = "hanging" if delay is None else "slow" if delay else "healthy"
        gaps[kind] += [b - a for a, b in pairwise(times)]
    return {
        f"gap_{kind}": {"count": len(some), "p50": statistics.median(some), "p99": _p99(some), "max": max(some)}
        for kind, some in gaps.items()
        if some
    }


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[int(0.99 * (len(values) - 1))]


@contextmanager
def _process(target: Callable[..., None], *arguments: object) -> Iterator[tuple[psutil.Process, Any]]:
    """A fresh process, and the other end of the pipe that is its last argument; killed at the end."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(*arguments, theirs), daemon=True)
    process.start()
    try:
        assert process.pid
        yield psutil.Process(process.pid), ours
    finally:
        process.kill()
        process.join()


def _cpu(watched: Mapping[str, psutil.Process]) -> dict[str, float]:
    """Seconds of CPU so far, by name, with those of children."""
    return {name: processor_seconds(process) for name, process in watched.items()}


def _updates(postgres: EmbeddedServer) -> int:
    query = "SELECT sum(n_tup_upd)::int FROM pg_stat_user_tables"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        (count,) = connection.execute(query).fetchone() or (0,)
    return int(count)


def _process_seconds(look: Callable[[], object]) -> float:
    look()
    began = time.process_time()
    look()
    return time.process_time() - began


def _about() -> Figures:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
        "commit": commit.stdout.strip() or "unknown",
    }


def _show(figures: Figures) -> None:
    what = f"{figures['replicas']} replicas every {CHECK['interval_seconds']} s, {figures['hanging']} hang"
    runs = figures["runs"]
    table = Table("", *runs, title=f"{what}, {figures['slow']} answer after {SLOW_SECONDS:g} s ({RESULT})")
    for label, key, form in (
        ("worker, of one core", "worker_cpu_share", ".0%"),
        ("worker, MiB", "worker_mib", ".0f"),
        ("Postgres, of one core", "postgres_cpu_share", ".0%"),
        ("the replicas' server, of one core", "replicas_cpu_share", ".0%"),
        ("probes a second", "probes_per_second", ".0f"),
        ("replicas found a second", "finds_per_second", ".0f"),
        ("rows updated", "updates", "d"),
    ):
        table.add_row(label, *(format(run[key], form) for run in runs.values()))
    for kind in ("healthy", "hanging", "slow"):
        gaps = [run[gap] for run in runs.values() if (gap := f"gap_{kind}") in run]
        said = (f"p50 {gap['p50']:.2f}, p99 {gap['p99']:.2f}, most {gap['max']:.2f}" for gap in gaps)
        table.add_row(f"seconds between two probes, {kind}", *said)
    Console().print(table, f"To find one of {figures['processes']} processes: {figures['find_us']:.0f} µs of CPU.")


if __name__ == "__main__":
    main()
