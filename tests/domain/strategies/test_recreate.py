"""Recreate, one cycle at a time and whole: nothing new starts before everything old has stopped; nor on a way back."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from domain.cycle.evaluator import EVALUATOR
from domain.handlers.deploying import DeployingRollingBackHandler
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment
from domain.model.states import RouteStatus, Verdict
from domain.strategies.builtin import parse_policy
from domain.text.errors import InvalidInputError
from tests.support.pictures.pictures import (
    NOW,
    READY,
    RECREATE,
    V1,
    V2,
    deploying,
    drawn_changes,
    happens,
    rolling_back,
)
from tests.support.pictures.simulation import all_started, applied, stopped, world_of

IN_GRACE, PAST_GRACE = 5.0, 31.0


@pytest.mark.parametrize(
    ("picture", "n", "expected"),
    [
        # the ladder
        ("■■■|", 3, "drain ■■■"),
        ("~~~|", 3, "wait"),
        ("■~~|", 3, "drain ■"),
        ("|", 3, "create 3"),
        ("|◇◇◇", 3, "wait"),
        ("|■■◇", 3, "wait"),
        ("|■■■", 3, "completed"),
        # what is left of the old, in any state, and parked ones too
        ("▲◇□△|", 3, "drain □▲△◇"),
        ("▫▫|", 3, "drain □□"),
        ("■|■■■", 3, "drain ■"),
        ("~|■■■", 3, "wait"),
        # what the new ones lose, and a new size in the middle
        ("|■■", 3, "create 1"),
        ("|■■▲", 3, "drain ▲"),
        ("|■■□", 3, "promote □"),
        ("|■■■", 5, "create 2"),
        ("|■■■", 2, "completed"),
        ("|■■■~", 3, "completed"),
        ("|■■~", 3, "wait"),
        ("|■■~", 5, "create 2"),
        ("|", 0, "completed"),
        ("■|", 0, "drain ■"),
    ],
)
def test_recreate(picture: str, n: int, expected: str) -> None:
    deployment = deploying(picture, n, policy=RECREATE, status_for=PAST_GRACE)
    assert happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)) == expected


def test_a_sick_new_one_has_a_grace() -> None:
    deployment = deploying("|■■▲", policy=RECREATE, status_for=IN_GRACE)
    decision = EVALUATOR.evaluate_one(deployment, NOW)
    assert (decision.verdict, decision.recheck_at) == (Verdict.SKIPPED, NOW + timedelta(seconds=25))


def test_a_new_one_that_is_lost_out_of_traffic_is_drained_and_not_brought_in() -> None:
    deployment = deploying("|■■□", policy=RECREATE, status_for=PAST_GRACE)
    sick = replace(deployment.routes[2], status=RouteStatus.UNHEALTHY)
    deployment = replace(deployment, routes=(*deployment.routes[:2], sick))
    changes = EVALUATOR.evaluate_one(deployment, NOW).changes
    assert (changes.promote_route_ids, changes.drain_route_ids) == ((), (sick.id,))


@pytest.mark.parametrize(
    ("picture", "n", "expected"),
    [
        ("|■■■", 3, "drain ■■■"),
        ("■|◇◇", 3, "drain ◇◇"),
        ("~~~|", 3, "wait"),
        ("~~|", 3, "create 1"),
        ("■~|", 3, "create 1"),
        ("|~~~", 3, "wait"),
        ("■■|~", 3, "wait"),
        ("|~", 3, "wait"),
        ("■■■|~", 3, "completed"),
        ("|", 3, "create 3"),
        ("■■■|", 3, "completed"),
        ("■■|▫", 3, "drain □"),
    ],
)
def test_on_the_way_back_nothing_starts_beside_the_new_ones_either(picture: str, n: int, expected: str) -> None:
    deployment = rolling_back(picture, n, policy=RECREATE)
    assert happens(deployment, DeployingRollingBackHandler().decide(deployment, NOW)) == expected


def test_a_wait_for_stopping_replicas_says_so() -> None:
    for picture, said in (("~~|", "2 old still stopping"), ("|■■~", "2 live + 1 stopping of at most 3")):
        assert said in EVALUATOR.evaluate_one(deploying(picture, policy=RECREATE), NOW).reason
    back = DeployingRollingBackHandler().decide(rolling_back("~~~|", policy=RECREATE), NOW)
    assert "0 live + 3 stopping of at most 3" in back.reason


def test_what_cannot_run_twice_cannot_be_told_not_to_count_what_stops() -> None:
    with pytest.raises(InvalidInputError, match=r"policy\.spec\.count_stopping"):
        parse_policy({"strategy": "recreate", "spec": {"count_stopping": False}})


def test_while_others_start_a_sick_replica_is_looked_at_when_its_grace_ends() -> None:
    deployment = deploying("|▲◇", 3, policy=RECREATE, status_for=5)
    classified = cycle(deployment, NOW)
    assert (drawn_changes(deployment, classified.changes), classified.due_at) == (
        "create 1",
        NOW + timedelta(seconds=25),
    )


@pytest.mark.parametrize("start", [deploying("■■■|", policy=RECREATE), rolling_back("■|■■", policy=RECREATE)])
def test_two_revisions_never_run_at_the_same_time_once_it_has_begun(start: Deployment) -> None:
    deployment, now, target = start, NOW, V2 if "provisioning" in str(start.status) else V1
    for _ in range(20):
        deployment, now = _once(deployment, now)
        running = {route.revision_id for route in deployment.routes if route.status is RouteStatus.PROVISIONING}
        assert not running or {route.revision_id for route in deployment.routes} == running
        if deployment.status == READY:
            break
    assert (deployment.status, deployment.current_revision_id) == (READY, target)
    assert [route.revision_id for route in deployment.routes] == [target] * 3


def _once(deployment: Deployment, now: datetime) -> tuple[Deployment, datetime]:
    classified = cycle(deployment, now)
    deployment = applied(classified, now, stopping=True)
    if classified.verdict is Verdict.SKIPPED:
        now += timedelta(seconds=1)
        deployment = all_started(stopped(deployment), now)
    return deployment, now


@pytest.mark.parametrize("n", [0, 1, 3, 5])
@pytest.mark.parametrize("picture", ["■■■|", "■|■■", "▲▲|▲", "◇|◇", "□|□", "▫▫|"])
def test_a_rollout_ends_without_ever_needing_the_tick(picture: str, n: int) -> None:
    world = world_of(deploying(picture, n, policy=RECREATE), start_seconds=2, stop_seconds=1)
    world.run(seconds=300)
    assert world.deployment.status == READY
    assert [(r.revision_id, r.is_serving) for r in world.deployment.routes] == [(V2, True)] * n
