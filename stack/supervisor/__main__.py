"""The process that runs the stack: `python -m stack.supervisor HOME`, with the plan as JSON on its standard input."""

import logging
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from runtime.identity import Identity, identify
from stack.home import Home
from stack.plan import PLAN, Plan
from stack.state import PartState, StackState, write_state
from stack.supervisor.child import Child
from stack.supervisor.stop import stop_in_order, stop_replicas

_LOG = logging.getLogger("stack.supervisor")
_CRASHES_AT_START = 3
_POLL_STARTING = 0.05
_POLL_RUNNING = 5.0


class StartFailedError(Exception):
    """A part does not come up; the message is one sentence."""


class Supervisor:
    """Starts the parts of a plan in their order, restarts what ends, and stops all on SIGTERM."""

    def __init__(self, home: Home, plan: Plan, replicas: Callable[[Path], object]) -> None:
        self._home = home
        self._plan = plan
        self._replicas = replicas
        self._children = [Child(part, home.log(part.name)) for part in plan.parts]
        self._phase: Literal["starting", "running", "stopping", "stopped"] = "starting"
        self._failure = ""
        self._self = identify(os.getpid()) or Identity(os.getpid(), 0.0, "")
        self._stop_asked = False
        self._written: StackState | None = None
        self._wakeup = _wakeup_on_signals(self._ask_stop)

    def run(self) -> int:
        """Run until asked to stop; the process's exit code. Nothing that was started is left when it returns."""
        try:
            self._start()
            self._phase = "running"
            while not self._stop_asked:
                self._advance()
                self._sleep()
        except StartFailedError as failure:
            self._failure = str(failure)
        finally:
            self._stop_all()
        return 1 if self._failure else 0

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
                reason = self._without_secrets(child.error)
                raise StartFailedError(f"{child.part.name} does not start: {reason} (its log is {child.log}).")

    def _advance(self) -> None:
        """Start the parts that are due, note which ended or became ready, and write the state file."""
        for child in self._children:
            due = child.waiting_until
            if due is not None and due <= time.monotonic() and self._may_start(child):
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
        readable, _, _ = select.select([self._wakeup], [], [], self._nap())
        if readable:
            os.read(self._wakeup, 4096)

    def _nap(self) -> float:
        now = time.monotonic()
        if self._phase == "starting" or any(
            child.waiting_until is None and not child.settled for child in self._children
        ):
            return _POLL_STARTING
        dues = [child.waiting_until for child in self._children if child.waiting_until is not None]
        return max(0.0, min([_POLL_RUNNING, *(due - now for due in dues)]))

    def _stop_all(self) -> None:
        self._phase = "stopping"
        states = [child.state() for child in self._children]
        self._save()
        stop_in_order(self._home, states, self._note_stopped, self._replicas)
        for child in self._children:
            child.reap()
        self._phase = "stopped"
        self._save()

    def _note_stopped(self, part: PartState) -> None:
        next(child for child in self._children if child.part.name == part.name).reap()
        self._save()

    def _save(self) -> None:
        state = StackState(
            supervisor=self._self,
            phase=self._phase,
            database_url=self._plan.database_url,
            redis_url=self._plan.redis_url,
            parts=self._part_states(),
            failure=self._failure,
        )
        if state == self._written:
            return
        try:
            write_state(self._home, state)
        except OSError:
            # a full disk must not end the stack; the next change tries again
            _LOG.exception("the state file could not be written")
            return
        self._written = state

    def _part_states(self) -> tuple[PartState, ...]:
        external = [
            PartState(name=server.name, condition="external", address=server.address) for server in self._plan.external
        ]
        return (*external, *(self._seen(child) for child in self._children))

    def _seen(self, child: Child) -> PartState:
        state = child.state()
        over = self._phase in {"stopping", "stopped"} and state.process is None and not child.finished
        return replace(
            state, condition="stopped" if over else state.condition, error=self._without_secrets(state.error)
        )

    def _without_secrets(self, words: str) -> str:
        for url in (self._plan.database_url, self._plan.redis_url):
            if password := urlsplit(url).password:
                words = words.replace(password, "***")
        return words


def _wakeup_on_signals(stop: Callable[[], None]) -> int:
    """A descriptor that becomes readable when a child ends or a signal comes; SIGTERM also calls `stop`."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda *_: stop())
    # handlers and not SIG_IGN: children would inherit that
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reader


def main(arguments: Sequence[str]) -> int:
    """Supervise the plan on standard input in the home `arguments[0]`."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    words = sys.stdin.read()
    if not words:  # whoever started us died before it wrote our pid down
        return 1
    return Supervisor(Home(Path(arguments[0])), PLAN.validate_json(words), stop_replicas).run()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
