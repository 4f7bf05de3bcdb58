"""What runs now: the state file."""

from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from runtime.identity import Identity
from stack.errors import StackError, folder_errors
from stack.home import Home, write_private

PartCondition = Literal["starting", "running", "restarting", "crashing", "done", "stopped", "external"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartState:
    """One part as its supervisor last saw it. `since`: when it got into this condition, in Unix seconds."""

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
