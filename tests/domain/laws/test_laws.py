"""The budgets and their relatives, over arbitrary snapshots and every way of deciding.

Parked routes are outside the ceiling: kept running beside it for a way back, until their time or until they are
of the revision that should run. Bringing routes in and taking others out in one cycle counts together.
"""

import random
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from domain.cycle.effects import routes_after
from domain.model.deployment import Route
from domain.model.states import RouteStatus, TrafficStatus, Verdict
from domain.strategies.budget import Buckets, worst_first
from domain.strategies.builtin import STRATEGIES
from tests.support.pictures.pictures import NOW, V1, V2, deploying, resting, rolling_back, rolling_update
from tests.support.pictures.simulation import until_it_waits
from tests.support.pictures.snapshots import MELTED, Case, cases, routes
from tests.support.pictures.specs import SPECS


def test_every_registered_strategy_is_under_these_laws() -> None:
    assert set(SPECS) == set(STRATEGIES), "add what its spec may be to tests/support/pictures/specs.py"


@given(cases())
def test_our_own_creations_never_bring_live_above_the_ceiling(case: Case) -> None:
    created = case.decide().changes.created
    assert case.counted + created <= max(case.budget.ceiling, case.counted)
    assert not created or case.counted < case.budget.ceiling


@given(cases())
def test_no_healthy_serving_route_is_drained_when_fewer_than_keep_would_be_left(case: Case) -> None:
    decision = case.decide()
    changes, keep = decision.changes, case.budget.keep_after(promotion=decision.verdict is Verdict.SUCCESS)
    left = sum(route.is_serving for route in routes_after(case.deployment.routes, changes, NOW))
    assert left >= keep or not case.serving & {*changes.drain_route_ids, *changes.park_route_ids}


def is_stopping(route: Route) -> bool:
    return route.status is RouteStatus.TERMINATING


@given(routes(), st.sampled_from([0, 10]))
def test_every_live_route_is_in_exactly_one_bucket(everything: Any, min_ready: int) -> None:
    buckets = Buckets.of(everything, V2, NOW, min_ready)
    of_target = [buckets.ready, buckets.warming, buckets.starting, buckets.sick]
    live = [*of_target, buckets.foreign, buckets.parked]
    counted = sorted(route.id for bucket in live for route in bucket)
    assert counted == sorted(route.id for route in everything if route.status.is_active)
    assert {r.id for r in buckets.target} == {r.id for bucket in of_target for r in bucket}
    assert {r.id for r in buckets.stopping} == {r.id for r in everything if is_stopping(r) and r.revision_id == V2}
    assert {r.id for r in buckets.foreign_stopping} == {
        r.id for r in everything if is_stopping(r) and r.revision_id != V2
    }
    assert buckets.live == len(counted) - len(buckets.parked)
    assert all(r.revision_id != V2 and r.parked_until is not None and r.parked_until > NOW for r in buckets.parked)
    assert buckets.unparked().live == len(counted)


def test_trap_a_health_state_that_nobody_thought_of_is_counted_and_drained_first() -> None:
    statuses: list[Any] = [*RouteStatus, MELTED]
    for status in statuses:
        for traffic in TrafficStatus:
            deployment = deploying("■■■|■")
            strange = replace(deployment.routes[3], status=status, traffic=traffic)
            assert Buckets.of((strange,), V2, NOW).live == status.is_active
            assert Buckets.of((strange,), V1, NOW).live == status.is_active
    melted = replace(deploying("■■■|").routes[1], status=MELTED)
    assert worst_first([*deploying("▲■■|").routes, melted])[0] is melted


def test_of_equal_routes_the_eldest_is_drained_first_whatever_its_id() -> None:
    young, old = deploying("■■|").routes
    young, old = replace(young, created_at=NOW), replace(old, created_at=NOW - timedelta(seconds=1))
    assert worst_first([young, old]) == [old, young]


def test_trap_a_health_state_in_no_bucket_would_create_without_end() -> None:
    for start in (deploying("■■■|"), rolling_back("|■■■"), resting("■■■|"), resting("")):
        deployment = start
        for _ in range(20):
            deployment = until_it_waits(deployment, NOW)
            melted = tuple(replace(route, status=MELTED, status_changed_at=NOW) for route in deployment.routes)
            deployment = replace(deployment, routes=melted)
        assert len(deployment.active_routes) <= 4


def kept_up(case: Case) -> set[UUID | None]:
    """The target; and blue, or the old side of a canary, which are kept complete beside it."""
    return {case.target} | (
        {case.deployment.current_revision_id} if case.strategy in ("blue_green", "canary") else set()
    )


