"""Clocks that still decide something: a key tells them apart, and time stops where they end. All others are left out.

age of a healthy route    of what is being deployed, where its spec compares it; of all while commands are left
age of a weight           as far as its own step takes, or its judge; it stands still while paused
failures in a row         of a revision that may be started again, until one that came up is well for good
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache

from domain.cycle.rollout import is_judged, unpaused
from domain.model.deployment import Deployment, Rollout, Route, StartFailures
from domain.model.policy import DeploymentPolicy
from domain.model.states import RouteStatus
from domain.strategies.budget import SICK_GRACE_SECONDS, grace_ends_at
from domain.strategies.converge import PROVEN_SECONDS, is_proven, next_start_at, proven_at
from tests.support.pictures.pictures import PROVISIONING
from tests.support.pictures.values_within import canary_of
from tools.prove.state import State

SICK = (RouteStatus.UNHEALTHY, RouteStatus.DEGRADED)
NOTHING, GOOD, HARM = range(3)
"""What proxies have told a judge."""
MOST_IN_A_ROW = 2
"""Starts that fail one after the other: as many as there are misfortunes."""
_AFTER_THE_ROLLOUT = ("scale_down_delay_seconds", "sleep_seconds")
"""How long something is parked: `parked_until` says it."""


@cache
def _ages(policy: DeploymentPolicy) -> tuple[float, ...]:
    """The seconds that its spec compares the age of a healthy replica with."""
    named = ((name, seconds) for name, seconds in policy.spec if name not in _AFTER_THE_ROLLOUT)
    return tuple(seconds for name, seconds in named if name.endswith("_seconds") and seconds)


def ages(state: State, route: Route) -> tuple[float, ...]:
    """The seconds that the age of this healthy route may be compared with."""
    if state.policy is None or not (found := _ages(state.policy)):
        return ()
    deployment = state.deployment
    deploys = deployment.status == PROVISIONING and route.revision_id == deployment.deploying_revision_id
    return found if deploys or state.left.commands else ()


def weight_ages(rollout: Rollout) -> tuple[float, ...]:
    """The seconds that the age of its present weight is compared with."""
    spec = rollout.policy.spec
    stages = getattr(spec, "stages", ())
    canary = canary_of(rollout)
    seconds = stages[canary.stage - 1][1] if canary.weight is not None and 0 < canary.stage <= len(stages) else None
    judge = getattr(spec, "judge", None) if canary.weight else None
    judged = (judge.at_least.seconds, judge.at_most.seconds) if judge else ()
    return tuple(each for each in (seconds, *judged) if each)


def weight_age(state: State, rollout: Rollout) -> timedelta:
    """For how long every live proxy has known the weight, without the time that it was paused."""
    known_at = canary_of(rollout).weight_known_at
    if known_at is None:
        raise ValueError("no proxy knows the weight")
    now = state.deployment.paused_at or state.now
    return max(now - known_at, timedelta())


def told(rollout: Rollout, now: datetime) -> int:
    """What proxies have told its judge: nothing that it goes by, good of this weight, harm of any."""
    if not is_judged(rollout):
        return NOTHING
    canary = canary_of(rollout)
    if canary.evidence.failed.total.canary_failed:
        return HARM
    at, since = canary.evidence.at, canary.weight_known_at or now
    return GOOD if at is not None and at > since else NOTHING


def is_asked(rollout: Rollout | None, now: datetime) -> bool:
    """Its judge goes by what comes in from now on."""
    known_at = canary_of(rollout).weight_known_at if rollout and is_judged(rollout) else None
    return known_at is not None and known_at < now


def told_when_resumed(deployment: Deployment, now: datetime) -> int:
    """The same, were a paused rollout to go on now: its weight is then known for as long as before the pause."""
    if deployment.paused_at is None:
        return NOTHING
    rollout = unpaused(deployment, now).rollout
    return told(rollout, now) if rollout else NOTHING


def failures(state: State) -> StartFailures | None:
    """Those that may still hold a start back, or be the first of more in a row."""
    deployment, found = state.deployment, state.deployment.start_failures
    if found is None or is_proven(found, state.now):
        return None
    rollout = deployment.rollout
    alone = rollout is not None and rollout.policy.strategy == "recreate" and deployment.paused_at is not None
    starts_new = deployment.status == PROVISIONING or alone
    startable = (deployment.current_revision_id, deployment.deploying_revision_id if starts_new else None)
    return found if state.left.commands or found.revision_id in startable else None


def begin(state: State, rollout: Rollout) -> tuple[float, ...]:
    """For how many seconds those clocks run that may begin at any moment of a rollout with a judge."""
    deployed = _ages(state.policy) if state.policy else ()
    backoffs = (2.0**in_a_row for in_a_row in range(1, MOST_IN_A_ROW + 1))
    return (*backoffs, SICK_GRACE_SECONDS, PROVEN_SECONDS, *deployed, *weight_ages(rollout))


def ends(state: State) -> Iterator[datetime]:
    """When time alone may change what is decided, past moments among them."""
    deployment, rollout = state.deployment, state.deployment.rollout
    for route in deployment.routes:
        if route.status in SICK:
            yield grace_ends_at(route)
        elif route.status is RouteStatus.HEALTHY and rollout is not None:
            yield from (route.status_changed_at + timedelta(seconds=seconds) for seconds in ages(state, route))
        if route.parked_until is not None:
            yield route.parked_until
    forward = deployment.status == PROVISIONING and deployment.paused_at is None
    known_at = canary_of(rollout).weight_known_at
    if forward and rollout is not None and known_at is not None:
        yield from (known_at + timedelta(seconds=seconds) for seconds in weight_ages(rollout))
    if found := failures(state):
        yield next_start_at(found) if found.came_up_at is None else proven_at(found.came_up_at)
    if deployment.retry_at is not None:
        yield deployment.retry_at
