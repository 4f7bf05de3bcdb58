"""How long a rollout takes against what its replicas need: through real workers, beat, Postgres and Valkey.

The ideal is waves x the time that a replica takes to start: a fixed second, and for processes what Python itself takes
besides, measured by hand before. Everything else is read from Postgres and so on its clock: what came between the last
healthy report of a wave and the next wave, decided and then started.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from bench.figures import spread
from bench.stage import SPEC, Stage, rolling, stage
from bench.watch import watching
from stack.ports import free_port
from tests.support.stack import ROOT

START_SECONDS = 1.0
_WORKERS = 2
_PROCESS: Mapping[str, Any] = {
    "command": [sys.executable, str(ROOT / "bench" / "replica.py")],
    "env": {"STARTUP_SECONDS": str(START_SECONDS)},
    "health_check": {"interval_seconds": 0.5, "start_deadline_seconds": 30},
    "drain_seconds": 0,
}

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


@dataclass(frozen=True, slots=True)
class Case:
    """One rollout. `real`: replicas are processes that are probed; otherwise the world plays them."""

    name: str
    replicas: int
    surge: int | str
    unavailable: int | str
    real: bool = False


SHORT = (
    Case("10 replicas", 10, 1, 1),
    Case("100 replicas, 10% more, 25% fewer", 100, "10%", "25%"),
    Case("10 processes", 10, 1, 1, real=True),
)
FULL = (*SHORT, Case("100 replicas", 100, 1, 1))


def measure(*, full: bool) -> dict[str, Any]:
    """Each case on servers of its own: what it took, what the ideal is, and the time between waves."""
    cases = [run(case) for case in (FULL if full else SHORT)]
    return {"rows": [_row(case) for case in cases], "details": cases}


def run(case: Case) -> dict[str, Any]:
    """One rollout from v1 to v2."""
    start = _by_hand() if case.real else START_SECONDS
    with stage() as made:
        if case.real:
            made.start_workers(*(f"worker{number + 1}" for number in range(_WORKERS)))
            made.start_beat()
        else:
            made.start_simulation(_WORKERS, START_SECONDS)
        made.deploy("web", case.replicas, rolling(case.surge, case.unavailable), _PROCESS if case.real else SPEC)
        time.sleep(START_SECONDS)  # what the first revision left to do is done
        cost: dict[str, Any] = {}
        with watching(made, cost):
            made.activate("web", "v2")
            made.wait_until_idle("web", within=case.replicas * 5 * START_SECONDS)
        return {"name": case.name, "start_seconds": start, **_figures(made, case, start), **cost}


def _by_hand(times: int = 3) -> float:
    """Seconds from the spawn of a replica until it answers that it is healthy: the median, when nobody looks on."""
    return median(_start_by_hand() for _ in range(times))


def _start_by_hand() -> float:
    port = free_port()
    environment = {**os.environ, **_PROCESS["env"], "PORT": str(port)}
    began = time.monotonic()
    process = subprocess.Popen(_PROCESS["command"], env=environment, stderr=subprocess.DEVNULL)
    try:
        while not _is_healthy(port):
            time.sleep(0.002)
        return time.monotonic() - began
    finally:
        process.kill()
        process.wait()


def _is_healthy(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\n\r\n")
            return b" 200 " in connection.recv(4096)
    except OSError:
        return False


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
