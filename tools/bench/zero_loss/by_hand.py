"""The comparison: the same replicas behind the same Envoy, restarted one after the other by nobody but `kill`."""

import os
import signal
import subprocess
import time

import httpx
import psutil

from stack.home.folder import Home
from tests.support.stack.waiting import eventually
from tools.bench.zero_loss.faults import replica_process, signal_workers
from tools.bench.zero_loss.picture import RouteSeen
from tools.bench.zero_loss.service import Service

_PATIENCE = 15.0


def restart_one_after_the_other(service: Service, home: Home) -> None:
    """SIGTERM, wait for its end, start it again with the same command on the same port, wait until it is healthy.

    Rollway's workers are frozen before that, and stay so. Raises ScenarioError.
    """
    routes = service.look().of(service.current)
    signal_workers(home, signal.SIGSTOP)
    for route in routes:
        _restart(route, home)


def _restart(route: RouteSeen, home: Home) -> None:
    process = replica_process(route)
    command, environment, folder = process.cmdline(), process.environ(), process.cwd()
    process.send_signal(signal.SIGTERM)
    _wait_for_end(process)
    with home.log("by-hand").open("ab") as log:
        subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    health = f"http://{route.address}/health"
    eventually(lambda: httpx.get(health, trust_env=False).is_success, _PATIENCE, f"{health} to answer again")


def _wait_for_end(process: psutil.Process) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
