"""What the news of replicas does: failed starts in a row, failed routes and progress of a rollout, and who is gone."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.model.deployment import Deployment, StartFailures
from domain.model.picture import picture
from domain.model.states import RouteStatus
from domain.replicas.status_reports import StatusChange, StatusChanges, news_of, reported, status_told
from domain.text.errors import InvalidInputError
from tests.support.pictures.pictures import NOW, V1, V2, V3, deploying, resting, route_id

LATER = NOW + timedelta(seconds=40)
HEALTHY, UNHEALTHY, FAILED = RouteStatus.HEALTHY, RouteStatus.UNHEALTHY, RouteStatus.FAILED
TWICE = StartFailures(V2, 2, NOW)
CAME_UP = replace(TWICE, came_up_at=LATER)
CAME_UP_39_S_AGO = replace(TWICE, came_up_at=LATER - timedelta(seconds=39))
CAME_UP_A_MINUTE_AGO = replace(TWICE, came_up_at=LATER - timedelta(seconds=60), short_lives=3)


def news(deployment: Deployment, found: dict[int, RouteStatus], **how: Any) -> Deployment:
    """Found: the n-th route of the picture, from 0, in this status."""
    statuses = {route_id(number): status for number, status in found.items()}
    return reported(deployment, statuses, LATER, **how)


def drawn(deployment: Deployment) -> str:
    return picture(deployment.routes, deployment.current_revision_id, deployment.deploying_revision_id)


@pytest.mark.parametrize(
    ("before", "found", "after", "failed_routes", "progress", "failures"),
    [
        ("■■|◇◇", {2: HEALTHY}, "■■|■◇", 0, LATER, None),
        ("■■|◇◇", {2: FAILED}, "■■|◇", 1, NOW, StartFailures(V2, 1, LATER)),
        ("■■|◇◇", {2: FAILED, 3: FAILED}, "■■|", 2, NOW, StartFailures(V2, 2, LATER)),
        ("■■|◇◇", {2: FAILED, 3: HEALTHY}, "■■|■", 1, LATER, StartFailures(V2, 1, LATER)),
        ("■■|■■", {2: UNHEALTHY}, "■■|■▲", 0, NOW, None),
        ("■■|◇◇", {0: FAILED}, "■|◇◇", 0, NOW, StartFailures(V1, 1, LATER)),
        ("▲■|◇◇", {0: HEALTHY}, "■■|◇◇", 0, NOW, None),
        ("■■|◇◇", {0: FAILED, 2: FAILED, 3: FAILED}, "■|", 2, NOW, StartFailures(V2, 2, LATER)),
        ("■■|◇◇", {0: FAILED, 2: FAILED}, "■|◇", 1, NOW, StartFailures(V2, 1, LATER)),
        ("■■|◇◇", {0: FAILED, 1: FAILED, 2: FAILED}, "|◇", 1, NOW, StartFailures(V1, 2, LATER)),
    ],
)
def test_in_a_rollout(
    before: str, found: dict[int, RouteStatus], after: str, failed_routes: int, progress: Any, failures: Any
) -> None:
    was = deploying(before)
    now = news(was, found)
    assert now.rollout is not None
    assert (drawn(now), now.rollout.failed_routes, now.rollout.last_progress_at) == (after, failed_routes, progress)
    assert now.start_failures == failures
    assert now.version == was.version + 1
    assert now == replace(was, version=now.version, routes=now.routes, start_failures=failures, rollout=now.rollout)


@pytest.mark.parametrize(
    ("before", "found", "known", "failures"),
    [
        ("◇", {0: FAILED}, None, StartFailures(V2, 1, LATER)),
        ("◇", {0: FAILED}, TWICE, StartFailures(V2, 3, LATER)),
        ("◇", {0: FAILED}, StartFailures(V3, 2, NOW), StartFailures(V2, 1, LATER)),
        ("◇", {0: HEALTHY}, TWICE, CAME_UP),
        ("◇", {0: HEALTHY}, CAME_UP, CAME_UP),
        ("■", {0: FAILED}, CAME_UP_39_S_AGO, StartFailures(V2, 3, LATER, short_lives=1)),
        ("■", {0: FAILED}, replace(CAME_UP_39_S_AGO, short_lives=4), StartFailures(V2, 3, LATER, short_lives=5)),
        ("■■", {0: FAILED, 1: FAILED}, CAME_UP_39_S_AGO, StartFailures(V2, 4, LATER, short_lives=1)),
        ("■", {0: FAILED}, CAME_UP_A_MINUTE_AGO, StartFailures(V2, 1, LATER)),
        ("◇", {0: HEALTHY}, StartFailures(V3, 2, NOW), StartFailures(V3, 2, NOW)),
        ("■", {0: UNHEALTHY}, TWICE, TWICE),
        ("◇◇", {0: HEALTHY, 1: FAILED}, TWICE, StartFailures(V2, 3, LATER)),
        ("◇|■", {0: FAILED, 1: UNHEALTHY}, TWICE, StartFailures(V1, 1, LATER)),
        ("▲|◇", {0: HEALTHY, 1: UNHEALTHY}, TWICE, TWICE),
    ],
)
def test_starts_that_fail_in_a_row_are_those_of_one_revision_and_a_minute_of_health_ends_them(
    before: str, found: dict[int, RouteStatus], known: StartFailures | None, failures: StartFailures | None
) -> None:
    assert news(resting(before, start_failures=known), found).start_failures == failures


def test_what_fails_with_its_host_is_gone_and_no_revision_is_to_blame() -> None:
    now = news(deploying("■■|◇◇", start_failures=TWICE), {1: FAILED, 2: FAILED}, blame=False)
    assert drawn(now) == "■|◇"
    assert now.rollout is not None
    assert (now.rollout.failed_routes, now.start_failures) == (0, TWICE)


@pytest.mark.parametrize("found", [{}, {0: HEALTHY}, {2: FAILED}, {7: FAILED}])
def test_no_news_changes_nothing_and_what_is_on_its_way_out_stays_so(found: dict[int, RouteStatus]) -> None:
    deployment = deploying("■■~|◇")
    assert news(deployment, found) is deployment


def test_a_route_has_its_new_status_from_now_on_and_the_others_keep_theirs() -> None:
    first, second = news(deploying("■|◇"), {1: HEALTHY}).routes
    assert (first.status_changed_at, second.status_changed_at) == (NOW - timedelta(hours=1), LATER)


@pytest.mark.parametrize(
    ("word", "status"), [("healthy", HEALTHY), ("unhealthy", UNHEALTHY), ("failed", FAILED), ("stopped", FAILED)]
)
def test_the_word_of_another_system_is_a_status(word: str, status: RouteStatus) -> None:
    assert status_told(word, "external", "10.0.0.1:80") is status


@pytest.mark.parametrize("word", ["healthy", "unhealthy"])
@pytest.mark.parametrize("address", [None, ""])
def test_a_replica_that_runs_has_an_address_and_one_that_ended_needs_none(word: str, address: str | None) -> None:
    with pytest.raises(InvalidInputError, match="address is needed") as refused:
        status_told(word, "external", address)
    assert refused.value.detail == {"field": "address"}
    assert status_told("stopped", "external", address) is FAILED


@pytest.mark.parametrize("runtime", ["process", "docker"])
@pytest.mark.parametrize("word", ["healthy", "stopped"])
def test_what_rollway_runs_itself_nobody_else_reports(runtime: str, word: str) -> None:
    with pytest.raises(InvalidInputError, match=f"runtime '{runtime}' is looked after by Rollway itself"):
        status_told(word, runtime, "10.0.0.1:80")


@pytest.mark.parametrize(
    ("found", "how", "remembered"),
    [
        ({2: FAILED}, {}, "no such file"),
        ({2: UNHEALTHY}, {}, "no such file"),
        ({2: HEALTHY}, {}, "before"),
        ({0: FAILED}, {}, "before"),
        ({2: FAILED}, {"blame": False}, "before"),
    ],
)
def test_a_rollout_remembers_why_a_new_replica_failed_last(
    found: dict[int, RouteStatus], how: dict[str, bool], remembered: str
) -> None:
    before = deploying("■■|◇◇", rollout={"last_failure": "before"})
    rollout = news(before, found, why="no such file", **how).rollout
    assert rollout is not None
    assert rollout.last_failure == remembered


def test_a_failure_is_remembered_before_a_sickness_of_the_same_revision() -> None:
    failed = StatusChange(V2, HEALTHY, FAILED, "exit code 2")
    sick = StatusChange(V2, HEALTHY, UNHEALTHY, "GET /health answered 500")
    for became in ([failed, sick], [sick, failed]):
        assert news_of(became) == (StatusChanges(V2, failed=1, last_failure="exit code 2"),)


def test_a_replica_that_was_kept_while_its_host_was_silent_is_kept_no_longer() -> None:
    silent = resting("▲■")
    kept = replace(silent, routes=(replace(silent.routes[0], kept_until=LATER), silent.routes[1]))
    assert news(kept, {0: HEALTHY}).routes[0].kept_until is None
