"""What a measurement costs: processor time, memory and connections of each process, and who waited for whom."""

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tools.bench.processor import processor_seconds
from tools.bench.stage import LOCK_WAITS_FROM_MS, Stage

_SLOWLY_SECONDS = 1.0
_PORT = re.compile(r":(\d+)/")
_WAITED = re.compile(r"acquired \w+ on .* after ([\d.]+) ms")
_STILL_WAITS = re.compile(r"still waiting for \w+ on ")

_TRANSACTIONS = """
    SELECT coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)) * 1000, 0)::float8
      FROM pg_stat_activity
     WHERE application_name = 'rollway' AND state <> 'idle' AND pid <> pg_backend_pid()
"""

# a worker that starts notes once, in `installation`, that it looked for times that lie ahead
_COUNTERS = """
    SELECT (SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database())::float8,
           (SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables
             WHERE relname NOT IN ('hosts', 'beat', 'installation'))::float8,
           (SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) FROM pg_stat_user_tables
             WHERE relname IN ('hosts', 'beat'))::float8
"""


class Watch:
    """Counts from its making; `figures` ends it. `every_seconds`: between two looks at transactions."""

    def __init__(self, stage: Stage, every_seconds: float = 0.05) -> None:
        self._every_seconds = every_seconds
        self._looks = 0
        self._url = stage.database
        self._port = int(_PORT.findall(stage.database)[-1])
        self._log = stage.postgres_log
        self._logged = len(_read(self._log))
        self._processes = stage.watched()
        self._peak_mib: dict[str, float] = {}
        self._connections: dict[str, int] = {}
        self._longest_transaction_ms = 0.0
        self._over = threading.Event()
        self._began, self._cpu = time.monotonic(), _cpu(self._processes)
        self._counters = self._read_counters()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def figures(self) -> dict[str, Any]:
        """Shares of one core, MiB, connections by process; longest transaction seen and longest wait for a lock."""
        took, cpu = time.monotonic() - self._began, _cpu(self._processes)
        self._over.set()
        self._thread.join()
        time.sleep(_SLOWLY_SECONDS)  # Postgres' counters come up to a second late
        transactions, writes, signs = (
            after - before for after, before in zip(self._read_counters(), self._counters, strict=True)
        )
        return {
            "seconds": took,
            "cpu_share": {name: (cpu[name] - self._cpu[name]) / took for name in self._processes},
            "cpu_seconds": {name: cpu[name] - self._cpu[name] for name in self._processes},
            "peak_mib": self._peak_mib,
            "connections": self._connections,
            "longest_transaction_ms": self._longest_transaction_ms,
            **_lock_waits(_read(self._log)[self._logged :]),
            "transactions_a_minute": (transactions - self._looks) / took * 60,
            "rows_written": writes,
            "signs_of_life": signs,
        }

    def _sample(self) -> None:
        slowly = 0.0
        while not self._over.wait(self._every_seconds):
            with suppress(psycopg.Error, psutil.Error), psycopg.connect(self._url, autocommit=True) as connection:
                while not self._over.wait(self._every_seconds):
                    self._looks += 1
                    (longest,) = connection.execute(_TRANSACTIONS).fetchone() or (0.0,)
                    self._longest_transaction_ms = max(self._longest_transaction_ms, longest)
                    if time.monotonic() >= slowly:
                        slowly = time.monotonic() + _SLOWLY_SECONDS
                        self._look_at_processes()

    def _look_at_processes(self) -> None:
        for name, process in self._processes.items():
            if name == "postgres":  # its shared memory would be counted with each of its processes
                continue
            mib = process.memory_info().rss / 2**20
            self._peak_mib[name] = max(self._peak_mib.get(name, 0.0), mib)
            sockets = [each for each in process.net_connections("tcp") if each.raddr and each.raddr[1] == self._port]
            if sockets:
                self._connections[name] = max(self._connections.get(name, 0), len(sockets))

    def _read_counters(self) -> Sequence[float]:
        with psycopg.connect(self._url, autocommit=True) as connection:
            return connection.execute(_COUNTERS).fetchone() or (0.0, 0.0, 0.0)


def processors(cost: Mapping[str, Any], count: int = 1) -> dict[str, float]:
    """Processor time in ms for each of `count`, by who spent it; all workers together."""
    spent: dict[str, float] = {"workers": 0.0}
    for name, seconds in cost["cpu_seconds"].items():
        kind = "workers" if name.startswith(("worker", "successor")) else name
        spent[kind] = spent.get(kind, 0.0) + seconds
    return {f"{name}_ms_each": 1000 * spent[name] / count for name in sorted(spent)}


@contextmanager
def watching(stage: Stage, figures: dict[str, Any], every_seconds: float = 0.05) -> Iterator[None]:
    """What the block costs is in `figures` afterwards, under "cost"."""
    watch = Watch(stage, every_seconds)
    yield
    figures["cost"] = watch.figures()


def _cpu(processes: Mapping[str, psutil.Process]) -> dict[str, float]:
    """Seconds of CPU so far, with those of children that live and that have ended."""
    return {name: processor_seconds(process) for name, process in processes.items()}


def _lock_waits(log: str) -> dict[str, Any]:
    """Of Postgres' log: every wait for a lock that was longer than what it is told to log."""
    waits = [float(found) for found in _WAITED.findall(log)]
    return {
        "longest_lock_wait_ms": max(waits, default=None),
        "lock_waits_over_100_ms": sum(wait > 100 for wait in waits),
        f"lock_waits_over_{LOCK_WAITS_FROM_MS}_ms": len(_STILL_WAITS.findall(log)),
    }


def _read(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""
