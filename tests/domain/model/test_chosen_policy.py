"""A policy by which every rollout would go back is refused where it is written, and read where it is stored."""

from typing import Any

import pytest
from pydantic import ValidationError

from domain.commands.apply.document import Document
from domain.strategies.builtin import chosen_policy, parse_policy, stored_policy
from domain.text.errors import InvalidInputError

NEVER = [
    ("rolling_update", {"min_ready_seconds": 60}, {"progress_timeout_seconds": 60}, "min_ready_seconds", "60 s"),
    ("rolling_update", {"min_ready_seconds": 1800}, {}, "min_ready_seconds", "policy.limits.timeout_seconds"),
    ("canary", {"min_ready_seconds": 31}, {"progress_timeout_seconds": 30}, "min_ready_seconds", "31 s"),
    (
        "blue_green",
        {"auto_promote": True, "promote_delay_seconds": 600},
        {"timeout_seconds": 300},
        "promote_delay_seconds",
        "600 s",
    ),
]
"""Strategy, spec and limits by which every rollout would go back; the field to blame, and what is said of it."""


@pytest.mark.parametrize(("strategy", "spec", "limits", "field", "said"), NEVER)
def test_a_policy_that_can_never_succeed_is_refused_where_it_is_written_and_read_where_it_is_stored(
    strategy: str, spec: dict[str, Any], limits: dict[str, Any], field: str, said: str
) -> None:
    raw = {"strategy": strategy, "spec": spec, "limits": limits}
    with pytest.raises(InvalidInputError) as refused:
        chosen_policy(raw)
    assert refused.value.detail["field"] == f"policy.spec.{field}"
    assert f"policy.spec.{field}: must be less than policy.limits." in refused.value.message
    assert said in refused.value.message
    stored = stored_policy(raw)
    assert getattr(stored.spec, field) == spec[field]
    with pytest.raises(ValidationError, match=f"{field}: must be less than"):
        Document.model_validate({"deployment": "web", "policy": raw})


@pytest.mark.parametrize(
    ("strategy", "spec", "limits"),
    [
        ("rolling_update", {"min_ready_seconds": 59}, {"progress_timeout_seconds": 60}),
        ("blue_green", {"promote_delay_seconds": 600}, {"timeout_seconds": 300}),  # a person promotes: no delay
        ("canary", {"steps": [{"weight": "5%", "seconds": 600}]}, {"timeout_seconds": 300}),  # a look stops the clock
    ],
)
def test_what_may_succeed_is_not_refused(strategy: str, spec: dict[str, Any], limits: dict[str, Any]) -> None:
    raw = {"strategy": strategy, "spec": spec, "limits": limits}
    assert chosen_policy(raw) == parse_policy(raw)
