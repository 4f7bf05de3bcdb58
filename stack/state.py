"""What runs now: the state file, and whether the processes it names are still those processes."""

from dataclasses import dataclass
from typing import Literal

import psutil
from pydantic import TypeAdapter, ValidationError

from stack.errors import StackError, folder_errors
from stack.home import Home, write_private

PartCondition = Literal["starting", "running", "restarting", "crashing", "done", "stopped", "external"]

# The kernel derives a start time from the wall clock, which a time service may nudge.
_CLOCK_NUDGE = 2.0


@dataclass(frozen=True, slots=True)
class Identity:
    """A process beyond doubt: its pid, and when it was created (Unix seconds), since pids are recycled."""

    pid: int
    created: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PartState:
    """One part as its supervisor last saw it; `since` is when it got there, in Unix seconds."""

    name: str
    condition: PartCondition
    server: bool = False
    process: Identity | None = None
    address: str = ""
    restarts: int = 0
    since: float = 0.0
    stop_signal: int = 15
    grace: float = 15.0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackState:
    """The state file. `failure` is one sentence, set when the start failed."""

    supervisor: Identity
    phase: Literal["starting", "running", "stopping", "stopped"]
    database_url: str
    redis_url: str
    parts: tuple[PartState, ...]
    failure: str = ""


_STATE = TypeAdapter(StackState)


def read_state(home: Home) -> StackState | None:
    """The state of the stack in `home`; None when none was started. Raises StackError when the file makes no sense."""
    try:
        with folder_errors(home.state_file):
            return _STATE.validate_json(home.state_file.read_bytes()) if home.state_file.exists() else None
    except ValidationError as error:
        raise StackError(f"{home.state_file} is damaged: stop Rollway's processes by hand and delete it.") from error


def write_state(home: Home, state: StackState) -> None:
    """Replace the state file, readable by its owner only. Raises OSError."""
    write_private(home.state_file, _STATE.dump_json(state, indent=1).decode())


def identify(pid: int) -> Identity | None:
    """The identity of a running process; None when there is none of that pid."""
    try:
        return Identity(pid, psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def is_alive(process: Identity | None) -> bool:
    """Whether this very process still runs: not one that got its pid later, nor one that only waits to be reaped."""
    if process is None:
        return False
    try:
        found = psutil.Process(process.pid)
        same = abs(found.create_time() - process.created) < _CLOCK_NUDGE
        return same and found.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
