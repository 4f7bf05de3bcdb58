"""When few replicas answer much: who, which part, and how many times what each answers now."""

import random

import pytest

from domain.model.deployment import Deployment
from domain.planning.plan_input import Subject
from domain.planning.replica_timings import Timings
from domain.planning.rollout_plan import plan
from tests.support.pictures.pictures import NOW, READY, V1, blue_green, deploying, resting
from tests.support.pictures.policies import canary


@pytest.mark.parametrize(
    ("deployment", "busiest"),
    [
        (deploying("■■■|", 3, 1, 1), "2 replicas answer all requests: 1.5 times what each answers now"),
        (deploying("■■■|", 3, 1, 0), None),
        (deploying("■■■|", policy=blue_green()), None),
        (
            resting("■■■|", 1, READY, current_revision_id=V1),
            "1 replica answers all requests: 3 times what each answers now",
        ),
        (resting("|", 3, READY, current_revision_id=V1), None),
        (
            deploying("■■■■■|", 5, policy=canary(steps=["40%"], max_unavailable=2)),
            "3 replicas answer all requests: 1.67 times what each answers now",
        ),
        (deploying("■■■■|", 4, policy=canary(steps=["25%"])), None),
    ],
)
def test_a_plan_names_the_busiest_moment(deployment: Deployment, busiest: str | None) -> None:
    promise = plan(Subject(deployment), NOW, Timings((2.0,), (1.0,)), random.Random(7).random).guarantee
    assert promise.partition("; at the busiest moment ")[2] == (busiest or "")
