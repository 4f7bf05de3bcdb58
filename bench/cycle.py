"""One cycle of the coordinator over a fleet in the middle of a rollout, and the floor under it in the same run."""

import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, Self

import psutil
import psycopg
from sqlalchemy import Engine, event

from bench.data import MUTATING, WAITING, fill, mark_all
from bench.floor import run_floor
from bench.stage import migrate
from db.engine import make_engine
from db.settings import DatabaseSettings
from db.silence import AnsweredCursor
from domain.handlers.deploying_provisioning import DeployingProvisioningHandler
from tests.support.coordinators import coordinator_without_redis
from tests.support.servers import EmbeddedServer, embedded_postgres

SIZES = (100, 1_000, 10_000)
CHUNK = 250
_HANDLER = DeployingProvisioningHandler()
_PEAK = Path("/proc/self/clear_refs")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one pass over `count` deployments took: seconds on the wall, and processor seconds here and in Postgres."""

    count: int
    seconds: float
    client: float
    server: float
    statements: int
    peak_mb: float

    @property
    def processor(self) -> float:
        """Seconds of both together: what stays comparable when others use the machine."""
        return self.client + self.server


class _Counted(AnsweredCursor):
    """Counts what the coordinator sends; the pool's ping too."""

    statements: ClassVar[int] = 0

    def execute(self, *arguments: Any, **options: Any) -> Self:  # noqa: ANN401  (psycopg's)
        _Counted.statements += 1
        return super().execute(*arguments, **options)


@dataclass(frozen=True, slots=True)
class _Bench:
    """One server, with the engine of the coordinator, the connection of the floor, and one for making fleets."""

    server: EmbeddedServer
    engine: Engine
    floor: psycopg.Connection
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
        while found := coordinator.process_chunk(_HANDLER).seen:
            seen += found
        return seen

    def stored_step(self) -> tuple[str, str]:
        """The inputs and the decision of one step as they are stored, for the floor to store the like."""
        found = self.maker.execute("SELECT inputs::text, decision::text FROM rollout_steps LIMIT 1").fetchone()
        assert found is not None, "a cycle stores its steps"
        return found

    def cost(self, work: Callable[[], int]) -> Cost:
        _Counted.statements = 0
        _forget_peak()
        server, client, began = self._server_seconds(), time.process_time(), time.perf_counter()
        count = work()
        seconds = time.perf_counter() - began
        spent = (time.process_time() - client, self._server_seconds() - server)
        return Cost(count, seconds, *spent, _Counted.statements, _peak_mb())

    def _server_seconds(self) -> float:
        times = [process.cpu_times() for process in psutil.Process(self.server.pid).children()]
        return sum(spent.user + spent.system for spent in times)


def measure(*, full: bool) -> dict[str, Any]:
    """Fleets of 100, 1,000 and 10,000; and how much longer the last takes than the one before."""
    rows = measure_cycles(rounds=5 if full else 3)
    seconds = {(row["what"], row["deployments"]): row["seconds"] for row in rows}
    growth = {what: seconds[what, 10_000] / seconds[what, 1_000] for what in ("floor", "mutating", "waiting")}
    return {"chunk": CHUNK, "rows": rows, "time_of_10000_over_time_of_1000": growth}


def measure_cycles(sizes: Sequence[int] = SIZES, chunk: int = CHUNK, rounds: int = 3) -> list[dict[str, Any]]:
    """Mutating and waiting cycles over fleets of these sizes, each beside the floor: medians of `rounds` rounds.

    `ratio`: the coordinator's time over the floor's, on the wall and of the processors, of each round's neighbours.
    """
    with _bench() as bench:
        bench.fleet(MUTATING, 10 * chunk)  # connections learn their statements
        bench.coordinator(chunk)
        step = bench.stored_step()
        bench.fleet(MUTATING, 10 * chunk)
        run_floor(bench.floor, chunk, *step)
        return [row for size in sizes for row in _of_size(bench, size, chunk, rounds, step)]


def _of_size(bench: _Bench, size: int, chunk: int, rounds: int, step: tuple[str, str]) -> Iterator[dict[str, Any]]:
    floors, mutating, waiting = [], [], []
    for _ in range(rounds):
        bench.fleet(MUTATING, size)
        floors.append(bench.cost(lambda: run_floor(bench.floor, chunk, *step)))
        bench.fleet(MUTATING, size)
        mutating.append(bench.cost(lambda: bench.coordinator(chunk)))
        _check(bench, size)
        bench.fleet(WAITING, size)
        waiting.append(bench.cost(lambda: bench.coordinator(chunk)))
    pairs = list(zip(mutating, floors, strict=True))
    ratios = {
        "ratio": median(cost.seconds / floor.seconds for cost, floor in pairs),
        "processor_ratio": median(cost.processor / floor.processor for cost, floor in pairs),
    }
    yield _row("floor", floors)
    yield {**_row("mutating", mutating), **ratios}
    yield _row("waiting", waiting)


def _check(bench: _Bench, size: int) -> None:
    """Every deployment has created one and drained one."""
    query = "SELECT count(*) FILTER (WHERE status = 'provisioning'), count(*) FILTER (WHERE status = 'terminating')"
    found = bench.maker.execute(f"{query} FROM routes").fetchone()
    assert found == (size, size), f"{found} routes created and drained, not {size} each"


def _row(what: str, costs: Sequence[Cost]) -> dict[str, Any]:
    middle = sorted(costs, key=lambda cost: cost.seconds)[len(costs) // 2]
    return {
        "what": what,
        "deployments": middle.count,
        "seconds": middle.seconds,
        "per_second": middle.count / middle.seconds,
        "client_us": middle.client / middle.count * 1e6,
        "server_us": middle.server / middle.count * 1e6,
        "statements": middle.statements,
        "peak_mb": max(cost.peak_mb for cost in costs),
    }


@contextmanager
def _bench() -> Iterator[_Bench]:
    with (
        tempfile.TemporaryDirectory(prefix="rollway-bench-") as folder,
        embedded_postgres(Path(folder), fsync=True) as server,
    ):
        migrate(server.url)
        gc.collect()
        gc.freeze()  # as a worker does once it is up: what was imported is not looked through again and again
        engine = make_engine(DatabaseSettings(url=server.url))
        event.listen(engine, "connect", lambda connection, _: setattr(connection, "cursor_factory", _Counted))
        with (
            psycopg.connect(server.url, autocommit=True) as floor,
            psycopg.connect(server.url, autocommit=True) as maker,
        ):
            yield _Bench(server, engine, floor, maker)
        engine.dispose()
        gc.unfreeze()


def _forget_peak() -> None:
    if _PEAK.exists():
        _PEAK.write_text("5")


def _peak_mb() -> float:
    """The most memory since it was last forgotten; where the system cannot forget, what is used now."""
    if not _PEAK.exists():
        return psutil.Process().memory_info().rss / 2**20
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
