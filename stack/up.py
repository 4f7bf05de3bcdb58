"""`rollway up`: start the stack's supervisor, and follow it until every part is up."""

import os
import subprocess
import sys
import time

from runtime.identity import Identity, identify, is_alive
from stack.down import stop_leftovers, stop_stack
from stack.errors import StackError, folder_errors
from stack.home import Home, open_log, project_root
from stack.parts.processes import ProcessList, rollway_processes
from stack.plan import PLAN, Plan
from stack.prepare import Notice, Say, UpRequest, make_plan
from stack.state import StackState, read_state, write_state
from stack.status import StackStatus, stack_status
from stack.supervisor.lock import one_at_a_time
from stack.supervisor.stop import stop_replicas

_POLL = 0.05
# Kept, since a Popen that is forgotten before its process has ended warns.
_LAUNCHED: list[subprocess.Popen[bytes]] = []


def up(request: UpRequest, say: Say, processes: ProcessList = rollway_processes) -> StackStatus:
    """Start the stack of `request.home`, and return its status when it is up. It may be up already.

    `say` gets a notice when a part comes up. After an error or Ctrl-C nothing that was started is left. Raises
    StackError with one sentence.
    """
    home = request.home
    home.create()
    with one_at_a_time(
        home, lambda: say(Notice(part="stack", text="another 'rollway up' or 'down' is at work, waiting"))
    ):
        state = read_state(home)
        if state is not None and is_alive(state.supervisor) and state.phase in {"starting", "running"}:
            say(Notice(part="stack", text="already running"))
            _follow(home, state.supervisor, say)
            return stack_status(home)
        stop_leftovers(home, say)
        try:
            _follow(home, _launch(home, make_plan(request, processes, say)), say)
        except BaseException:
            stop_stack(home, lambda _: None, stop_replicas)
            raise
        return stack_status(home)


def stay(home: Home, say: Say) -> None:
    """Return when somebody has stopped the stack of `home`; `say` gets a notice of each crash and restart."""
    last: dict[str, tuple[str, int]] = {}
    while (status := stack_status(home)).supervisor_pid is not None:
        for part in status.parts:
            seen = (part.state, part.restarts)
            if last.setdefault(part.name, seen) != seen:
                why = f": {part.error}" if part.error else ""
                say(Notice(part=part.name, text=f"{part.state}, {part.restarts} restarts{why}"))
            last[part.name] = seen
        time.sleep(0.5)


def _launch(home: Home, plan: Plan) -> Identity:
    """Start the supervisor. It gets its plan when its pid is in the state file, so that `down` always finds it."""
    with folder_errors(home.root):
        log = open_log(home.log("supervisor"))
        process = subprocess.Popen(  # noqa: S603 -- ourselves
            [sys.executable, "-m", "stack.supervisor", str(home.root)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=project_root(),
            start_new_session=True,
        )
        os.close(log)
        _LAUNCHED[:] = [earlier for earlier in _LAUNCHED if earlier.poll() is None] + [process]
        supervisor = identify(process.pid)
        if supervisor is None or process.stdin is None:
            raise _ended_at_once(home)
        urls = {"database_url": plan.database_url, "redis_url": plan.redis_url}
        write_state(home, StackState(supervisor=supervisor, phase="starting", parts=(), **urls))
    try:
        process.stdin.write(PLAN.dump_json(plan))
        process.stdin.close()
    except BrokenPipeError:
        raise _ended_at_once(home) from None
    return supervisor


def _follow(home: Home, supervisor: Identity, say: Say) -> None:
    """Give a notice of each part that comes up, until all have. Raises StackError when the supervisor gives up."""
    seen: set[str] = set()
    while True:
        alive = is_alive(supervisor)  # asked before the file is read: what a supervisor writes last is not missed
        state = read_state(home)
        for part in state.parts if state else ():
            if part.condition in {"running", "done", "external"} and part.name not in seen:
                seen.add(part.name)
                say(Notice(part=part.name, text=part.condition, address=part.address))
        if state is not None and state.failure:
            raise StackError(state.failure)
        if state is not None and state.phase == "running":
            return
        if not alive or state is None or state.phase != "starting":
            raise _ended_at_once(home)
        time.sleep(_POLL)


def _ended_at_once(home: Home) -> StackError:
    return StackError(f"The stack was stopped before it was up; {home.log('supervisor')} says more.")
