"""Follows a supervisor while it brings the stack up."""

import time

from runtime.machine.identity import Identity, is_alive
from stack.errors import StackError
from stack.home.folder import Home
from stack.home.state import PartState, read_state
from stack.plan import StackPlan
from stack.prepare import Notice, Say

_POLL = 0.05


def follow(home: Home, supervisor: Identity, say: Say, plan: StackPlan | None = None) -> None:
    """Give a notice of each part that comes up, until all have. Raises StackError when one does not.

    `plan` tells which parts were found running, and which of them are restarted.
    """
    seen: set[str] = set()
    while True:
        alive = is_alive(supervisor)  # asked before the file is read: what a supervisor writes last is not missed
        state = read_state(home)
        for part in state.parts if state else ():
            if part.name not in seen and (text := _news(part, plan)):
                seen.add(part.name)
                say(Notice(part=part.name, text=text, address=part.address))
        if state is not None and state.failure:
            raise StackError(state.failure)
        if state is not None and state.phase == "running":
            return
        if not alive or state is None or state.phase != "starting":
            raise ended_at_once(home)
        time.sleep(_POLL)


def ended_at_once(home: Home) -> StackError:
    """Say so when the supervisor is gone before all was up."""
    return StackError(f"The stack was stopped before it was up; {home.log('supervisor')} says more.")


def _news(part: PartState, plan: StackPlan | None) -> str:
    """Say what is new of a part; nothing while it is on its way."""
    if part.condition not in {"running", "done", "external"}:
        return ""
    before = next((found.process for found in plan.found if found.name == part.name), None) if plan else None
    if plan is None or before is None:
        return part.condition
    if part.name not in plan.restart:
        return "kept"
    return "restarted" if part.process != before else ""
