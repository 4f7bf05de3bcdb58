"""`rollway down`: stop the stack, or what a killed supervisor left of it."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

from runtime.identity import is_alive, send
from stack.errors import folder_errors
from stack.home import Home
from stack.prepare import Notice, Say
from stack.state import PartState, StackState, read_state
from stack.supervisor.lock import one_at_a_time
from stack.supervisor.stop import end_process, stop_in_order, stop_replicas

_PATIENCE = 120.0
_POLL = 0.05

StopReplicas = Callable[[Path], object]


def down(home: Home, say: Say, replicas: StopReplicas = stop_replicas) -> bool:
    """Stop what `up` started, in the order of `stop_in_order`, and the supervisor. Data stays.

    Returns whether anything was running. `say` gets a notice of each part that has ended. Raises StackError.
    """
    if not home.root.exists():
        return False
    home.create()
    with one_at_a_time(
        home, lambda: say(Notice(part="stack", text="another 'rollway up' or 'down' is at work, waiting"))
    ):
        return stop_stack(home, say, replicas)


def stop_stack(home: Home, say: Say, replicas: StopReplicas) -> bool:
    """The same as `down`, for a caller that holds the lock of `home`."""
    state = read_state(home)
    was_supervised = state is not None and is_alive(state.supervisor)
    if state is not None and was_supervised:
        _let_supervisor_stop(home, state, say)
        state = read_state(home)
    left = [part for part in state.parts if is_alive(part.process)] if state else []
    if not was_supervised or left:
        stop_in_order(home, left, _sayer(say), replicas)
    with folder_errors(home.root):
        home.state_file.unlink(missing_ok=True)
    return was_supervised or bool(left)


def stop_leftovers(home: Home, say: Say) -> None:
    """Stop the parts that a killed supervisor left running. Replicas go on, since they belong to deployments."""
    state = read_state(home)
    if state is None:
        return
    if is_alive(state.supervisor):  # only a supervisor that is stopping gets here
        _let_supervisor_stop(home, state, lambda _: None)
        state = read_state(home) or state
    left = [part for part in state.parts if is_alive(part.process)]
    if left:
        names = ", ".join(part.name for part in left)
        say(Notice(part="stack", text=f"the supervisor was killed, stopping what it left: {names}"))
        stop_in_order(home, left, lambda _: None, replicas=None)


def _let_supervisor_stop(home: Home, state: StackState, say: Say) -> None:
    announced: set[str] = set()
    deadline = time.monotonic() + _PATIENCE
    running = {part.name for part in state.parts if is_alive(part.process)}
    send(state.supervisor, signal.SIGTERM)
    while is_alive(state.supervisor) and time.monotonic() < deadline:
        _say_stopped(read_state(home), running, announced, say)
        time.sleep(_POLL)
    _say_stopped(read_state(home), running, announced, say)
    end_process(state.supervisor, signal.SIGKILL, 5)


def _say_stopped(state: StackState | None, running: set[str], announced: set[str], say: Say) -> None:
    for part in state.parts if state else ():
        if part.condition == "stopped" and part.name in running - announced:
            announced.add(part.name)
            say(Notice(part=part.name, text="stopped"))


def _sayer(say: Say) -> Callable[[PartState], None]:
    return lambda part: say(Notice(part=part.name, text="stopped"))
