"""Blue-green, cycle by cycle: green comes up out of traffic beside blue, until both are complete."""

from datetime import timedelta

import pytest

from domain.cycle.evaluator import EVALUATOR
from domain.model.policy import DeploymentPolicy
from domain.model.states import TrafficStatus
from domain.strategies.budget import Budget
from domain.strategies.builtin import STRATEGIES
from tests.support.pictures.blue_green import AUTO, DELAYED, IN_GRACE, MANUAL, PARKING, PAST_GRACE, step
from tests.support.pictures.pictures import NOW, READY, V1, V2, blue_green, deploying, happens
from tests.support.pictures.simulation import world_of


@pytest.mark.parametrize(
    ("picture", "n", "expected"),
    [
        # the way through
        ("■■■|", 3, "create 3"),
        ("■■■|◌◌◌", 3, "wait"),
        ("■■■|□□◌", 3, "wait"),
        ("■■■|□□□", 3, "completed: promote □□□, drain ■■■"),
        ("■|", 1, "create 1"),
        ("■|□", 1, "completed: promote □, drain ■"),
        # none wanted
        ("|", 0, "completed"),
        ("■■|", 0, "completed: drain ■■"),
        # green loses some before it is complete, and after
        ("■■■|□□", 3, "create 1"),
        ("■■■|□□▲", 3, "drain ▲"),
        ("■■■|□▲▲", 3, "drain ▲▲"),
        ("■■■|□▲", 3, "create 1, drain ▲"),
        ("■■■|□", 3, "create 2"),
        # blue loses some: replaced, whatever green does, and as long as it is not about to go
        ("■■|", 3, "create 4"),
        ("■■|◌◌◌", 3, "create 1"),
        ("■■|□□", 3, "create 2"),
        ("■■◇|□□", 3, "create 1"),
        ("■■|□□□", 3, "completed: promote □□□, drain ■■"),
        ("|□□□", 3, "completed: promote □□□"),
        ("■▲■|□□□", 3, "completed: promote □□□, drain ▲■■"),
        ("■▲■|◌◌◌", 3, "drain ▲"),
        # desired changes in the middle: up, then down before and after green exists
        ("■■■|□□□", 5, "create 4"),
        ("■■■|◌◌◌", 5, "create 2"),
        ("■■■■■|", 3, "create 1, drain ■■"),
        ("■■■■■|", 2, "drain ■■■"),
        ("■■■■■|◌◌◌◌◌", 2, "drain ◇◇◇■■■"),
        ("■■■■■|□□□□□", 2, "completed: promote □□, drain □□□■■■■■"),
        ("■■|□□□", 2, "completed: promote □□, drain □■■"),
        ("■■|□□◌", 2, "completed: promote □□, drain ◇■■"),
        # new ones that are in traffic already, from a rolling update that was superseded by the same revision
        ("■■|■", 3, "create 3"),
        ("■■■|■□□", 3, "completed: promote □□, drain ■■■"),
        # what is on its way out does not count
        ("■■■~|~~", 3, "create 3"),
    ],
)
def test_blue_green(picture: str, n: int, expected: str) -> None:
    assert step(deploying(picture, n, policy=AUTO, status_for=PAST_GRACE)) == expected


@pytest.mark.parametrize(
    ("picture", "before", "n", "expected"),
    [
        # more than before: blue stays as it is
        ("■■|", 2, 3, "create 3"),
        ("■■|◌◌◌", 2, 3, "wait"),
        ("■■|□□□", 2, 3, "completed: promote □□□, drain ■■"),
        ("■|◌◌◌", 2, 3, "create 1"),
        ("■■|□□", 2, 3, "create 1"),
        # fewer than before: not one of blue goes before the promotion
        ("■■■|", 3, 1, "create 1"),
        ("■■■|◌", 3, 1, "wait"),
        ("■■|◌", 3, 1, "create 1"),
        ("■■■■|◌", 3, 1, "drain ■"),
        ("■■■|□", 3, 1, "completed: promote □, drain ■■■"),
        # none, and from none
        ("■■|", 2, 0, "completed: drain ■■"),
        ("|", 0, 2, "create 2"),
    ],
)
def test_a_size_that_comes_with_the_revision_is_greens_and_blue_keeps_its_own(
    picture: str, before: int, n: int, expected: str
) -> None:
    deployment = deploying(picture, n, policy=AUTO, status_for=PAST_GRACE, rollout={"desired_at_start": before})
    assert step(deployment) == expected


def test_both_sizes_together_are_the_ceiling_and_a_smaller_green_is_the_floor_of_the_promotion() -> None:
    for before, n, budget in ((3, 5, Budget(5, 8, 3)), (3, 1, Budget(1, 4, 1)), (2, 2, Budget(2, 4, 2))):
        deployment = deploying("■■■|", n, policy=AUTO, rollout={"desired_at_start": before})
        assert EVALUATOR.budget(deployment) == budget


