"""The status of the stack, and the servers that commands reach through it."""

import time
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runtime.machine.identity import is_alive
from stack.home.folder import Home, find_home
from stack.home.stack_state import PartCondition, PartState, StackState, read_state
from stack.stack_errors import StackError


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStatus:
    """A part. `uptime`: in seconds; None when it does not run. `error`: why it last ended by itself."""

    name: str
    state: PartCondition
    pid: int | None
    address: str
    restarts: int
    uptime: float | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StackStatus:
    """The whole stack. `phase` "lost": the supervisor was killed, and parts of it still run.

    "serving": it was stopped except for Envoy and the replicas.
    """

    home: Path
    phase: Literal["starting", "running", "stopping", "stopped", "serving", "lost"]
    supervisor_pid: int | None
    parts: tuple[PartStatus, ...]

    @property
    def advice(self) -> str:
        """The advice for people; empty when nothing needs to be done."""
        match self.phase:
            case "lost":
                return "nothing watches over it; 'rollway up' takes over what runs, and no request is lost"
            case "serving":
                return "only Envoy and the replicas run; 'rollway up' starts the rest, 'rollway down' stops these too"
            case _:
                return ""

    @property
    def running(self) -> bool:
        """Whether all parts came up, and a supervisor restarts what ends."""
        return self.phase == "running"


def stack_status(home: Home) -> StackStatus:
    """The stack that runs in `home` at this moment. Raises StackError when its state file makes no sense."""
    state = read_state(home)
    if state is None:
        return StackStatus(home=home.root, phase="stopped", supervisor_pid=None, parts=())
    supervised = is_alive(state.supervisor)
    now = time.time()
    parts = tuple(_part(part, now, supervised=supervised) for part in state.parts if part.condition != "done")
    return StackStatus(
        home=home.root,
        phase=_phase(state, supervised=supervised),
        supervisor_pid=state.supervisor.pid if supervised else None,
        parts=parts,
    )


def _phase(
    state: StackState, *, supervised: bool
) -> Literal["starting", "running", "stopping", "stopped", "serving", "lost"]:
    if supervised:
        return state.phase
    if not state.alive:
        return "stopped"
    return "serving" if state.phase == "serving" else "lost"


def _part(part: PartState, now: float, *, supervised: bool) -> PartStatus:
    alive = is_alive(part.process)
    return PartStatus(
        name=part.name,
        state=_condition(part, alive=alive, supervised=supervised),
        pid=part.process.pid if part.process is not None and alive else None,
        address=part.address,
        restarts=part.restarts,
        uptime=round(now - part.since, 1) if alive else None,
        error=part.error,
    )


def _condition(part: PartState, *, alive: bool, supervised: bool) -> PartCondition:
    if part.condition == "external":
        return "external"
    if not supervised:
        return "running" if alive else "stopped"
    return "restarting" if part.condition == "running" and not alive else part.condition


_SERVING = "Only Envoy and replicas run, as 'rollway down --keep-replicas' left them: 'rollway up' starts the rest."


def export_urls(environ: MutableMapping[str, str]) -> None:
    """Set DATABASE_URL, REDIS_URL and ROLLWAY_HOME in `environ` where they are missing.

    Read from the state file of ROLLWAY_HOME (default ./.rollway). Raises StackError when no stack runs there.
    """
    home = find_home(environ)
    environ.setdefault("ROLLWAY_HOME", str(home.root))
    if environ.get("DATABASE_URL") and environ.get("REDIS_URL"):
        return
    state = read_state(home)
    if state is None or state.phase in {"stopping", "stopped", "serving"}:
        raise StackError(_SERVING if state and state.phase == "serving" and state.alive else _not_running(home))
    environ["DATABASE_URL"] = environ.get("DATABASE_URL") or state.database_url
    environ["REDIS_URL"] = environ.get("REDIS_URL") or state.redis_url


def _not_running(home: Home) -> str:
    return (
        f"No stack of Rollway runs in {home.root}: 'rollway up' starts one there, "
        "ROLLWAY_HOME names the folder of another, and DATABASE_URL and REDIS_URL name other servers."
    )
