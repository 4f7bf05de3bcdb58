"""Describes the parts for the state file."""

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from stack.home.state import PartState
from stack.plan import StackPlan
from stack.supervisor.child.supervised import Child


def part_states(plan: StackPlan, children: Sequence[Child], *, over: bool) -> tuple[PartState, ...]:
    """Servers of others, then our parts. `over`: all is being stopped, so what does not run has been stopped."""
    external = [PartState(name=server.name, condition="external", address=server.address) for server in plan.external]
    return (*external, *(_seen(plan, child, over=over) for child in children))


def without_secrets(plan: StackPlan, words: str) -> str:
    """The words of a part's log without the passwords of the servers."""
    for url in (plan.database_url, plan.redis_url):
        if password := urlsplit(url).password:
            words = words.replace(password, "***")
    return words


def _seen(plan: StackPlan, child: Child, *, over: bool) -> PartState:
    state = child.state()
    stopped = over and state.process is None and not child.finished
    return replace(state, condition="stopped" if stopped else state.condition, error=without_secrets(plan, state.error))
