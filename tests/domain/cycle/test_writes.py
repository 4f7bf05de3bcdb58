"""What a transaction writes of a chunk: routes, effects, records, waits and steps, each of the right decisions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import pytest

from domain.cycle.recording import inputs_as_json, inputs_json
from domain.cycle.step_deltas import KeptStep
from domain.cycle.transitions import ClassifiedDecision
from domain.cycle.writes import (
    ChunkWrites,
    DecisionEffects,
    DeploymentWait,
    HistoryHead,
    NewRoute,
    decision_effects,
    new_routes,
    plan_writes,
    steps_of,
    steps_to_build_on,
    woken_routes,
)
from domain.handlers.deploying import DeployingProvisioningHandler
from domain.handlers.dispatch import cycle
from domain.model.decision import Decision, RouteChanges, RouteCreatorSpec
from domain.model.deployment import Deployment
from domain.model.states import RolloutOutcome, TrafficStatus
from domain.replicas.host_choice import HostUp, Placement, PlacingGrounds, Unplaced
from tests.support.pictures.pictures import (
    DEPLOYMENT,
    NOW,
    PENDING,
    READY,
    ROLLING_BACK,
    ROLLOUT,
    V1,
    V2,
    blue_green,
    deploying,
    resting,
    rolling_back,
    route_id,
)

OTHER = UUID(int=77)
UNTIL = NOW + timedelta(minutes=5)
PARKS = blue_green(auto_promote=True, scale_down_delay_seconds=300)
ACTIVE, INACTIVE = TrafficStatus.ACTIVE, TrafficStatus.INACTIVE


@dataclass(frozen=True)
class Chunk:
    heads: Mapping[UUID, HistoryHead]
    has_sticky_callers: Sequence[UUID] = ()


def moved(deployment: Deployment, changes: RouteChanges) -> ClassifiedDecision:
    return DeployingProvisioningHandler().classified(Decision.moved("as it was decided", changes), deployment, NOW)


def effect_of(deployment: Deployment) -> DecisionEffects:
    (effect,) = decision_effects([cycle(deployment, NOW)], "deploying", NOW)
    return effect


def test_a_wait_writes_no_record_and_no_snapshot() -> None:
    waiting = effect_of(deploying("■■|◇"))
    assert waiting == DecisionEffects(waiting.decision)


def test_a_wait_writes_the_rollout_where_its_clock_stops_and_what_a_person_must_type() -> None:
    green = effect_of(deploying("■■■|□□□", policy=blue_green()))
    assert green.rollout is not None
    assert (green.key, green.deployment, green.waits_for) == (None, None, "promote")
    assert green.rollout.clock_stopped_at == NOW
    stopped = effect_of(deploying("■■■|□□□", policy=blue_green(), rollout={"clock_stopped_at": NOW}))
    assert (stopped.rollout, stopped.waits_for) == (None, "promote")


def test_where_there_is_no_rollout_a_person_is_not_asked_for_one() -> None:
    pending = effect_of(resting("", status=PENDING, current_revision_id=None))
    assert pending.decision.reason.startswith("waiting: it has no revision yet; 'rollway activate web REVISION'")
    assert (pending.waits_for, pending.rollout) == (None, None)


def test_a_step_of_many_writes_a_record_and_the_rollout_and_no_snapshot() -> None:
    step = effect_of(deploying("■■■|"))
    assert step.rollout is not None
    assert (step.rollout.steps, step.deployment, step.outcome, step.back_reason) == (1, None, None, None)
    assert step.remembered_as == str(step.key) != "None"


@pytest.mark.parametrize(
    ("deployment", "status", "outcome"),
    [
        (deploying("|■■■"), READY, RolloutOutcome.COMPLETED),
        (rolling_back("■■■|"), READY, RolloutOutcome.ROLLED_BACK),
        (deploying("■■|◇", rollout={"deadline": NOW}), ROLLING_BACK, None),
        (resting("■■■"), READY, None),
    ],
)
def test_a_move_writes_the_next_snapshot_too_with_the_routes_from_before(
    deployment: Deployment, status: object, outcome: RolloutOutcome | None
) -> None:
    move = effect_of(deployment)
    assert move.deployment is not None
    assert (move.deployment.status, move.outcome, move.deployment.routes) == (status, outcome, deployment.routes)
    assert (move.back_reason is not None) is (status == ROLLING_BACK)


def test_a_repair_while_a_person_is_waited_for_still_says_what_to_type() -> None:
    repair = effect_of(deploying("■■|", paused_at=NOW))
    assert repair.key is not None
    assert repair.waits_for == "resume"


def test_new_replicas_are_written_one_by_one_each_with_its_rollout_and_traffic() -> None:
    both = RouteChanges((RouteCreatorSpec(V2, 2), RouteCreatorSpec(V1, 1, INACTIVE), RouteCreatorSpec(V1, 0)))
    at_rest = replace(cycle(resting("■■"), NOW), deployment=resting("■■", id=OTHER))
    assert new_routes([moved(deploying("■■■|"), both), at_rest]) == [
        NewRoute(DEPLOYMENT, V2, ROLLOUT, ACTIVE),
        NewRoute(DEPLOYMENT, V2, ROLLOUT, ACTIVE),
        NewRoute(DEPLOYMENT, V1, ROLLOUT, INACTIVE),
        NewRoute(OTHER, V2, None, ACTIVE),
    ]


def test_sleeping_replicas_that_wake_are_written_in_the_order_of_the_decisions() -> None:
    first, second = (
        moved(deploying("■■■|"), RouteChanges(woken=woken))
        for woken in (((route_id(2), ACTIVE), (route_id(0), INACTIVE)), ((route_id(1), ACTIVE),))
    )
    assert woken_routes([first, second]) == [(route_id(2), ACTIVE), (route_id(0), INACTIVE), (route_id(1), ACTIVE)]


def written(decisions: Sequence[ClassifiedDecision], placed: int = 0, **more: object) -> ChunkWrites:
    heads = {each.deployment.id: HistoryHead(UUID(int=9), "as it was") for each in decisions}
    unplaced = [Unplaced(DEPLOYMENT, is_external=False)] * placed
    grounds = PlacingGrounds(unplaced, {"m1": HostUp(0)})
    return plan_writes("deploying", decisions, Chunk(heads, [OTHER]), NOW, grounds, (), **more)  # type: ignore[arg-type]


def test_a_chunk_writes_what_its_decisions_change() -> None:
    changes = RouteChanges(
        (RouteCreatorSpec(V2, 2),),
        promote_route_ids=(route_id(3),),
        drain_route_ids=(route_id(0), route_id(1)),
        park_route_ids=(route_id(2),),
        park_until=UNTIL,
    )
    step, wait = moved(deploying("■■■|□"), changes), cycle(deploying("■■|◇", id=OTHER, version=7), NOW)
    writes = written([wait, step], placed=2)
    new = NewRoute(DEPLOYMENT, V2, ROLLOUT, ACTIVE)
    assert (writes.phase, writes.at) == ("deploying", NOW)
    assert writes.placed == [(new, Placement("m1")), (new, Placement("m1"))]
    assert writes.promoted == [route_id(3)]
    assert writes.drained == [route_id(0), route_id(1)]
    assert writes.parked == [(route_id(2), UNTIL)]
    assert [effect.decision for effect in writes.effects] == [wait, step]
    assert [(effect.decision, head) for effect, head in writes.changes] == [
        (step, HistoryHead(UUID(int=9), "as it was"))
    ]
    assert writes.waits == [DeploymentWait(OTHER, 7, wait.due_at, wait.reason, None)]
    assert [(each.rollout_id, each.number, each.whole_step) for each in writes.steps] == [(ROLLOUT, 1, None)]


def test_callers_are_seated_anew_only_where_something_changes() -> None:
    assert written([cycle(deploying("■■|◇"), NOW)]).seated == ()
    assert written([cycle(deploying("|■■■"), NOW)]).seated == [OTHER]


def test_waits_of_a_glance_are_written_with_the_others() -> None:
    glanced = DeploymentWait(OTHER, 3, UNTIL, "waiting: 1 new starting", None)
    wait = cycle(deploying("■■■|□□□", policy=blue_green()), NOW)
    assert written([wait], glanced=[glanced]).waits == [
        DeploymentWait(DEPLOYMENT, 1, None, wait.reason, "promote"),
        glanced,
    ]


@pytest.mark.parametrize(
    ("deployment", "numbers"),
    [
        (deploying("■" * 33 + "|", 33, rollout={"steps": 4}), [4]),
        (deploying("■" * 32 + "|", 32, rollout={"steps": 4}), []),  # small: each of its steps is whole
        (deploying("■" * 33 + "|", 33), []),  # its first
        (deploying("■" * 32 + "|◇", 32, rollout={"steps": 4}), []),  # a wait
        (resting("■" * 34, 33), []),
    ],
)
def test_the_step_before_is_read_of_large_rollouts_that_go_further(deployment: Deployment, numbers: list[int]) -> None:
    assert steps_to_build_on([cycle(deployment, NOW)]) == [(ROLLOUT, number) for number in numbers]


@pytest.mark.parametrize(
    ("last", "whole_step"),
    [
        (None, None),
        ((4, 2), 2),
        ((3, 2), None),  # one between them is missing
        ((4, -3), None),  # eight since the last whole one
    ],
)
def test_a_step_builds_on_the_one_just_before_it(last: tuple[int, int] | None, whole_step: int | None) -> None:
    deployment = deploying("■" * 33 + "|", 33, rollout={"steps": 4})
    before = inputs_as_json(replace(deployment, desired_replicas=34), NOW)
    kept = [KeptStep(ROLLOUT, last[0], before, last[1])] if last else []
    (step,) = steps_of(decision_effects([cycle(deployment, NOW)], "deploying", NOW), NOW, kept)
    assert (step.number, step.whole_step) == (5, whole_step)
    changed = {"deployment": {"desired_replicas": 33}, "routes": {}, "gone": []}
    if whole_step is None:
        assert step.inputs == inputs_json(deployment, NOW)
    else:
        assert json.loads(step.inputs)["changed"] == changed


def test_only_what_takes_a_rollout_further_or_back_is_a_step() -> None:
    decisions = [
        cycle(deploying("■■|◇"), NOW),  # a wait
        cycle(deploying("■■|", paused_at=NOW), NOW),  # a repair
        cycle(resting("■■"), NOW),  # no rollout
    ]
    assert steps_of(decision_effects(decisions, "deploying", NOW), NOW) == []
