"""Autoscaling rules and values as the domain sees them."""

from datetime import timedelta
from typing import Any

from domain.autoscaling.rule import AutoscalingRule, MetricValue
from tests.support.pictures.pictures import NOW

BUSY = "requests_in_flight"
UP: dict[str, Any] = {"metric": BUSY, "comparator": ">", "threshold": 30, "step": 2, "max_replicas": 8}
DOWN: dict[str, Any] = {"metric": BUSY, "comparator": "<", "threshold": 5, "step": -1, "max_replicas": 8}


def rule(kind: dict[str, Any] = UP, **changed: Any) -> AutoscalingRule:
    """The rule `kind` with some of its settings changed."""
    return AutoscalingRule.model_validate({**kind, **changed})


def seen(of: AutoscalingRule, value: float, age: float = 1, missing: int = 0) -> MetricValue:
    """What this rule reads, measured `age` seconds before NOW; `missing` replicas did not say."""
    return MetricValue(of.series, value, NOW - timedelta(seconds=age), missing)


def ago(seconds: float) -> Any:
    return NOW - timedelta(seconds=seconds)
