"""Rolling update, one cycle at a time: a picture, and what happens."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.evaluator import EVALUATOR
from domain.model import RouteStatus, StartFailures, Verdict
from tests.support.pictures import NOW, V2, deploying, happens, route_id
from tests.support.simulation import World, with_status

IN_GRACE = 5.0
PAST_GRACE = 31.0


@pytest.mark.parametrize(
    ("picture", "n", "s", "u", "expected"),
    [
        # the budget
        ("■■■|", 3, 1, 1, "create 1, drain ■"),
        ("■■■|", 3, 0, 1, "drain ■"),
        ("■■|", 3, 0, 1, "create 1"),
        ("■■■|", 3, 1, 0, "create 1"),
        ("■■■|■", 3, 1, 0, "drain ■"),
        ("■■■|", 3, 3, 0, "create 3"),
        ("■■■|■■■", 3, 3, 0, "drain ■■■"),
        ("■■■|", 3, 1, 3, "create 1, drain ■■■"),
        ("■■■|", 3, 1, 99, "create 1, drain ■■■"),
        ("■■■|", 3, 99, 0, "create 3"),
        ("■■■■|", 4, "25%", "25%", "create 1, drain ■"),
        ("■■■■■■■■■■|", 10, "25%", "25%", "create 3, drain ■■"),
        ("■|", 1, "25%", "25%", "create 1"),
        ("■|", 1, "0%", "25%", "drain ■"),
        ("|", 1, "0%", "25%", "create 1"),
        # small and none
        ("■|", 1, 1, 0, "create 1"),
        ("■|◇", 1, 1, 0, "wait"),
        ("■|■", 1, 1, 0, "drain ■"),
        ("|■", 1, 1, 0, "completed"),
        ("|", 0, 1, 1, "completed"),
        ("■■|", 0, 1, 1, "drain ■■"),
        ("■■|", 0, 1, 0, "drain ■■"),
        ("|", 3, 1, 1, "create 3"),
        # what is starting blocks the wave, even if it will never come
        ("■■|◇", 3, 1, 1, "wait"),
        ("|■■◇", 3, 1, 1, "wait"),
        ("▲▲▲|◇", 3, 1, 1, "wait"),
        ("|■◇", 1, 1, 0, "wait"),
        ("|■■■◇", 3, 1, 1, "wait"),
        ("◇■■|", 3, 1, 1, "create 1, drain ◇"),
        # the sick go first, the eldest first among equals
        ("■▲■|", 3, 1, 1, "create 1, drain ▲"),
        ("■△▲|", 3, 1, 2, "create 1, drain ▲△"),
        ("■◇△▲|", 4, 1, 3, "create 1, drain ▲△◇"),
        ("■□▲|", 3, 1, 1, "create 1, drain □"),
        ("▲▲▲▲▲|", 3, 1, 1, "drain ▲▲▲"),
        ("▲▲▲▲▲|", 5, 1, 0, "create 1"),
        # what is on its way out does not count
        ("■■■~|~~", 3, 1, 1, "create 1, drain ■"),
        ("|■■■~", 3, 1, 1, "completed"),
        # desired changes in the middle
        ("■■|■", 5, 1, 1, "create 3"),
        ("■■|■■■", 2, 1, 1, "drain ■■"),
        ("|■■■", 2, 1, 1, "completed"),
        ("■|■■■", 3, 1, 1, "drain ■"),
        # new ones out of traffic are brought in first
        ("■■|□", 3, 1, 1, "promote □"),
        ("■■|□◇", 3, 1, 1, "promote □"),
    ],
)
@pytest.mark.parametrize("status_for", [IN_GRACE, PAST_GRACE])
def test_wave(picture: str, n: int, s: int | str, u: int | str, expected: str, status_for: float) -> None:
    deployment = deploying(picture, n, s, u, status_for=status_for)
    assert happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)) == expected


@pytest.mark.parametrize(
    ("picture", "n", "s", "u", "expected"),
    [
        ("■■■|", 3, 1, 1, "create 1, drain ■"),
        ("■■|◇", 3, 1, 1, "create 1"),
        ("■■|◇◇", 3, 1, 1, "wait"),
        ("■■|■◇", 3, 1, 1, "drain ■"),
        ("|■■◇", 3, 1, 1, "wait"),
        ("|■■■", 3, 1, 1, "completed"),
        ("■■■|◇◇", 5, 2, 0, "create 2"),
        ("■■■■■|◇◇", 5, 2, 0, "wait"),
        ("▲▲▲|", 3, 1, 1, "create 1, drain ▲▲▲"),
        ("■▲◇|", 3, 1, 1, "create 1, drain ▲◇"),
        ("■□|", 3, 1, 1, "create 2, drain □"),
        ("■■■|", 3, 0, 1, "drain ■"),
        ("■■|", 3, 0, 1, "create 1"),
        ("■■■|", 3, 1, 0, "create 1"),
        ("■■■|■", 3, 1, 0, "drain ■"),
        ("■|", 1, 0, 1, "drain ■"),
        ("|", 1, 0, 1, "create 1"),
        ("|", 0, 1, 1, "completed"),
        ("■■|■■■", 2, 1, 1, "drain ■■"),
        ("■■|■", 5, 1, 1, "create 3"),
    ],
)
def test_continuous(picture: str, n: int, s: int | str, u: int | str, expected: str) -> None:
    deployment = deploying(picture, n, s, u, spec={"pacing": "continuous"})
    assert happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)) == expected


@pytest.mark.parametrize(
    ("picture", "pacing", "in_grace", "past_grace"),
    [
        ("■■|▲", "wave", "create 1", "create 1, drain ▲"),
        ("■■|■▲", "wave", "drain ■", "drain ■▲"),
        ("■■■|▲", "wave", "drain ■", "drain ■▲"),
        ("|■■▲", "wave", "create 1", "create 1, drain ▲"),
        ("|■■▲▲", "wave", "wait", "drain ▲▲"),
        ("|■■■▲", "wave", "completed", "completed"),
        ("|■■▲", "continuous", "wait", "drain ▲"),
    ],
)
def test_a_sick_new_replica_counts_and_is_replaced_when_its_grace_ends(
    picture: str, pacing: str, in_grace: str, past_grace: str
) -> None:
    for status_for, expected in ((IN_GRACE, in_grace), (PAST_GRACE, past_grace)):
        deployment = deploying(picture, status_for=status_for, spec={"pacing": pacing})
        assert happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)) == expected


@pytest.mark.parametrize(
    ("picture", "n", "s", "u", "pacing", "not_counted", "counted"),
    [
        # no surge: what was drained must be gone before its place is taken
        ("■■|", 2, 0, 1, "wave", "drain ■", "drain ■"),
        ("■~|", 2, 0, 1, "wave", "create 1", "wait"),
        ("■|", 2, 0, 1, "wave", "create 1", "create 1"),
        ("■~|■", 3, 0, 1, "continuous", "create 1", "wait"),
        # surge: stopping ones use it up, drains go on as far as enough serve
        ("■■~|■", 3, 1, 1, "wave", "create 1, drain ■", "drain ■"),
        ("■~~|■", 3, 1, 1, "wave", "create 2", "wait"),
        ("■~|■", 3, 1, 1, "wave", "create 2", "create 1"),
        ("■~~|■◇", 3, 1, 1, "continuous", "create 1", "wait"),
        ("■~|■◇", 3, 2, 1, "continuous", "create 1", "create 1"),
        # of the new revision too, whatever made them stop
        ("■■|~~", 3, 1, 1, "wave", "create 2", "wait"),
        ("■■|~~", 3, 2, 1, "continuous", "create 3", "create 1"),
        # they hold up nothing else
        ("|■■■~", 3, 1, 1, "wave", "completed", "completed"),
        ("~~~|■■■", 3, 1, 1, "continuous", "completed", "completed"),
        ("~■|□", 3, 1, 1, "wave", "promote □", "promote □"),
    ],
)
def test_replicas_that_are_stopping_count_when_the_policy_says_so(
    picture: str, n: int, s: int, u: int, pacing: str, not_counted: str, counted: str
) -> None:
    for count_stopping, expected in ((False, not_counted), (True, counted)):
        deployment = deploying(picture, n, s, u, spec={"pacing": pacing, "count_stopping": count_stopping})
        assert happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)) == expected


def test_a_wait_for_a_stopping_replica_says_so_with_its_inequality() -> None:
    reason = EVALUATOR.evaluate_one(deploying("■~|", 2, 0, 1, spec={"count_stopping": True}), NOW).reason
    assert "no room to create (1 live + 1 stopping of at most 2)" in reason
    reason = EVALUATOR.evaluate_one(deploying("■~|■", 3, 1, 1, spec={"count_stopping": True}), NOW).reason
    assert "creating 1 new (2 live + 1 stopping + 1 ≤ 4)" in reason


@pytest.mark.parametrize("pacing", ["wave", "continuous"])
@pytest.mark.parametrize(("n", "s", "u"), [(2, 0, 1), (3, 1, 1), (3, 1, 0), (5, 2, 2), (1, 1, 0), (1, 0, 1)])
def test_with_slow_stops_live_and_stopping_stay_within_the_ceiling(n: int, s: int, u: int, pacing: str) -> None:
    spec = {"pacing": pacing, "count_stopping": True}
    world = World(deploying("■" * n + "|", n, s, u, spec=spec), stop_seconds=60)
    world.run(seconds=1800)
    assert world.deployment.current_revision_id == V2
    assert world.created == n
    assert max(len(one.deployment.routes) for one in world.decisions) <= n + s


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


def test_the_eldest_of_equals_is_drained_first() -> None:
    deployment = deploying("■■■|", 3, 0, 2)
    assert EVALUATOR.evaluate_one(deployment, NOW).changes.drain_route_ids == (route_id(0), route_id(1))


def test_a_wait_says_the_inequality_that_blocks_it() -> None:
    reason = EVALUATOR.evaluate_one(deploying("■■|◇◇", spec={"pacing": "continuous"}), NOW).reason
    assert "4 live of at most 4" in reason
    assert "2 serving, 2 to keep" in reason


def test_a_paused_rollout_waits_for_a_person() -> None:
    decision = EVALUATOR.evaluate_one(deploying("■■■|", paused_at=NOW), NOW)
    assert (decision.verdict, decision.waits_for_person, bool(decision.changes)) == (Verdict.SKIPPED, True, False)


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
    world = World(deploying("■" * n + "|", n, s, u, spec={"pacing": pacing}), start_seconds=2)
    world.run(seconds=120)
    assert [route.revision_id for route in world.deployment.routes] == [V2] * n
    assert world.deployment.current_revision_id == V2
    assert world.created == n


def test_without_waiting_for_the_tick_a_wave_takes_as_long_as_its_starts() -> None:
    world = World(deploying("■■■|", 3, 0, 1), start_seconds=10)
    world.run(seconds=600)
    ended = next(one for one in world.decisions if one.verdict is Verdict.SUCCESS)
    assert ended.deployment.rollout is not None
    assert world.decisions.index(ended) <= 12
    assert max(route.status_changed_at for route in ended.deployment.routes) == NOW + timedelta(seconds=30)


def test_trap_old_replicas_that_never_came_up_neither_hold_the_budget_nor_are_refilled() -> None:
    world = World(deploying("◇◇◇|", 3, 1, 0))
    stuck = {route.id for route in world.deployment.routes}
    world.start_seconds = 10**6
    for _ in range(8):
        world.run(seconds=1)
        young = [route.id for route in world.deployment.routes if route.id not in stuck]
        world.deployment = with_status(world.deployment, young, RouteStatus.HEALTHY, world.now)
        world.due_at = world.now
    assert {route.id for route in world.deployment.routes} & stuck == set()
    assert {spec.revision_id for one in world.decisions for spec in one.changes.rollout_specs} == {V2}
    assert world.deployment.current_revision_id == V2


def test_a_failed_new_replica_is_in_no_bucket_and_is_created_again() -> None:
    deployment = deploying("■■|✗", 3, 1, 1)
    assert happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)) == "create 2"
