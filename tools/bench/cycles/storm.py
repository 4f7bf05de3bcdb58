"""A thousand rollouts at once, and a big backlog of decisions, with 1, 2 and 4 workers that share each handler.

Rollouts: asked for as a service does it, by Celery messages; replicas are simulated and start at once, so that nothing
but Rollway takes time. Latency: from the change of a route to the decision that follows, on the database's clock.
Deciding: every deployment of a fleet in the middle of a rollout is marked, and nothing else happens; it shows what
more workers bring.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from db.connection.transactions import in_transaction
from db.due_work import due_statuses
from tasks.messaging.queues import RETENTION_TASK
from tests.support.stack.waiting import eventually
from tools.bench.data import MUTATING, fill, mark_all, place
from tools.bench.figures import percentiles, spread
from tools.bench.passes import in_turns, middle, passes
from tools.bench.stage import Stage, stage
from tools.bench.watch import processors, watching
from tools.bench.world import HOST

WORKERS = (1, 2, 4)
_PATIENCE_SECONDS = 120.0

_LATENCIES = """
    SELECT extract(epoch FROM s.at - max(r.status_changed_at)) * 1000 AS ms
      FROM rollout_steps s
      JOIN routes r ON r.rollout_id = s.rollout_id AND r.status = 'healthy' AND r.status_changed_at <= s.at
     WHERE s.step_no > 1 GROUP BY s.rollout_id, s.step_no, s.at
"""

# by their ids, so that it costs no more where there is a past
_OF_NOW = "id > (SELECT uuidv7(interval '-1 hour'))"

_ROLLOUTS = f"""
    SELECT count(*) FILTER (WHERE outcome = 'completed')::int AS completed, count(*)::int AS begun,
           extract(epoch FROM max(ended_at) - min(started_at))::float8 AS seconds,
           extract(epoch FROM max(started_at) - min(started_at))::float8 AS asking_seconds,
           sum(steps)::int AS steps
      FROM rollouts WHERE {_OF_NOW}
"""


_LEFT = f"""
    SELECT (SELECT count(*) FROM rollouts WHERE {_OF_NOW} AND is_sealed) AS sealed,
           (SELECT count(*) FROM routes WHERE status = 'terminating' AND stopped_at IS NULL) AS stopping,
           (SELECT count(*) FROM outbox) AS untold
