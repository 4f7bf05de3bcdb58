"""A stack as small as it can be: the real servers, and shell scripts in place of workers."""

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg
import redis

from stack.down import down
from stack.home.folder import Home
from stack.home.server_settings import Ports
from stack.home.stack_state import StackState, read_state
from stack.part_specs import Ready, StackPart
from stack.parts.processes import ProcessSetting
from stack.prepare import Notice, UpRequest
from stack.stack_status import StackStatus, stack_status
from stack.up import restart, up
from tests.support.stack.environment import ISOLATED

READY_AND_STAYS = "echo it is ready.; exec sleep 1000"


@dataclass
class SmallStack:
    home: Home
    scripts: dict[str, str] = field(default_factory=lambda: {"worker1": READY_AND_STAYS, "beat": READY_AND_STAYS})
    said: list[Notice] = field(default_factory=list)
    environ: dict[str, str] = field(default_factory=dict)
    ports: Ports = field(default_factory=Ports)

    def up(self) -> StackStatus:
        request = UpRequest(home=self.home, environ={**ISOLATED, **self.environ}, workers=1, ports=self.ports)
        return up(request, self.said.append, self.parts)

    def restart(self, *names: str) -> StackStatus:
        return restart(UpRequest(home=self.home, environ=self.environ), names, self.said.append, self.parts)

    def down(self, *, keep_replicas: bool = False) -> bool:
        return down(self.home, self.said.append, lambda _: None, keep_replicas=keep_replicas)

    def parts(self, _setting: ProcessSetting) -> tuple[StackPart, ...]:
        return tuple(script_part(name, script) for name, script in self.scripts.items())

    def state(self) -> StackState:
        state = read_state(self.home)
        assert state is not None
        return state

    def pid(self, name: str) -> int:
        return next(part.pid for part in stack_status(self.home).parts if part.name == name) or 0

    def pids(self) -> list[int]:
        """Every process of the stack, with the supervisor and PostgreSQL's own children."""
        state = self.state()
        pids = [state.supervisor.pid, *(part.process.pid for part in state.parts if part.process is not None)]
        children = [child.pid for pid in pids if psutil.pid_exists(pid) for child in psutil.Process(pid).children()]
        return sorted({*pids, *children})

    def texts(self) -> list[str]:
        return [notice.text for notice in self.said]

    def remember(self, value: str) -> None:
        with psycopg.connect(self.state().database_url) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS kept (value text)")
            connection.execute("INSERT INTO kept VALUES (%s)", (value,))
        with redis.Redis.from_url(self.state().redis_url) as client:
            client.set("kept", value)

    def remembered(self) -> tuple[list[str], str]:
        with psycopg.connect(self.state().database_url) as connection:
            rows = [str(row[0]) for row in connection.execute("SELECT value FROM kept")]
        with redis.Redis.from_url(self.state().redis_url, decode_responses=True) as client:
            return rows, str(client.get("kept"))


def script_part(name: str, script: str) -> StackPart:
    return StackPart(
        name=name,
        command=("/bin/sh", "-c", script),
        cwd="/",
        ready=Ready("log", " ready."),
        after=("postgres", "valkey"),
    )


def alive(pids: Sequence[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except psutil.NoSuchProcess:
            continue
    return found


def kill(pid: int) -> None:
    psutil.Process(pid).send_signal(signal.SIGKILL)


def made_home(folder: Path) -> Home:
    """A stack's folder there, empty."""
    home = Home(folder / ".rollway")
    home.create()
    return home
