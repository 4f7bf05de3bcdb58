"""Decides on the parts that an earlier supervisor left running: kept, restarted one by one, or ended."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from stack.home.state import PartState
from stack.plan import StackPart


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

    it is leaving its place to another -> kept, until it ends by itself
    no part of that name is wanted     -> ended
    it was not up when last seen       -> ended, and started anew with what is missing
    it is to be restarted              -> restarted
    it was started from another plan   -> restarted
    else                               -> kept
    """
    parts = {part.name: part for part in wanted}
    leaving = [part for part in found if part.is_leaving]
    running = [part for part in found if part.name in parts and part.condition == "running"]
    restarted = [part for part in running if part.name in restart or part.digest != parts[part.name].digest]
    return Takeover(
        kept=tuple(part for part in found if part in leaving or (part in running and part not in restarted)),
        restarted=tuple(restarted),
        ended=tuple(part for part in found if part not in running and part not in leaving),
    )
