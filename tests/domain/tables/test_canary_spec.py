"""What a canary's policy may say, and how it is refused."""

from typing import Any

import pytest

from domain.errors import InvalidInputError
from domain.strategies.canary_steps import CanarySpec
from tests.support.policies import canary


@pytest.mark.parametrize(
    ("spec", "field", "right"),
    [
        ({"steps": ["5"]}, "steps", 'such as "5%"'),
        ({"steps": ["0%"]}, "steps", 'from "0.01%"'),
        ({"steps": []}, "steps", "at least 1"),
        ({"steps": ["50%", "5%"]}, "", "rising weights"),
        ({"steps": [{"weight": "5%", "seconds": 0}]}, "seconds", "greater than 0"),
        ({"max_surge": 0, "max_unavailable": 1}, "", "stands beside"),
    ],
)
def test_what_a_canary_cannot_be_is_said(spec: dict[str, Any], field: str, right: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        canary(**spec)
    assert field in refused.value.message
    assert right in refused.value.message


def test_left_out_its_steps_are_three_and_the_least_weight_is_one_request_of_ten_thousand() -> None:
    assert CanarySpec().stages == ((500, None), (2500, None), (5000, None))
    assert CanarySpec.model_validate({"steps": ["0.01%"]}).stages == ((1, None),)
