"""What a policy leaves out."""

from typing import Any

import pytest
from pydantic import ValidationError

from domain.model.policy import RolloutLimits
from domain.strategies.builtin import STRATEGIES, parse_policy


def test_what_a_policy_leaves_out_is_careful() -> None:
    spec = {name: parse_policy({"strategy": name}).as_json()["spec"] for name in STRATEGIES}
    assert spec["rolling_update"] == {
        "max_surge": 1,
        "max_unavailable": 0,
        "undo_max_surge": None,
        "pacing": "wave",
        "min_ready_seconds": 0,
        "count_stopping": False,
        "sleep_seconds": 0,
    }
    assert spec["blue_green"]["auto_promote"] is False
    assert spec["recreate"] == {"count_stopping": True}


def test_the_limits_that_are_documented_hold_where_a_policy_leaves_them_out() -> None:
    assert parse_policy({"strategy": "recreate"}).as_json()["limits"] == {
        "timeout_seconds": 1800,
        "progress_timeout_seconds": None,
        "failure_budget": None,
        "unanswered": 20,
        "unanswered_within_seconds": 60,
    }


@pytest.mark.parametrize(
    ("limit", "least", "most", "step"),
    [
        ("timeout_seconds", 0.001, 2_592_000, 0.001),  # 30 days
        ("progress_timeout_seconds", 0.001, 2_592_000, 0.001),
        ("failure_budget", 1, 10_000, 1),
        ("unanswered", 1, 1_000_000, 1),
        ("unanswered_within_seconds", 0, 3600, 0.001),
    ],
)
def test_a_limit_lies_between_the_documented_bounds(limit: str, least: float, most: float, step: float) -> None:
    def made(value: Any) -> Any:
        return getattr(RolloutLimits.model_validate({limit: value}), limit)

    assert (made(least), made(most)) == (least, most)
    for beyond in (least - step, most + step):
        with pytest.raises(ValidationError):
            made(beyond)


@pytest.mark.parametrize(
    ("limit", "unanswered", "is_left"),
    [(20, 19, False), (20, 20, True), (20, None, False), (1, 0, False), (None, 900, False)],
)
def test_a_revision_that_answers_nobody_is_left_at_the_limit(
    limit: int | None, unanswered: int | None, *, is_left: bool
) -> None:
    why = f"the new revision answered none of {unanswered} requests" if is_left else None
    assert RolloutLimits(unanswered=limit).why_left(unanswered) == why
