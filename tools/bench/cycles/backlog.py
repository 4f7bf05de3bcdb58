"""How long a fleet takes to catch up: workers, or Redis, are away while beat ticks and rollouts are asked for."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import redis

from db.connection.transactions import in_transaction
from db.due_work import due_statuses
from tasks.messaging.queues import COMMANDS_QUEUE, LIFECYCLE_QUEUE, ROUTES_QUEUE
from tasks.task_settings import KEY_PREFIX
from tests.support.stack.waiting import eventually
from tools.bench.stage import Stage, stage
from tools.bench.watch import processors, watching

WORKERS = 2
_ROLLOUTS_A_SECOND = 10.0
_PATIENCE_SECONDS = 300.0


def measure(*, full: bool) -> dict[str, Any]:
    """Both outages. Whoever is back has all of `rollouts` to do at once."""
    away = 300.0 if full else 20.0
    outages = [run(name, away) for name in OUTAGES]
    rows = [{**outage, **processors(outage["cost"], outage["rollouts"])} for outage in outages]
    return {"rows": [{key: row[key] for key in row if key != "cost"} for row in rows], "details": outages}


def run(name: str, away_seconds: float) -> dict[str, Any]:
    """One outage: rollouts are asked for at a steady pace all through it, in Postgres alone."""
    rollouts = int(away_seconds * _ROLLOUTS_A_SECOND)
    figures: dict[str, Any] = {"away": name, "away_seconds": away_seconds, "rollouts": rollouts}
    with stage() as made:
        made.fill_quiet(rollouts)
        made.start_simulation(WORKERS, start_seconds=0.0, ROLLWAY_SLOTS=str(WORKERS))
        with OUTAGES[name](made):
            _ask_for(made, rollouts, away_seconds)
            figures["messages_waiting"] = _messages(made) if name == "workers" else None
        back = time.monotonic()
        with watching(made, figures):
            eventually(lambda: _is_caught_up(made, rollouts), _PATIENCE_SECONDS, "all to be caught up")
            figures["caught_up_seconds"] = time.monotonic() - back
    return figures


@contextmanager
def _without_workers(made: Stage) -> Iterator[None]:
    names = [f"worker{number + 1}" for number in range(WORKERS)]
    for name in names:
        made.ask_to_end(name)
    yield
    made.start_deciders(WORKERS, called="successor", ROLLWAY_SLOTS=str(WORKERS))


@contextmanager
def _without_redis(made: Stage) -> Iterator[None]:
    made.valkey.stop()
    yield
    made.valkey.start()


OUTAGES: dict[str, Callable[[Stage], Any]] = {"workers": _without_workers, "redis": _without_redis}


def _ask_for(made: Stage, rollouts: int, seconds: float) -> None:
    began = time.monotonic()
    for number in range(rollouts):
        time.sleep(max(0.0, began + number / rollouts * seconds - time.monotonic()))
        made.activate(f"service-{number + 1}", "v1", wake=False)
    time.sleep(max(0.0, began + seconds - time.monotonic()))


def _messages(made: Stage) -> int:
    with redis.Redis.from_url(made.valkey.url) as client:
        return sum(int(client.llen(KEY_PREFIX + name)) for name in (LIFECYCLE_QUEUE, ROUTES_QUEUE, COMMANDS_QUEUE))


def _is_caught_up(made: Stage, rollouts: int) -> bool:
    """Every rollout has ended, and nobody waits to be looked at."""
    (ended,) = made.rows("SELECT count(*) FROM rollouts WHERE outcome = 'completed'")
    return bool(ended["count"] == rollouts) and not in_transaction(made.engine, due_statuses)
