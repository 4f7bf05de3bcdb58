"""What becomes of the parts that an earlier supervisor left running, and what the state file tells of them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from stack.home.state import PartState
from stack.plan import StackPart, StackPlan
from stack.supervisor.child.supervised import Child


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """`kept` and `restarted` serve on; of `restarted` each ends when its turn comes. `ended` are ended at once."""

    kept: tuple[PartState, ...]
    restarted: tuple[PartState, ...]
    ended: tuple[PartState, ...]

    @property
    def sentence(self) -> str:
        """The plan in words, for people, before it happens."""
        told = (
            ("kept", self.kept),
            ("restarted one after the other", self.restarted),
            ("ended, since they did not run well or are not wanted", self.ended),
        )
        return "; ".join(f"{words}: {', '.join(part.name for part in parts)}" for words, parts in told if parts)


def take_over(wanted: Sequence[StackPart], found: Sequence[PartState], restart: Collection[str]) -> Takeover:
    """Sort the parts that run by what becomes of them. `restart` are the names that somebody asked to restart.

    no part of that name is wanted     -> ended
    it was not up when last seen       -> ended, and started anew with what is missing
    it is to be restarted              -> restarted
    it was started from another plan   -> restarted
    else                               -> kept
    """
    parts = {part.name: part for part in wanted}
    running = [part for part in found if part.name in parts and part.condition == "running"]
    restarted = [part for part in running if part.name in restart or part.digest != parts[part.name].digest]
    return Takeover(
        kept=tuple(part for part in running if part not in restarted),
        restarted=tuple(restarted),
        ended=tuple(part for part in found if part not in running),
    )


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
