"""What one pass over a fleet costs: the wall, the processors here and in Postgres, statements and memory."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import psutil

from db.unreachable import AnsweredCursor
from tasks.worker.garbage import collect_seldom
from tools.bench.processor import children_seconds

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

    @property
    def per_second(self) -> float:
        """Deployments."""
        return self.count / self.seconds

    def row(self) -> dict[str, Any]:
        """For the table."""
        return {
            "seconds": self.seconds,
            "per_second": self.per_second,
            "client_us": self.client / self.count * 1e6,
            "server_us": self.server / self.count * 1e6,
            "statements": self.statements,
            "peak_mb": self.peak_mb,
        }


class Counted(AnsweredCursor):
    """Counts what the coordinator sends; the pool's ping too."""

    statements: ClassVar[int] = 0

    def execute(self, *arguments: Any, **options: Any) -> Self:  # noqa: ANN401  (psycopg's)
        """As psycopg does it."""
        Counted.statements += 1
        return super().execute(*arguments, **options)


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Garbage is collected as in a worker that is up: else it is most of what ten thousand replicas cost."""
    thresholds = gc.get_threshold()
    collect_seldom()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def cost_of(work: Callable[[], int], postgres: psutil.Process) -> Cost:
    """`work`: one pass, which returns how many deployments there were."""
    Counted.statements = 0
    _forget_peak()
    server, client, began = children_seconds(postgres), time.process_time(), time.perf_counter()
    count = work()
    seconds = time.perf_counter() - began
    spent = (time.process_time() - client, children_seconds(postgres) - server)
    return Cost(count, seconds, *spent, Counted.statements, _peak_mb())


def _forget_peak() -> None:
    if _PEAK.exists():
        _PEAK.write_text("5")


def _peak_mb() -> float:
    """The most memory since it was last forgotten; where the system cannot forget, what is used now."""
    if not _PEAK.exists():
        return psutil.Process().memory_info().rss / 2**20
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
