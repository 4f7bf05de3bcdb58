"""The short form of `make prove`: every strategy and pacing, two replicas, one misfortune or one command."""

import pytest

from domain.strategies.builtin import STRATEGIES
from tools.prove.film import film
from tools.prove.search import Search, in_a_circle
from tools.prove.starts import SEARCHED, Start, starts
from tools.prove.state import Left


@pytest.mark.parametrize(
    "start", [*starts(2), *(Start(strategy, (), 3) for strategy in SEARCHED)], ids=lambda start: start.name
)
def test_no_law_is_broken_and_a_kind_world_always_comes_to_rest(start: Start) -> None:
    state = start.state(Left(misfortunes=1, commands=1, together=1))
    found = Search(state).run()
    assert found.law is None, film(state, found.path, found.law or "")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_misfortunes_and_commands_at_the_same_time_break_none_either(strategy: str) -> None:
    simplest = (("steps", ("5%",)),) if strategy == "canary" else ()
    state = Start(strategy, simplest, 1).state(Left(misfortunes=1, commands=1, together=2))
    found = Search(state).run()
    assert found.law is None, film(state, found.path, found.law or "")
    assert found.states > 500


ROOMY = (("steps", ("5%",)), ("max_surge", 3))
WIDE = (("steps", ("50%",)), ("max_unavailable", 2), ("replicas", 2))


@pytest.mark.parametrize(
    ("start", "misfortunes"),
    [
        (Start("canary", ROOMY, 1, moved=4, paused=True), 2),
        (Start("canary", WIDE, 2, moved=1, paused=True), 1),
        (Start("canary", WIDE, 2, held=True), 1),
        (Start("rolling_update", (("max_surge", 2),), 2, moved=2, paused=True), 2),
        (Start("blue_green", (), 2, moved=3, paused=True), 2),
        (Start("recreate", (), 2, moved=3, paused=True), 2),
        (Start("rolling_update", (), 1, moved=99), 4),
        (Start("recreate", (), 1, moved=99), 4),
    ],
    ids=lambda start: start.name if isinstance(start, Start) else str(start),
)
def test_nor_does_what_befalls_a_rollout_that_stands_or_has_ended(start: Start, misfortunes: int) -> None:
    state = start.state(Left(misfortunes, 0, misfortunes))
    found = Search(state).run()
    assert found.law is None, film(state, found.path, found.law or "")


@pytest.mark.parametrize(
    ("leads_to", "circle"),
    [([(1,), (2,), ()], None), ([(1, 2), (3,), (3,), ()], None), ([(1,), (2,), (1,)], 1), ([(0,)], 0)],
)
def test_a_circle_is_found(leads_to: list[tuple[int, ...]], circle: int | None) -> None:
    assert in_a_circle(leads_to) == circle
