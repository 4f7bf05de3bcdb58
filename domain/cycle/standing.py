"""How a deployment stands, in a word and a tone: for every list and page that shows many at once."""

from enum import StrEnum
from typing import NamedTuple

from domain.cycle.rollout import ROLLING_BACK
from domain.model.deployment import DeploymentLifecycleStatus, Lifecycle


class Tone(StrEnum):
    """How it looks: good, on the move, to be looked at, or neither."""

    GOOD = "good"
    MOVES = "moves"
    WARN = "warn"
    RESTS = "rests"


class Standing(NamedTuple):
    """The word and its tone."""

    word: str
    tone: Tone


def standing(status: DeploymentLifecycleStatus, *, is_paused: bool, is_asked: bool, is_degraded: bool) -> Standing:
    """What to say first of it. `is_asked`: a person is waited for.

    rolling back            -> rolling back
    paused                  -> paused
    a person is waited for  -> waits
    degraded                -> where it is in its life, degraded
    otherwise               -> where it is in its life
    """
    lifecycle = status.lifecycle
    if status == ROLLING_BACK:
        return Standing("rolling back", Tone.WARN)
    if is_paused or is_asked:
        return Standing("paused" if is_paused else "waits", Tone.WARN)
    if is_degraded:
        return Standing(f"{lifecycle}, degraded", Tone.WARN)
    if lifecycle is Lifecycle.READY:
        return Standing(lifecycle, Tone.GOOD)
    return Standing(lifecycle, Tone.MOVES if lifecycle in (Lifecycle.DEPLOYING, Lifecycle.SCALING) else Tone.RESTS)
