"""What runs now, from the state file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from runtime.machine.identity import Identity, is_alive
from stack.home.folder import Home, write_private
from stack.stack_errors import StackError, folder_errors

PartCondition = Literal["starting", "running", "restarting", "crashing", "draining", "done", "stopped", "external"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartState:
    """One part as its supervisor last saw it. `since`: when it got into this condition, in Unix seconds.

    `digest` and `hot_restart` are those of the part in the plan it was started from; `epoch` counts the hot restarts
    since the first start.
    """

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
    digest: str = ""
    epoch: int = 0
    hot_restart: str = ""

    @property
    def is_leaving(self) -> bool:
        """Whether it has been succeeded by a new process, and finishes what it has under way."""
        return self.condition == "draining"

    @property
    def carries_requests(self) -> bool:
        """Whether clients reach replicas through it."""
        return self.name.startswith("envoy")


@dataclass(frozen=True, slots=True, kw_only=True)
class StackState:
    """The state file. `failure` is one sentence, set when a part did not start.

    "serving": all is stopped but replicas and Envoy. `workers` and `environment` are what `up` was asked for with.
    """

    supervisor: Identity
    phase: Literal["starting", "running", "stopping", "stopped", "serving"]
    database_url: str
    redis_url: str
    parts: tuple[PartState, ...]
    failure: str = ""
    workers: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def alive(self) -> tuple[PartState, ...]:
        """The parts whose processes run at this moment."""
        return tuple(part for part in self.parts if is_alive(part.process))


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
