"""`rollway down`: stop the stack, or what a killed supervisor left of it."""

import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from runtime.machine.identity import is_alive
from stack.home.folder import Home
from stack.home.server_settings import load_settings
from stack.home.sockets import forget_link
from stack.home.stack_state import PartState, StackState, read_state, write_state
from stack.parts.envoy import forget_handover
from stack.prepare import Notice, Say
from stack.stack_errors import StackError, folder_errors
from stack.supervisor.stop import end_process, stop_in_order, stop_replicas
from stack.supervisor.supervise import one_at_a_time

AT_WORK = Notice(part="stack", text="another 'rollway up', 'restart' or 'down' is at work, waiting")

StopReplicas = Callable[[Path], object]


def down(home: Home, say: Say, replicas: StopReplicas | None = None, *, keep_replicas: bool = False) -> bool:
    """Stop what `up` started, in the order of `stop_in_order`, and the supervisor. Data stays.

    Returns whether anything was running. `say` gets a notice of each part that has ended. `keep_replicas` leaves the
    replicas and Envoy alone, which serve on; else `replicas` stops them, by default after a drain. Raises StackError.
    """
    if not home.root.exists():
        return False
    home.create()
    with one_at_a_time(home, partial(say, AT_WORK)):
        stop = replicas or partial(stop_replicas, say=lambda text: say(Notice(part="replicas", text=text)))
        return stop_stack(home, say, None if keep_replicas else stop)


def stop_stack(home: Home, say: Say, replicas: StopReplicas | None) -> bool:
    """Do what `down` does, for a caller that holds the lock of `home`.

    Without `replicas` they and Envoy keep running.
    """
    state = read_state(home)
    was_supervised = state is not None and is_alive(state.supervisor)
    let_go(state)
    state = read_state(home)
    running = state.alive if state else ()
    stop_in_order(home, running, lambda part: say(Notice(part=part.name, text="stopped")), replicas)
    with folder_errors(home.root):
        if state is None or replicas is not None:
            home.state_file.unlink(missing_ok=True)
            _forget_what_is_elsewhere(home)
        else:
            _leave_serving(home, state)
    return was_supervised or bool(running)


def let_go(state: StackState | None) -> None:
    """Kill the supervisor and leave its parts running: all that it knows is in the state file."""
    if state is not None:
        end_process(state.supervisor, signal.SIGKILL, 5)


def end_parts(home: Home, parts: Sequence[PartState]) -> None:
    """Stop these parts; replicas keep running, since they belong to deployments."""
    stop_in_order(home, parts, lambda _: None, lambda _: None)


def _forget_what_is_elsewhere(home: Home) -> None:
    with suppress(StackError):  # the next `up` will say that the file makes no sense
        if settings := load_settings(home):
            forget_handover(home, settings)
            forget_link(home, settings.sockets)


def _leave_serving(home: Home, state: StackState) -> None:
    write_state(home, replace(state, phase="serving", failure="", parts=state.alive))
