"""How long a rollout takes against what its replicas need: through real workers, beat, Postgres and Valkey.

The ideal is waves x the time that a replica takes to start: a fixed second, and for processes and containers what
Python and the engine take besides, measured by hand before. Everything else is read from Postgres and so on its clock:
what came between the last healthy report of a wave and the next wave, decided and then started.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from tests.support.docker.busybox import import_busybox
from tests.support.docker.docker_engine import NoEngineError, any_engine
from tools.bench.figures import spread
from tools.bench.passes import in_turns, middle, passes
from tools.bench.rollouts.by_hand import CONTAINER, PROCESS, START_SECONDS, container_seconds, process_seconds
from tools.bench.stage import SPEC, Stage, rolling, stage
from tools.bench.watch import processors, watching

_WORKERS = 2

_WAVES = """
    SELECT s.at, w.started, w.healthy, w.first_started, w.created
      FROM rollout_steps s JOIN rollouts o ON o.id = s.rollout_id JOIN deployments d ON d.id = o.deployment_id,
           LATERAL (SELECT count(*)::int AS created, min(r.started_at) AS first_started, max(r.started_at) AS started,
                           max(r.status_changed_at) AS healthy
                      FROM routes r WHERE r.rollout_id = s.rollout_id AND r.created_at = s.at) w
     WHERE d.name = %s ORDER BY s.step_no
"""

_ROUTES = """
    SELECT r.rollout_id IS NOT NULL AS is_new, r.created_at, r.started_at, r.drain_started_at,
           CASE WHEN r.rollout_id IS NOT NULL THEN r.status_changed_at END AS healthy_at
      FROM routes r JOIN deployments d ON d.id = r.deployment_id WHERE d.name = %s ORDER BY r.created_at, r.id
"""


class Kind(StrEnum):
    """Who plays the replicas: the world, or a runtime, whose replicas are probed."""

    SIMULATED = "simulated"
    PROCESS = "process"
    DOCKER = "docker"


@dataclass(frozen=True, slots=True)
class Case:
    """One rollout."""

    name: str
    replicas: int
    surge: int | str = 1
    unavailable: int | str = 1
    kind: Kind = Kind.SIMULATED


SHORT = (
    Case("10 replicas", 10),
    Case("100 replicas, 10% more, 25% fewer", 100, "10%", "25%"),
    Case("10 processes", 10, kind=Kind.PROCESS),
)
FULL = (*SHORT, Case("100 replicas", 100))
IN_CONTAINERS = Case("10 containers", 10, kind=Kind.DOCKER)


def measure(*, full: bool) -> dict[str, Any]:
    """Each case in turns, on servers of its own: what it took, what the ideal is, and the time between waves."""
    with ExitStack() as stack:
        cases, engine, skipped = FULL if full else SHORT, None, {}
        try:
            engine = stack.enter_context(any_engine())
            import_busybox(engine)
            cases = (*cases, IN_CONTAINERS)
        except NoEngineError as error:
            skipped = {"NOT MEASURED": f"{IN_CONTAINERS.name}: {error}"}
        found = in_turns(passes(full=full), cases, lambda case: run(case, engine))
    rows = [middle([_row(result) for result in results]) for results in found.values()]
    details = [results[-1] for results in found.values()]
    return {"rows": rows, **skipped, "passes": _by_target(found), "details": details}


def run(case: Case, engine: str | None = None) -> dict[str, Any]:
    """One rollout from v1 to v2. `engine`: the URL of Docker's, for containers."""
    start, spec = _ideal(case, engine)
    with stage() as made:
        if case.kind is Kind.SIMULATED:
            made.start_simulation(_WORKERS, START_SECONDS)
        else:
            environment = {"DOCKER_HOST": engine} if engine else {}
            made.start_workers(*(f"worker{number + 1}" for number in range(_WORKERS)), **environment)
            made.start_beat()
        made.deploy("web", case.replicas, rolling(case.surge, case.unavailable), spec)
        time.sleep(START_SECONDS)  # what the first revision left to do is done
        cost: dict[str, Any] = {}
        with watching(made, cost):
            made.activate("web", "v2")
            made.wait_until_idle("web", within=case.replicas * 5 * START_SECONDS)
        return {"name": case.name, "start_seconds": start, **_figures(made, case, start), **cost}


