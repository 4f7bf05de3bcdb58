"""Which rollouts of a group may move, as pictures.

■ has moved, ◇ has not, ‖ is paused, ◁ is an undo or on the way back, . does not roll out; in the order of the group,
and asked for from left to right. Below it, + may move and - is held.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.steering.gates import AbsoluteWindow, Freeze, Gate, Group, OpenRollout

NOW = datetime(2026, 3, 14, 12, tzinfo=UTC)
NAMES = "abcdefghij"


def rollout(place: int, mark: str) -> OpenRollout:
    return OpenRollout(
        UUID(int=place),
        NAMES[place],
        NOW + timedelta(seconds=place - 100),
        has_moved=mark == "■",
        is_exit=mark == "◁",
        is_paused=mark == "‖",
    )


def group_of(picture: str, most: int | None, *, in_order: bool = False, freezes: tuple[Freeze, ...] = ()) -> Gate:
    rollouts = tuple(rollout(place, mark) for place, mark in enumerate(picture) if mark != ".")
    return Gate(freezes, Group("shop", tuple(NAMES), most, in_order), rollouts)


def answers(gate: Gate) -> str:
    holds = {rollout.deployment: gate.hold(rollout, NOW) for rollout in gate.rollouts}
    return "".join(" " if name not in holds else "-" if holds[name] else "+" for name in NAMES).rstrip()


@pytest.mark.parametrize(
    ("picture", "most", "expected"),
    [
        ("◇", 1, "+"),
        ("◇◇", 1, "+-"),
        ("■◇", 1, "+-"),
        ("■◇◇", 2, "++-"),
        ("◇◇■", 2, "+-+"),
        ("■■◇", 1, "++-"),
        ("◇◇◇", None, "+++"),
        ("◁◇", 1, "+-"),
        ("◇◁◁", 1, "-++"),
    ],
)
def test_a_group_has_so_many_places_and_who_asked_first_gets_the_next(picture: str, most: int, expected: str) -> None:
    assert answers(group_of(picture, most)) == expected


def test_one_that_is_paused_or_frozen_before_it_has_moved_takes_no_place() -> None:
    assert group_of("‖◇", 1).hold(rollout(1, "◇"), NOW) is None
    freeze = Freeze("f", AbsoluteWindow(NOW, NOW + timedelta(hours=1)), ("a",))
    assert answers(group_of("◇◇", 1, freezes=(freeze,))) == "-+"


def test_of_two_that_were_asked_for_at_once_one_goes() -> None:
    first, second = (OpenRollout(UUID(int=place), NAMES[place], NOW) for place in (0, 1))
    gate = replace(group_of("", 1), rollouts=(first, second))
    assert [gate.hold(asked, NOW) is None for asked in (first, second)] == [True, False]


@pytest.mark.parametrize(
    ("picture", "most", "expected"),
    [
        ("◇◇", None, "+-"),
        (".◇", None, " +"),
        ("■◇", 2, "+-"),
        ("◁◇", 2, "+-"),
        ("◇■", 1, "-+"),
        ("◇■◇", None, "++-"),
    ],
)
def test_in_a_group_with_an_order_each_waits_for_those_before_it(picture: str, most: int, expected: str) -> None:
    assert answers(group_of(picture, most, in_order=True)) == expected


@pytest.mark.parametrize(("pauses", "expected"), [(False, "-+ +"), (True, "-- +")])
def test_a_freeze_holds_what_has_not_moved_and_what_has_if_it_pauses(*, pauses: bool, expected: str) -> None:
    freeze = Freeze("f", AbsoluteWindow(NOW, NOW + timedelta(hours=1)), groups=("shop",), pauses=pauses)
    assert answers(group_of("◇■.◁", None, freezes=(freeze,))) == expected


def test_whom_a_person_let_through_no_freeze_holds() -> None:
    freeze = Freeze("f", AbsoluteWindow(NOW, NOW + timedelta(hours=1)), pauses=True)
    let = OpenRollout(UUID(int=1), "web", NOW, through_freeze=True)
    assert Gate((freeze,)).hold(let, NOW) is None


@pytest.mark.parametrize(
    ("gate", "says"),
    [
        (group_of("■◇", 1), "waits for the rollout of a: group shop has at most 1 at once"),
        (group_of("■◇", 1, in_order=True), "waits for the rollout of a: group shop goes in order"),
        (
            Gate((Freeze("f", AbsoluteWindow(NOW, NOW + timedelta(hours=1)), reason="fair"),)),
            "held by the freeze f (fair) until 2026-03-14 13:00 UTC; then it continues by itself",
        ),
    ],
)
def test_who_is_held_is_told_what_it_waits_for(gate: Gate, says: str) -> None:
    hold = gate.hold(rollout(1, "◇"), NOW)
    assert hold is not None
    assert hold.reason == says
    assert hold.until == NOW + (timedelta(hours=1) if gate.freezes else timedelta(seconds=2))


def test_of_many_that_are_waited_for_three_are_named() -> None:
    for rollouts, named in ((2, "a and b"), (3, "a, b and c"), (5, "a, b, c and 2 more")):
        hold = group_of("■" * rollouts + "◇", 1).hold(rollout(rollouts, "◇"), NOW)
        assert hold is not None
        assert hold.reason == f"waits for the rollout of {named}: group shop has at most 1 at once"


@given(picture=st.text("■◇‖◁.", max_size=10), most=st.integers(1, 4), in_order=st.booleans())
def test_no_more_than_there_are_places_ever_begin_and_somebody_always_may(
    *, picture: str, most: int, in_order: bool
) -> None:
    """Nobody is held for ever: where nothing is under way, somebody who waits may go."""
    gate = group_of(picture, most, in_order=in_order)
    waiting = [rollout for rollout, mark in zip(gate.rollouts, picture.replace(".", ""), strict=True) if mark == "◇"]
    beginning = [rollout for rollout in waiting if gate.hold(rollout, NOW) is None]
    under_way = sum(mark in "■◁" for mark in picture)
    assert len(beginning) <= max(0, most - under_way)
    if waiting and not under_way and not (in_order and "‖" in picture):
        assert beginning
