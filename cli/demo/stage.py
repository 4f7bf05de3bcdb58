"""The demo's stage: a stack in a folder of its own, and the proof that nothing of it remains."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from rich.console import Console

from cli.remote import URL
from cli.terminal.exits import UnreachableError, ignore_signals
from runtime.process.process_table import KEEPER, keeper_of
from stack.down import down
from stack.home.folder import Home
from stack.prepare import Notice, UpRequest
from stack.stack_errors import StackError
from stack.stack_status import export_urls, stack_status
from stack.up import up

_WORKERS = 2
# the demo's replicas run its own program, which only root may be able to read
_SETTINGS = {} if os.geteuid() else {"ROLLWAY_REPLICA_USER": "root"}


@dataclass(slots=True)
class DemoStage:
    """A running stack. `keep`: leave its folder. `leftovers`: the processes that still ran after it was torn down."""

    home: Home
    console: Console
    keep: bool = False
    processes: list[psutil.Process] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)

    @property
    def logs(self) -> Path:
        """The folder with the logs of the stack and its replicas."""
        return self.home.root / "logs"

    @property
    def envoy(self) -> str:
        """The address for requests, such as http://127.0.0.1:8080."""
        return next(part.address for part in stack_status(self.home).parts if part.name == "envoy")

    @property
    def has_logs(self) -> bool:
        """Whether anything is logged yet."""
        return self.logs.is_dir() and any(self.logs.iterdir())

    def remember(self) -> None:
        """Note every process of the stack, so that their end can be proved."""
        status = stack_status(self.home)
        pids = [status.supervisor_pid, *(part.pid for part in status.parts)]
        for pid in filter(None, pids):
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                self.processes += [process, *process.children(recursive=True)]

    def tear_down(self) -> None:
        """Stop everything, record the leftovers, and remove the folder unless there are some or `keep` is set."""
        self.remember()
        try:
            down(self.home, lambda _: None)
        finally:
            self.leftovers = _alive(self.processes, self.home.root)
            if not self.keep and not self.leftovers:
                shutil.rmtree(self.home.root, ignore_errors=True)


@contextmanager
def open_stage(console: Console, envoys: int = 1) -> Iterator[DemoStage]:
    """A stack of 2 workers, beat, Flower and Envoy in a new folder; torn down at the end, whatever happens.

    DATABASE_URL and REDIS_URL of the environment are used when they are set. The folder is kept after an error.
    Raises UnreachableError when the stack does not come up.
    """
    home = Home(Path(tempfile.mkdtemp(prefix="rollway-demo-")).resolve())
    os.environ["ROLLWAY_HOME"] = str(home.root)
    os.environ.pop(URL, None)  # else the demo's commands would go to the server of that variable
    stage = DemoStage(home, console)
    try:
        _bring_up(stage, envoys)
        yield stage
    except Exception:
        stage.keep = stage.has_logs
        raise
    finally:
        ignore_signals()
        stage.tear_down()


def _bring_up(stage: DemoStage, envoys: int) -> None:
    began = time.monotonic()

    def say(notice: Notice) -> None:
        seconds = time.monotonic() - began
        stage.console.print(f"  ✔ {notice.part:<9} {notice.address or notice.text:<30} {seconds:5.1f} s")

    try:
        environ = {**os.environ, **_SETTINGS, "ROLLWAY_ENVOY": str(envoys)}
        up(UpRequest(home=stage.home, environ=environ, workers=_WORKERS), say)
        export_urls(os.environ)
    except StackError as error:
        where = f" The logs are in {stage.logs}" if stage.has_logs else ""
        message = f"the stack did not come up: {error}{where}"
        raise UnreachableError(message, logs=stage.logs) from None
    stage.remember()


def _alive(processes: list[psutil.Process], folder: Path) -> list[str]:
    """The still running ones of `processes`, and every other process that works for or in `folder`."""
    running = [process for process in {*processes, *psutil.process_iter()} if process.pid != os.getpid()]
    return sorted(
        f"{process.name()} (pid {process.pid})"
        for process in running
        if _is_of(process, folder, is_known=process in processes)
    )


def _is_of(process: psutil.Process, folder: Path, *, is_known: bool) -> bool:
    try:
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        variables = process.environ()
        texts = [*process.cmdline(), process.cwd(), variables.get("ROLLWAY_HOME", "")]
    except psutil.AccessDenied:
        return is_known
    except psutil.Error:
        return False
    return is_known or variables.get(KEEPER) == keeper_of(folder) or any(str(folder) in text for text in texts)
