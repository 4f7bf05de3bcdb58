"""Every rollout in a database in which nothing went wrong, against the plan of it that could have been made before."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Self

import psycopg
from psycopg.rows import dict_row

from domain.cycle.recording import changes_from_json, inputs_from_json
from domain.cycle.step_deltas import Chain
from domain.model.decision import RouteChanges
from domain.model.deployment import Deployment
from domain.model.states import RouteStatus
from domain.planning.plan_input import Subject
from domain.planning.replica_timings import Timings
from domain.planning.rollout_plan import Plan, plan

_STEPS = """
    SELECT s.rollout_id, s.step_no, s.phase, s.inputs, s.decision
      FROM rollout_steps s JOIN rollouts o ON o.id = s.rollout_id
     WHERE o.outcome = 'completed' ORDER BY s.rollout_id, s.step_no
"""
_WELL = (RouteStatus.PROVISIONING, RouteStatus.HEALTHY, RouteStatus.TERMINATING)
_PLANS: dict[str, Plan] = {}
_MOST_REPLICAS = 50
"""A plan of more takes longer than the test that it is about."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A step on record."""

    saw: Deployment
    at: datetime
    phase: str
    changes: RouteChanges

    @classmethod
    def of(cls, row: dict[str, Any], chain: Chain) -> Self:
        inputs = chain.whole(row["rollout_id"], row["step_no"], row["inputs"])
        assert inputs is not None, f"step {row['step_no']} builds on nothing"
        saw, at = inputs_from_json(inputs)
        return cls(saw, at, row["phase"], changes_from_json(row["decision"]))

    @property
    def moves(self) -> tuple[int, int, int, int]:
        changes = self.changes
        drained, promoted, parked = changes.drain_route_ids, changes.promote_route_ids, changes.park_route_ids
        return changes.created, len(drained), len(promoted), len(parked)


def hold_against_their_plans(connection: psycopg.Connection) -> int:
    """The number of rollouts in which nothing went wrong; each had the steps of its plan."""
    rows = connection.cursor(row_factory=dict_row).execute(_STEPS).fetchall()
    rollouts: dict[object, list[Stored]] = defaultdict(list)
    chain = Chain()
    for row in rows:
        rollouts[row["rollout_id"]].append(Stored.of(row, chain))
    return sum(_is_as_planned(steps) for steps in rollouts.values() if nothing_went_wrong(steps))


def nothing_went_wrong(steps: Sequence[Stored]) -> bool:
    """From all old ones serving to the end: no replica failed, sickened or was there before, and nobody intervened."""
    first = steps[0].saw
    begins = first.rollout is not None and first.rollout.steps == 0 and _is_whole(first)
    return begins and all(_is_well(step, first) for step in steps) and all(_no_one_lost(steps))


def _is_whole(saw: Deployment) -> bool:
    routes = [route for route in saw.routes if route.status is not RouteStatus.TERMINATING]
    whole = all(route.is_serving and route.revision_id == saw.current_revision_id for route in routes)
    return whole and len(routes) == saw.desired_replicas <= _MOST_REPLICAS


def _is_well(step: Stored, first: Deployment) -> bool:
    saw = step.saw
    if saw.rollout is None or first.rollout is None:
        return False
    same = saw.desired_replicas == first.desired_replicas and saw.rollout.policy == first.rollout.policy
    well = all(route.status in _WELL and route.parked_until is None for route in saw.routes)
    on_its_way = step.phase == "deploying_provisioning" and saw.rollout.failed_routes == saw.phase_attempts == 0
    return same and well and on_its_way and saw.start_failures is None


def _no_one_lost(steps: Sequence[Stored]) -> Iterator[bool]:
    """Between two steps no replica came or went but by what the first one decided."""
    for before, after in pairwise(steps):
        left = len(before.saw.active_routes) + before.changes.created - len(before.changes.drain_route_ids)
        yield len(after.saw.active_routes) == left


def _is_as_planned(steps: Sequence[Stored]) -> bool:
    begun, happened = steps[0].saw, [step.moves for step in steps]
    foreseen = _plan_of(begun, steps[0].at)
    if not foreseen.is_certain:
        return False
    planned = [wave.moves for wave in foreseen.waves]
    assert happened == planned, f"a rollout of {begun.name} went different from the plan: {begun.rollout}"
    return True


def _plan_of(begun: Deployment, at: datetime) -> Plan:
    """Made once for all rollouts of a size and a policy: a suite has few of them and many rollouts."""
    rollout = begun.rollout
    assert rollout is not None
    sizes = f"{begun.desired_replicas} {rollout.desired_at_start} {begun.devices and begun.devices.free}"
    key = f"{sizes} {rollout.promote_requested} {rollout.policy.as_json()}"
    if key not in _PLANS:
        _PLANS[key] = plan(Subject(begun), at, Timings(), random.Random(1).random)
    return _PLANS[key]
