"""What is probed in the bench: routes in Postgres, and real processes that stand for replicas."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

import psycopg

from domain.revisions.revision import RevisionSpec
from runtime.process.process_runtime import ProcessRuntime
from runtime.process.termination import stop_all
from runtime.protocol import ReplicaRequest
from tests.support.stack.servers import EmbeddedServer
from tools.bench.probes.worker import HOST

_SEED = """
    SET session_replication_role = replica;
    INSERT INTO deployments (name, desired_replicas)
    SELECT 'd' || i, %(each)s FROM generate_series(1, %(deployments)s) i;
    INSERT INTO revisions (deployment_id, name, spec) SELECT id, 'v1', '%(spec)s' FROM deployments;
    UPDATE deployments d SET current_revision_id = r.id, lifecycle = 'ready'
      FROM revisions r WHERE r.deployment_id = d.id;
    INSERT INTO routes (deployment_id, revision_id, host, status, traffic_status, started_at, address)
    SELECT r.deployment_id, r.id, '%(host)s', 'healthy', 'active', now() - random() * interval '5 seconds', a.address
      FROM unnest('{%(addresses)s}'::text[]) WITH ORDINALITY AS a (address, i)
      JOIN (SELECT *, row_number() OVER (ORDER BY id) AS j FROM revisions) r ON r.j = a.i %% %(deployments)s + 1;
    ANALYZE
"""


def seed(postgres: EmbeddedServer, ports: Sequence[int], check: Mapping[str, object]) -> None:
    """A healthy route for each port, in deployments of a hundred."""
    environment = {**os.environ, "DATABASE_URL": postgres.url}
    subprocess.run([sys.executable, "-m", "cli.main", "migrate"], env=environment, check=True)
    deployments = max(1, len(ports) // 100)
    values = {
        "deployments": deployments,
        "each": len(ports) // deployments,
        "spec": json.dumps({"command": ["serve"], "health_check": dict(check)}),
        "host": HOST,
        "addresses": ",".join(f"127.0.0.1:{port}" for port in ports),
    }
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute((_SEED % values).encode())


@contextmanager
def processes(count: int) -> Iterator[tuple[Path, list[UUID]]]:
    """That many tiny replica processes, started by the process runtime in this home."""
    with tempfile.TemporaryDirectory() as folder:
        home, ids = Path(folder), [uuid4() for _ in range(count)]
        runtime, spec = ProcessRuntime(home), RevisionSpec(command=("sleep", "3600"))
        try:
            for route_id in ids:
                runtime.start(ReplicaRequest(route_id, "bench", "v1", spec))
            yield home, ids
        finally:
            stop_all(home, grace_seconds=1)
