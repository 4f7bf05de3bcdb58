"""Drawing replicas, and reading the drawings back."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.model.picture import overdue, picture, symbol
from domain.model.states import Lifecycle, RouteStatus, TrafficStatus
from tests.support.pictures.pictures import NOW, V1, V2, V3, routes_of


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        ("■■■|", "■■■|"),
        ("|■■■", "|■■■"),
        ("|", "|"),
        ("◇■|◇■", "■◇|■◇"),
        ("✗◇▲△□■|", "■□△▲◇✗|"),
        ("■~|~■", "■|■"),
    ],
)
def test_a_rollout_is_old_bar_new_with_the_healthiest_first(drawn: str, expected: str) -> None:
    assert picture(routes_of(drawn, V1, V2), V1, V2) == expected


def test_at_rest_there_is_a_bar_only_when_another_revision_is_there() -> None:
    assert picture(routes_of("◇■■", V1, V2), V2, None) == "■■◇"
    assert picture(routes_of("■|◇■", V1, V2), V2, None) == "■|■◇"
    assert picture((), V2, None) == ""


def test_everything_that_is_not_new_is_old() -> None:
    assert picture(routes_of("■|■", V3, V1), V1, V2) == "■■|"


def test_every_status_has_a_symbol_but_those_on_their_way_out() -> None:
    gone = {status for status in RouteStatus if not symbol(status, TrafficStatus.ACTIVE)}
    assert gone == {RouteStatus.TERMINATING, RouteStatus.TERMINATED}
    assert "?" not in {symbol(status, traffic) for status in RouteStatus for traffic in TrafficStatus}


def test_only_a_healthy_one_that_is_out_of_traffic_is_drawn_hollow() -> None:
    assert picture(routes_of("■|□◌◇", V1, V2), V1, V2) == "■|□◇◇"
    assert symbol(RouteStatus.UNHEALTHY, TrafficStatus.INACTIVE) == "▲"


@given(st.text("■□△▲◇✗"), st.text("■□△▲◇✗"))
def test_a_picture_reads_back(old: str, new: str) -> None:
    drawn = picture(routes_of(f"{old}|{new}", V1, V2), V1, V2)
    assert picture(routes_of(drawn, V1, V2), V1, V2) == drawn
    assert sorted(drawn) == sorted(f"{old}|{new}")


@pytest.mark.parametrize(
    ("lifecycle", "seconds", "sentence"),
    [
        (Lifecycle.READY, 14.9, ""),
        (Lifecycle.READY, 15, "due for 15 s, but no worker has looked: do workers and beat run?"),
        (Lifecycle.DEPLOYING, 300, "due for 5 min, but no worker has looked: do workers and beat run?"),
        (Lifecycle.DESTROYED, 300, ""),
        (Lifecycle.READY, -300, ""),
        (Lifecycle.READY, None, ""),
    ],
)
def test_what_has_been_due_for_long_has_no_worker(lifecycle: Lifecycle, seconds: float | None, sentence: str) -> None:
    due_at = None if seconds is None else NOW - timedelta(seconds=seconds)
    assert overdue(lifecycle, due_at, NOW) == sentence