"""


def measure(*, full: bool) -> dict[str, Any]:
    """Both, with each number of workers in turns, and what two bring over one in the same pass."""
    count, deployments = (1000, 10_000) if full else (300, 4000)
    found = in_turns(passes(full=full), WORKERS, lambda workers: run(workers, count, deployments))
    rows = {workers: [_row({"workers": workers, **result}) for result in results] for workers, results in found.items()}
    return {
        "rows": [middle(each) for each in rows.values()],
        "passes": _by_target(rows),
        "details": [{"workers": workers, **results[-1]} for workers, results in found.items()],
    }


def _by_target(rows: Mapping[int, Sequence[Mapping[str, Any]]]) -> dict[str, list[float]]:
    pairs = list(zip(rows[1], rows[2], strict=True))
    targets = {
        f"two over one, {what}": [both[name] / alone[name] for alone, both in pairs]
        for what, name in (("rollouts", "rollouts_a_second"), ("decisions alone", "decided_alone_a_second"))
    }
    for workers, each in rows.items():
        targets[f"lock wait ms, {workers}"] = [row["longest_lock_wait_ms"] or 0.0 for row in each]
    together = list(zip(*rows.values(), strict=True))
    targets["worker MiB"] = [max(row["worker_peak_mib"] for row in each) for each in together]
    targets["connections"] = [max(row["connections_of_a_worker"] for row in each) for each in together]
    return targets


def run(workers: int, rollouts: int, deployments: int) -> dict[str, Any]:
    """With so many workers, each on servers that nobody used before."""
    with stage() as made:
        deciding = _decide(made, workers, deployments)
    with stage() as made:
        made.fill_quiet(rollouts)
        made.start_simulation(workers, start_seconds=0.0, ROLLWAY_SLOTS=str(workers))
        return {"rollouts": roll_out(made, rollouts), "deciding": deciding}


def _row(run: Mapping[str, Any]) -> dict[str, Any]:
    rollouts, deciding = run["rollouts"], run["deciding"]
    share, peak = rollouts["cost"]["cpu_share"], rollouts["cost"]["peak_mib"]
    workers = [name for name in share if name.startswith("worker")]
    return {
        "workers": run["workers"],
        "rollouts_a_second": rollouts["rollouts_per_second"],
        "steps_a_second": rollouts["decisions_per_second"],
        "latency_p50_ms": rollouts["decided_after_ms"]["p50"],
        "latency_p99_ms": rollouts["decided_after_ms"]["p99"],
        "longest_lock_wait_ms": rollouts["cost"]["longest_lock_wait_ms"],
        "longest_transaction_ms": rollouts["cost"]["longest_transaction_ms"],
        "worker_peak_mib": max(peak[name] for name in workers),
        "connections_of_a_worker": max(rollouts["cost"]["connections"].get(name, 0) for name in workers),
        **each(rollouts),
        "workers_cores": sum(share[name] for name in workers),
        "postgres_cores": share["postgres"],
        "valkey_cores": share["valkey"],
        "world_cores": share["world"],
        "decided_alone_a_second": deciding["deployments_per_second"],
    }


def each(rollouts: Mapping[str, Any]) -> dict[str, float]:
    """Processor time of one rollout, in ms, until nothing of it is left to do: its receipt is made, events are told."""
    whole, count = rollouts["whole"], rollouts["count"]
    return {"client_ms_each": 1000 * whole["client_seconds"] / count, **processors(whole, count)}


def roll_out(made: Stage, count: int) -> dict[str, Any]:
    """So many rollouts at once, in a fleet that is at rest."""
    figures: dict[str, Any] = {"count": count}
    whole: dict[str, Any] = {}
    with watching(made, whole, every_seconds=1.0):
        client = time.thread_time()  # others of this process look on
        with watching(made, figures):
            for number in range(1, count + 1):
                made.send("activate_revision", deployment=f"service-{number}", revision="v1")
            client = time.thread_time() - client
            eventually(lambda: _all_ended(made, count), _PATIENCE_SECONDS, "all rollouts to end")
        made.send_tick(RETENTION_TASK)  # once a minute; here as soon as there is something for it
        eventually(lambda: _nothing_is_left(made, count), _PATIENCE_SECONDS, "nothing to be left of them")
    (found,) = made.rows(_ROLLOUTS)
    assert found["completed"] == count, found
    latencies = [float(row["ms"]) for row in made.rows(_LATENCIES)]
    return {
        **figures,
        "whole": {**whole["cost"], "client_seconds": client},
        "seconds": found["seconds"],
        "asking_seconds": found["asking_seconds"],
        "rollouts_per_second": count / found["seconds"],
        "decisions_per_second": found["steps"] / found["seconds"],
        "decided_after_ms": spread(latencies),
        "decided_after_percentiles_ms": percentiles(latencies),
    }


def _all_ended(made: Stage, count: int) -> bool:
    (found,) = made.rows(f"SELECT count(*) FROM rollouts WHERE {_OF_NOW} AND ended_at IS NOT NULL")
    return bool(found["count"] == count)


def _nothing_is_left(made: Stage, count: int) -> bool:
    """Each has its receipt, what it replaced has stopped, and what was to be told is told."""
    (found,) = made.rows(_LEFT)
    return found == {"sealed": count, "stopping": 0, "untold": 0}


def _decide(made: Stage, workers: int, count: int) -> dict[str, Any]:
    """No beat and no world: nothing but workers that are woken once, and call each other for help."""
    figures: dict[str, Any] = {"count": count}
    with psycopg.connect(made.database, autocommit=True) as connection:
        fill(connection, MUTATING, count)
        place(connection, [HOST])
        made.start_deciders(workers, ROLLWAY_SLOTS=str(workers))
        time.sleep(1)
        mark_all(connection)
        with watching(made, figures):
            began = time.monotonic()
            made.waker.deployments(in_transaction(made.engine, due_statuses))
            eventually(lambda: not in_transaction(made.engine, due_statuses), _PATIENCE_SECONDS, "all to be decided")
            took = time.monotonic() - began
    return {**figures, "seconds": took, "deployments_per_second": count / took}
