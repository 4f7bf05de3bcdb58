"""What freezes: a replica takes connections and answers nothing until the prober notices, workers do nothing."""

import os
import signal
import time
from contextlib import suppress

from stack.home.folder import Home
from tools.bench.zero_loss.faults import replica_process, signal_workers
from tools.bench.zero_loss.picture import RouteSeen
from tools.bench.zero_loss.service import Service

_CLIENTS_PATIENCE = 12.0
_FROZEN_SECONDS = 20.0
"""Longer than a host may be silent."""


def freeze_a_replica(service: Service) -> tuple[float, float]:
    """`freeze` for one of those that serve; returns when all is well again. Raises ScenarioError."""
    frozen = freeze(service, service.look().of(service.current)[0])
    service.settle()
    return frozen


def freeze(service: Service, victim: RouteSeen) -> tuple[float, float]:
    """SIGSTOP to a replica, until every client that waits for it has given up; then it continues.

    When it froze, and when the prober had noticed, in Unix seconds: what is not idempotent and was sent to it in
    between is lost. Raises ScenarioError.
    """
    process = replica_process(victim)
    os.kill(process.pid, signal.SIGSTOP)
    frozen_at = time.time()
    try:
        service.wait(
            lambda now: all(route.status != "healthy" for route in now.routes if route.id == victim.id),
            "the prober to notice a replica that hangs",
        )
        noticed_at = time.time()
        time.sleep(_CLIENTS_PATIENCE)
    finally:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)
    return frozen_at, noticed_at


def freeze_workers(home: Home) -> None:
    """SIGSTOP to all workers and beat for a while; then they go on."""
    signal_workers(home, signal.SIGSTOP)
    time.sleep(_FROZEN_SECONDS)
    signal_workers(home, signal.SIGCONT)
