"""Ten thousand replicas on three hundred hosts, each with a device of its own: what it costs to place one more.

Beside the same fleet without devices. `choice`: the pure one, by what was read. `placing`: that and its reads, by which
a host is chosen. `cycle`: all of the cycle that creates the replica, with what it writes.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import process_time
from typing import Any
from uuid import UUID

import psutil
import psycopg
from sqlalchemy import Engine

from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import make_engine, transaction
from db.replicas.host_placement import Placing, Wanted
from domain.handlers.scaling import ScalingHandler
from domain.replicas.host_choice import placements
from tests.support.stack.servers import embedded_postgres
from tests.support.workers.coordinators import coordinator_without_redis
from tools.bench.cycles.cost import Cost, collecting_seldom, cost_of
from tools.bench.data import QUIET, fill, grow
from tools.bench.passes import in_turns, middle, passes
from tools.bench.stage import migrate

HOSTS, DEPLOYMENTS, REPLICAS, DEVICES = 300, 1_000, 10, 36
_TIMES = 100
_HANDLER = ScalingHandler()

_HOSTS = """
    INSERT INTO hosts (name, address, last_seen_at, resources) -- nobody is silent meanwhile
    SELECT 'host-' || n, '10.0.0.1', clock_timestamp() + interval '1 hour',
           jsonb_build_object('gpu', (SELECT jsonb_object_agg(d::text, 1) FROM generate_series(0, %(devices)s - 1) d))
      FROM generate_series(0, %(hosts)s - 1) n
"""
_NEEDS = (
    """UPDATE revisions SET spec = spec || '{"needs": {"gpu": 1}}'""",
    "UPDATE deployments SET has_needs = true",
)
_PLACE = """
    UPDATE routes r SET host = 'host-' || (p.n %% %(hosts)s),
           devices = CASE WHEN %(needs)s
                     THEN jsonb_build_object('gpu', jsonb_build_object((p.n / %(hosts)s)::text, 1)) END
      FROM (SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM routes) p WHERE p.id = r.id
"""
_HOLD = """
    INSERT INTO held_devices (route_id, host, kind, device, amount)
    SELECT id, host, 'gpu', jsonb_object_keys(devices -> 'gpu'), 1 FROM routes WHERE devices IS NOT NULL
"""
_WANTED = "SELECT id, current_revision_id FROM deployments ORDER BY id LIMIT %s"
_MORE = """
    UPDATE deployments SET desired_replicas = desired_replicas + 1, lifecycle = 'scaling', version = version + 1,
           due_at = clock_timestamp(), phase_started_at = clock_timestamp()
     WHERE id = %s
"""
_IS_PLACED = "SELECT count(*) FROM routes WHERE status = 'provisioning' AND host IS NOT NULL"


def measure(*, full: bool) -> dict[str, Any]:
    """With devices and without, in turns."""
    found = in_turns(passes(full=full) if full else 1, (True, False), run)
    return {
        "rows": [middle(each) for each in found.values()],
        "passes": {"its worker ms": [row["its_worker_us"] / 1000 for row in found[True]]},
    }


def run(needs: bool) -> Mapping[str, Any]:  # noqa: FBT001
    """A fleet in a database of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="rollway-bench-") as folder,
        embedded_postgres(Path(folder), fsync=True) as server,
    ):
        migrate(server.url)
        engine, postgres = make_engine(DatabaseSettings(url=server.url)), psutil.Process(server.pid)
        with psycopg.connect(server.url, autocommit=True) as world:
            _fill(world, needs=needs)
            wanted = [Wanted(*row) for row in world.execute(_WANTED, (2 * _TIMES,)).fetchall()]
            with collecting_seldom():
                choice = _choice(engine, wanted[0])
                single = _placing(engine, postgres, wanted, at_once=1)
                many = _placing(engine, postgres, wanted, at_once=_TIMES)
                cycle = _cycles(engine, postgres, world, [each.deployment_id for each in wanted[_TIMES:]])
        engine.dispose()
    return {
        "devices": "yes" if needs else "no",
        "choice_us": choice,
        "placing_us": 1e6 * single.processor / single.count,
        "its_worker_us": 1e6 * single.client / single.count,
        "its_postgres_us": 1e6 * single.server / single.count,
        f"placing_one_of_{_TIMES}_us": 1e6 * many.processor / many.count,
        "cycle_worker_us": 1e6 * cycle.client / cycle.count,
        "cycle_postgres_us": 1e6 * cycle.server / cycle.count,
    }


def _fill(world: psycopg.Connection, *, needs: bool) -> None:
    fill(world, QUIET, DEPLOYMENTS)
    grow(world, REPLICAS)
    world.execute(_HOSTS, {"hosts": HOSTS, "devices": DEVICES})
    for statement in _NEEDS if needs else ():
        world.execute(statement)
    with world.transaction():
        world.execute("SET LOCAL session_replication_role = replica")  # the guard of devices looks at each row
        world.execute(_PLACE, {"hosts": HOSTS, "needs": needs})
        world.execute(_HOLD)
    world.execute("VACUUM ANALYZE")


def _choice(engine: Engine, wanted: Wanted) -> float:
    """Microseconds of one choice, by grounds that were read before."""
    with transaction(engine) as connection:
        grounds = Placing().grounds(connection, [wanted])
    began = process_time()
    for _ in range(_TIMES):
        assert placements(grounds)[0].host
    return 1e6 * (process_time() - began) / _TIMES


def _placing(engine: Engine, postgres: psutil.Process, wanted: list[Wanted], *, at_once: int) -> Cost:
    """Transactions that choose a host for so many replicas, and write nothing."""
    placing = Placing()

    def choose() -> int:
        with transaction(engine) as connection:
            return sum(each.host is not None for each in placements(placing.grounds(connection, wanted[:at_once])))

    for _ in range(5):
        choose()
    return cost_of(lambda: sum(choose() for _ in range(_TIMES)), postgres)


def _cycles(engine: Engine, postgres: psutil.Process, world: psycopg.Connection, ids: list[UUID]) -> Cost:
    """A cycle for each of these deployments, which creates one replica."""
    coordinator = coordinator_without_redis(engine)

    def create(some: list[UUID]) -> int:
        for id_ in some:
            world.execute(_MORE, (id_,))
            assert coordinator.process_chunk(_HANDLER).looked_at == 1
        return len(some)

    create(ids[:10])
    cost = cost_of(lambda: create(ids[10:]), postgres)
    (placed,) = world.execute(_IS_PLACED).fetchone() or (0,)
    assert placed == len(ids), placed
    return cost
