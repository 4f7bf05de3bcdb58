"""Rolling update in time: when it looks again, what it holds back, and that it ends."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.cycle.evaluator import EVALUATOR
from domain.handlers.dispatch import cycle
from domain.model.deployment import StartFailures
from domain.model.policy import RolloutLimits
from domain.model.states import RouteStatus, Verdict
from domain.planning.simulator import Fate, Fates, with_status
from tests.domain.strategies.test_rolling_update import IN_GRACE
from tests.support.pictures.pictures import NOW, V1, V2, deploying, happens, route_id
from tests.support.pictures.simulation import applied, world_of


def test_the_next_look_is_at_whatever_comes_first() -> None:
    spec = {"pacing": "continuous", "min_ready_seconds": 20}
    sick_first = replace(deploying("|■▲▲▲", status_for=IN_GRACE, spec=spec), desired_replicas=1)
    warm_first = replace(deploying("|■▲▲▲", status_for=15, spec=spec), desired_replicas=1)
    assert EVALUATOR.evaluate_one(sick_first, NOW).recheck_at == NOW + timedelta(seconds=15)
    assert EVALUATOR.evaluate_one(warm_first, NOW).recheck_at == NOW + timedelta(seconds=5)
    warm_first = replace(deploying("|■■▲▲", status_for=15, spec=spec), desired_replicas=1)
    sick = with_status(warm_first, [route_id(1)], RouteStatus.UNHEALTHY, NOW - timedelta(seconds=28))
    assert EVALUATOR.evaluate_one(sick, NOW).recheck_at == NOW + timedelta(seconds=2)


def test_a_wait_for_a_sick_new_replica_ends_with_its_grace() -> None:
    decision = EVALUATOR.evaluate_one(deploying("|■■▲▲", status_for=IN_GRACE), NOW)
    assert decision.recheck_at == NOW + timedelta(seconds=25)


def test_a_wave_that_replaces_a_sick_one_looks_again_at_once_for_it_may_have_been_one_too_many() -> None:
    replacing = deploying("|■■▲", limits=RolloutLimits(failure_budget=1))
    decision = EVALUATOR.evaluate_one(replacing, NOW)
    assert (happens(replacing, decision), decision.recheck_at) == ("create 1, drain ▲", NOW)
    assert cycle(applied(cycle(replacing, NOW), NOW), NOW).reason.startswith("1 new replica failed, the limit is 1")


@pytest.mark.parametrize("pacing", ["wave", "continuous"])
def test_min_ready_seconds_delay_healthy_for_the_strategy(pacing: str) -> None:
    spec = {"pacing": pacing, "min_ready_seconds": 20}
    warming = EVALUATOR.evaluate_one(deploying("|■■■", status_for=15, spec=spec), NOW)
    assert (warming.verdict, warming.recheck_at) == (Verdict.SKIPPED, NOW + timedelta(seconds=5))
    assert EVALUATOR.evaluate_one(deploying("|■■■", status_for=20, spec=spec), NOW).verdict is Verdict.SUCCESS


@pytest.mark.parametrize("pacing", ["wave", "continuous"])
def test_a_warming_replica_frees_no_old_one(pacing: str) -> None:
    spec = {"pacing": pacing, "min_ready_seconds": 20}
    deployment = deploying("■■|■■", status_for=15, spec=spec)
    assert happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)) == "wait"


def test_failing_starts_are_held_back_and_drains_are_not() -> None:
    failing = StartFailures(V2, in_a_row=3, last_at=NOW)
    deployment = deploying("■■■|", start_failures=failing)
    decision = EVALUATOR.evaluate_one(deployment, NOW + timedelta(seconds=7))
    assert happens(deployment, decision) == "drain ■"
    assert decision.recheck_at == NOW + timedelta(seconds=8)
    decision = EVALUATOR.evaluate_one(deployment, NOW + timedelta(seconds=8))
    assert happens(deployment, decision) == "create 1, drain ■"


def test_after_failing_starts_only_one_is_tried_at_a_time() -> None:
    failing = StartFailures(V2, in_a_row=1, last_at=NOW - timedelta(minutes=1))
    deployment = deploying("■■■■■■|", 6, 3, 0, start_failures=failing)
    assert happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)) == "create 1"
    deployment = deploying("■■■■■■|◇", 6, 3, 0, start_failures=failing, spec={"pacing": "continuous"})
    assert happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)) == "wait"


@pytest.mark.parametrize(("s", "u"), [(1, 1), (1, 0), (0, 1), (2, 2), ("25%", "25%")])
@pytest.mark.parametrize("pacing", ["wave", "continuous"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_a_rollout_ends_without_ever_needing_the_tick(n: int, s: int | str, u: int | str, pacing: str) -> None:
    world = world_of(deploying("■" * n + "|", n, s, u, spec={"pacing": pacing}), start_seconds=2)
    world.run(seconds=120)
    assert [route.revision_id for route in world.deployment.routes] == [V2] * n
    assert world.deployment.current_revision_id == V2
    assert world.created == n


def test_without_waiting_for_the_tick_a_wave_takes_as_long_as_its_starts() -> None:
    world = world_of(deploying("■■■|", 3, 0, 1), start_seconds=10)
    world.run(seconds=600)
    looks = [look.decision for look in world.looks]
    ended = next(decision for decision in looks if decision.verdict is Verdict.SUCCESS)
    assert ended.deployment.rollout is not None
    assert looks.index(ended) <= 12
    assert max(route.status_changed_at for route in ended.deployment.routes) == NOW + timedelta(seconds=30)


def test_trap_old_replicas_that_never_came_up_neither_hold_the_budget_nor_are_refilled() -> None:
    world = world_of(deploying("◇◇◇|", 3, 1, 0))
    stuck = {route.id for route in world.deployment.routes}
    world.fates = Fates(Fate(10**6))
    for _ in range(8):
        world.run(seconds=1)
        young = [route.id for route in world.deployment.routes if route.id not in stuck]
        world.deployment = with_status(world.deployment, young, RouteStatus.HEALTHY, world.at)
        world.due_at = world.at
    assert {route.id for route in world.deployment.routes} & stuck == set()
    assert {spec.revision_id for look in world.looks for spec in look.decision.changes.rollout_specs} == {V2}
    assert world.deployment.current_revision_id == V2


@pytest.mark.parametrize(
    ("picture", "then"),
    [
        ("■■|■", "wait"),
        ("■|■", "create 1"),
        ("▲■|■", "create 1"),
        ("|■", "create 2"),
        ("■|◇", "wait"),
        ("■|◇■", "wait"),
    ],
)
def test_what_dies_while_new_ones_warm_is_replaced(picture: str, then: str) -> None:
    warming = deploying(picture, 3, 1, 0, spec={"min_ready_seconds": 3600}, status_for=60)
    decision = EVALUATOR.evaluate_one(warming, NOW)
    assert happens(warming, decision) == then
    assert {spec.revision_id for spec in decision.changes.rollout_specs} <= {V1 if picture != "|■" else V2}
