"""What each station of a rollout costs, done on its own: `python -m tools.bench.rollouts.stations` prints the table.

Statements with BEGIN and COMMIT, commands to Redis, and processor time of this process and of its Postgres backend.
"""

import logging
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, NamedTuple, Self

import psycopg
import redis
from sqlalchemy import Engine, event

from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import make_engine
from db.unreachable import AnsweredCursor
from tasks.redis.wake import Waker
from tasks.telemetry.log import configure_logging
from tests.support.rows.deployments import read, write
from tests.support.stack.servers import embedded_postgres, embedded_redis
from tests.support.stack.stations import STATIONS, Station
from tools.bench.stage import migrate

_TIMES = 30


class Cost(NamedTuple):
    """Of one station: how many statements and commands to Redis, and microseconds here and in Postgres."""

    statements: int
    redis: int
    client_us: float
    server_us: float


class _Counted(AnsweredCursor):
    statements: ClassVar[int] = 0

    def execute(self, *arguments: Any, **options: Any) -> Self:  # noqa: ANN401  (psycopg's)
        _Counted.statements += 1
        return super().execute(*arguments, **options)


def measure() -> dict[str, Cost]:
    """Each station, medians of many times; the first ones, in which Postgres learns its statements, do not count."""
    with (
        tempfile.TemporaryDirectory(prefix="rollway-bench-") as folder,
        embedded_postgres(Path(folder) / "postgres", fsync=True) as postgres,
        embedded_redis(Path(folder) / "valkey") as valkey,
        redis.Redis.from_url(valkey.url) as client,
    ):
        migrate(postgres.url)
        engine = make_engine(DatabaseSettings(url=postgres.url, pool_size=1))
        event.listen(engine, "connect", _count)
        costs = {name: _cost(station, engine, client) for name, station in STATIONS.items()}
        engine.dispose()
    return costs


def _count(connection: psycopg.Connection, _: object) -> None:
    connection.cursor_factory = _Counted


def _cost(station: Station, engine: Engine, client: redis.Redis) -> Cost:
    costs = []
    for _ in range(_TIMES):
        write(engine, "TRUNCATE deployments, hosts CASCADE")
        client.flushall()
        work = station(engine, Waker(client))
        ((backend,),) = (row.values() for row in read(engine, "SELECT pg_backend_pid()"))
        costs.append(_once(work, int(backend), client))
    return Cost(*(median(values) for values in zip(*costs[_TIMES // 3 :], strict=True)))


def _once(work: Callable[[], object], backend: int, client: redis.Redis) -> Cost:
    commands = int(client.info("stats")["total_commands_processed"])
    before, began = _Counted.statements, (time.thread_time_ns(), _nanoseconds(backend))
    work()
    client_us, server_us = (time.thread_time_ns() - began[0]) / 1e3, (_nanoseconds(backend) - began[1]) / 1e3
    sent = int(client.info("stats")["total_commands_processed"]) - commands - 1  # and the one that asks
    return Cost(_Counted.statements - before, sent, client_us, server_us)


def _nanoseconds(pid: int) -> int:
    """That the process has run; ticks of 10 ms would say nothing of one station."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def main() -> None:
    """The table, for docs/internals/performance-costs.md."""
    configure_logging(logging.ERROR)
    print("| station | statements | commands to Redis | worker, ms | Postgres, ms |\n|---|---|---|---|---|")
    for name, cost in measure().items():
        millis = f"{cost.client_us / 1e3:.2f} | {cost.server_us / 1e3:.2f}"
        print(f"| {name} | {cost.statements:.0f} | {cost.redis:.0f} | {millis} |")


if __name__ == "__main__":
    main()
