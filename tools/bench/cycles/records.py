"""What is kept of rollouts one by one: bytes and processor time, beside the same steps each kept whole."""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import psycopg
from sqlalchemy import Engine

from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import in_transaction, make_engine
from db.views.timeline import steps_of
from domain.cycle import effects
from domain.handlers.deploying import DeployingProvisioningHandler
from tests.support.stack.servers import EmbeddedServer, embedded_postgres
from tests.support.workers.coordinators import coordinator_without_redis
from tools.bench.cycles.cost import cost_of
from tools.bench.data import MUTATING, fill, grow
from tools.bench.passes import in_turns, middle, passes
from tools.bench.stage import migrate

SIZES = (3, 100, 1_000)
_HANDLER = DeployingProvisioningHandler()
_NEVER = 10**9

_GROW_ROLLOUT = "UPDATE rollouts SET steps = 0, desired_at_start = %(n)s, ceiling = %(n)s + 1, floor = %(n)s - 1"
_STARTED = "status = 'healthy', address = '127.0.0.1:1', started_at = now(), status_changed_at = now()"
_STOPPED = "status = 'terminated', stopped_at = now(), status_changed_at = now()"
_WORLD = (
    f"UPDATE routes SET {_STARTED} WHERE status = 'provisioning'",
    f"UPDATE routes SET {_STOPPED} WHERE status = 'terminating'",
    "UPDATE deployments SET due_at = clock_timestamp(), version = version + 1 WHERE rollout_id IS NOT NULL",
)
_SIZE = """
    SELECT count(*), sum(length(inputs::text)), pg_total_relation_size('rollout_steps') FROM rollout_steps
"""


def measure(*, full: bool) -> dict[str, Any]:
    """One rollout of each size, as its steps are kept and with each of them whole, in turns."""
    cases = [(size, whole) for size in SIZES for whole in (False, True)]
    with (
        tempfile.TemporaryDirectory(prefix="rollway-bench-") as folder,
        embedded_postgres(Path(folder), fsync=True) as server,
    ):
        migrate(server.url)
        engine = make_engine(DatabaseSettings(url=server.url))
        found = in_turns(passes(full=full) if full else 1, cases, lambda case: _run(server, engine, *case))
        engine.dispose()
    rows = [middle(each) for each in found.values()]
    return {"rows": rows, "passes": _by_target(found)}


def _by_target(found: Mapping[tuple[int, bool], Sequence[Mapping[str, Any]]]) -> dict[str, list[float]]:
    largest = SIZES[-1]
    changed, whole = found[largest, False], found[largest, True]
    return {
        f"MB, {largest}": [row["kept_mb"] for row in changed],
        f"processor over whole, {largest}": [
            (mine["client_us"] + mine["server_us"]) / (theirs["client_us"] + theirs["server_us"])
            for mine, theirs in zip(changed, whole, strict=True)
        ],
    }


def _run(server: EmbeddedServer, engine: Engine, replicas: int, whole: bool) -> dict[str, Any]:  # noqa: FBT001
    """A rollout from its first step to its last."""
    postgres = psutil.Process(server.pid)
    coordinator, steps, client, backend = coordinator_without_redis(engine), 0, 0.0, 0.0
    with psycopg.connect(server.url, autocommit=True) as world, _kept(whole=whole):
        begin(world, replicas)
        while True:
            world_turns(world)
            cost = cost_of(lambda: coordinator.process_chunk(_HANDLER).looked_at, postgres)
            if not cost.count:
                break
            steps, client, backend = steps + 1, client + cost.client, backend + cost.server
        (kept, size, on_disk) = world.execute(_SIZE).fetchone() or (0, 0, 0)
        (rollout_id,) = world.execute("SELECT id FROM rollouts").fetchone() or (None,)
    told = in_transaction(engine, lambda connection: steps_of(connection, rollout_id))
    assert len(told) == kept == steps, (len(told), kept, steps)
    return {
        "replicas": replicas,
        "each": "whole" if whole else "changes",
        "steps": steps,
        "kept_mb": size / 1e6,
        "on_disk_mb": on_disk / 1e6,
        "told_mb": sum(len(json.dumps(step.inputs)) for step in told) / 1e6,
        "client_us": client / steps * 1e6,
        "server_us": backend / steps * 1e6,
    }


def begin(world: psycopg.Connection, replicas: int) -> None:
    """Of a rollout one by one of so many replicas; nothing has happened yet."""
    fill(world, MUTATING[:1], 1)
    world.execute("SET session_replication_role = replica")
    grow(world, replicas)
    world.execute(_GROW_ROLLOUT, {"n": replicas})


def world_turns(world: psycopg.Connection) -> None:
    """What starts is healthy, what drains is gone, and the deployment is looked at."""
    for statement in _WORLD:
        world.execute(statement)


@contextmanager
def _kept(*, whole: bool) -> Iterator[None]:
    """Steps of every size are kept whole, or as they are."""
    if not whole:
        yield
        return
    with patch.object(effects, "SMALL", _NEVER):
        yield
