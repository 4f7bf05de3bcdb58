"""How soon a real Envoy has acknowledged a change, by the size of the fleet, and what that costs it and its server."""

import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psutil
import psycopg
import redis

from tasks.task_settings import TRAFFIC_CHANNEL
from tests.support.proxies.edge import DRAIN, api_process, envoy_process
from tests.support.stack.server_process import Process
from tests.support.stack.servers import EmbeddedServer, embedded_postgres, embedded_redis
from tests.support.stack.waiting import eventually
from tools.bench.data import QUIET, fill, grow
from tools.bench.stage import migrate

SIZES = ((50, 3), (500, 3), (5000, 3), (1, 100), (1, 1_000), (1, 10_000))
"""Deployments, and the replicas of each."""
_DRAINS, _LIMITS = 60, 12
_QUIET_SECONDS, _PATIENCE = 5.0, 600.0
_ENTRANCES = """
    INSERT INTO entrances (kind, value, deployment_id)
    SELECT kind, replace(value, '*', name), id
      FROM deployments, (VALUES ('host', '*'), ('host', '*.localhost'), ('prefix', '/*/')) v (kind, value)
"""
_ADDRESSES = "UPDATE routes SET address = '127.0.0.1:' || 20000 + (abs(hashtext(id::text)) % 20000)"
_MAY_LEAVE = "UPDATE deployments SET desired_replicas = 1"
_SOME = """
    SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY deployment_id ORDER BY id) AS place FROM routes
                     WHERE status = 'healthy') r
     WHERE place < %s ORDER BY md5(id::text) LIMIT %s
"""
_LIMIT = "UPDATE deployments SET request_timeout_seconds = 30 + random() WHERE id = ANY(%s)"
_DEPLOYMENTS = "SELECT id FROM deployments, generate_series(1, %s) AS n ORDER BY n, md5(id::text) LIMIT %s"
_HAS_TABLE = "SELECT count(*) FROM proxies WHERE acked_version IS NOT NULL"
_IS_KNOWN = "SELECT bool_and(pg_visible_in_snapshot(%s::xid8, acked_snapshot)) FROM proxies"


def measure(*, full: bool = False) -> dict[str, Any]:
    """Fleets of three replicas a deployment, and one deployment of many. `full` makes four times the changes.

    A drain changes the upstreams of a cluster; a time limit changes routes, as the weight of a canary does.
    """
    with (
        tempfile.TemporaryDirectory(prefix="rollway-bench-") as folder,
        embedded_postgres(Path(folder) / "postgres") as postgres,
        embedded_redis(Path(folder) / "valkey") as valkey,
    ):
        migrate(postgres.url)
        rows = [_of_size(size, 4 if full else 1, postgres, valkey, Path(folder)) for size in SIZES]
    return {"rows": rows}


def _of_size(
    size: tuple[int, int], times: int, postgres: EmbeddedServer, valkey: EmbeddedServer, folder: Path
) -> dict[str, Any]:
    (deployments, replicas), drains, limits = size, _DRAINS * times, _LIMITS * times
    if deployments == 1:
        drains, limits = drains // 3, limits // 3
    with psycopg.connect(postgres.url, autocommit=True) as connection, redis.Redis.from_url(valkey.url) as client:
        _fill(connection, deployments, replicas)
        api = api_process(postgres.url, valkey.url, folder)
        edge = _Edge(connection, client, api, envoy_process(api, folder))
        try:
            api.start()
            first = edge.first_table()
            begun = edge.cpu()
            time.sleep(_QUIET_SECONDS)
            settled = edge.cpu()
            time.sleep(_QUIET_SECONDS)
            idle = [spent / _QUIET_SECONDS for spent in edge.since(settled)]
            return {
                "deployments": deployments,
                "replicas of each": replicas,
                "first table s": first,
                "server s": begun[0],
                "envoy s": begun[1],
                "server idle %": idle[0] * 100,
                "envoy idle %": idle[1] * 100,
                **edge.changed("drain", DRAIN, _SOME, replicas, drains),
                **edge.changed("limit", _LIMIT, _DEPLOYMENTS, limits, limits),
                "server MiB": _mib(api),
                "envoy MiB": _mib(edge.envoy),
            }
        finally:
            for process in (edge.envoy, api):
                if process.process is not None:
                    process.end(kill=True)


@dataclass(frozen=True, slots=True)
class _Edge:
    """A server and an Envoy that it tells, and a connection by which there is something to tell."""

    connection: psycopg.Connection
    client: redis.Redis
    api: Process
    envoy: Process

    def first_table(self) -> float:
        """Seconds from Envoy's start until it has acknowledged one."""
        began = time.monotonic()
        self.envoy.begin()
        eventually(lambda: self.connection.execute(_HAS_TABLE).fetchone() == (1,), _PATIENCE, "a first table")
        return time.monotonic() - began

    def changed(
        self, what: str, query: LiteralString, which: LiteralString, within: int, count: int
    ) -> dict[str, float]:
        """So many changes, one after the other."""
        before = self.cpu()
        chosen = self.connection.execute(which, (within, count)).fetchall()
        took = [self._acknowledged(query, key) for (key,) in chosen]
        server, envoy = (1000 * spent / len(chosen) for spent in self.since(before))
        quantiles = statistics.quantiles(took, n=100)
        times = {"p50 ms": quantiles[49] * 1000, "p99 ms": quantiles[98] * 1000, "server ms": server, "envoy ms": envoy}
        return {f"{what} {name}": found for name, found in times.items()}

    def cpu(self) -> list[float]:
        """Seconds of a processor that server and Envoy have used."""
        found = (psutil.Process(each.process.pid) for each in (self.api, self.envoy) if each.process)
        return [sum(process.cpu_times()[:2]) for process in found]

    def since(self, before: list[float]) -> list[float]:
        """What they have used since."""
        return [after - then for then, after in zip(before, self.cpu(), strict=True)]

    def _acknowledged(self, query: LiteralString, key: object) -> float:
        """Seconds from the commit of a change until its acknowledgement is written."""
        with self.connection.transaction():
            self.connection.execute(query, ([key],))
            (number,) = self.connection.execute("SELECT pg_current_xact_id()::text").fetchone() or ("",)
        began = time.monotonic()
        self.client.publish(TRAFFIC_CHANNEL, b"")
        while self.connection.execute(_IS_KNOWN, (number,)).fetchone() != (True,):
            time.sleep(0.001)
        return time.monotonic() - began


def _fill(connection: psycopg.Connection, size: int, replicas: int) -> None:
    fill(connection, QUIET, size)
    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")
        grow(connection, replicas)
    for statement in (_ENTRANCES, _ADDRESSES, _MAY_LEAVE, "DELETE FROM proxies", "VACUUM ANALYZE"):
        connection.execute(statement)


def _mib(process: Process) -> float:
    assert process.process is not None
    return psutil.Process(process.process.pid).memory_info().rss / 2**20
