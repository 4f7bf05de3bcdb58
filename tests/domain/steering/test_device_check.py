"""A rollout for which there are no devices is refused where it could never end, with what would help."""

from dataclasses import replace
from typing import Any

import pytest

from domain.devices.ledger import Demand, HeldDevice, Ledger
from domain.devices.needs import parse_resources
from domain.devices.room import DeviceRoom
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy
from domain.steering.activation import activate
from domain.steering.device_check import DeviceCase, NoDevicesError, check_devices, with_room
from tests.support.people.people import asking, request
from tests.support.pictures.pictures import (
    NOW,
    PENDING,
    READY,
    RECREATE,
    V1,
    V2,
    V3,
    blue_green,
    deploying,
    resting,
    rolling_update,
    route_id,
)

A_GPU = Demand({"gpu": 1})
IN_PLACE = rolling_update(1, 1)
"""'rollway policy web' with so many missing."""
AS = "'rollway policy web --set \"{{strategy: rolling_update, spec: {{max_unavailable: {}}}}}\"'"


def ledger(gpus: int, taken: int) -> Ledger:
    """One host, whose first devices the first routes of a picture hold."""
    holdings = [HeldDevice(route_id(number), "a", "gpu", str(number), 1) for number in range(taken)]
    return Ledger({"a": parse_resources(f"gpu={gpus}")}, holdings, ("a",))


def refusal(after: Deployment, gpus: int, taken: int, demand: Demand = A_GPU) -> str:
    """Empty: it is not refused."""
    try:
        check_devices(after, "v2", DeviceCase(demand, ledger(gpus, taken)), NOW)
    except NoDevicesError as error:
        return error.message.removeprefix("web cannot move to v2: ")
    return ""


def begun(n: int, policy: DeploymentPolicy, **changed: Any) -> Deployment:
    return deploying("■" * n + "|", n, policy=policy, **changed)


@pytest.mark.parametrize("after", [begun(3, IN_PLACE), begun(3, RECREATE), resting("■■■", status=READY)])
def test_more_replicas_than_all_hosts_could_run_are_refused_whatever_the_strategy(after: Deployment) -> None:
    assert refusal(after, 3, 3) == ""
    assert refusal(after, 2, 2) == (
        "each replica needs a GPU, and all hosts have room for 2 of 3, even if nothing else ran there; let it need "
        "less, or add a host ('rollway hosts' shows what each one has)"
    )


def test_each_kind_of_device_that_it_needs_is_named() -> None:
    several = Demand({"gpu": 2, "tpu": 1})
    assert refusal(begun(3, RECREATE), 3, 3, several).startswith("each replica needs 2 GPUs and a tpu, and")


def test_a_second_set_needs_room_for_all_of_it() -> None:
    assert refusal(begun(2, blue_green()), 4, 2) == ""
    assert refusal(begun(2, blue_green()), 3, 2) == (
        "blue_green runs 2 new replicas next to the old ones, each needs a GPU, and there is room for 1; "
        f"roll in place ({AS.format(1)}), or add a host"
    )


def test_green_ones_that_are_there_already_need_no_more_room_unless_they_have_lent_their_devices() -> None:
    half = deploying("■■|□", 2, policy=blue_green())
    assert refusal(half, 4, 3) == ""
    assert refusal(half, 3, 3) != ""
    old, other, green = half.routes
    assert refusal(replace(half, routes=(old, other, replace(green, has_lent=True))), 4, 3) != ""
    elder = replace(half, routes=(old, replace(other, revision_id=V3), green))
    assert refusal(elder, 3, 3) != "", "one of another revision is none of them"


@pytest.mark.parametrize(
    ("after", "gpus", "taken"),
    [
        (begun(3, IN_PLACE), 3, 3),  # one may be missing, and one leaves
        (begun(3, rolling_update(1, 0)), 4, 3),  # there is room for one more
        (begun(3, RECREATE), 3, 3),  # all of the old ones leave first
        (replace(begun(3, RECREATE), routes=()), 3, 3),  # all of them have begun to stop
        (begun(0, rolling_update(1, 0)), 0, 0),  # nothing is wanted
        (begun(4, rolling_update(1, "50%")), 4, 4),
    ],
)
def test_what_can_move_is_not_refused(after: Deployment, gpus: int, taken: int) -> None:
    assert refusal(after, gpus, taken) == ""


