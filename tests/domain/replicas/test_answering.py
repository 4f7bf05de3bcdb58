"""A sick replica that answers callers, though no probe: not replaced while its answers go on, up to a bound."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment, Route
from domain.model.policy import DeploymentPolicy
from domain.model.states import RouteStatus
from domain.replicas.health import MOST_KEPT, is_answering, kept_until
from domain.strategies.budget import SICK_GRACE_SECONDS, grace_ends_at
from tests.support.pictures.blue_green import AUTO
from tests.support.pictures.pictures import NOW, READY, RECREATE, V1, V2, deploying, resting, rolling_update, routes_of

SECONDS = st.floats(0, 1_000)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def sick(sick_for: float, answered_ago: float | None) -> Route:
    (route,) = routes_of("▲", V1, V2, status_for=sick_for)
    return replace(route, kept_until=None if answered_ago is None else kept_until(ago(sick_for), ago(answered_ago)))


@pytest.mark.parametrize(
    ("sick_for", "answered_ago", "left"),
    [
        (10, None, 20),  # its probes were answered: with 503
        (10, 1, 59),
        (40, 1, 59),
        (70, 61, -1),
        (29, 28, 32),
        (200, 59, 1),
        (200, 60, 0),
        (290, 1, 10),  # up to the bound
        (300, 0, 0),
        (400, 1, -100),
    ],
)
def test_it_is_replaced_so_long_after_its_last_answer(sick_for: float, answered_ago: float | None, left: float) -> None:
    assert grace_ends_at(sick(sick_for, answered_ago)) == NOW + timedelta(seconds=left)


@given(sick_for=SECONDS, answered_ago=SECONDS, later=SECONDS)
def test_an_answer_never_brings_the_end_nearer_nor_beyond_the_bound(
    sick_for: float, answered_ago: float, later: float
) -> None:
    route = sick(sick_for, answered_ago)
    since, ends = route.status_changed_at, grace_ends_at(route)
    assert timedelta(seconds=SICK_GRACE_SECONDS) <= ends - since <= MOST_KEPT
    assert grace_ends_at(sick(sick_for, answered_ago - later)) >= ends


@pytest.mark.parametrize(
    ("drawn", "kept_for", "answers"),
    [("▲", 0.1, True), ("▲", 0, False), ("▲", -1, False), ("▲", None, False), ("■", 60, False), ("△", 60, False)],
)
def test_only_a_sick_one_that_is_kept_for_longer_than_since_it_is_sick_is_called_answering(
    drawn: str, kept_for: float | None, *, answers: bool
) -> None:
    (route,) = routes_of(drawn, V1, V2, status_for=10)
    until = None if kept_for is None else route.status_changed_at + timedelta(seconds=kept_for)
    assert is_answering(replace(route, kept_until=until)) is answers


PICTURES = [(drawn, None) for drawn in ("▲", "■▲", "▲▲■")] + [
    (drawn, policy)
    for drawn in ("■■|▲", "■▲|◇", "▲|■▲", "|▲")
    for policy in (rolling_update(), rolling_update(0, 1), AUTO, RECREATE)
]


@given(drawn=st.sampled_from(PICTURES), sick_for=SECONDS, answered_ago=SECONDS)
def test_it_is_decided_on_as_one_that_was_found_sick_later(
    drawn: tuple[str, DeploymentPolicy | None], sick_for: float, answered_ago: float
) -> None:
    """At rest, and in a rollout of each kind."""
    picture, policy = drawn
    deployment = deploying(picture, 2, policy=policy) if policy else resting(picture, len(picture), READY)
    answering = _with(deployment, sick(sick_for, answered_ago))
    found_later = grace_ends_at(sick(sick_for, answered_ago)) - timedelta(seconds=SICK_GRACE_SECONDS)
    later = _with(deployment, replace(sick(sick_for, None), status_changed_at=found_later))
    mine, its = cycle(answering, NOW), cycle(later, NOW)
    assert (mine.verdict, mine.changes, mine.due_at, mine.to) == (its.verdict, its.changes, its.due_at, its.to)


def test_at_rest_it_stays_and_is_said_to_answer() -> None:
    deployment = _with(resting("■▲", 2, READY), sick(100, 5))
    decision = cycle(deployment, NOW)
    assert not decision.changes
    assert decision.reason.endswith("1 unhealthy, 1 of them answering callers, replaced unless back soon")
    assert decision.due_at == NOW + timedelta(seconds=55)


def _with(deployment: Deployment, as_found: Route) -> Deployment:
    """Its sick replicas found sick then, and answering then."""
    since, until = as_found.status_changed_at, as_found.kept_until
    routes = (
        replace(each, status_changed_at=since, kept_until=until) if each.status is RouteStatus.UNHEALTHY else each
        for each in deployment.routes
    )
    return replace(deployment, routes=tuple(routes))
