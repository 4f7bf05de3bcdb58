"""A canary that gets copies of requests before its first weight."""

from datetime import timedelta
from typing import Any

import pytest

from domain.cycle.evaluator import EVALUATOR
from domain.text.errors import InvalidInputError
from tests.domain.canary.test_canary import KNOWN, at_stage, step
from tests.support.pictures.pictures import NOW
from tests.support.pictures.policies import canary

MIRRORING = canary(mirror="10%", steps=["5%"])


@pytest.mark.parametrize(
    ("picture", "rollout", "expected"),
    [
        # its first stage has no weight: copies for a minute, once every proxy knows it
        ("■■■|", {}, "create 1"),
        ("■■■|■", KNOWN, "0 %"),
        ("■■■|■", {"stage": 1}, "wait"),
        ("■■■|■", {"stage": 1, **KNOWN}, "wait"),
        ("■■■|■", {"stage": 1, "weight_known_at": NOW - timedelta(seconds=60)}, "5 %"),
        ("■■■|■", {"stage": 1, **KNOWN, "promote_requested": True}, "5 %"),
        ("■■■|", {"stage": 1, **KNOWN}, "create 1"),
        ("■■■|■", {"stage": 2, "weight": 500, **KNOWN}, "wait"),
        ("■■■|■", {"stage": 2, "weight": 500, **KNOWN, "promote_requested": True}, "the rest"),
    ],
)
def test_a_canary_that_gets_copies_first(picture: str, rollout: dict[str, Any], expected: str) -> None:
    assert step(at_stage(picture, 3, MIRRORING, **rollout)) == expected


def test_what_a_canary_gets_copies_of_is_said() -> None:
    begins = EVALUATOR.evaluate_one(at_stage("■■■|■", 3, MIRRORING, **KNOWN), NOW)
    assert begins.reason == "the canary gets copies of 10 % of the requests that only read"
    looking = EVALUATOR.evaluate_one(at_stage("■■■|■", 3, MIRRORING, stage=1, **KNOWN), NOW)
    assert looking.reason.startswith(
        "waiting: the canary has copies of 10 % of the requests that only read, for 1 more s"
    )
    assert looking.clock_stopped
    weighed = EVALUATOR.evaluate_one(at_stage("■■■|■", 3, MIRRORING, stage=2, weight=500, **KNOWN), NOW)
    assert weighed.reason.startswith("waiting: the canary has 5 % of the requests; ")
    with pytest.raises(InvalidInputError, match='such as "5%"'):
        canary(mirror="101%")
    assert canary(mirror={"share": "100%", "seconds": 1})
