"""check_replica asks the rules of a deployment that is as it should be."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.autoscaling.rule import NO_AUTOSCALING
from domain.cycle.recording import inputs_from_json, inputs_json
from domain.devices.room import DeviceRoom
from domain.handlers.check_replica import CheckReplicaHandler, ReconcileHandler, budget_at_rest, is_settled
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment, StartFailures
from domain.model.states import DeploymentLifecycleStatus, RouteStatus, Verdict
from domain.planning.simulator import with_status
from domain.strategies.budget import Budget
from tests.support.pictures.autoscaling_rules import DOWN, ago, rule, seen
from tests.support.pictures.pictures import NOW, READY, SCALING, V1, V2, V3, deploying, resting, route_id
from tests.support.pictures.simulation import applied

NEW = {"autoscaling", "rules", "metrics", "last_autoscaled_at"}
"""What snapshots of before there were rules do not hold."""


def test_a_rule_that_fires_leads_to_scaling_with_the_new_count() -> None:
    decision = cycle(resting("■■■", 3, READY, rules=(rule(),), metrics=(seen(rule(), 41.5),)), NOW)
    assert (decision.verdict, decision.to) == (Verdict.SUCCESS, SCALING)
    assert (decision.desired_replicas, decision.due_at) == (5, NOW)
    assert decision.reason == "requests_in_flight is 41.5 > 30: from 3 to 5 replicas (at most 8)"
    assert not decision.changes


def test_a_quiet_rule_is_told_and_looked_at_again() -> None:
    quiet = resting("■■■", 3, READY, rules=(rule(), rule(DOWN)), metrics=(seen(rule(), 12),))
    decision = cycle(quiet, NOW)
    assert (decision.verdict, decision.desired_replicas) == (Verdict.SKIPPED, 3)
    assert decision.reason == (
        "3 of 3 replicas healthy; requests_in_flight is 12, not > 30; requests_in_flight is 12, not < 5"
    )
    assert decision.due_at == NOW + timedelta(seconds=30)


def test_a_rule_that_cools_down_is_looked_at_when_it_may_fire() -> None:
    cooling = resting("■■■", 3, READY, rules=(rule(),), metrics=(seen(rule(), 50),), last_at=ago(50))
    assert cycle(cooling, NOW).due_at == NOW + timedelta(seconds=10)


def test_what_is_off_is_put_right_before_any_rule_is_asked() -> None:
    decision = cycle(resting("■■", 3, READY, rules=(rule(),), metrics=(seen(rule(), 50),)), NOW)
    assert (decision.to, decision.desired_replicas) == (SCALING, 3)


def test_replicas_that_fall_ill_under_the_load_do_not_hold_back_a_rule() -> None:
    decision = cycle(resting("■■▲", 3, READY, status_for=5, rules=(rule(),), metrics=(seen(rule(), 50),)), NOW)
    assert (decision.to, decision.desired_replicas) == (SCALING, 5)


def test_what_was_given_up_is_not_autoscaled_before_it_may_be_tried_again() -> None:
    given_up = resting(
        "■", 3, READY, rules=(rule(),), metrics=(seen(rule(), 50),), degraded_reason="x", retry_at=ago(-60)
    )
    decision = cycle(given_up, NOW)
    assert (decision.to, decision.desired_replicas, decision.due_at) == (READY, 3, ago(-60))


def short_lived(drawn_as: str, revision: UUID = V2, **changed: Any) -> Deployment:
    """Scaled a moment ago; one of its replicas has ended twice soon after it had come up, and is up for ten seconds."""
    ended = StartFailures(revision, 3, ago(12), ago(10), 2)
    scaled = applied(cycle(resting("■■■", start_failures=ended), NOW), NOW)
    return replace(resting(drawn_as, 3, READY, **changed), **{name: getattr(scaled, name) for name in MARK})


MARK = ("start_failures", "degraded_reason", "retry_at")


def test_short_lives_are_said_for_a_minute_and_give_nothing_up() -> None:
    whole = short_lived("■■■")
    assert whole.degraded_reason
    decision = cycle(whole, NOW)
    assert (decision.to, decision.due_at) == (READY, ago(-50))
    assert decision.reason.startswith("waiting: degraded: replicas failed 2 times in a row")
    for drawn_as, why in (("■", "1 replica, 3 wanted"), ("", "0 replicas, 3 wanted"), ("■■▣", "1 replica on drained")):
        lacking = short_lived(drawn_as)
        for handler in (CheckReplicaHandler(), ReconcileHandler()):
            assert cycle(lacking, NOW, handler).to == SCALING
            assert cycle(lacking, NOW, handler).reason.startswith(why)
    over = cycle(whole, ago(-50))
    assert applied(cycle(applied(over, ago(-50)), ago(-50)), ago(-50)).degraded_reason is None


def test_a_rule_fires_for_who_ends_of_too_much_load() -> None:
    busy = short_lived("■■■", rules=(rule(),), metrics=(seen(rule(), 50),))
    assert (cycle(busy, NOW).to, cycle(busy, NOW).desired_replicas) == (SCALING, 5)


def test_another_end_in_that_minute_is_tried_again_after_its_own_pause() -> None:
    ended = with_status(short_lived("■■■"), [route_id(0)], RouteStatus.FAILED, NOW)
    scaling = applied(cycle(ended, NOW), NOW)
    assert scaling.status == SCALING
    assert cycle(scaling, NOW).due_at == ago(-16)


@pytest.mark.parametrize(("revision", "marked"), [(V1, False), (V2, True)])
def test_what_completes_is_called_by_what_its_own_replicas_did(revision: UUID, *, marked: bool) -> None:
    ended = StartFailures(revision, 3, ago(12), ago(10), 2)
    completed = applied(cycle(deploying("|■■■", start_failures=ended), NOW), NOW)
    assert (completed.status, completed.current_revision_id) == (READY, V2)
    assert (completed.degraded_reason is not None) is marked


@pytest.mark.parametrize(
    ("drawn_as", "status", "settled"),
    [
        ("■■■", READY, True),
        ("■■", READY, False),
        ("■■◇", READY, False),
        ("■■△", READY, False),
        ("■■□", READY, False),
        ("■■■□", READY, False),
        ("■■■~", READY, True),
        ("■■■✗", READY, True),
        ("■■■", SCALING, False),
    ],
)
def test_settled_is_what_has_nothing_off_and_nothing_on_its_way(
    drawn_as: str, status: DeploymentLifecycleStatus, *, settled: bool
) -> None:
    assert is_settled(resting(drawn_as, 3, status), NOW) is settled


def test_replicas_that_are_parked_are_in_nobodys_way_until_their_time_is_over() -> None:
    ready = resting("■■■", 3, READY)
    (idle,) = resting("□", 1).routes
    with_old = replace(ready, routes=(*ready.routes, replace(idle, id=UUID(int=99), revision_id=V3, parked_until=NOW)))
    assert is_settled(with_old, ago(1))
    assert not is_settled(with_old, NOW)


def test_they_leave_in_time_while_short_lives_are_still_a_mark() -> None:
    failures = StartFailures(V2, 2, ago(20), ago(5), 2)
    marked: dict[str, Any] = {"start_failures": failures, "degraded_reason": "replicas failed"}
    assert cycle(resting("|■■■", 3, READY, **marked), NOW).due_at == ago(-55)
    parked, *others = (ready := resting("▫|■■■", 3, READY, **marked)).routes
    sooner = replace(ready, routes=(replace(parked, parked_until=ago(-7)), *others))
    assert cycle(sooner, NOW).due_at == ago(-7)


def test_only_check_replica_asks_the_rules() -> None:
    ready = resting("■■■", 3, READY, rules=(rule(),), metrics=(seen(rule(), 50),))
    assert cycle(ready, NOW, CheckReplicaHandler()).desired_replicas == 5
    assert cycle(ready, NOW, ReconcileHandler()).desired_replicas == 3
    assert cycle(replace(ready, status=SCALING), NOW).desired_replicas == 3


def test_a_snapshot_with_rules_survives_json() -> None:
    ready = resting("■■■", 3, READY, rules=(rule(labels={"a": "b"}),), metrics=(seen(rule(), 50),))
    stored = json.loads(inputs_json(ready, NOW))
    assert inputs_from_json(stored) == (ready, NOW)
    without = {key: value for key, value in stored["deployment"].items() if key not in NEW}
    assert inputs_from_json({"deployment": without, "now": NOW})[0] == replace(ready, autoscaling=NO_AUTOSCALING)


@pytest.mark.parametrize(
    ("deployment", "ceiling", "keep", "counts_stopping"),
    [
        (resting("■■■", status=READY), 4, 3, False),
        (resting("■■■", status=READY, may_surge=False), 3, 3, False),
        (resting("■|■■■", status=READY, may_surge=False), 4, 3, False),  # one of another revision blocks nobody
        (resting("▣■■", status=READY), 4, 3, False),
        (resting("▣■■", status=READY, may_surge=False), 3, 2, False),  # it goes before the one in its place comes
        (resting("▣", 0, status=READY, may_surge=False), 0, 0, False),
        (resting("■■■", status=READY, count_stopping=True), 4, 3, True),
        (resting("■■■", status=READY, devices=DeviceRoom({V2: 0})), 4, 3, True),  # one that stops still holds some
    ],
)
def test_at_rest_one_more_may_run_and_none_fewer_unless_there_is_no_room_for_more(
    deployment: Deployment, ceiling: int, keep: int, *, counts_stopping: bool
) -> None:
    n = deployment.desired_replicas
    assert budget_at_rest(deployment) == Budget(n, ceiling, keep, counts_stopping)
