"""One cycle of the coordinator over a fleet in the middle of a rollout, and two floors under it in the same run."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import psycopg
from sqlalchemy import Engine, event

from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import make_engine
from domain.handlers.deploying import DeployingProvisioningHandler
from tests.support.stack.servers import EmbeddedServer, embedded_postgres
from tests.support.workers.coordinators import coordinator_without_redis
from tools.bench.cycles.bare import fill_bare, make_bare, run_bare_floor
from tools.bench.cycles.cost import Cost, Counted, collecting_seldom, cost_of
from tools.bench.cycles.floor import run_floor
from tools.bench.data import MUTATING, WAITING, fill, mark_all
from tools.bench.passes import in_turns, middle, passes
from tools.bench.stage import migrate

SIZES = (100, 1_000, 10_000)
CHUNK = 250
_HANDLER = DeployingProvisioningHandler()

Pass = Mapping[str, Cost]
"""Of one size: the floor, the bare floor, a mutating and a waiting cycle, by name."""


@dataclass(frozen=True, slots=True)
class _Bench:
    """One server, with the engine of the coordinator, the connections of the floors, and one for making fleets."""

    server: EmbeddedServer
    engine: Engine
    floor: psycopg.Connection
    bare: psycopg.Connection
    maker: psycopg.Connection

    def fleet(self, pictures: Sequence[str], count: int) -> None:
        fill(self.maker, pictures, count)
        self.due()

    def due(self) -> None:
        mark_all(self.maker)
        self.maker.execute("CHECKPOINT")

    def coordinator(self, chunk: int) -> int:
        """Cycles until nothing is due; returns how many deployments there were."""
        coordinator, seen = coordinator_without_redis(self.engine, chunk=chunk), 0
        while found := coordinator.process_chunk(_HANDLER).looked_at:
            seen += found
        return seen

    def stored_step(self) -> tuple[str, str]:
        """The inputs and the decision of one step as they are stored, for the floor to store the like."""
        found = self.maker.execute("SELECT inputs::text, decision::text FROM rollout_steps LIMIT 1").fetchone()
        assert found is not None, "a cycle stores its steps"
        return found

    def one_pass(self, size: int, chunk: int, step: tuple[str, str]) -> Pass:
        """Each kind of cycle over a fleet of its own."""
        postgres = psutil.Process(self.server.pid)
        self.fleet(MUTATING, size)
        fill_bare(self.maker)
        bare = cost_of(lambda: run_bare_floor(self.bare, chunk), postgres)
        floor = cost_of(lambda: run_floor(self.floor, chunk, *step), postgres)
        self.fleet(MUTATING, size)
        mutating = cost_of(lambda: self.coordinator(chunk), postgres)
        _check(self.maker, size)
        self.fleet(WAITING, size)
        waiting = cost_of(lambda: self.coordinator(chunk), postgres)
        return {"bare floor": bare, "floor": floor, "mutating": mutating, "waiting": waiting}


def measure(*, full: bool) -> dict[str, Any]:
    """Fleets of 100, 1,000 and 10,000, which take turns."""
    measured = measure_cycles(times=passes(full=full))
    rows = [row for size, found in measured.items() for row in _rows(size, found)]
    return {"chunk": CHUNK, "rows": rows, "passes": _by_target(measured)}


def measure_cycles(sizes: Sequence[int] = SIZES, chunk: int = CHUNK, times: int = 3) -> Mapping[int, Sequence[Pass]]:
    """Mutating and waiting cycles beside their floors, in fleets of these sizes, in turns."""
    with _bench() as bench:
        bench.fleet(MUTATING, 10 * chunk)  # connections learn their statements
        bench.coordinator(chunk)
        step = bench.stored_step()
        bench.one_pass(10 * chunk, chunk, step)
        return in_turns(times, sizes, lambda size: bench.one_pass(size, chunk, step))


def _rows(size: int, found: Sequence[Pass]) -> Iterator[dict[str, Any]]:
    """Medians; of a mutating cycle, also those over the floors of its own pass, on the wall and of the processors."""
    for what in found[0]:
        row = {"what": what, "deployments": size, **middle([costs[what].row() for costs in found])}
        if what == "mutating":
            row |= {
                "over_floor": median(_over(costs, "floor") for costs in found),
                "processor_over_floor": median(_processor_over(costs) for costs in found),
                "over_bare_floor": median(_over(costs, "bare floor") for costs in found),
            }
        yield row


def _over(costs: Pass, floor: str) -> float:
    return costs["mutating"].seconds / costs[floor].seconds


def _processor_over(costs: Pass) -> float:
    return costs["mutating"].processor / costs["floor"].processor


def _by_target(measured: Mapping[int, Sequence[Pass]]) -> dict[str, list[float]]:
    targets: dict[str, list[float]] = {}
    for size, found in measured.items():
        targets[f"mutating over floor, {size}"] = [_over(costs, "floor") for costs in found]
        targets[f"processor over floor, {size}"] = [_processor_over(costs) for costs in found]
        targets[f"waiting a second, {size}"] = [costs["waiting"].per_second for costs in found]
    for what in ("mutating", "waiting"):
        pairs = zip(measured[10_000], measured[1_000], strict=True)
        targets[f"10000 over 1000, {what}"] = [large[what].seconds / small[what].seconds for large, small in pairs]
    return targets


def _check(maker: psycopg.Connection, size: int) -> None:
    """Every deployment has created one and drained one."""
    query = "SELECT count(*) FILTER (WHERE status = 'provisioning'), count(*) FILTER (WHERE status = 'terminating')"
    found = maker.execute(f"{query} FROM routes").fetchone()
    assert found == (size, size), f"{found} routes created and drained, not {size} each"


@contextmanager
def _bench() -> Iterator[_Bench]:
    with (
        tempfile.TemporaryDirectory(prefix="rollway-bench-") as folder,
        embedded_postgres(Path(folder), fsync=True) as server,
    ):
        migrate(server.url)
        engine = make_engine(DatabaseSettings(url=server.url))
        event.listen(engine, "connect", lambda connection, _: setattr(connection, "cursor_factory", Counted))
        with (
            psycopg.connect(server.url, autocommit=True) as floor,
            psycopg.connect(server.url, autocommit=True) as bare,
            psycopg.connect(server.url, autocommit=True) as maker,
            collecting_seldom(),
        ):
            make_bare(maker)
            yield _Bench(server, engine, floor, bare, maker)
        engine.dispose()
