"""What a plan warns of because of what went wrong before."""

import random

import pytest

from domain.foresight.plan.foreseen import plan
from domain.foresight.plan.subject import Subject
from domain.foresight.rehearsal.learned import Learned
from domain.model.deployment import Deployment
from tests.support.pictures.pictures import NOW, READY, deploying, resting

BAD_EVENING = Learned((2.0,) * 9, failed_starts=1, never_up=4, revisions=7)


@pytest.mark.parametrize(
    ("deployment", "warnings"),
    [
        (
            deploying("■■■|"),
            ("of the last 7 revisions of web 4 never came up", "1 of the last 10 starts of web failed"),
        ),
        (resting("■■■", 3, READY), ()),
    ],
)
def test_what_failed_before_is_warned_of_where_replicas_start(
    deployment: Deployment, warnings: tuple[str, ...]
) -> None:
    assert plan(Subject(deployment), NOW, BAD_EVENING, random.Random(7).random).warnings == warnings
