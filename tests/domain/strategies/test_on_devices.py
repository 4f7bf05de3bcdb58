"""A decision within the devices that are free: what of it stays, who leaves instead, and what it waits for."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.devices.room import DeviceRoom
from domain.model.decision import Decision, RouteChanges, Waits, WaitsFor
from domain.model.deployment import Deployment
from domain.model.states import RouteStatus, TrafficStatus, Verdict
from domain.strategies.budget import Budget
from domain.strategies.in_place import (
    free_devices,
    kept_in_place,
    widest,
    with_devices,
    within_devices,
    within_room,
)
from tests.support.pictures.pictures import (
    NOW,
    PROVISIONING,
    ROLLING_BACK,
    V1,
    V2,
    V3,
    deploying,
    drawn_changes,
    resting,
    rolling_update,
    route_id,
)

SHORT = "a GPU: 2 of 2 in use"
CREATE = RouteChanges.create


def room(free: int | Mapping[UUID, int] = 0, **more: Any) -> DeviceRoom:
    counts = {V1: free, V2: free} if isinstance(free, int) else free
    return DeviceRoom(counts, **{"shortage": dict.fromkeys(counts, SHORT), **more})


def ids(*numbers: int) -> tuple[UUID, ...]:
    return tuple(map(route_id, numbers))


def drain(*numbers: int) -> RouteChanges:
    return RouteChanges.drain(ids(*numbers))


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def decided(
    deployment: Deployment,
    changes: RouteChanges,
    its_room: DeviceRoom,
    *,
    recheck_at: datetime | None = None,
    stopped: bool = False,
) -> Decision:
    """What is left of these changes."""
    decision = replace(Decision.moved("a step", changes, recheck_at), clock_stopped=stopped)
    return within_devices(decision, replace(deployment, devices=its_room), NOW)


@pytest.mark.parametrize(
    ("budget", "goes_back", "keep"),
    [
        (Budget(4, 5, 3, keep_in_place=2), False, 2),
        (Budget(4, 5, 3, keep_in_place=2), True, 2),
        (Budget(4, 5, 4, keep_in_place=4), False, 4),
        (Budget(4, 5, 4, keep_in_place=4), True, 3),  # one may always be missing
        (Budget(4, 5, 4), False, 4),
        (Budget(4, 5, 4), True, 3),
        (Budget(1, 2, 1, keep_in_place=0), False, 0),
        (Budget(1, 2, 1, keep_in_place=1), True, 0),
        (Budget(0, 1, 0), True, 0),
    ],
)
def test_how_many_serve_where_no_device_is_free(budget: Budget, *, goes_back: bool, keep: int) -> None:
    assert kept_in_place(budget, goes_back=goes_back) == keep


def test_the_widest_bounds_of_a_deployment_on_devices_are_those_of_its_way_back() -> None:
    bounds, on_devices = Budget(4, 5, 4, keep_in_place=4), deploying("■■|", devices=room())
    assert widest(bounds, on_devices) == replace(bounds, keep=3)
    assert widest(bounds, deploying("■■|")) == bounds
    assert widest(replace(bounds, keep_in_place=None), on_devices) == replace(bounds, keep_in_place=None)


@pytest.mark.parametrize(
    ("deployment", "free"),
    [
        (deploying("■|", devices=room({V1: 1, V2: 2})), 2),
        (deploying("■|", devices=room({V1: 1, V2: 2}), status=ROLLING_BACK), 1),
        (resting("■", devices=room({V1: 1, V2: 2})), 2),
        (resting("■", devices=room({V1: 1})), None),
        (resting("■", devices=room({V1: 1}), current_revision_id=None), None),
        (resting("■"), None),
    ],
)
def test_devices_are_counted_for_the_revision_that_is_gone_to(deployment: Deployment, free: int | None) -> None:
    assert free_devices(deployment) == free


@pytest.mark.parametrize(
    ("picture", "surge", "unavailable", "free", "ceiling", "keep"),
    [
        ("■■■■|", 1, 1, 0, 4, 3),  # in place
        ("■■■■|", 1, 0, 0, 5, 4),  # nothing moves until a device is free
        ("■■■■|", 1, 0, 1, 5, 4),
        ("■■■■|", 1, 1, 1, 5, 3),
        ("■■■■|", 1, 1, 9, 5, 3),
        ("■■■|◇◇", 1, 1, 0, 5, 3),
        ("■■|", 1, 1, 1, 4, 3),  # at least n
        ("■■■~|■", 1, 1, 0, 4, 3),  # what stops holds a device, but counts for no place
    ],
)
def test_the_ceiling_is_as_many_as_find_devices(
    picture: str, surge: int, unavailable: int, free: int, ceiling: int, keep: int
) -> None:
    deployment = deploying(picture, 4, surge, unavailable, devices=room(free))
    budget = Budget(4, 4 + surge, 4 - unavailable, keep_in_place=4 - unavailable)
    found = within_room(budget, deployment)
    assert (found.ceiling, found.keep) == (ceiling, keep)


def test_what_stops_takes_up_room_where_it_is_counted_and_who_sleeps_none() -> None:
    deployment = deploying("■■~~|■", 3, devices=room(1))
    budget = Budget(3, 9, 2, keep_in_place=2)
    assert within_room(budget, deployment).ceiling == 4
    assert within_room(replace(budget, count_stopping=True), deployment).ceiling == 6
    asleep = replace(deployment, routes=tuple(replace(r, has_lent=r.id == route_id(0)) for r in deployment.routes))
    assert within_room(replace(budget, desired=1), asleep).ceiling == 3
    assert within_room(replace(budget, keep_in_place=None), deployment).ceiling == 9
    assert within_room(budget, replace(deployment, devices=room({V1: 1}))).ceiling == 9


def test_on_the_way_back_one_may_be_missing_for_the_device_of_a_bad_one() -> None:
    budget = Budget(4, 5, 4, keep_in_place=4)
    back = deploying("■■■|■", 4, devices=room(0), status=ROLLING_BACK)
    assert within_room(budget, back) == replace(budget, ceiling=4, keep=3)
    assert within_room(budget, replace(back, status=PROVISIONING)) == budget


@pytest.mark.parametrize(
    ("picture", "n", "free", "stays"),
    [
        ("▣■", 2, 0, True),  # no device of another host is free
        ("▣■~", 2, 0, True),
        ("▣■", 2, 1, False),
        ("▣■", 1, 0, False),  # others are there for it
        ("▣■◇", 3, 0, False),  # or come
    ],
)
def test_one_on_a_drained_host_stays_where_no_other_has_a_device(
    picture: str, n: int, free: int, *, stays: bool
) -> None:
    deployment = with_devices(resting(picture, n), room(free))
    assert [route.is_misplaced for route in deployment.routes] == [not stays, *[False] * (len(picture) - 1)]
    assert deployment.devices == room(free)


def test_only_replicas_of_the_revision_without_a_device_stay_and_sleepers_are_none_that_come() -> None:
    deployment = with_devices(deploying("▣|▣■"), room({V1: 0, V2: 1}))
    assert [route.is_misplaced for route in deployment.routes] == [False, True, False]
    asleep = with_devices(resting("▣■◇", 2), room(0, lent={route_id(2): False}))
    assert [route.has_lent for route in asleep.routes] == [False, False, True]
    assert not any(route.is_misplaced for route in asleep.routes)


def test_without_devices_a_decision_stays_as_it_is() -> None:
    decision = Decision.moved("a step", CREATE(V2, 3) + drain(0), None)
    assert within_devices(decision, deploying("■|"), NOW) is decision


@pytest.mark.parametrize(
    ("changes", "free", "counts", "unplaced"),
    [
        (CREATE(V2, 2), {V2: 2}, {V2: 2}, 0),
        (CREATE(V2, 3), {V2: 2}, {V2: 2}, 1),
        (CREATE(V2, 3), {V2: 0}, {}, 3),
        (CREATE(V2, 3), {V1: 0}, {V2: 3}, 0),  # it needs no devices
        (CREATE(V1, 2) + CREATE(V2, 3), {V1: 3, V2: 3}, {V1: 2, V2: 1}, 2),
        (CREATE(V3, 2) + CREATE(V2, 3), {V1: 3, V2: 3}, {V3: 2, V2: 3}, 0),
        (CREATE(V3, 2) + CREATE(V2, 3), {V2: 2}, {V3: 2, V2: 2}, 1),
        (CREATE(V1, 4) + CREATE(V2, 3), {V1: 3, V2: 3}, {V1: 3}, 1),  # the first that lacks some is named
        (CREATE(V1, 3) + CREATE(V2, 3), {V1: 3, V2: 1}, {V1: 3}, 3),
    ],
)
def test_only_those_are_created_that_find_devices(
    changes: RouteChanges, free: dict[UUID, int], counts: dict[UUID, int], unplaced: int
) -> None:
    deployment = deploying("■■■|◇")  # so that one that waits is no longer alone
    found = decided(deployment, changes + drain(0), room(free))
    assert {spec.revision_id: spec.count for spec in found.changes.rollout_specs} == counts
    what = f"{unplaced} replica{'s' if unplaced > 1 else ''} more finds no devices; {SHORT}"
    assert found.reason == (f"a step; {what}" if unplaced else "a step")


@pytest.mark.parametrize(
    ("deployment", "kind", "words"),
    [
        (resting("■"), WaitsFor.ROUTE, f"1 of 3 ready; needs {SHORT}"),
        (resting("■"), WaitsFor.TIME, f"1 of 3 ready; needs {SHORT}"),
        (resting("■"), WaitsFor.PERSON, "1 of 3 ready"),
        (resting("■◇"), WaitsFor.ROUTE, "1 of 3 ready"),
        (resting("◇|■"), WaitsFor.ROUTE, f"1 of 3 ready; needs {SHORT}"),
        (resting("■■■"), WaitsFor.ROUTE, "1 of 3 ready"),
        (resting("■■~"), WaitsFor.ROUTE, f"1 of 3 ready; needs {SHORT}"),
        (deploying("■■■|■■"), WaitsFor.ROUTE, f"1 of 3 ready; needs {SHORT}"),
        (resting("■", current_revision_id=None), WaitsFor.ROUTE, "1 of 3 ready"),
    ],
)
def test_a_wait_that_lacks_replicas_names_the_shortage(deployment: Deployment, kind: WaitsFor, words: str) -> None:
    decision = Decision.wait(Waits(kind, "1 of 3 ready"))
    found = within_devices(decision, replace(deployment, devices=room(0)), NOW)
    assert found.waits
    assert (found.waits.kind, found.waits.words) == (kind, words)


def test_a_wait_names_no_shortage_where_a_device_is_free_nobody_knows_why_or_the_missing_one_sleeps() -> None:
    decision = Decision.wait(Waits(WaitsFor.ROUTE, "1 of 3 ready"))
    for its_room in (room(1), room(0, shortage={}), room(0, shortage={V2: ""})):
        assert within_devices(decision, resting("■", devices=its_room), NOW) is decision
    asleep = with_devices(resting("■■◌"), room(0, lent={route_id(2): False}))
    found = within_devices(decision, asleep, NOW)
    assert found.waits
    assert found.waits.words.endswith(f"; needs {SHORT}")
    done = Decision.success("done")
    assert within_devices(done, resting("■", devices=room(0)), NOW) is done


@pytest.mark.parametrize(
    ("drained", "turns", "leave"),
    [
        ((0,), (), (0,)),
        ((0,), (1, 0, 2), (1,)),
        ((0, 1), (2, 1, 0), (2, 1)),
        ((0, 1), (2, 0), (1, 2)),  # one without a turn leaves as it was to
        ((4,), (3, 4, 0), (3,)),  # of its own revision
        ((0, 4), (3, 4, 1, 0), (1, 3)),
        ((5, 0), (1, 0, 5), (5, 1)),  # a sick one leaves in any case
        ((6,), (0, 6), (6,)),  # one on a drained host too
    ],
)
def test_where_devices_are_short_those_leave_that_make_room_the_soonest(
    drained: tuple[int, ...], turns: tuple[int, ...], leave: tuple[int, ...]
) -> None:
    deployment = deploying("■■■|■■▲▣")
    deployment = replace(
        deployment,
        routes=tuple(replace(r, revision_id=V1) if r.id in ids(5, 6) else r for r in deployment.routes),
    )
    assert decided(deployment, drain(*drained), room(0, turns=ids(*turns))).changes.drain_route_ids == ids(*leave)
    assert decided(deployment, drain(*drained), room(1, turns=ids(*turns))).changes.drain_route_ids == ids(*drained)
    some = room({V1: 0, V2: 1}, turns=ids(*turns))
    assert decided(deployment, drain(*drained), some).changes.drain_route_ids == ids(*leave)
    unplaced = CREATE(V2, 2) + drain(*drained)
    assert decided(deployment, unplaced, room(1, turns=ids(*turns))).changes.drain_route_ids == ids(*leave)


SLEEPY = rolling_update(1, 1, sleep_seconds=600)


@pytest.mark.parametrize(
    ("deployment", "parked"),
    [
        (deploying("■■■|■", policy=SLEEPY), True),
        (deploying("■■■|■", policy=rolling_update(1, 1)), False),
        (deploying("■■■|■", policy=SLEEPY, status=ROLLING_BACK), False),
        (deploying("■■■|■", policy=SLEEPY, paused_at=NOW), False),
        (deploying("■■■|■", 0, policy=SLEEPY), False),
        (deploying("▣■■|■", policy=SLEEPY), False),
        (deploying("▲■■|■", policy=SLEEPY), False),
        (resting("■■■|■"), False),
    ],
)
def test_old_ones_sleep_instead_of_stopping_while_the_rollout_goes_on(deployment: Deployment, *, parked: bool) -> None:
    found = decided(deployment, drain(0, 3), room(1, sleepers=(V1, V2)))
    assert found.changes == (
        RouteChanges(drain_route_ids=ids(3), park_route_ids=ids(0), park_until=after(600)) if parked else drain(0, 3)
    )
    assert found.reason == ("a step; 1 of them parked, to sleep" if parked else "a step")
    assert decided(deployment, drain(0, 3), room(1, sleepers=(V2,))).changes == drain(0, 3)
    further = RouteChanges.park(ids(1), after(60)) + drain(0)
    assert ("1 of them parked" in decided(deployment, further, room(1, sleepers=(V1,))).reason) is parked


@pytest.mark.parametrize(
    ("free_ones", "drained", "woken", "created"),
    [
        ((1,), (), (1,), 1),
        ((1, 2), (), (1, 2), 0),
        ((), (), (), 2),
        ((1, 2), (1,), (2,), 1),
        ((3,), (), (), 2),
        ((4,), (), (), 2),
        ((5,), (), (), 2),
    ],
)
def test_sleepers_of_the_same_revision_wake_in_place_of_new_ones(
    free_ones: tuple[int, ...], drained: tuple[int, ...], woken: tuple[int, ...], created: int
) -> None:
    """Of v2 two sleep, one that is on a drained host, and one that is stopped; of v1 another one does."""
    deployment = deploying("■◌|◌◈", 4)
    routes = list(deployment.routes)
    routes[1] = replace(routes[1], revision_id=V2)
    routes.append(replace(routes[1], id=route_id(4), revision_id=V1))
    routes.append(replace(routes[1], id=route_id(5), status=RouteStatus.TERMINATING))
    lent = {route_id(number): number in free_ones for number in range(1, 6)}
    asleep = with_devices(replace(deployment, routes=tuple(routes)), room(2, lent=lent))
    changes = CREATE(V2, 2, TrafficStatus.INACTIVE) + (drain(*drained) if drained else RouteChanges())
    found = within_devices(Decision.moved("a step", changes, None), asleep, NOW)
    assert found.changes.woken == tuple((id_, TrafficStatus.INACTIVE) for id_ in ids(*woken))
    assert [spec.count for spec in found.changes.rollout_specs] == ([created] if created else [])
    assert found.reason == (f"a step; {len(woken)} of them by waking a sleeping one" if woken else "a step")


def parked(picture: str, for_seconds: float = 600, **how: Any) -> Deployment:
    """On the way to v2; the replicas left of the bar are parked, and those of v1 can sleep."""
    deployment = deploying(picture, **how)
    routes = (
        replace(r, parked_until=after(for_seconds), traffic=TrafficStatus.INACTIVE) if r.revision_id == V1 else r
        for r in deployment.routes
    )
    return replace(deployment, routes=tuple(routes))


@pytest.mark.parametrize(
    ("deployment", "sleepers", "expected"),
    [
        (parked("■|■"), (V1,), "wait"),  # it will lend its device
        (parked("■|■"), (), "drain □"),
        (parked("◇|■", status_for=29), (V1,), "wait"),
        (parked("◇|■", status_for=30), (V1,), "drain ◇"),
        (parked("▲■|■"), (V1,), "wait"),
        (deploying("■|▲"), (V1,), "drain ▲"),
        (deploying("■|▲", status_for=29), (V1,), "wait"),
        (parked("△|▲"), (V1,), "drain △"),  # a parked one first
        (deploying("■|■"), (V1,), "wait"),
    ],
)
def test_where_nothing_makes_room_one_that_serves_nobody_leaves(
    deployment: Deployment, sleepers: tuple[UUID, ...], expected: str
) -> None:
    for stopped in (True, False):
        found = decided(deployment, CREATE(V2, 1), room(0, sleepers=sleepers), stopped=stopped)
        assert found.clock_stopped is stopped
        is_wait = expected == "wait"
        assert drawn_changes(deployment, found.changes) == ("" if is_wait else expected)
        assert (found.verdict is Verdict.SKIPPED) is is_wait
        words = f"1 replica more finds no devices; {SHORT}"
        assert (found.reason.startswith(f"draining 1 that is in the way: {words}")) is not is_wait
        assert (found.recheck_at == NOW) is not is_wait


@pytest.mark.parametrize(
    ("picture", "lent", "dozing"),
    [("■|■", (), 1), ("■■|■", (), 2), ("◇|■", (), 1), ("▲■|■", (), 1), ("■◇|■", (1,), 1), ("◇|■", (0,), 0)],
)
def test_those_are_named_that_will_lend_their_devices(picture: str, lent: tuple[int, ...], dozing: int) -> None:
    its_room = room(0, sleepers=(V1,), lent=dict.fromkeys(ids(*lent), False))
    asleep = with_devices(parked(picture, status_for=3), its_room)
    reason = within_devices(Decision.moved("a step", CREATE(V2, 1), None), asleep, NOW).reason
    assert reason.endswith(f"{SHORT}, {dozing} will lend theirs asleep" if dozing else SHORT)


@pytest.mark.parametrize(
    ("picture", "parked_for", "frees_in", "recheck_in", "again"),
    [
        ("■|■", 600, None, None, 600),
        ("■|■", 600, 5, None, 5),
        ("■|■", 600, -5, 7, 7),
        ("■|■", 600, 9, 7, 7),
        ("■|■", 600, 9, 0, 9),
        ("◇|■", 600, 99, None, 20),  # the time that it has to fall asleep
        ("■|▲", 600, 99, None, 20),  # a sick one may be replaced then
    ],
)
def test_it_is_looked_at_again_when_time_may_free_a_device(
    picture: str, parked_for: float, frees_in: float | None, recheck_in: float | None, again: float
) -> None:
    deployment = parked(picture + "~", parked_for, status_for=10)
    frees_at = None if frees_in is None else after(frees_in)
    recheck_at = None if recheck_in is None else after(recheck_in)
    its_room = room(0, sleepers=(V1,), frees_at=frees_at)
    found = decided(deployment, CREATE(V2, 1), its_room, recheck_at=recheck_at)
    assert found.recheck_at == after(again)
    assert found.waits
    assert found.waits.kind is WaitsFor.DEVICE
    assert found.waits.words == f"1 replica more finds no devices; {SHORT}, 1 will lend theirs asleep"
    assert [route.id for route in found.waits.routes] == [route_id(0), route_id(len(picture) - 1)]
    both = decided(deployment, CREATE(V2, 1) + RouteChanges.promote(ids(1)), its_room, recheck_at=recheck_at)
    assert both.recheck_at == (NOW if recheck_in == 0 else after(again))
    assert both.reason == f"a step; {found.waits.words}"
