"""The parts that the supervisor shall run: plain data that travels to it as JSON."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

from pydantic import TypeAdapter

from runtime.machine.free_ports import Address
from stack.home.stack_state import PartState


@dataclass(frozen=True, slots=True)
class Ready:
    """The sign that a part is up.

    redis: the URL `target` answers a ping; port: 127.0.0.1:`target` accepts; http: the URL `target` answers 200;
    unix: so does the page that `target` names behind a Unix socket and a colon; log: the part's log says `target`;
    exit: it ends with code 0.
    """

    kind: Literal["redis", "port", "http", "unix", "log", "exit"]
    target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPart:
    """One process of the stack, started once the parts named in `after` are up. Servers are stopped last.

    `env` is added to the supervisor's environment, or replaces it when `inherit_env` is false. `user` is a uid, and
    gid, to run as. `grace` is in seconds from `stop_signal` to SIGKILL. `pid_files` are files of this part that
    name a process, and are removed before a start when that process does not run in the file's folder.
    `configuration` tells a part from one with the same command line whose files say something else. With `hot_restart`,
    the name by which two processes of it reach each other, a new one takes the sockets over from the old one, which
    ends by itself. At the `watched_port` each of its threads answers; where one does not for some seconds, the process
    is replaced.

    The supervisor keeps the ports of a part from everybody else, through its crashes and restarts: `listens` is the
    address of the one socket that it is handed (ROLLWAY_SOCKET), `shares` are addresses where it listens by itself with
    SO_REUSEPORT.
    """

    name: str
    command: tuple[str, ...]
    cwd: str
    ready: Ready
    after: tuple[str, ...] = ()
    server: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    inherit_env: bool = True
    user: int | None = None
    address: str = ""
    stop_signal: int = signal.SIGTERM
    grace: float = 15.0
    start_timeout: float = 30.0
    pid_files: tuple[str, ...] = ()
    configuration: str = ""
    hot_restart: str = ""
    listens: Address | None = None
    shares: tuple[Address, ...] = ()
    watched_port: int = 0

    @property
    def digest(self) -> str:
        """Two parts of one digest are run in the same way."""
        return sha256(_PART.dump_json(self)).hexdigest()


_PART = TypeAdapter(StackPart)


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """A server that somebody else runs, and its address without user and password."""

    name: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPlan:
    """All that a supervisor runs.

    `found` are parts that run already, of an earlier supervisor: they are taken over, and those named in `restart` are
    restarted then, one after the other. `workers` and `environment` are what it was asked for with; these and the URLs
    go to the state file.
    """

    database_url: str
    redis_url: str
    parts: tuple[StackPart, ...]
    external: tuple[External, ...] = ()
    found: tuple[PartState, ...] = ()
    restart: tuple[str, ...] = ()
    workers: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)


PLAN = TypeAdapter(StackPlan)
