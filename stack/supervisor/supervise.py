"""The supervisor: starts the parts, takes over those that run, restarts the ones that end."""

import logging
import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from domain.installation.settings import LogLimits
from runtime.machine.identity import Identity, identify
from runtime.machine.log_files import rotate
from runtime.machine.path_access import file_lock
from stack.home.folder import Home
from stack.home.stack_state import PartState, StackState, write_state
from stack.part_specs import StackPlan
from stack.stack_errors import StackError, folder_errors
from stack.supervisor.child.child_process import AdoptedProcess, Process
from stack.supervisor.child.supervised import Child
from stack.supervisor.child.watch import LOOK_SECONDS
from stack.supervisor.stop import stop_in_order, stop_together

_LOG = logging.getLogger("stack.supervisor")
_CRASHES_AT_START = 3
_POLL_STARTING = 0.05
_POLL_RUNNING = 5.0
_POLL_ADOPTED = 0.2  # what is not our child ends without a signal to us, and not every system tells of it otherwise


class StartFailedError(Exception):
    """A part does not come up; the message is one sentence."""


class Supervisor:
    """Starts the parts of a plan in their order, restarts what ends, and stops all on SIGTERM.

    It may be killed: what it runs continues, and the next supervisor takes that over.
    """

    def __init__(self, home: Home, plan: StackPlan, replicas: Callable[[Path], object]) -> None:
        self._home = home
        self._plan = plan
        self._replicas = replicas
        self._children = [Child(part, home.log(part.name)) for part in plan.parts]
        self._phase: Literal["starting", "running", "stopping", "stopped"] = "starting"
        self._failure = ""
        self._self = identify(os.getpid()) or Identity(os.getpid(), 0.0, "")
        self._stop_asked = False
        self._written: StackState | None = None
        self._leaving = Leaving()
        self._wakeup = wakeup_on_signals(self._ask_stop)
        self._logs = Logs(home.log("supervisor"))

    def run(self) -> int:
        """Run until asked to stop; the process's exit code. Nothing that was started is left when it returns."""
        try:
            self._come_up()
            self._phase = "running"
            while not self._stop_asked:
                self._advance()
                self._logs.keep_small(self._children)
                self._sleep()
        except StartFailedError as failure:
            self._failure = str(failure)
        finally:
            self._stop_all()
        return 1 if self._failure else 0

    def _come_up(self) -> None:
        """Take over what runs, start what is missing, then restart what shall be, one after the other.

        The stores come before what is missing: migrations may know them by another address than they have now. When
        something does not start, what was taken over serves on; without such, StartFailedError is raised.
        """
        try:
            self._leaving.adopt(self._plan.found)
            for child in self._children:
                self._adopt(child)
            restarted = [child for child in self._children if child.part.name in self._plan.restart]
            stores = [child for child in restarted if child.part.server and not child.part.hot_restart]
            for child in stores:
                self._restart(child)
            self._start()
            for child in restarted:
                if child not in stores:
                    self._restart(child)
        except StartFailedError as failure:
            if not self._plan.found:
                raise
            self._failure = str(failure)

    def _adopt(self, child: Child) -> None:
        for state in self._plan.found:
            if state.name == child.part.name:
                child.adopt(state)

    def _restart(self, child: Child) -> None:
        """Stop a part and start it again, while the others run; the parts that need it wait for it."""
        if self._stop_asked:
            return
        if child.hands_over:
            self._hand_over(child)
        else:
            child.ports.let_wait()
            stop_together([child.state()], lambda _: None)
            child.renew()
            self._start()

    def _hand_over(self, child: Child) -> None:
        """Start a new process of a part while the old one runs.

        The old one hands everything over, and ends by itself later.

        One that is leaving since the restart before is waited for: of three the oldest would be cut off.
        """
        while self._leaving.has(child.part.name) and not self._stop_asked:
            self._sleep()
            self._advance()
        state = child.state()
        self._leaving.add(state, child.succeed())
        self._start()

    def _ask_stop(self) -> None:
        self._stop_asked = True

    def _start(self) -> None:
        self._advance()
        while not self._stop_asked and not all(child.settled for child in self._children):
            self._give_up_on_hopeless()
            self._sleep()
            self._advance()

    def _give_up_on_hopeless(self) -> None:
        for child in self._children:
            at_once = child.timed_out or child.part.ready.kind == "exit"
            if child.crashes >= (1 if at_once else _CRASHES_AT_START):
                reason = without_secrets(self._plan, child.error)
                raise StartFailedError(f"{child.part.name} does not start: {reason} (its log is {child.log}).")

    def _advance(self) -> None:
        """Start the parts that are due, note which ended or became ready, and write the state file."""
        for child in self._children:
            due = child.waiting_until
            if due is not None and due <= time.monotonic() and self._may_start(child):
                if child.is_first:
                    self._leaving.end(child.part.name)
                child.start(self._save)
            child.check()
        self._save()

    def _may_start(self, child: Child) -> bool:
        """A part waits for others only at the start; later each part waits for its servers by itself."""
        return self._phase == "running" or all(
            other.settled for other in self._children if other.part.name in child.part.after
        )

    def _sleep(self) -> None:
        """Sleep until a child ends, a signal comes or something is due."""
        ends = [end for child in self._children if (end := child.end) is not None]
        if self._wakeup in select.select([self._wakeup, *ends], [], [], self._nap())[0]:
            os.read(self._wakeup, 4096)

    def _nap(self) -> float:
        now = time.monotonic()
        if self._phase == "starting" or any(
            child.waiting_until is None and not child.settled for child in self._children
        ):
            return _POLL_STARTING
        dues = [child.waiting_until for child in self._children if child.waiting_until is not None]
        unseen = any(child.is_adopted and child.end is None for child in self._children)
        is_watching = any(child.is_watched for child in self._children)
        longest = _POLL_ADOPTED if unseen else LOOK_SECONDS if is_watching else _POLL_RUNNING
        return max(0.0, min([longest, *(due - now for due in dues)]))

    def _stop_all(self) -> None:
        self._phase = "stopping"
        for child in self._children:
            child.ports.close()
        states = [*(child.state() for child in self._children), *self._leaving.states()]
        self._save()
        stop_in_order(self._home, states, self._note_stopped, self._replicas)
        for child in self._children:
            child.reap()
        self._phase = "stopped"
        self._save()

    def _note_stopped(self, part: PartState) -> None:
        for child in self._children:
            if child.part.name == part.name:
                child.reap()
        self._save()

    @property
    def _over(self) -> bool:
        return self._phase in {"stopping", "stopped"}

    def _save(self) -> None:
        if self._phase == "running" and all(child.settled for child in self._children):
            self._failure = ""
        state = StackState(
            supervisor=self._self,
            phase=self._phase,
            database_url=self._plan.database_url,
            redis_url=self._plan.redis_url,
            parts=(*part_states(self._plan, self._children, over=self._over), *self._leaving.states()),
            failure=self._failure,
            workers=self._plan.workers,
            environment=self._plan.environment,
        )
        if state == self._written:
            return
        try:
            write_state(self._home, state)
            self._written = state
        except OSError:  # a full disk must not end the stack; the next change tries again
            _LOG.exception("the state file could not be written")


