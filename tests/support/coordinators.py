"""Coordinators and handlers of this process, over deployments drawn into Postgres."""

import threading
from collections.abc import Iterable

import redis
from celery import Celery
from sqlalchemy import Engine

from domain.handlers import HANDLERS, HandlerRegistry
from domain.handlers.base import DeploymentHandler
from domain.model import DeploymentLifecycleStatus
from tasks.coordinator import DeploymentCoordinator
from tasks.redis.locks import Slots
from tasks.redis.wake import Waker
from tests.support.deployments import NOBODY


def coordinator_without_redis(
    engine: Engine, handlers: HandlerRegistry = HANDLERS, chunk: int = 250
) -> DeploymentCoordinator:
    """For `process_chunk`, which needs none."""
    client = redis.Redis.from_url(NOBODY)
    waker = Waker(Celery("nobody", broker=NOBODY), client)
    return DeploymentCoordinator(engine, Slots(client, 1, 1, waker.send), waker, handlers, chunk, 1, threading.Event())


def handler_for(status: DeploymentLifecycleStatus) -> DeploymentHandler:
    """The handler that beat runs often for deployments of this status."""
    return next(one for one in HANDLERS.values() if status in one.targets and one.cadence.short is not None)


def run_until_quiet(coordinator: DeploymentCoordinator, handlers: Iterable[DeploymentHandler] | None = None) -> int:
    """Every handler, again and again, until none finds anything marked; returns the deployments looked at."""
    seen = 0
    while found := sum(coordinator.process_chunk(one).seen for one in handlers or HANDLERS.values()):
        seen += found
        assert seen < 10_000, "it never comes to rest"
    return seen
