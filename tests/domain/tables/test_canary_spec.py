"""What a canary's policy may say, and how it is refused."""

from typing import Any

import pytest

from domain.errors import InvalidInputError
from tests.support.policies import canary


@pytest.mark.parametrize(
    ("spec", "field", "right"),
    [
        ({"steps": ["5"]}, "steps", 'such as "5%"'),
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