@given(cases())
def test_what_is_created_is_of_the_target_and_what_is_named_exists(case: Case) -> None:
    changes = case.decide().changes
    live = {route.id for route in case.deployment.active_routes}
    assert {spec.revision_id for spec in changes.rollout_specs} <= kept_up(case)
    assert all(spec.count > 0 for spec in changes.rollout_specs)
    named = (*changes.drain_route_ids, *changes.promote_route_ids, *changes.park_route_ids)
    assert set(named) <= live
    assert len(set(named)) == len(named)
    assert bool(changes.park_route_ids) == (changes.park_until is not None)


@given(cases())
def test_only_routes_of_the_target_are_brought_into_traffic(case: Case) -> None:
    promoted = set(case.decide().changes.promote_route_ids)
    for route in case.deployment.routes:
        if route.id in promoted:
            assert route.revision_id in kept_up(case)
            assert route.traffic is TrafficStatus.INACTIVE


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_the_routes_in_the_snapshot_does_not_matter(case: Case, chance: random.Random) -> None:
    shuffled = list(case.deployment.routes)
    chance.shuffle(shuffled)
    assert Case(replace(case.deployment, routes=tuple(shuffled))).decide() == case.decide()


@given(cases())
def test_of_other_revisions_the_worst_are_drained_first(case: Case) -> None:
    """Blue-green keeps two sets: of each the worst go first, and before the promotion blue is as if at rest."""
    kept = kept_up(case)
    other = worst_first(r for r in case.deployment.active_routes if r.revision_id not in kept and not case.parked(r))
    drained = [drain for drain in case.decide().changes.drain_route_ids if drain in {route.id for route in other}]
    assert drained == [route.id for route in other][: len(drained)]


@given(cases())
def test_no_serving_route_is_drained_while_a_worse_one_of_its_revision_stays(case: Case) -> None:
    changes = case.decide().changes
    drained = {*changes.drain_route_ids, *changes.park_route_ids}
    for revision in {route.revision_id for route in case.deployment.active_routes}:
        live = [route for route in case.deployment.active_routes if not case.parked(route)]
        mine = [route for route in live if route.revision_id == revision]
        if any(route.is_serving and route.id in drained for route in mine):
            sick_left = [
                r
                for r in mine
                if r.id not in drained and r.status not in (RouteStatus.HEALTHY, RouteStatus.PROVISIONING)
            ]
            assert not sick_left


@given(cases())
def test_a_verdict_says_what_the_changes_are(case: Case) -> None:
    decision = case.decide()
    assert (decision.verdict is Verdict.NEED_RETRY) == bool(decision.changes) or decision.verdict is Verdict.SUCCESS
    assert decision.reason
    assert (decision.verdict is Verdict.SKIPPED) == decision.reason.startswith("waiting: ")


@given(cases())
def test_only_steps_that_are_taken_are_told(case: Case) -> None:
    assert not re.search(r"\b(creating|draining|bringing) (all )?0\b", case.decide().reason)


@given(cases())
def test_before_the_promotion_blue_serves_as_many_as_before_the_rollout(case: Case) -> None:
    decision, rollout = case.decide(), case.deployment.rollout
    if case.strategy != "blue_green" or rollout is None or decision.verdict is Verdict.SUCCESS:
        return
    taken = case.serving & {*decision.changes.drain_route_ids, *decision.changes.park_route_ids}
    blue = {route.id for route in case.deployment.routes if route.is_serving and route.revision_id != case.target}
    brought_in = set(decision.changes.promote_route_ids)
    assert not taken & blue or len(blue - taken | brought_in) >= rollout.desired_at_start


@given(cases())
def test_success_means_that_all_of_it_is_there(case: Case) -> None:
    decision = case.decide()
    if decision.verdict is not Verdict.SUCCESS:
        return
    routes = routes_after(case.deployment.routes, decision.changes, NOW)
    live = [route for route in routes if route.is_active and not case.parked(route)]
    assert {route.revision_id for route in live} <= {case.target}
    assert sum(route.is_serving for route in live) >= case.wanted
    if case.deployment.deploying_revision_id != case.target:
        assert len(live) == case.wanted


@given(cases())
def test_the_same_inputs_give_the_same_decision(case: Case) -> None:
    assert case.decide() == case.decide()


def test_percents_and_numbers_that_mean_the_same_decide_the_same() -> None:
    for n in range(1, 13):
        by_number = deploying("■" * n + "|", n, policy=rolling_update(n, n))
        by_percent = deploying("■" * n + "|", n, policy=rolling_update("100%", "100%"))
        assert Case(by_number).decide() == Case(by_percent).decide()
