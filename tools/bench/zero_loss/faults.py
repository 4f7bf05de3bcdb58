"""What is done to a running stack: parts and replicas are killed, workers are frozen."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import httpx
import psutil

from runtime.machine.identity import Identity, is_alive
from stack.home.folder import Home, project_root
from stack.home.stack_state import PartState, read_state
from tests.support.stack.waiting import eventually
from tools.bench.zero_loss.picture import RouteSeen
from tools.bench.zero_loss.service import ScenarioError, Service

_PATIENCE = 45.0
_LATE = 5.0


def kill_part(home: Home, name: str) -> Identity:
    """SIGKILL to a part of the stack and its children, but to no replica that it started; who it was."""
    process = _part(home, name).process
    if process is None or not is_alive(process):
        raise ScenarioError(f"{name} does not run, so it cannot be killed")
    for member in (psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            if "ROLLWAY_ROUTE" not in member.environ():
                member.kill()
    return process


def kill_supervisor(home: Home) -> None:
    """SIGKILL to the supervisor of the stack. Raises ScenarioError when there is none."""
    state = read_state(home)
    if state is None or not is_alive(state.supervisor):
        raise ScenarioError("no supervisor runs, so it cannot be killed")
    os.kill(state.supervisor.pid, signal.SIGKILL)
    eventually(lambda: not is_alive(state.supervisor), _PATIENCE, "the supervisor to be gone")


def rollway(home: Home, *arguments: str) -> None:
    """A command line, as a person gives it. Raises ScenarioError when it fails."""
    command = [sys.executable, "-m", "cli.main", *arguments]
    own = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}}
    environment = {**own, "ROLLWAY_HOME": str(home.root)}
    ended = subprocess.run(
        command, cwd=project_root(), env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    if ended.returncode:
        raise ScenarioError(f"rollway {' '.join(arguments)} failed: {ended.stderr.strip()}")


def wait_until_back(home: Home, name: str, killed: Identity) -> None:
    """Wait until the supervisor has started the part again and it is ready. Raises NotInTimeError."""

    def is_back() -> bool:
        part = _part(home, name)
        return part.process not in (None, killed) and part.condition == "running"

    eventually(is_back, _PATIENCE, f"{name} to come back after it was killed")


def kill_envoy(home: Home) -> tuple[float, float]:
    """SIGKILL to the first Envoy; when that was, and when somebody listened in its place, in Unix seconds.

    Returns when it is back. Raises ScenarioError and NotInTimeError.
    """
    address, killed_at = address_of(home, "envoy"), time.time()
    killed = kill_part(home, "envoy")

    def answers() -> bool:
        return bool(httpx.get(f"http://{address}/", trust_env=False, timeout=_LATE).status_code)

    eventually(answers, _PATIENCE, f"somebody to answer at {address}")
    back_at = time.time()
    wait_until_back(home, "envoy", killed)
    return killed_at, back_at


def kill_replica(route: RouteSeen) -> float:
    """SIGKILL to a replica; when it was gone, in Unix seconds. Raises ScenarioError."""
    process = replica_process(route)
    process.kill()
    until = time.monotonic() + _PATIENCE
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < until:
        time.sleep(0.0005)
    return time.time()


def lose(service: Service, victim: RouteSeen) -> float:
    """`kill_replica`, and wait until that was noticed; when it was gone. Raises ScenarioError."""
    killed_at = kill_replica(victim)
    service.wait(lambda now: victim.id not in {route.id for route in now.routes}, "the loss to be noticed")
    return killed_at


def replica_process(route: RouteSeen) -> psutil.Process:
    """The process of a replica, and no other. Raises ScenarioError."""
    try:
        process = psutil.Process(int(route.handle.removeprefix("pid:")))
        if process.environ().get("ROLLWAY_ROUTE") == route.id:
            return process
    except (psutil.Error, ValueError):
        pass
    raise ScenarioError(f"the replica of route {route.id} was not found as {route.handle!r}")


def signal_workers(home: Home, number: signal.Signals) -> None:
    """To each worker and beat: SIGSTOP freezes them, which the supervisor does not notice, and SIGCONT continues."""
    state = read_state(home)
    for part in state.parts if state else ():
        if part.name.startswith(("worker", "beat")) and part.process is not None:
            with suppress(ProcessLookupError):
                os.kill(part.process.pid, number)


def address_of(home: Home, name: str) -> str:
    """host:port of a part of the stack. Raises ScenarioError."""
    return _part(home, name).address.removeprefix("http://").rstrip("/")


def _part(home: Home, name: str) -> PartState:
    state = read_state(home)
    for part in state.parts if state else ():
        if part.name == name:
            return part
    raise ScenarioError(f"the stack has no part {name!r}")
