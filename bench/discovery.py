"""How soon a real Envoy has acknowledged a change, by the size of the fleet, and what that costs it and its server."""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import psycopg
import redis

from bench.data import QUIET, fill
from bench.stage import migrate
from tasks.settings import TRAFFIC_CHANNEL
from tests.support.edge import DRAIN, api_process, envoy_process
from tests.support.server_process import Process
from tests.support.servers import EmbeddedServer, embedded_postgres, embedded_redis
from tests.support.waiting import eventually

SIZES = (50, 500, 5000)
_CHANGES = 60
_QUIET_SECONDS = 5.0
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
     WHERE place <= 2 ORDER BY md5(id::text) LIMIT %s
"""
_HAS_TABLE = "SELECT count(*) FROM proxies WHERE acked_version IS NOT NULL"
_RELEASED = "SELECT out_of_traffic_at IS NOT NULL FROM routes WHERE id = %s"


def measure(*, full: bool = False) -> dict[str, Any]:
    """Fleets of three replicas a deployment. `full` makes four times the changes."""
    changes = _CHANGES * (4 if full else 1)
    with (
        tempfile.TemporaryDirectory(prefix="rollway-bench-") as folder,
        embedded_postgres(Path(folder) / "postgres") as postgres,
        embedded_redis(Path(folder) / "valkey") as valkey,
    ):
        migrate(postgres.url)
        rows = [_of_size(size, changes, postgres, valkey, Path(folder)) for size in SIZES]
    return {"rows": rows}


def _of_size(size: int, changes: int, postgres: EmbeddedServer, valkey: EmbeddedServer, folder: Path) -> dict[str, Any]:
    with psycopg.connect(postgres.url, autocommit=True) as connection, redis.Redis.from_url(valkey.url) as client:
        _fill(connection, size)
        api = api_process(postgres.url, valkey.url, folder)
        envoy = envoy_process(api, folder)
        try:
            api.start()
            began = time.monotonic()
            envoy.begin()
            eventually(lambda: _has_table(connection), 600)
            first = time.monotonic() - began
            time.sleep(_QUIET_SECONDS)
            settled = _cpu(api, envoy)
            time.sleep(_QUIET_SECONDS)
            idle = [spent / _QUIET_SECONDS for spent in _since(settled, api, envoy)]
            before = _cpu(api, envoy)
            chosen = [route for (route,) in connection.execute(_SOME, (changes,)).fetchall()]
            took = [_drained(connection, client, route) for route in chosen]
            spent = _since(before, api, envoy)
            quantiles = statistics.quantiles(took, n=100)
            return {
                "deployments": size,
                "first table s": first,
                "ack p50 ms": quantiles[49] * 1000,
                "ack p99 ms": quantiles[98] * 1000,
                "server ms/change": spent[0] / changes * 1000,
                "envoy ms/change": spent[1] / changes * 1000,
                "server idle %": idle[0] * 100,
                "envoy idle %": idle[1] * 100,
                "server MiB": _mib(api),
                "envoy MiB": _mib(envoy),
            }
        finally:
            for process in (envoy, api):
                if process.process is not None:
                    process.end(kill=True)


def _fill(connection: psycopg.Connection, size: int) -> None:
    fill(connection, QUIET, size)
    for statement in (_ENTRANCES, _ADDRESSES, _MAY_LEAVE, "DELETE FROM proxies", "VACUUM ANALYZE"):
        connection.execute(statement)


def _has_table(connection: psycopg.Connection) -> bool:
    """Whether the Envoy has acknowledged one."""
    (count,) = connection.execute(_HAS_TABLE).fetchone() or (0,)
    return bool(count)


def _drained(connection: psycopg.Connection, client: redis.Redis, route: object) -> float:
    """Seconds from the commit of a drain until its acknowledgement is written."""
    began = time.monotonic()
    connection.execute(DRAIN, ([route],))
    client.publish(TRAFFIC_CHANNEL, b"")
    while not (connection.execute(_RELEASED, (route,)).fetchone() or (False,))[0]:
        time.sleep(0.001)
    return time.monotonic() - began


def _cpu(*processes: Process) -> list[float]:
    """Seconds of a processor that each has used."""
    return [sum(psutil.Process(process.process.pid).cpu_times()[:2]) for process in processes if process.process]


def _since(before: list[float], *processes: Process) -> list[float]:
    return [after - then for then, after in zip(before, _cpu(*processes), strict=True)]


def _mib(process: Process) -> float:
    assert process.process is not None
    return psutil.Process(process.process.pid).memory_info().rss / 2**20
