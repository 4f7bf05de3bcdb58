"""What a plan warns of because of what went wrong before."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.model.deployment import Deployment
from domain.planning.plan_input import Subject
from domain.planning.replica_timings import Timings
from domain.planning.rollout_plan import plan
from tests.support.pictures.pictures import NOW, READY, deploying, resting

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
