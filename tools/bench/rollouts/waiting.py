"""What waiting for replicas that start costs: `python -m tools.bench.rollouts.waiting`.

One pass, in this process, looks at replicas that refuse each connection, as services do until they listen. Prints what
a second of it takes of this process and of Postgres, by how many start, how long ago they began and for how long.
"""

import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from multiprocessing import Value
from pathlib import Path
from typing import Any

import psutil
import redis
from sqlalchemy import Engine

from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import make_engine
from runtime.probing.probes import Prober, ProbeTarget
from tasks.redis.wake import Waker
from tasks.replicas.liveness import Silences
from tasks.replicas.probing import ProbePass
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import HERE, make_deployment, write
from tests.support.stack.servers import embedded_postgres, embedded_redis
from tools.bench.probes.worker import Everywhere
from tools.bench.processor import children_seconds, own_seconds
from tools.bench.stage import migrate

REPLICAS = (1, 10, 50)
SPANS = ((0, 1), (0, 3), (0, 10), (20, 10))
"""Seconds ago at which they began, and for how many seconds they are looked at."""


class _Counting(Prober):
    asked = 0

    def submit(self, targets: Sequence[ProbeTarget]) -> None:
        self.asked += len(targets)
        super().submit(targets)


def main() -> None:
    """Run and print."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with embedded_postgres(home / "postgres") as postgres, embedded_redis(home / "valkey") as valkey:
            migrate(postgres.url)
            engine, server = make_engine(DatabaseSettings(url=postgres.url)), psutil.Process(postgres.pid)
            runtimes: dict[str, Any] = {"process": Everywhere(home, (), Value("i", 0))}
            for replicas in REPLICAS:
                for ago, seconds in SPANS:
                    _start(engine, replicas)
                    with redis.Redis.from_url(valkey.url) as client:
                        prober = _Counting()
                        probing = ProbePass(
                            engine, runtimes, Waker(client), client, HERE, prober, Silences(), timedelta(seconds=5)
                        )
                        figures = _measured(engine, probing, prober, server, ago, seconds)
                        prober.close()
                    print(f"{replicas} that began {ago} s ago, for {seconds} s: {figures}", flush=True)


def _start(engine: Engine, replicas: int) -> None:
    write(engine, "TRUNCATE deployments CASCADE")
    spec = {"command": ["serve"], "health_check": {"start_deadline_seconds": 600}}
    make_deployment(engine, "◇" * replicas, n=replicas, status=SCALING, spec=spec)
    write(engine, "UPDATE routes SET started_at = clock_timestamp(), address = '127.0.0.1:1'")


def _measured(  # noqa: PLR0913  (a bench's)
    engine: Engine, probing: ProbePass, prober: _Counting, server: psutil.Process, ago: int, seconds: int
) -> str:
    own = psutil.Process()
    probing.look()  # it has its connections
    write(engine, "UPDATE routes SET started_at = clock_timestamp() - make_interval(secs => %s)", ago)
    spent, of_server = own_seconds(own), children_seconds(server)
    asked, began = prober.asked, time.monotonic()
    while time.monotonic() < began + seconds:
        time.sleep(probing.look() or 0)
    spent, of_server = own_seconds(own) - spent, children_seconds(server) - of_server
    return f"worker {1e3 * spent:.0f} ms, Postgres {1e3 * of_server:.0f} ms, {prober.asked - asked} probes"


if __name__ == "__main__":
    main()
