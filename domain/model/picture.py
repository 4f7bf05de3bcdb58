"""Replicas drawn as one line: old|new, e.g. ■■|◇.

■ healthy   □ healthy, without traffic   △ degraded   ▲ unhealthy   ◇ provisioning   ✗ failed

The state of a deployment in a word and a tone, for lists and pages that show many at once.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID

from domain.model.deployment import Route
from domain.model.states import ROLLING_BACK, DeploymentLifecycleStatus, Lifecycle, RouteStatus, TrafficStatus
from domain.text.numbers import duration

_SYMBOLS = {
    RouteStatus.HEALTHY: "■",
    RouteStatus.DEGRADED: "△",
    RouteStatus.UNHEALTHY: "▲",
    RouteStatus.PROVISIONING: "◇",
    RouteStatus.FAILED: "✗",
}
_ORDER = "■□△▲◇?✗"


def symbol(status: RouteStatus, traffic: TrafficStatus) -> str:
    """One character for one replica; empty for one that is stopping or gone, "?" for a status without a character."""
    if status in (RouteStatus.TERMINATING, RouteStatus.TERMINATED):
        return ""
    if status is RouteStatus.HEALTHY and traffic is TrafficStatus.INACTIVE:
        return "□"
    return _SYMBOLS.get(status, "?")


def picture(routes: Iterable[Route], current_revision_id: UUID | None, deploying_revision_id: UUID | None) -> str:
    """Draw the leaving side left and the coming side right; the healthiest first on each side.

    During a rollout: every other revision | the deploying one. Outside of one: other revisions | the current one, and
    no bar when there is but the current one. Replicas that are stopping or gone are left out.
    """
    target = deploying_revision_id or current_revision_id
    left_side, right = "", ""
    for route in routes:
        mark = symbol(route.status, route.traffic)
        if route.revision_id == target:
            right += mark
        else:
            left_side += mark
    if deploying_revision_id is None and not left_side:
        return _in_order(right)
    return f"{_in_order(left_side)}|{_in_order(right)}"


def _in_order(symbols: str) -> str:
    return "".join(sorted(symbols, key=_ORDER.index))


def revisions_in_words(current: str | None, deploying: str | None, serving: Iterable[str], *, is_well: bool) -> str:
    """The revisions of a deployment, by what serves: v1 → v2; v2; v2 serves, v3 fails.

    `serving`: the revision of each replica that serves. `is_well`: the starts of the current one do not fail.
    """
    if deploying:
        return f"{current} → {deploying}" if current else deploying
    others = sorted(set(serving))
    if current is None or not others or current in others:
        return current or ""
    serve = "serves" if len(others) == 1 else "serve"
    return f"{' and '.join(others)} {serve}, {current} {'starts' if is_well else 'fails'}"


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
