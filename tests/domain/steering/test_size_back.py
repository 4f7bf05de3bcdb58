"""The size that an undo takes back: the one that came with the revision it leaves, and no other."""

from dataclasses import replace

import pytest

from domain.model.deployment import Deployment
from domain.model.states import RolloutOutcome
from domain.steering.rollout_history import EndedRollout, KnownRevision, size_back, way_back
from tests.support.pictures.pictures import NOW, READY, V1, V2, V3, deploying, resting

OLD, NEW = KnownRevision(V1, "v1", "a"), KnownRevision(V2, "v2", "b")
GREW = EndedRollout(OLD, NEW, RolloutOutcome.COMPLETED, NOW, is_undo=False, size_before=3, size_with_revision=5)
AT_FIVE = resting("■■■■■", 5, status=READY)


@pytest.mark.parametrize(
    ("deployment", "last", "size"),
    [
        (AT_FIVE, GREW, 3),
        (AT_FIVE, replace(GREW, size_with_revision=None), None),
        (resting("■■■■■■■", 7, status=READY), GREW, None),  # a person has scaled since
        (resting("■■■■■", 5, status=READY, current_revision_id=V3), GREW, None),  # left without a rollout
        (AT_FIVE, replace(GREW, outcome=RolloutOutcome.ROLLED_BACK), None),  # its size went with it
    ],
)
def test_an_undo_to_a_name_takes_back_the_size_that_came_with_what_it_leaves(
    deployment: Deployment, last: EndedRollout, size: int | None
) -> None:
    assert size_back(deployment, "v1", [last]) == size


def test_only_the_last_rollout_had_a_size_to_take_back_and_only_to_where_it_came_from() -> None:
    third = KnownRevision(V3, "v3", "c")
    later = replace(GREW, from_revision=third, size_before=4)
    assert size_back(AT_FIVE, "v3", [GREW, later]) == 4
    assert size_back(AT_FIVE, "v3", [GREW]) is None
    assert size_back(AT_FIVE, "v1", [GREW, later]) is None
    assert size_back(AT_FIVE, "v1", []) is None


def test_in_a_rollout_its_own_size_is_taken_back_and_none_of_the_one_before() -> None:
    assert size_back(deploying("■■■■■|", 5, current_revision_id=V2, deploying_revision_id=V3), "v1", [GREW]) is None


@pytest.mark.parametrize(("wanted", "size"), [(5, 3), (6, None)])
def test_an_undo_without_a_name_takes_back_the_same_size(wanted: int, size: int | None) -> None:
    back = way_back(resting("■■■■■", wanted, status=READY), [GREW], NOW)
    assert (back.revision, back.desired) == (OLD, size)
