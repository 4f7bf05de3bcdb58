"""The small handlers: check_pending, check_replica, reconcile, destroying; and how a batch is executed."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from domain.handlers.check_replica import CheckReplicaHandler, ReconcileHandler
from domain.handlers.deploying import DeployingProvisioningHandler, DeployingRollingBackHandler
from domain.handlers.dispatch import cycle
from domain.handlers.scaling import ScalingHandler
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy, StrategySpec
from domain.model.states import RouteStatus, Verdict
from domain.planning.simulator import with_status
from tests.support.pictures.pictures import (
    DESTROYED,
    DESTROYING,
    NOW,
    PENDING,
    READY,
    SCALING,
    deploying,
    drawn_changes,
    resting,
    rolling_back,
    route_id,
)
from tests.support.pictures.simulation import applied, world_of

DRIFT = [CheckReplicaHandler(), ReconcileHandler()]


def test_a_pending_deployment_without_a_revision_waits_and_says_what_for() -> None:
    classified = cycle(resting("", status=PENDING, current_revision_id=None), NOW)
    assert (classified.verdict, classified.to, classified.due_at) == (Verdict.SKIPPED, PENDING, None)
    assert "rollway activate web" in classified.reason


def test_a_pending_deployment_with_a_revision_starts_scaling_at_once() -> None:
    classified = cycle(resting("", status=PENDING), NOW)
    assert (classified.verdict, classified.to, classified.due_at) == (Verdict.SUCCESS, SCALING, NOW)


@pytest.mark.parametrize("handler", DRIFT, ids=lambda handler: handler.name)
@pytest.mark.parametrize(
    ("picture", "n", "status_for", "to"),
    [
        ("■■■", 3, 3600, READY),
        ("■■■~", 3, 3600, READY),
        ("■■◇", 3, 3600, READY),
        ("", 0, 3600, READY),
        ("■■", 3, 3600, SCALING),
        ("■■■■", 3, 3600, SCALING),
        ("■", 0, 3600, SCALING),
        ("■|■■■", 3, 3600, SCALING),
        ("◇|■■■", 3, 3600, SCALING),
        ("~|■■■", 3, 3600, READY),
        ("■■□", 3, 3600, SCALING),
        ("■■▲", 3, 3600, SCALING),
        ("■■■▲", 3, 3600, SCALING),
        ("■■▲", 3, 5, READY),
        ("■■△", 3, 5, READY),
    ],
)
def test_drift(handler: Any, picture: str, n: int, status_for: float, to: Any) -> None:
    classified = cycle(resting(picture, n, READY, status_for=status_for), NOW, handler)
    assert classified.to == to
    assert classified.verdict is (Verdict.SUCCESS if to == SCALING else Verdict.SKIPPED)
    assert not classified.changes


def test_a_sick_replica_is_looked_at_again_when_its_grace_ends() -> None:
    classified = cycle(resting("■■▲", 3, READY, status_for=5), NOW)
    assert classified.due_at == NOW + timedelta(seconds=25)


@pytest.mark.parametrize("handler", DRIFT, ids=lambda handler: handler.name)
def test_what_was_given_up_is_left_alone_until_retry_at(handler: Any) -> None:
    degraded = resting("■", 3, READY, degraded_reason="given up", retry_at=NOW + timedelta(seconds=60))
    classified = cycle(degraded, NOW, handler)
    assert (classified.to, classified.due_at) == (READY, NOW + timedelta(seconds=60))
    assert cycle(degraded, NOW + timedelta(seconds=60), handler).to == SCALING


def test_a_degraded_deployment_that_is_well_again_loses_its_mark() -> None:
    world = world_of(resting("■■■", 3, READY, degraded_reason="given up", retry_at=NOW - timedelta(seconds=1)))
    world.run(seconds=10)
    assert (world.deployment.status, world.deployment.degraded_reason) == (READY, None)
    assert world.deployment.retry_at is None


@pytest.mark.parametrize("ends", [partial(rolling_back, "■■■|"), partial(deploying, "|■■■")])
def test_a_rollout_that_ended_leaves_no_mark_from_before(ends: Callable[..., Deployment]) -> None:
    world = world_of(ends(degraded_reason="given up", retry_at=NOW + timedelta(hours=1)))
    world.run(seconds=10)
    assert (world.deployment.status, world.deployment.degraded_reason) == (READY, None)


def test_destroying_drains_everything_at_once_whatever_the_budget() -> None:
    classified = cycle(resting("■◇|■■▲□~", 4, DESTROYING), NOW)
    assert drawn_changes(classified.deployment, classified.changes) == "drain ■◇■■▲□"
    assert classified.to == DESTROYING


def test_destroying_waits_for_what_is_stopping_and_ends_with_the_last() -> None:
    assert cycle(resting("~", 3, DESTROYING), NOW).verdict is Verdict.SKIPPED
    assert cycle(resting("", 3, DESTROYING), NOW).to == DESTROYED


def test_trap_destroying_finds_what_a_cycle_in_flight_created() -> None:
    deployment = applied(cycle(resting("■■■", 5), NOW), NOW)
    classified = cycle(replace(deployment, status=DESTROYING), NOW)
    assert drawn_changes(classified.deployment, classified.changes) == "drain ■■■◇◇"


@pytest.mark.parametrize(
    ("handler", "deployment"),
    [
        (ScalingHandler(), resting("", current_revision_id=None)),
        (CheckReplicaHandler(), resting("", status=READY, current_revision_id=None)),
        (DeployingRollingBackHandler(), rolling_back("■|", current_revision_id=None)),
        (DeployingProvisioningHandler(), deploying("■|", rollout=None) and replace(deploying("■|"), rollout=None)),
        (DeployingProvisioningHandler(), deploying("■|", deploying_revision_id=None)),
        (
            DeployingProvisioningHandler(),
            deploying("■|", policy=DeploymentPolicy("gone", StrategySpec())),
        ),
    ],
)
def test_a_snapshot_that_makes_no_sense_is_an_error_in_words(handler: Any, deployment: Any) -> None:
    classified = cycle(deployment, NOW, handler)
    assert (classified.verdict, classified.to, bool(classified.changes)) == (Verdict.ERROR, deployment.status, False)
    assert classified.reason.startswith("ValueError: ")


def test_one_that_raises_is_an_error_of_that_one_alone() -> None:
    good, bad = resting("■■"), replace(resting("■■"), id=UUID(int=7), current_revision_id=None)
    result = ScalingHandler().execute([bad, good], NOW)
    assert [classified.deployment.id for classified in result.errors] == [bad.id]
    assert [classified.deployment.id for classified in result.need_retry] == [good.id]


def test_trap_no_flag_for_a_whole_batch_each_deployment_gets_its_own_verdict() -> None:
    moving, waiting, done = (
        replace(resting(picture), id=UUID(int=number)) for number, picture in enumerate(["■■", "■■◇", "■■■"])
    )
    result = ScalingHandler().execute([moving, waiting, done], NOW)
    assert [classified.deployment.id for classified in result.need_retry] == [moving.id]
    assert [classified.deployment.id for classified in result.skipped] == [waiting.id]
    assert [classified.deployment.id for classified in result.successes] == [done.id]
    assert [decision.deployment.id for decision in result.decisions] == [moving.id, waiting.id, done.id]
    assert [decision.changes_anything for decision in result.decisions] == [True, False, True]


def test_trap_swap_and_ready_are_one_decision() -> None:
    classified = cycle(deploying("|■■■"), NOW)
    assert (str(classified.to), str(classified.revision)) == ("ready", "swap")


def test_trap_a_probe_changes_what_the_gate_waits_for() -> None:
    deployment = deploying("■■|◇")
    assert cycle(deployment, NOW).verdict is Verdict.SKIPPED
    deployment = with_status(deployment, [route_id(2)], RouteStatus.HEALTHY, NOW)
    assert cycle(deployment, NOW).verdict is Verdict.NEED_RETRY


def test_the_results_of_two_batches_are_one_result() -> None:
    broken = replace(resting("■■■"), current_revision_id=None)
    drawn = [resting("■■■"), resting("■■"), resting("■■◇"), broken]
    batches = [replace(deployment, id=UUID(int=number)) for number, deployment in enumerate(drawn)]
    results = [ScalingHandler().execute([deployment], NOW) for deployment in batches]
    together = ScalingHandler().execute(batches, NOW)
    assert results[0] + results[1] + results[2] + results[3] == together
    both = together + together
    assert [len(part) for part in (both.successes, both.need_retry, both.skipped, both.errors)] == [2, 2, 2, 2]
    assert both.decisions == together.decisions * 2
