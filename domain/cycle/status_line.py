"""The state of a deployment in a word and a tone, for lists and pages that show many at once."""

from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from domain.model.states import ROLLING_BACK, DeploymentLifecycleStatus, Lifecycle
from domain.text.numbers import duration

Tone = Literal["good", "moves", "warn", "bad", "rests"]


class Standing(NamedTuple):
    """The word and its tone."""

    word: str
    tone: Tone


def standing(
    status: DeploymentLifecycleStatus, *, is_paused: bool, is_asked: bool, is_degraded: bool, is_failing: bool
) -> Standing:
    """Choose the most important word. `is_asked`: it waits for a person. `is_failing`: its starts fail in a row.

    rolling back            -> rolling back
    paused                  -> paused
    a person is waited for  -> waits
    degraded, failing       -> where it is in its life, degraded or failing
    otherwise               -> where it is in its life

    The tone of what waits for a person is "warn", that of what fails or goes back is "bad".
    """
    lifecycle = status.lifecycle
    if status == ROLLING_BACK:
        return Standing("rolling back", "bad")
    if is_paused or is_asked:
        return Standing("paused" if is_paused else "waits", "warn")
    if is_degraded or is_failing:
        return Standing(f"{lifecycle}, {'degraded' if is_degraded else 'failing'}", "bad")
    if lifecycle is Lifecycle.READY:
        return Standing(lifecycle, "good")
    return Standing(lifecycle, "moves" if lifecycle in (Lifecycle.DEPLOYING, Lifecycle.SCALING) else "rests")


LATE = timedelta(seconds=15)
"""Due deployments are looked at each second, but it takes some seconds until a dead worker is missed."""


def overdue(lifecycle: Lifecycle, due_at: datetime | None, now: datetime) -> str:
    """A sentence if no worker looks at a due deployment; empty if all is well."""
    if due_at is None or now - due_at < LATE or lifecycle is Lifecycle.DESTROYED:
        return ""
    return f"due for {duration(now - due_at)}, but no worker has looked: do workers and beat run?"
