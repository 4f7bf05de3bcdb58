"""One cycle of the coordinator over deployments in the middle of a rollout, on the embedded Postgres.

    deciding    the pure decision alone, for 3, 10 and 100 replicas
    mutating    every deployment creates one replica and drains one
    waiting     every deployment waits for the replica it created

Prints a table and writes bench/results/cycles.json with the machine, the versions and the commit.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table
from sqlalchemy import Engine

from db.engine import make_engine
from db.settings import DatabaseSettings, database_url
from domain.evaluator import EVALUATOR
from domain.handlers.deploying_provisioning import DeployingProvisioningHandler
from stack.servers import embedded_postgres
from tests.domain.pictures import NOW, deploying
from tests.fleet import coordinator_without_redis

RESULT = Path("bench/results/cycles.json")
HANDLER = DeployingProvisioningHandler()

SEED = """
    INSERT INTO endpoints (name, desired_replicas) SELECT 'd' || i, 3 FROM generate_series(1, %(count)s) i;
    INSERT INTO revisions (endpoint_id, name, spec)
    SELECT id, v, '{"command": ["x"]}' FROM endpoints, (VALUES ('v1'), ('v2')) n (v);
    INSERT INTO routes (endpoint_id, revision_id, status, traffic_status, started_at, address)
    SELECT r.endpoint_id, r.id, 'provisioning', 'active', now(), 'h:1'
      FROM revisions r, generate_series(1, 3) WHERE name = 'v1';
    UPDATE routes SET status = 'healthy';
    INSERT INTO rollouts (endpoint_id, from_revision_id, to_revision_id, strategy, spec, limits, desired_at_start,
                          ceiling, floor, actor, reason, deadline)
    SELECT a.endpoint_id, a.id, b.id, 'rolling_update', '{"max_surge": 1, "max_unavailable": 1}', '{}', 3,
           4, 2, 'bench', '', now() + interval '1 day'
      FROM revisions a JOIN revisions b USING (endpoint_id) WHERE a.name = 'v1' AND b.name = 'v2';
    UPDATE endpoints e
       SET lifecycle = 'deploying', sub_step = 'provisioning', current_revision_id = o.from_revision_id,
           deploying_revision_id = o.to_revision_id, rollout_id = o.id, due_at = now()
      FROM rollouts o WHERE o.endpoint_id = e.id;
    ANALYZE
"""


def main() -> None:
    """Run, print and write down."""
    arguments = argparse.ArgumentParser(prog="make bench", description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--sizes", nargs="*", type=int, default=[100, 1000, 10_000], help="deployments in a fleet")
    sizes = arguments.parse_args().sizes
    rows = [*(_deciding(replicas) for replicas in (3, 10, 100))]
    with tempfile.TemporaryDirectory() as folder, embedded_postgres(Path(folder)) as server:
        subprocess.run(
            [sys.executable, "-m", "alembic", "upgrade", "head"],
            env={**os.environ, "DATABASE_URL": server.url},
            check=True,
        )
        engine = make_engine(DatabaseSettings(database_url(server.url)))
        for size in sizes:
            rows += _cycles(engine, server.url, size)
        engine.dispose()
    _write(rows)
    _show(rows)


def _deciding(replicas: int) -> dict[str, Any]:
    snapshot = deploying("■" * replicas + "|", n=replicas)
    runs = 2000
    seconds = _seconds(lambda: [EVALUATOR.evaluate_one(snapshot, NOW) for _ in range(runs)])
    return {"what": f"decide, {replicas} replicas", "count": runs, "seconds": seconds}


def _cycles(engine: Engine, url: str, size: int) -> list[dict[str, Any]]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE endpoints, revisions, routes, rollouts, rollout_steps, deployment_history CASCADE")
        connection.execute(psycopg.sql.SQL(SEED.replace("%(count)s", str(size))))
    mutating = _seconds(lambda: _until_nothing_is_due(engine))
    with psycopg.connect(url, autocommit=True) as connection:
        (created,) = connection.execute("SELECT count(*) FROM routes WHERE status = 'provisioning'").fetchone() or (0,)
        assert created == size, "every deployment has created one replica"
        connection.execute("UPDATE endpoints SET due_at = now()")
    waiting = _seconds(lambda: _until_nothing_is_due(engine))
    return [
        {"what": f"mutating cycle, {size} deployments", "count": size, "seconds": mutating},
        {"what": f"waiting cycle, {size} deployments", "count": size, "seconds": waiting},
    ]


def _until_nothing_is_due(engine: Engine) -> None:
    coordinator = coordinator_without_redis(engine, chunk=250)
    while coordinator.process_chunk(HANDLER).seen:
        pass


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _write(rows: list[dict[str, Any]]) -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    about = {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "python": platform.python_version(),
        "commit": commit.stdout.strip() or "unknown",
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({**about, "rows": rows}, indent=2) + "\n")


def _show(rows: list[dict[str, Any]]) -> None:
    table = Table("what", "each", "per second", title=f"make bench ({RESULT})")
    for row in rows:
        each = row["seconds"] / row["count"]
        table.add_row(row["what"], f"{each * 1e6:.0f} µs", f"{1 / each:,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
