"""What Rollway promises of its speed, and whether a measurement keeps it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from rich.table import Table


class Verdict(StrEnum):
    """Of a target: missed only when the median is beyond the limit by more than the passes differ."""

    MET = "met"
    WITHIN_NOISE = "beyond, within its noise"
    MISSED = "MISSED"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Target:
    """`name`: in the section's passes. `cores`: with fewer, others stand in the way and it is not judged."""

    section: str
    name: str
    what: str
    limit: float
    at_least: bool = False
    cores: int = 1


@dataclass(frozen=True, slots=True)
class Judgement:
    """`median` of the passes, and half of the way from the least to the most of them as `noise`."""

    target: Target
    verdict: Verdict
    median: float = 0.0
    noise: float = 0.0


_CYCLES = tuple(
    target
    for size in (100, 1_000, 10_000)
    for target in (
        Target("cycle", f"mutating over floor, {size}", f"mutating cycles over the floor, N = {size:,}", 1.7),
        Target("cycle", f"processor over floor, {size}", f"the same in processor time, N = {size:,}", 1.4),
    )
)
_DECISIONS = tuple(
    Target("decide", f"µs, {routes}", f"a decision of {routes} routes, µs", limit)
    for routes, limit in ((3, 6), (10, 9), (100, 30))
)
_WAITING = tuple(
    Target("cycle", f"waiting a second, {size}", f"waiting cycles a second, N = {size:,}", 20_000, at_least=True)
    for size in (1_000, 10_000)
)
_GROWTH = tuple(
    Target("cycle", f"10000 over 1000, {what}", f"time of 10,000 deployments over that of 1,000, {what}", 11)
    for what in ("mutating", "waiting")
)
_ROLLOUTS = tuple(
    target
    for case, limit in (("10 replicas", 1.10), ("100 replicas, 10% more, 25% fewer", 1.10), ("10 processes", 1.05))
    for target in (
        Target("rollouts", f"over the ideal, {case}", f"rollout over the ideal, {case}", limit),
        Target("rollouts", f"wave p50 ms, {case}", f"from a wave's health to the next one's start, p50 ms, {case}", 10),
    )
)
_TOGETHER = tuple(
    Target("storm", f"two over one, {what}", f"two workers over one, {what}", 1.7, at_least=True, cores=4)
    for what in ("rollouts", "decisions alone")
)
_LOCKS = tuple(
    Target("storm", f"lock wait ms, {workers}", f"longest wait for a lock, ms, workers: {workers}", 100, cores=cores)
    for workers, cores in ((1, 2), (2, 4), (4, 8))
)

_CASES = tuple(
    Target("cases", f"over bare, {case}", f"a rollout's processor time over that of the bare case, {case}", 1.25)
    for case in ("two hosts", "five hosts", "two years of history", "3 % of deployments moving", "page open")
)

TARGETS: tuple[Target, ...] = (
    Target("commands", "seconds, --help", "processor seconds of rollway --help", 0.15),
    Target("commands", "seconds, status", "processor seconds of rollway status", 0.35),
    *_DECISIONS,
    *_CYCLES,
    *_WAITING,
    *_GROWTH,
    Target("records", "MB, 1000", "what is kept of a rollout of 1,000 replicas one by one, MB", 5),
    *_ROLLOUTS,
    Target("rollouts", "over the ideal, 10 containers", "rollout over the ideal, 10 containers", 1.15),
    *_TOGETHER,
    *_LOCKS,
    *_CASES,
    Target("hosts", "all heard s", "300 hosts start at once among 100,000 deployments, s until all are heard", 10),
    Target("hosts", "own %", "two workers and beat of 100,000 quiet deployments on 300 hosts, % of one core", 3),
    Target(
        "devices",
        "its worker ms",
        "placing one among 10,000 replicas on 300 hosts with devices, a worker's processor time, ms",
        1,
    ),
    Target("storm", "worker MiB", "memory of a worker, MiB", 300),
    Target("storm", "connections", "connections of a worker", 7),
    Target(
        "drains",
        "asked max s",
        "from the last acknowledgement until the last of 50 idle replicas is asked to end, s",
        2,
    ),
    Target("quiet", "own %", "two workers and beat of a quiet fleet of 10,000, % of one core", 3),
    Target("rest", "all %", "all processes of a stack with 20 replicas at rest, % of one core", 3),
    *(
        Target("rest", f"{name} %", f"{name} at rest, % of one core", 0.3)
        for name in ("worker1", "worker2", "beat", "api", "people")
    ),
    Target("rest", "ready s", "rollway up until it is ready, s", 5),
    Target("quiet", "rows written", "rows written in a quiet fleet of 10,000", 0),
)


def judged(section: str, measured: Mapping[str, Sequence[float]], cores: int | None = None) -> Iterator[Judgement]:
    """Each target of the section. `measured`: each pass, by name; `cores`: of this machine, if not given."""
    here = cores or os.cpu_count() or 1
    for target in TARGETS:
        if target.section == section:
            yield _judgement(target, measured.get(target.name, ()), here)


def _judgement(target: Target, values: Sequence[float], cores: int) -> Judgement:
    """The first that is true.

    nothing measured, or too few cores   → not measured
    the median keeps the limit           → met
    it is beyond by no more than noise   → beyond, within its noise
    otherwise                            → missed
    """
    if not values:
        return Judgement(target, Verdict.NOT_MEASURED)
    middle, noise = median(values), (max(values) - min(values)) / 2
    if cores < target.cores:
        return Judgement(target, Verdict.NOT_MEASURED, middle, noise)
    beyond = target.limit - middle if target.at_least else middle - target.limit
    verdict = Verdict.MET if beyond <= 0 else Verdict.WITHIN_NOISE if beyond <= noise else Verdict.MISSED
    return Judgement(target, verdict, middle, noise)


def judgement_table(judgements: Sequence[Judgement]) -> Table:
    """For people: what is missed last, where it is seen."""
    table = Table("target", "limit", "median", "±", "verdict", title="targets")
    for found in sorted(judgements, key=lambda found: found.verdict is Verdict.MISSED):
        target, sign = found.target, "≥" if found.target.at_least else "≤"
        verdict = str(found.verdict)
        if found.verdict is Verdict.NOT_MEASURED and target.cores > 1:
            verdict = f"not judged: needs {target.cores} cores"
        table.add_row(target.what, f"{sign} {target.limit:g}", f"{found.median:.4g}", f"{found.noise:.2g}", verdict)
    return table
