"""Recorded steps at their edges: which budget counted what, who was waited for, and who came up last."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.model.decision import RouteChanges, RouteCreatorSpec
from domain.model.deployment import Deployment, Route
from domain.model.policy import DeploymentPolicy
from domain.model.states import RouteStatus, TrafficStatus
from domain.planning.plan_input import Subject
from domain.planning.recorded_rollout import RecordedAct, RecordedStep, deviations, extremes, waits, waves
from domain.planning.replica_timings import Span, Timings
from domain.planning.rollout_plan import Plan, plan
from tests.support.pictures.pictures import NOW, V2, deploying, rolling_update, route_id
from tests.support.worlds.recorded import steps_of

COUNTING, NOT_COUNTING = rolling_update(1, 1, count_stopping=True), rolling_update(1, 1)


def step_of(deployment: Deployment, **changes: Any) -> RecordedStep:
    """A step that decided these changes, whatever a strategy would have done."""
    (first, *_) = steps_of(deploying("■■■|"))
    return replace(first, deployment=deployment, changes=RouteChanges(**changes))


@pytest.mark.parametrize(
    ("drawn", "policy", "created", "is_kept"),
    [
        ("■■|■~", NOT_COUNTING, 1, True),  # 4 live of at most 4; one that stops counts for nothing
        ("■■|■~", COUNTING, 1, False),
        ("■■|■", COUNTING, 1, True),
        ("■■|■■", NOT_COUNTING, 1, False),
        ("■■■|■■", NOT_COUNTING, 0, True),  # more than fit, but none of them is from this step
    ],
)
def test_a_ceiling_is_kept_by_what_creates_and_counts_what_stops_where_its_policy_does(
    drawn: str, policy: DeploymentPolicy, created: int, *, is_kept: bool
) -> None:
    step = step_of(deploying(drawn, policy=policy), rollout_specs=(RouteCreatorSpec(V2, created),))
    measured = extremes([step])
    assert measured is not None
    assert measured.is_ceiling_kept is is_kept


@pytest.mark.parametrize(
    ("drawn", "drained", "is_kept"),
    [
        ("■■■|", 1, True),  # 2 of 3 stay, as many as must
        ("■■■|", 2, False),
        ("■◇◇|", 0, True),  # too few serve, but nothing of ours took any
        ("■◇◇|", 1, False),
    ],
)
def test_a_floor_is_kept_by_what_drains_no_matter_what_died_before(drawn: str, drained: int, *, is_kept: bool) -> None:
    step = step_of(deploying(drawn), drain_route_ids=tuple(map(route_id, range(drained))))
    measured = extremes([step])
    assert measured is not None
    assert measured.is_floor_kept is is_kept


def test_the_highest_and_lowest_counts_are_those_before_and_after_all_steps() -> None:
    up = step_of(deploying("■■■|~~"), rollout_specs=(RouteCreatorSpec(V2, 2),))
    down = step_of(deploying("■■■|◇"), drain_route_ids=(route_id(0), route_id(1)))
    measured = extremes([up, down])
    assert measured is not None
    assert (measured.most_live, measured.most_stopping, measured.most_live_and_stopping) == (5, 2, 7)
    assert measured.fewest_serving == 1


@pytest.mark.parametrize(("after", "waits_for"), [(0, "route"), (0.1, "person"), (1, "person"), (1.1, "route")])
@pytest.mark.parametrize("what", ["pause", "resume", "promote"])
def test_a_person_was_waited_for_who_acted_after_a_step_and_by_the_next_one(
    what: str, after: float, waits_for: str
) -> None:
    first, second, *_ = steps_of(deploying("■■■|"))
    act = RecordedAct(first.at + timedelta(seconds=after), "bob", what, "")
    (wait,) = waits([first, second], [act])
    assert wait["waits_for"] == waits_for
    assert wait["blocked_by"] is not None


def test_the_last_wave_of_a_rollout_under_way_has_taken_no_time_yet() -> None:
    first, second, *_ = steps_of(deploying("■■■|"))
    assert [wave["took_seconds"] for wave in waves([first, second], None)] == [1.0, None]
    assert waves([], None) == []


def test_a_sleeper_that_wakes_is_shown_as_one_that_is_created() -> None:
    woken = ((route_id(0), TrafficStatus.ACTIVE), (route_id(1), TrafficStatus.ACTIVE))
    step = step_of(deploying("■■■|"), rollout_specs=(RouteCreatorSpec(V2, 1),), woken=woken)
    (wave,) = waves([step], None)
    assert wave["create"] == 3
    assert next(deviations(planned(), [step])) == "wave 1 did create 3, planned create 1, drain 1"


def planned(takes: float = 1.0) -> Plan:
    foreseen = plan(Subject(deploying("■■■|")), NOW, Timings(starts=(1.0,), stops=(1.0,)), lambda: 0.5)
    span = Span(takes, takes)
    return replace(foreseen, waves=tuple(replace(wave, takes=span) for wave in foreseen.waves))


@pytest.mark.parametrize(
    ("takes", "took", "is_slow"), [(0.1, 1.5, False), (0.1, 1.6, True), (2.0, 3.0, False), (2.0, 3.1, True)]
)
def test_a_wave_is_slow_from_half_as_long_again_and_never_below_a_second_and_a_half(
    takes: float, took: float, *, is_slow: bool
) -> None:
    first, second, *_ = steps_of(deploying("■■■|"))
    late = replace(second, at=first.at + timedelta(seconds=took))
    assert bool(list(deviations(planned(takes), [first, late]))) is is_slow


def test_where_nothing_is_learned_no_wave_is_slow() -> None:
    foreseen = planned()
    unknown = replace(foreseen, waves=tuple(replace(wave, takes=None) for wave in foreseen.waves))
    first, second, *_ = steps_of(deploying("■■■|"))
    assert list(deviations(unknown, [first, replace(second, at=first.at + timedelta(hours=1))])) == []


def test_of_those_that_came_up_in_a_wave_the_last_one_is_named() -> None:
    first, second, *_ = steps_of(deploying("■■■|"))

    def came(number: int, created: float, healthy: float, status: RouteStatus = RouteStatus.HEALTHY) -> Route:
        route = second.deployment.routes[0]
        times = [first.at + timedelta(seconds=seconds) for seconds in (created, healthy)]
        return replace(route, id=route_id(number), status=status, created_at=times[0], status_changed_at=times[1])

    routes = (
        came(1, 0, 20),  # created with the step itself
        came(2, 5, 30),
        came(3, -1, 39),  # from before
        came(4, 5, 39, RouteStatus.UNHEALTHY),
    )
    late = replace(second, at=first.at + timedelta(seconds=40), deployment=replace(second.deployment, routes=routes))
    assert list(deviations(planned(), [first, late])) == [
        "wave 1 took 40 s, planned 1.0 s: route 00000003 started slowly"
    ]
    none = replace(late, deployment=replace(second.deployment, routes=routes[2:]))
    assert list(deviations(planned(), [first, none])) == ["wave 1 took 40 s, planned 1.0 s"]
    alone = replace(late, deployment=replace(second.deployment, routes=routes[:1]))
    assert list(deviations(planned(), [first, alone])) == [
        "wave 1 took 40 s, planned 1.0 s: route 00000002 started slowly"
    ]
