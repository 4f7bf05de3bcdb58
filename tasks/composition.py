"""The one place where engine, Redis, runtimes and coordinator are put together, each made at its first use."""

import gc
import threading
from collections.abc import Mapping
from datetime import timedelta
from functools import cache

import redis
from celery.signals import worker_ready, worker_shutting_down
from redis.backoff import NoBackoff
from redis.retry import Retry

from db.engine import engine
from domain.handlers import HANDLERS
from runtime.base import Runtime
from runtime.docker import DockerRuntime
from runtime.docker_container import owner_of
from runtime.external import ExternalRuntime
from runtime.process import ProcessRuntime
from tasks.app import app
from tasks.coordinator import DeploymentCoordinator
from tasks.redis.locks import Slots
from tasks.redis.wake import Waker
from tasks.replicas.hosts import keep_showing_signs_of_life
from tasks.replicas.start_stop import HostReplicas
from tasks.settings import TaskSettings, queue

stopping = threading.Event()
"""Set when the worker was asked to end: a task finishes the chunk in hand and claims no other."""


@worker_shutting_down.connect
def _stop(**_: object) -> None:
    stopping.set()


@worker_ready.connect
def _be_at_work(**_: object) -> None:
    """What was imported stays for good, so the garbage collector need not look at it in each of its rounds."""
    gc.collect()
    gc.freeze()
    keep_showing_signs_of_life(engine(), settings().host, settings().host_address, stopping)


@cache
def settings() -> TaskSettings:
    """From the environment, at first use."""
    return TaskSettings.from_environment()


@cache
def redis_client() -> redis.Redis:
    """For locks and marks. One short retry only: by default redis-py would block for 4.4 s on a dead server."""
    return redis.Redis.from_url(
        settings().redis_url, socket_timeout=5, socket_connect_timeout=2, retry=Retry(NoBackoff(), 1)
    )


@cache
def waker() -> Waker:
    """Sends the events that follow a change."""
    return Waker(app, redis_client())


@cache
def slots() -> Slots:
    """The lock slots of all handlers."""
    return Slots(redis_client(), settings().slots, settings().lock_seconds, waker().again)


@cache
def runtimes() -> dict[str, Runtime]:
    """The runtimes, by the name that a revision's spec uses."""
    return {
        "process": ProcessRuntime(settings().home, address=settings().host_address),
        "docker": DockerRuntime(owner_of(settings().host, settings().home), address=settings().host_address),
        "external": ExternalRuntime(_send_to_others),
    }


def _send_to_others(task: str, payload: Mapping[str, object], to: str) -> None:
    """To the workers of another system, which has a queue of its own on this broker."""
    app.send_task(task, kwargs={"payload": payload}, queue=queue(to), ignore_result=True)


@cache
def replicas_of(host: str) -> HostReplicas:
    """What a worker does for the replicas of its own host, or of EXTERNAL."""
    deadline = timedelta(seconds=settings().drain_deadline_seconds)
    return HostReplicas(engine(), runtimes(), waker(), host, deadline)


@cache
def coordinator() -> DeploymentCoordinator:
    """The generic path of every deployment event, over the seven handlers."""
    return DeploymentCoordinator(
        engine=engine(),
        slots=slots(),
        waker=waker(),
        handlers=HANDLERS,
        chunk=settings().chunk,
        work_seconds=settings().work_seconds,
        stopping=stopping,
    )
