"""Pairs of states with equal keys that differ in all that the key leaves out: the same must follow from both."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from random import Random
from uuid import UUID

from domain.model.canary import NOTHING_SEEN, Sums
from domain.model.deployment import Rollout, Route, StartFailures
from domain.model.states import RouteStatus
from tests.support.pictures.pictures import ROLLING_BACK, V1, V2, V3
from tests.support.pictures.values_within import canary_of, with_canary
from tools.prove.clocks import SICK, ages, failures
from tools.prove.key import NEVER, baseline_since, key_of
from tools.prove.search import moves
from tools.prove.starts import starts
from tools.prove.state import Left, State

LONGEST_WALK = 40
TWINS = 4
"""Of each state of a walk: to find what follows from it costs as much as to find it for a twin."""


def walked(chance: Random) -> Iterator[tuple[State, list[State]]]:
    """States without end, each with those that may follow: each walk goes from a start where chance leads."""
    begin = list(starts(3))
    while True:
        commands = chance.choice((0, 0, 0, 0, 3))
        state = chance.choice(begin).state(Left(3, commands, 3 + commands))
        for _ in range(chance.randint(1, LONGEST_WALK)):
            following = [move.state for move in moves(state)]
            if not following:
                break
            yield state, following
            state = chance.choice(following)


def what_follows(following: list[State]) -> list[bytes]:
    """The keys of the states that may follow, in a fixed order."""
    return sorted({key_of(state) for state in following})


def _failed(state: State, ago: timedelta, named: Mapping[UUID, UUID], chance: Random) -> StartFailures | None:
    """Where none count any more, there may be none at all, or what came up after them has been well for long."""
    found = state.deployment.start_failures
    if failures(state) is None:
        long_ago = state.now - timedelta(seconds=chance.randint(60, 999))
        proven = StartFailures(chance.choice((V1, V2, V3)), chance.randint(1, 9), long_ago, long_ago)
        found = chance.choice((found, None, proven))
    if found is None:
        return None
    moved = replace(found, last_at=found.last_at + ago, came_up_at=_moved(found.came_up_at, ago))
    return replace(moved, revision_id=named[found.revision_id])


def _left_out(state: State, rollout: Rollout, chance: Random) -> Rollout:
    """Past its weights a canary may have come there from any of them; on the way back all that counts is a weight."""
    if state.deployment.status == ROLLING_BACK and canary_of(rollout).weight:
        return replace(rollout, failed_routes=chance.randint(0, 9), promote_requested=chance.random() < 0.5)
    if state.deployment.status == ROLLING_BACK:
        weight = None if canary_of(rollout).weight is None else chance.choice((0, None))
        known_at = chance.choice((None, state.now))
        passed = with_canary(rollout, weight=weight, weight_known_at=known_at, promote_requested=chance.random() < 0.5)
        deadline = state.now + timedelta(seconds=chance.randint(-999, 999))
        return with_canary(passed, failed_routes=chance.randint(0, 9), stage=chance.randint(0, 9), deadline=deadline)
    return (
        with_canary(rollout, stage=chance.randint(0, 9), evidence=NOTHING_SEEN)
        if canary_of(rollout).weight is None
        else rollout
    )


def twin(state: State, chance: Random) -> State:
    """Equal in its key: another time of day, other ids, revisions that changed names, clocks that never mattered."""
    ago = timedelta(seconds=chance.randint(-(10**6), 10**6))
    named = dict(zip((V1, V2, V3), chance.sample((V1, V2, V3), 3), strict=True))
    deployment, rollout = state.deployment, state.deployment.rollout
    later = timedelta(seconds=chance.randint(0, 500) if baseline_since(deployment) == NEVER else 0)
    rollout = rollout and _left_out(state, rollout, chance)
    return replace(
        state,
        now=state.now + ago,
        due_at=_moved(state.due_at, ago),
        previous=named[state.previous] if state.previous else None,
        rolled_back=state.rolled_back and state.rolled_back._replace(revision=named[state.rolled_back.revision]),
        held=None,
        deployment=replace(
            deployment,
            version=deployment.version + chance.randint(0, 9),
            current_revision_id=named[deployment.current_revision_id] if deployment.current_revision_id else None,
            deploying_revision_id=named[deployment.deploying_revision_id] if deployment.deploying_revision_id else None,
            phase_started_at=deployment.phase_started_at + ago,
            paused_at=_moved(deployment.paused_at, ago),
            retry_at=_moved(deployment.retry_at, ago),
            start_failures=_failed(state, ago, named, chance),
            routes=_routes(state, ago, named, chance),
            rollout=rollout
            and with_canary(
                rollout,
                id=UUID(int=chance.getrandbits(64)),
                from_revision_id=named[rollout.from_revision_id],
                to_revision_id=named[rollout.to_revision_id],
                started_at=rollout.started_at + ago - later,
                last_progress_at=rollout.last_progress_at + ago,
                deadline=rollout.deadline + ago,
                steps=chance.randint(1, 99) if rollout.steps else 0,
                clock_stopped_at=_moved(rollout.clock_stopped_at, ago),
                weight_known_at=_moved(canary_of(rollout).weight_known_at, ago),
                evidence=_told(canary_of(rollout).evidence, ago),
            ),
        ),
    )


def _told(sums: Sums, ago: timedelta) -> Sums:
    waiting, unanswered = (
        replace(its, pending=tuple((seen[0] + ago, *seen[1:]) for seen in its.pending))
        for its in (sums.waiting, sums.unanswered)
    )
    at, since, began_at = (_moved(at, ago) for at in (sums.at, sums.since, sums.began_at))
    exposure = replace(
        sums.exposure,
        first_at=_moved(sums.exposure.first_at, ago),
        at=_moved(sums.exposure.at, ago),
        surplus_since=_moved(sums.exposure.surplus_since, ago),
    )
    sums = replace(sums, waiting=waiting, unanswered=unanswered)
    return replace(sums, at=at, since=since, began_at=began_at, exposure=exposure)


def _moved(at: datetime | None, ago: timedelta) -> datetime | None:
    return None if at is None else at + ago


def _routes(state: State, ago: timedelta, named: dict[UUID, UUID], chance: Random) -> tuple[Route, ...]:
    """Other ids in the same order, those that stop anywhere between; what is old has been so for any time."""
    routes = list(state.deployment.routes)
    stopping = [route for route in routes if route.status is RouteStatus.TERMINATING]
    staying = [route for route in routes if route.status is not RouteStatus.TERMINATING]
    for route in stopping:
        place = chance.randint(0, len(staying))
        beside = staying[place - 1] if place else staying[0] if staying else route
        staying.insert(place, replace(route, created_at=beside.created_at))
    ids = sorted(chance.sample(range(1, 10**6), len(routes)))
    return tuple(
        replace(
            route,
            id=UUID(int=number),
            revision_id=named[route.revision_id],
            created_at=route.created_at + ago,
            status_changed_at=_since(state, route, chance) + ago,
            parked_until=_over(route.parked_until, state.now, chance, ago),
        )
        for route, number in zip(staying, ids, strict=True)
    )


def _since(state: State, route: Route, chance: Random) -> datetime:
    """A status older than anything compares it with may be older still, and so may one that nothing compares."""
    counts = route.status in SICK or (route.status is RouteStatus.HEALTHY and ages(state, route))
    old = not counts or state.now - route.status_changed_at >= timedelta(seconds=60)
    return route.status_changed_at - timedelta(seconds=chance.randint(0, 999)) if old else route.status_changed_at


def _over(until: datetime | None, now: datetime, chance: Random, ago: timedelta) -> datetime | None:
    if until is None or until > now:
        return _moved(until, ago)
    return until + ago - timedelta(seconds=chance.randint(0, 999))


def first_unlike_pair(seed: int, pairs: int) -> tuple[State, State] | None:
    """Of so many random pairs, the first with another key, or from which something else follows."""
    chance = Random(seed)
    for state, following in islice(walked(chance), -(-pairs // TWINS)):
        without = replace(state, held=None)
        key = key_of(without)
        known = what_follows(following if state.held is None else [move.state for move in moves(without)])
        for other in (twin(without, chance) for _ in range(TWINS)):
            if key_of(other) != key or what_follows([move.state for move in moves(other)]) != known:
                return without, other
    return None
