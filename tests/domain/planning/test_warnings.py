"""What a plan warns of because of what went wrong before."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.model.deployment import Deployment
from domain.model.policy import RolloutLimits
from domain.planning.plan_input import Subject
from domain.planning.replica_timings import Timings
from domain.planning.rollout_plan import plan
from tests.support.pictures.pictures import NOW, READY, RECREATE, deploying, resting

BAD_EVENING = Timings((2.0,) * 9, failed_starts=1, never_up=4, revisions=7)


@pytest.mark.parametrize(
    ("deployment", "warnings"),
    [
        (
            deploying("■■■|"),
            ("4 of web's last 7 revisions never became healthy", "1 of the last 10 starts of web failed"),
        ),
        (resting("■■■", 3, READY), ()),
    ],
)
def test_what_failed_before_is_warned_of_where_replicas_start(
    deployment: Deployment, warnings: tuple[str, ...]
) -> None:
    assert plan(Subject(deployment), NOW, BAD_EVENING, random.Random(7).random).warnings == warnings


@pytest.mark.parametrize(("seconds", "is_slow"), [(2, False), (30, True)])
def test_a_start_that_takes_longer_than_any_before_is_warned_of(seconds: int, is_slow: bool) -> None:  # noqa: FBT001
    begun = NOW - timedelta(seconds=seconds)
    deployment = deploying("■■|◇")
    routes = tuple(replace(route, created_at=begun) for route in deployment.routes)
    warned = plan(Subject(replace(deployment, routes=routes)), NOW, BAD_EVENING, random.Random(7).random).warnings
    said = (
        "a replica has been starting for 30 s, and the longest of the last 9 starts took 2.0 s: "
        "it takes longer than is told here"
    )
    assert (said in warned) is is_slow


@pytest.mark.parametrize(("starts", "is_often"), [(19, True), (20, False)])
def test_one_failed_start_of_twenty_is_often(starts: int, *, is_often: bool) -> None:
    warned = plan(Subject(deploying("■|", 1)), NOW, Timings((2.0,) * starts, failed_starts=1), random.Random(7).random)
    assert warned.warnings == (("1 of the last 20 starts of web failed",) if is_often else ())


@pytest.mark.parametrize(
    ("deployment", "warned"),
    [
        (deploying("■◇|", 2, policy=RECREATE), "recreate stops"),
        (deploying("◇◇|", 2, policy=RECREATE), ""),  # nothing serves that could be missed
        (deploying("■|", 1, s=0), "one replica and max_surge 0"),
        (deploying("◇|", 1, s=0), ""),
        (deploying("■■|", 2, s=0), ""),
        (deploying("◇|", 0), "0 replicas are wanted"),
    ],
)
def test_a_time_in_which_nothing_serves_is_warned_of_where_something_does(deployment: Deployment, warned: str) -> None:
    known = ("recreate stops", "one replica and max_surge 0", "0 replicas are wanted")
    warnings = plan(Subject(deployment), NOW, BAD_EVENING, random.Random(7).random).warnings
    assert [start for start in known for each in warnings if each.startswith(start)] == ([warned] if warned else [])


def test_where_some_runs_go_back_the_time_is_that_of_the_others() -> None:
    hurried = deploying("■■■|", limits=RolloutLimits(timeout_seconds=9))
    foreseen = plan(Subject(hurried), NOW, Timings((1.0, 4.0), (1.0,)), random.Random(7).random)
    (warned,) = foreseen.warnings
    assert warned.startswith("in 11 of 100 runs it goes back though no replica fails: the timeout of 9 s has passed")
    assert str(foreseen.seconds) == "6.0 to 9.0 s"