_PATIENCE_SECONDS = 120.0


@contextmanager
def one_at_a_time(home: Home, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of `home`; Calls `waiting` once when another process has it. StackError after 120 s."""
    with ExitStack() as stack:
        with folder_errors(home.lock_file):
            try:
                stack.enter_context(file_lock(home.lock_file, _PATIENCE_SECONDS, waiting))
            except TimeoutError:
                raise StackError(
                    f"Another 'rollway up' or 'rollway down' has been at work in {home.root} for two minutes."
                ) from None
        yield


_LOOK_SECONDS = 10.0


class Logs:
    """The logs of the parts, and the supervisor's own."""

    def __init__(self, own: Path) -> None:
        self._own = own
        self._limits = LogLimits.from_environment(os.environ)
        self._looked_at = 0.0

    def keep_small(self, children: Iterable[Child]) -> None:
        """Truncate the logs that are too big, if the last look was some time ago."""
        if time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        with suppress(OSError):  # a log that cannot be cut must not end the stack; the next look tries again
            rotate(self._own, self._limits)
            for child in children:
                child.keep_log_small(self._limits)


def part_states(plan: StackPlan, children: Sequence[Child], *, over: bool) -> tuple[PartState, ...]:
    """The states of others' servers, then of our parts.

    `over`: all is being stopped, so what does not run has been stopped.
    """
    external = [PartState(name=server.name, condition="external", address=server.address) for server in plan.external]
    return (*external, *(_state_of(plan, child, over=over) for child in children))


def without_secrets(plan: StackPlan, words: str) -> str:
    """The words of a part's log without the passwords of the servers."""
    for url in (plan.database_url, plan.redis_url):
        if password := urlsplit(url).password:
            words = words.replace(password, "***")
    return words


def _state_of(plan: StackPlan, child: Child, *, over: bool) -> PartState:
    state = child.state()
    stopped = over and state.process is None and not child.finished
    return replace(state, condition="stopped" if stopped else state.condition, error=without_secrets(plan, state.error))


def wakeup_on_signals(stop: Callable[[], None]) -> int:
    """A descriptor that becomes readable when a child ends or a signal comes; SIGTERM also calls `stop`."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda *_: stop())
    # handlers and not SIG_IGN: children would inherit that
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reader


_SUFFIX = "-leaving"


def leaving(name: str) -> str:
    return name + _SUFFIX


@dataclass(slots=True)
class Leaving:
    """The leaving processes by part. None of them may be ended while its successor lives, which would end with it."""

    _processes: dict[str, tuple[PartState, Process]] = field(default_factory=dict)

    def add(self, state: PartState, process: Process | None) -> None:
        """Add this process of a part as a leaving one; without a process there is nothing to wait for."""
        if process is not None:
            self._processes[state.name] = replace(state, name=leaving(state.name), condition="draining"), process

    def adopt(self, states: Iterable[PartState]) -> None:
        """Take over the leaving processes of an earlier supervisor."""
        for state in states:
            if state.is_leaving and state.process is not None:
                self._processes[state.name.removesuffix(_SUFFIX)] = state, AdoptedProcess(state.process)

    def states(self) -> tuple[PartState, ...]:
        """The processes that have not ended."""
        self._processes = {name: its for name, its in self._processes.items() if its[1].poll() is None}
        return tuple(state for state, _ in self._processes.values())

    def has(self, name: str) -> bool:
        """Whether a process of this part has not ended."""
        return any(state.name == leaving(name) for state in self.states())

    def end(self, name: str) -> None:
        """End the process of this part, whose successor has ended: it holds what the next process needs to start."""
        if process := self._processes.pop(name, None):
            stop_together([process[0]], lambda _: None)
