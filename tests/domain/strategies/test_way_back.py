"""Where an undo at rest goes: with which size, and what it says where it goes nowhere."""

from dataclasses import replace

import pytest

from domain.model.states import DeploymentLifecycleStatus
from domain.steering.rollout_history import way_back
from domain.text.errors import RollwayError, WrongStateError
from tests.domain.steering.test_undo import at_rest, ended
from tests.support.pictures.pictures import DESTROYED, DESTROYING, NOW


def test_a_size_that_came_with_the_revision_goes_with_it_unless_somebody_has_scaled_since() -> None:
    (completed,) = ended("v1→v2")
    grown = replace(completed, size_with_revision=5)
    assert way_back(at_rest("■■■■■", n=5), [grown], NOW).desired == 3
    assert way_back(at_rest("■■■■", n=4), [grown], NOW).desired is None
    assert way_back(at_rest("■■■"), [completed], NOW).desired is None
    before, left = ended("v0→v2 v2→v3")
    assert way_back(at_rest(), [before, replace(left, size_with_revision=3)], NOW).desired is None, "v2 runs"


@pytest.mark.parametrize(
    ("past", "detail", "said"),
    [
        ("", {"deployment": "web"}, "name the revision to go back to"),
        (
            "v1→v2 v2⇄v1",
            {"deployment": "web", "rolled_back": "v1"},
            "'rollway undo web --to v1' goes there anyway",
        ),
        (
            "v1→v2 v2✗v3",
            {"deployment": "web", "undone": "v3", "current": "v2", "further": "v1"},
            "is undone already, and web runs v2; 'rollway undo web --to v1' goes further back",
        ),
        ("v2✗v3", {"deployment": "web", "undone": "v3", "current": "v2", "further": ""}, "and web runs v2"),
    ],
)
def test_a_refusal_names_the_command_that_goes_further(past: str, detail: dict[str, str], said: str) -> None:
    with pytest.raises(RollwayError) as refused:
        way_back(at_rest(), ended(past), NOW)
    assert refused.value.detail == detail
    assert refused.value.message.endswith(said)


@pytest.mark.parametrize("status", [DESTROYING, DESTROYED], ids=str)
def test_what_leaves_goes_nowhere(status: DeploymentLifecycleStatus) -> None:
    with pytest.raises(WrongStateError, match=f"web is {status}"):
        way_back(at_rest(status=status), ended("v1→v2"), NOW)