def test_in_place_as_many_must_be_allowed_to_be_missing_as_must_leave() -> None:
    assert refusal(begun(3, rolling_update(1, 0)), 3, 3) == (
        "a new replica needs a GPU: 3 of 3 in use, 1 old one must leave before a new one finds room, and 0 may be "
        f"missing (max_unavailable); let 1 be missing ({AS.format(1)}), or add a host"
    )
    two = Demand({"gpu": 2})
    assert refusal(begun(3, rolling_update(1, 1)), 6, 6, two).endswith(
        f"2 old ones must leave before a new one finds room, and 1 may be missing (max_unavailable); let 2 be missing "
        f"({AS.format(2)}), or add a host"
    )
    assert refusal(begun(3, rolling_update(1, 2)), 6, 6, two) == ""


def test_where_others_hold_the_devices_no_old_one_that_leaves_helps() -> None:
    others = replace(begun(3, IN_PLACE), routes=())
    assert refusal(others, 3, 3) == (
        "a new replica needs a GPU: 3 of 3 in use, and no old one that leaves makes room; add a host "
        "('rollway hosts' shows what each one has)"
    )


def test_where_all_old_ones_must_leave_only_another_strategy_helps() -> None:
    """One of several always stays, however many may be missing."""
    assert refusal(begun(2, rolling_update(1, 2)), 4, 4, Demand({"gpu": 2})) == (
        "a new replica needs 2 GPUs: 4 of 4 in use, 2 old ones must leave before a new one finds room, and 1 may be "
        "missing (max_unavailable); let all old ones stop first ('rollway policy web --set \"{strategy: recreate}\"'), "
        "or add a host"
    )
    assert f"let 1 be missing ({AS.format(1)})" in refusal(begun(1, rolling_update(1, 0)), 1, 1), (
        "one replica alone may be missing"
    )


def test_replicas_of_the_new_revision_leave_for_no_other_of_it() -> None:
    assert refusal(deploying("|■■■", policy=IN_PLACE), 3, 3) != ""


def test_the_size_before_says_how_many_may_be_missing() -> None:
    smaller = begun(2, IN_PLACE, desired_replicas=2, rollout={"desired_at_start": 1})
    assert refusal(smaller, 2, 2) != "", "of one none may be missing while one is kept of two"
    larger = begun(5, IN_PLACE, desired_replicas=5, rollout={"desired_at_start": 1})
    assert ", and 0 may be missing" in refusal(larger, 5, 5), "fewer than it keeps"


@pytest.mark.parametrize(
    ("after", "target"),
    [(begun(3, IN_PLACE), V2), (resting("■■■", status=READY), V2), (resting("■■■", current_revision_id=V1), V1)],
)
def test_a_snapshot_gets_the_room_for_the_revision_that_it_is_to_run(after: Deployment, target: object) -> None:
    known = with_room(after, DeviceCase(A_GPU, ledger(5, 3)), NOW).devices
    assert known is not None
    assert dict(known.free) == {target: 2}


def test_what_was_known_of_other_revisions_stays() -> None:
    sleeps = Demand({"gpu": 1}, sleeps=True)
    before = replace(begun(3, IN_PLACE), devices=DeviceRoom({V1: 1}, {V1: "two GPUs"}, sleepers=(V1,)))
    known = with_room(before, DeviceCase(sleeps, ledger(3, 3)), NOW).devices
    assert known is not None
    assert (dict(known.free), known.shortage) == ({V1: 1, V2: 0}, {V1: "two GPUs", V2: "a GPU: 3 of 3 in use"})
    assert set(known.sleepers) == {V1, V2}
    assert known.turns == (route_id(0), route_id(1), route_id(2))


def test_without_a_revision_there_is_nothing_to_have_room_for() -> None:
    empty = resting("", status=PENDING, current_revision_id=None)
    assert with_room(empty, DeviceCase(A_GPU, ledger(1, 0)), NOW) is empty


@pytest.mark.parametrize(
    ("deployment", "changed", "is_refused"),
    [
        (resting("■■■", status=READY), {}, True),
        (resting("■■■", status=READY), {"is_undo": True}, False),  # the way back is never refused
        (deploying("■■■|", policy=IN_PLACE, deploying_revision_id=V3), {}, False),  # it goes on
    ],
)
def test_an_activation_is_checked_where_it_starts_something_new(
    deployment: Deployment, changed: dict[str, Any], *, is_refused: bool
) -> None:
    wanted = replace(request(deployment, V3, IN_PLACE), devices=DeviceCase(A_GPU, ledger(2, 2)), **changed)
    if is_refused:
        with pytest.raises(NoDevicesError) as refused:
            activate(deployment, wanted, asking(deployment, NOW))
        assert refused.value.detail == {"deployment": "web", "revision": str(V3)}
        return
    devices = activate(deployment, wanted, asking(deployment, NOW)).deployment.devices
    assert devices is not None
    assert dict(devices.free) == {V3: 0}
