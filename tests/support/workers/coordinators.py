"""Coordinators and handlers of this process, over deployments drawn into Postgres."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import redis
from sqlalchemy import Engine

from domain.handlers.base import DeploymentHandler
from domain.handlers.dispatch import HANDLERS, HandlerRegistry
from domain.model.states import DeploymentLifecycleStatus
from tasks.cycle.coordinator import DeploymentCoordinator
from tasks.redis.locks import Slots
from tasks.redis.wake import Waker
from tests.support.rows.deployments import NOBODY, read
from tests.support.stack.waiting import meanwhile


def coordinator_without_redis(
    engine: Engine, handlers: HandlerRegistry = HANDLERS, chunk: int = 250
) -> DeploymentCoordinator:
    """For `process_chunk`, which needs none."""
    client = redis.Redis.from_url(NOBODY)
    waker = Waker(client)
    return DeploymentCoordinator(engine, Slots(client, 1, 1, waker.send), waker, handlers, chunk, 1, threading.Event())


def handler_for(status: DeploymentLifecycleStatus) -> DeploymentHandler:
    """The handler that beat runs often for deployments of this status."""
    return next(
        handler for handler in HANDLERS.values() if status in handler.targets and handler.cadence.short is not None
    )


def run_until_quiet(coordinator: DeploymentCoordinator, handlers: Iterable[DeploymentHandler] | None = None) -> int:
    """Every handler, again and again, until none finds anything marked; returns the deployments looked at."""
    seen = 0
    while found := sum(coordinator.process_chunk(handler).looked_at for handler in handlers or HANDLERS.values()):
        seen += found
        assert seen < 10_000, "it never comes to rest"
    return seen


@contextmanager
def cycling(engine: Engine) -> Iterator[None]:
    """A coordinator works, in a thread of its own, until the block ends."""
    coordinator = coordinator_without_redis(engine)
    with meanwhile(lambda: run_until_quiet(coordinator), 0.02):
        yield


def assert_nothing_happened_twice(engine: Engine) -> None:
    """Steps without gap or double, each from a newer version than the one before; nothing deadlocked."""
    for rollout in read(engine, "SELECT id, steps FROM rollouts"):
        steps = read(
            engine,
            "SELECT step_no, (coalesce(inputs->'changed', inputs)->'deployment'->>'version')::int AS version"
            "  FROM rollout_steps"
            " WHERE rollout_id = %s ORDER BY step_no",
            rollout["id"],
        )
        assert [step["step_no"] for step in steps] == list(range(1, rollout["steps"] + 1))
        assert all(earlier["version"] < later["version"] for earlier, later in pairwise(steps))
    assert read(engine, "SELECT message FROM deployment_history WHERE result = 'error'") == []
    (deadlocks,) = read(engine, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    assert deadlocks["deadlocks"] == 0
