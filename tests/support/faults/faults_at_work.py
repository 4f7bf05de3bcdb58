"""Faults that alerts are for, made with real parts while a worker and a beat work, or by killing them."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import LiteralString

import pytest

from db.connection.transactions import in_transaction
from db.replicas.heartbeats import show_sign_of_life
from tasks.messaging.queues import AUDIT_TASK, DO_ROUTE_TASK, LIFECYCLE_QUEUE, ROUTES_QUEUE
from tasks.task_settings import KEY_PREFIX
from tests.support.faults.watched import Watched, may_mount
from tests.support.rows.deployments import make_deployment, write
from tests.support.stack.waiting import eventually, meanwhile


@contextmanager
def a_host_falls_silent(watched: Watched) -> Iterator[Mapping[str, str]]:
    watched.work()
    in_transaction(watched.fleet.engine, partial(show_sign_of_life, host="gone", address="10.0.0.8"))
    write(watched.fleet.engine, "UPDATE hosts SET last_seen_at = last_seen_at - interval '1 hour' WHERE name = 'gone'")
    yield {"host": "gone"}
    write(watched.fleet.engine, "DELETE FROM hosts WHERE name = 'gone'")


@contextmanager
def a_disk_fills(watched: Watched) -> Iterator[Mapping[str, str]]:
    if not may_mount():  # as for users who may not: what is shown then is another disk, nearly full or not
        pytest.skip("no file system may be mounted here")
    watched.small.start()
    try:
        watched.sees(f'up{{instance="{watched.target("small")}"}} == 1')  # it may have the replica that does not end
        yield {"instance": watched.target("small")}
    finally:
        watched.small.end(kill=True)


@contextmanager
def marks_are_left_lying(watched: Watched) -> Iterator[Mapping[str, str]]:
    """One is found by each tick: some look in ten is late, however many others there are meanwhile."""
    watched.work()
    make_deployment(watched.fleet.engine, "", name="idle", n=0)
    with meanwhile(partial(write, watched.fleet.engine, LIES, "idle"), pause=0.05):
        yield {}


LIES: LiteralString = "UPDATE deployments SET due_at = now() - interval '1 hour' WHERE name = %s"


@contextmanager
def a_replica_does_not_end(watched: Watched) -> Iterator[Mapping[str, str]]:
    watched.work()
    spec = {"command": [sys.executable, "-c", IGNORES_SIGTERM], "health_check": {"path": "/", "interval_seconds": 0.5}}
    watched.fleet.ask("create_deployment", deployment="stubborn", desired_replicas=1)
    quick = {"drain_seconds": 0, "stop_grace_seconds": 0}
    watched.fleet.ask("add_revision", deployment="stubborn", name="v1", spec={**spec, **quick})
    watched.fleet.ask("activate_revision", deployment="stubborn", revision="v1")
    eventually(lambda: watched.fleet.state("stubborn")["lifecycle"] == "ready")
    watched.fleet.ask("destroy", deployment="stubborn")
    yield {}  # the host with the fewest replicas had it


IGNORES_SIGTERM = """
import os, signal
from http.server import HTTPServer, SimpleHTTPRequestHandler
signal.signal(signal.SIGTERM, signal.SIG_IGN)
HTTPServer(("127.0.0.1", int(os.environ["PORT"])), SimpleHTTPRequestHandler).serve_forever()
"""


@contextmanager
def a_task_raises(watched: Watched) -> Iterator[Mapping[str, str]]:
    watched.work()
    arguments = {"route_lifecycle_type": "sweep", "host": "elsewhere"}
    watched.fleet.producer.send_task(DO_ROUTE_TASK, kwargs=arguments, queue=ROUTES_QUEUE, ignore_result=True)
    yield {}


@contextmanager
def somebody_sends_nonsense(watched: Watched) -> Iterator[Mapping[str, str]]:
    watched.work()
    watched.sees("rollway_messages_put_aside_total")
    with watched.client as client:
        client.lpush(f"{KEY_PREFIX}commands", b"nonsense")
    yield {}


@contextmanager
def rows_contradict_each_other(watched: Watched) -> Iterator[Mapping[str, str]]:
    """An open rollout of a deployment that does not point to it."""
    watched.work()
    make_deployment(watched.fleet.engine, "", name="torn", n=0)
    write(watched.fleet.engine, UNLINKED)
    arguments = {"interval": 0.01}
    watched.fleet.producer.send_task(AUDIT_TASK, kwargs=arguments, queue=LIFECYCLE_QUEUE, ignore_result=True)
    yield {}
    write(watched.fleet.engine, "DELETE FROM rollouts WHERE actor = 'nobody'")


UNLINKED: LiteralString = """
    INSERT INTO rollouts (deployment_id, from_revision_id, to_revision_id, strategy, spec, limits, desired_at_start,
                          ceiling, floor, actor, reason)
    SELECT d.id, a.id, b.id, 'rolling_update', '{}', '{}', 0, 1, 0, 'nobody', ''
      FROM deployments d JOIN revisions a ON a.deployment_id = d.id AND a.name = 'v1'
      JOIN revisions b ON b.deployment_id = d.id AND b.name = 'v2'
     WHERE d.name = 'torn'
"""


@contextmanager
def a_worker_is_killed(watched: Watched) -> Iterator[Mapping[str, str]]:
    watched.kill("worker1")
    yield {"instance": watched.target("worker"), "job": "rollway"}
    watched.work()


@contextmanager
def beat_is_killed(watched: Watched) -> Iterator[Mapping[str, str]]:
    watched.kill("beat")
    yield {}
    watched.work()


@contextmanager
def nobody_is_heard_of(watched: Watched) -> Iterator[Mapping[str, str]]:
    write(watched.fleet.engine, "UPDATE hosts SET last_seen_at = last_seen_at - interval '1 minute'")
    yield {}