@pytest.mark.parametrize(
    ("picture", "not_counted", "counted"),
    [
        # what green lost is replaced when it is gone, and in what blue's and green's places together leave
        ("■■■|□□~", "create 1", "wait"),
        ("■■■|□□~~", "create 1", "wait"),
        ("■■■|~~~", "create 3", "wait"),
        ("■■■|~", "create 3", "create 2"),
        # and what blue lost
        ("■■~|□□", "create 2", "create 1"),
        ("■■~|◌◌◌", "create 1", "wait"),
        ("■■|□□~", "create 2", "create 1"),
        ("■■|◌◌◌~", "create 1", "wait"),
        # the promotion waits for no stop
        ("■■■~|□□□~", "completed: promote □□□, drain ■■■", "completed: promote □□□, drain ■■■"),
    ],
)
def test_replicas_that_are_stopping_count_when_the_policy_says_so(picture: str, not_counted: str, counted: str) -> None:
    assert step(deploying(picture, policy=AUTO)) == not_counted
    assert step(deploying(picture, policy=blue_green(auto_promote=True, count_stopping=True))) == counted


def test_a_wait_for_a_stopping_replica_says_so_with_its_inequality() -> None:
    policy = blue_green(count_stopping=True)
    green = EVALUATOR.evaluate_one(deploying("■■■|□□~", policy=policy), NOW)
    assert "no room to create 1 (5 live + 1 stopping of at most 6)" in green.reason
    blue = EVALUATOR.evaluate_one(deploying("■■~|□□□", policy=policy), NOW)
    assert blue.clock_stopped
    assert "blue: 2 of 3 ready" in blue.reason
    assert "2 live + 1 stopping of at most 3" in blue.reason


def test_only_what_happens_is_told() -> None:
    for picture, said in (
        ("■■■|", "creating 3 green out of traffic (0 of 3 green healthy)"),
        ("■■■|□□▲", "draining 1 green (2 of 3 green healthy)"),
        ("■■■|□▲", "creating 1 green out of traffic, draining 1 green (1 of 3 green healthy)"),
    ):
        assert EVALUATOR.evaluate_one(deploying(picture, policy=AUTO, status_for=PAST_GRACE), NOW).reason == said


@pytest.mark.parametrize(
    ("picture", "expected"),
    [("■■■|□□▲", "wait"), ("■■■|□□□▲", "completed: promote □□□, drain ▲■■■"), ("■▲■|◌◌◌", "wait")],
)
def test_a_sick_replica_has_a_grace(picture: str, expected: str) -> None:
    deployment = deploying(picture, policy=AUTO, status_for=IN_GRACE)
    decision = EVALUATOR.evaluate_one(deployment, NOW)
    assert happens(deployment, decision) == expected
    if expected == "wait":
        assert decision.recheck_at == NOW + timedelta(seconds=25)


@pytest.mark.parametrize("policy", [MANUAL, DELAYED, PARKING, AUTO])
def test_green_comes_up_out_of_traffic(policy: DeploymentPolicy) -> None:
    (spec,) = EVALUATOR.evaluate_one(deploying("■■■|", policy=policy), NOW).changes.rollout_specs
    assert (spec.revision_id, spec.count, spec.traffic) == (V2, 3, TrafficStatus.INACTIVE)


def test_what_blue_lost_comes_back_into_traffic_beside_it() -> None:
    specs = EVALUATOR.evaluate_one(deploying("■■|", policy=AUTO), NOW).changes.rollout_specs
    assert {(spec.revision_id, spec.count, spec.traffic) for spec in specs} == {
        (V2, 3, TrafficStatus.INACTIVE),
        (V1, 1, TrafficStatus.ACTIVE),
    }


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("policy", [AUTO, DELAYED, PARKING])
@pytest.mark.parametrize("picture", ["■■■|", "■■■|◌", "▲▲▲|", "◇◇|□", "■■■■■■|", "□□□|■"])
def test_a_rollout_ends_without_ever_needing_the_tick(picture: str, n: int, policy: DeploymentPolicy) -> None:
    world = world_of(deploying(picture, n, policy=policy), start_seconds=2)
    world.run(seconds=300)
    assert [(r.revision_id, r.is_serving) for r in world.deployment.routes] == [(V2, True)] * n
    assert world.deployment.status == READY


@pytest.mark.parametrize(
    ("picture", "reason"),
    [
        ("■■■|□□□", "3 of 3 replicas healthy"),
        ("■■|□□□", "creating 1 (2 live + 1 ≤ 3)"),
        ("■■■|□□□▲", "draining 1 green too many; 3 of 3 replicas healthy"),
        ("■■■|□□▲", "2 of 3 green healthy, 1 unhealthy"),
    ],
)
def test_while_it_stands_still_a_complete_green_is_not_spoken_of(picture: str, reason: str) -> None:
    deployment = deploying(picture, 3, policy=MANUAL, paused_at=NOW, rollout={"steps": 1}, status_for=3)
    assert deployment.rollout
    decision = STRATEGIES["blue_green"].keep_whole(deployment, deployment.rollout.policy.spec, NOW)
    assert decision.reason.endswith(reason)
    assert ("green healthy" in decision.reason) is (picture == "■■■|□□▲")