def _ideal(case: Case, engine: str | None) -> tuple[float, Mapping[str, Any]]:
    """Seconds that one replica takes by itself, and what it runs."""
    match case.kind:
        case Kind.SIMULATED:
            return START_SECONDS, SPEC
        case Kind.PROCESS:
            return process_seconds(), PROCESS
        case Kind.DOCKER:
            assert engine, "only with an engine"
            return container_seconds(engine), CONTAINER


def _by_target(found: Mapping[Case, Sequence[Mapping[str, Any]]]) -> dict[str, list[float]]:
    targets: dict[str, list[float]] = {}
    for case, results in found.items():
        targets[f"over the ideal, {case.name}"] = [result["ratio"] for result in results]
        targets[f"wave p50 ms, {case.name}"] = [result["started_after_ms"]["p50"] for result in results]
    return targets


def _row(case: Mapping[str, Any]) -> dict[str, Any]:
    decided, started = case["decided_after_ms"], case["started_after_ms"]
    return {
        "rollout": case["name"],
        "waves": case["waves"],
        "wall_s": case["wall_seconds"],
        "ideal_s": case["ideal_seconds"],
        "ratio": case["ratio"],
        "decided_p50_ms": decided["p50"],
        "decided_p99_ms": decided["p99"],
        "started_p50_ms": started["p50"],
        "started_p99_ms": started["p99"],
        "start_to_healthy_p50_ms": case["start_to_healthy_ms"]["p50"],
        "longest_lock_wait_ms": case["cost"]["longest_lock_wait_ms"],
        **processors(case["cost"]),
    }


def _figures(made: Stage, case: Case, start_seconds: float) -> dict[str, Any]:
    (rollout,) = made.rollouts("web")
    steps = made.rows(_WAVES, "web")
    waves = [step for step in steps if step["created"]]
    wall, ideal = _ms(rollout["started_at"], rollout["ended_at"]) / 1e3, len(waves) * start_seconds
    between = [(waves[number]["healthy"], step) for number, step in enumerate(steps[1:])]
    return {
        "replicas": case.replicas,
        "outcome": rollout["outcome"],
        "waves": len(waves),
        "wall_seconds": wall,
        "ideal_seconds": ideal,
        "ratio": wall / ideal,
        "first_wave_ms": _ms(rollout["started_at"], waves[0]["started"]),
        "decided_after_ms": spread([_ms(healthy, step["at"]) for healthy, step in between]),
        "started_after_ms": spread([_ms(healthy, step["started"]) for healthy, step in between if step["started"]]),
        "start_to_healthy_ms": spread([_ms(step["started"], step["healthy"]) for step in waves]),
        "time_line": _time_line(made.rows(_ROUTES, "web"), rollout["started_at"]),
    }


def _time_line(routes: Sequence[Mapping[str, Any]], began: datetime) -> list[dict[str, float | None]]:
    """Of each replica, in seconds from the rollout's start; an old one has only an end."""
    return [
        {
            "created": _seconds(began, route["created_at"]) if route["is_new"] else None,
            "started": _seconds(began, route["started_at"]) if route["is_new"] else None,
            "healthy": _seconds(began, route["healthy_at"]),
            "drained": _seconds(began, route["drain_started_at"]),
        }
        for route in routes
    ]


def _seconds(began: datetime, at: datetime | None) -> float | None:
    return round((at - began).total_seconds(), 4) if at else None


def _ms(began: datetime, ended: datetime) -> float:
    return (ended - began).total_seconds() * 1e3
