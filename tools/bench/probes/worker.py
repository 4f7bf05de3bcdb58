"""The worker that is measured: probe passes as the tasks of one worker make them, one after the other."""

import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import redis

from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import make_engine
from runtime.probing.probes import Prober
from runtime.process.process_runtime import ProcessRuntime
from runtime.protocol import Replica
from tasks.redis.wake import Waker
from tasks.replicas.liveness import Silences
from tasks.replicas.probing import ProbePass

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

HOST = "bench"
WORK_SECONDS, TICK_SECONDS = 10.0, 1.0


class Everywhere:
    """A runtime whose replicas always run: it costs nothing, so that what is left is the probe pass.

    With `processes` each replica borrows one of these real ones, so that finding it costs what it does cost.
    """

    def __init__(self, home: Path, processes: Sequence[UUID], finds: "Synchronized[int]") -> None:
        self._runtime, self._processes, self._finds = ProcessRuntime(home), processes, finds

    def find(self, route_id: UUID) -> Replica | None:
        """It runs."""
        self._finds.value += 1
        if self._processes:
            return self._runtime.find(self._processes[route_id.int % len(self._processes)])
        return Replica(route_id, "bench", None, running=True)


def work(
    postgres: str, valkey: str, home: Path, processes: Sequence[UUID], finds: "Synchronized[int]", _: object
) -> None:
    """Probe until killed: passes of 10 s, begun again, or one look at each tick. Counts finds."""
    engine = make_engine(DatabaseSettings(url=postgres))
    client = redis.Redis.from_url(valkey)
    runtimes: dict[str, Any] = {"process": Everywhere(home, processes, finds)}
    prober = Prober()
    while True:
        began = time.monotonic()
        probing = ProbePass(engine, runtimes, Waker(client), client, HOST, prober, Silences(), timedelta(seconds=5))
        while (pause := probing.look()) and time.monotonic() < began + WORK_SECONDS:
            time.sleep(pause)
        time.sleep(max(0.0, began + TICK_SECONDS - time.monotonic()))
