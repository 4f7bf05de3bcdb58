"""Where the chances of a judge do not hold."""

from typing import Any

import pytest

from domain.strategies.canary.judge_step import doubts
from domain.strategies.canary.steps import CanarySpec


@pytest.mark.parametrize(
    ("spec", "desired", "said"),
    [
        ({}, 3, []),
        ({"sticky": True}, 3, []),
        ({"judge": {}}, 3, ["its canary has one replica at 5 %"]),
        ({"judge": {}, "mirror": "10%"}, 3, ["its canary has one replica at 5 %"]),
        ({"judge": {}}, 20, ["its canary has one replica at 5 %"]),
        ({"judge": {}}, 21, []),
        ({"judge": {}, "sticky": True}, 21, ["its callers are sticky"]),
        (
            {"judge": {"baseline": "fresh"}, "sticky": True, "replicas": 2, "max_surge": 4},
            3,
            ["its callers are sticky"],
        ),
        ({"judge": {}, "sticky": True}, 0, []),
    ],
)
def test_where_requests_are_not_shared_out_one_by_one_it_is_said(
    spec: dict[str, Any], desired: int, said: list[str]
) -> None:
    assert [sentence.partition(":")[0] for sentence in doubts(CanarySpec(**spec), desired)] == said


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ({}, "; refused and redirected not judged, for one caller could decide"),
        ({"refused": {}}, "; redirected not judged, for one caller could decide"),
        ({"refused": {}, "redirected": {}}, "than 1%"),
    ],
)
def test_with_sticky_callers_refusals_are_judged_only_where_that_is_asked_for(judge: dict[str, Any], said: str) -> None:
    assert next(doubts(CanarySpec(judge=judge, sticky=True), 21)).endswith(said)
    unasked = CanarySpec(judge=judge).judge
    assert unasked is not None
    assert unasked.refused is not None
