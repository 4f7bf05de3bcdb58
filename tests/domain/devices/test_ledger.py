"""Devices as plain values: what hosts have, what fits, which are taken, and which replicas leave first."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from domain.devices.ledger import Demand, HeldDevice, Ledger, Sleeper, choose, device_room, fitting
from domain.devices.needs import gpus_of, in_words, marks_of, parse_resources, variables_of
from domain.devices.others import knows_its_driver, memory_of_others, others_in_words
from domain.revisions.revision import RevisionSpec, filled_in
from domain.text.errors import InvalidInputError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
A_GPU, TWO_GPUS = Demand({"gpu": 1}), Demand({"gpu": 2})


def route(number: int) -> UUID:
    return UUID(int=number)


def held(number: int, host: str, device: str, amount: float = 1, kind: str = "gpu", **times: Any) -> HeldDevice:
    return HeldDevice(route(number), host, kind, device, amount, **times)


@pytest.mark.parametrize(
    ("text", "capacity"),
    [
        ("", {}),
        ("gpu=2", {"gpu": {"0": 1, "1": 1}}),
        (" gpu=0 , memory_gb=240", {"gpu": {}, "memory_gb": {"": 240}}),
        ("gpu=GPU-5d6f+GPU-77aa", {"gpu": {"GPU-5d6f": 1, "GPU-77aa": 1}}),
        ("memory_gb=1", {"memory_gb": {"": 1}}),
        ("memory_gb=1000000", {"memory_gb": {"": 1_000_000}}),
        ("gpu=1024", {"gpu": {str(number): 1 for number in range(1024)}}),
        ("gpu=auto,tpu=1", {"gpu": {"u1": 1}, "gpu.1g": {"u2": 1, "u3": 1}, "tpu": {"0": 1}}),
    ],
)
def test_what_a_host_says_that_it_has(text: str, capacity: object) -> None:
    assert parse_resources(text, {"gpu": ("u1",), "gpu.1g": ("u2", "u3"), "gpux": ("u4",)}) == capacity


@pytest.mark.parametrize(
    "text",
    ["gpu", "gpu=", "gpu=two!", "GPU=1", "gpu=1,gpu=2", "gpu=1+1", "gpu=a+?", "gpu=1025", "=1"]
    + [f"memory_gb={amount}" for amount in ("many", "0", "1000001", "auto")],
)
def test_a_wrong_entry_is_named_with_what_would_be_right(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"ROLLWAY_HOST_RESOURCES: .*such as 'gpu=4,memory_gb=240'") as refused:
        parse_resources(text)
    assert refused.value.detail == {"field": "ROLLWAY_HOST_RESOURCES"}


def test_without_a_driver_auto_is_no_gpu() -> None:
    assert parse_resources("gpu=auto,tpu=1") == {"tpu": {"0": 1}}


@pytest.mark.parametrize(
    ("needs", "fault"),
    [
        ({"gpu": 0.7}, "must be 0.5, half of a device, or a whole number"),
        ({"gpu": 1.5}, "must be 0.5, half of a device, or a whole number"),
        ({"memory_gb": 0.5}, "memory_gb: must be a whole number"),
        ({"gpu": 1025}, "must be 0.5, half of a device, or a whole number"),
        ({"gpu": 0}, "greater than 0"),
        ({"Gpu": 1}, "must be the name of a kind"),
    ],
)
def test_needs_that_nothing_could_meet_are_refused(needs: object, fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        RevisionSpec.model_validate({"command": ["serve"], "needs": needs})


@pytest.mark.parametrize("needs", [{"gpu": 0.5}, {"gpu": 1024, "memory_gb": 1_000_000}])
def test_half_of_a_device_or_any_whole_number_may_be_needed(needs: dict[str, float]) -> None:
    assert RevisionSpec.model_validate({"command": ["serve"], "needs": needs}).needs == needs


def test_a_revision_chooses_its_devices_in_one_way() -> None:
    container = {"runtime": "docker", "docker": {"image": "web:1", "resources": {"gpus": 1}}, "needs": {"gpu": 1}}
    with pytest.raises(ValidationError, match=r"leave docker\.resources\.gpus out"):
        RevisionSpec.model_validate(container)
    with pytest.raises(ValidationError, match="leave CUDA_VISIBLE_DEVICES out of env"):
        RevisionSpec.model_validate({"command": ["a"], "env": {"CUDA_VISIBLE_DEVICES": "0"}, "needs": {"gpu": 1}})
    with pytest.raises(ValidationError, match="must be left out with runtime 'external'"):
        RevisionSpec.model_validate({"runtime": "external", "external": {"task": "t"}, "needs": {"gpu": 1}})


def test_a_revision_without_needs_has_the_name_that_it_had_before() -> None:
    assert "needs" not in RevisionSpec(command=("serve",)).canonical_json()
    assert '"needs":{"gpu":1.0}' in RevisionSpec(command=("serve",), needs={"gpu": 1}).canonical_json()


@pytest.mark.parametrize(
    ("free", "needs", "count"),
    [
        ({"gpu": {"0": 1, "1": 1}}, {"gpu": 1}, 2),
        ({"gpu": {"0": 1, "1": 0.5}}, {"gpu": 1}, 1),
        ({"gpu": {"0": 1, "1": 0.5}}, {"gpu": 0.5}, 3),
        ({"gpu": {"0": 1, "1": 1}, "memory_gb": {"": 50}}, {"gpu": 1, "memory_gb": 40}, 1),
        ({"gpu": {"0": 1}}, {"tpu": 1}, 0),
        ({}, {"gpu": 1}, 0),
        ({}, {"memory_gb": 1}, 0),
    ],
)
def test_how_many_replicas_fit(free: Any, needs: Any, count: int) -> None:
    assert fitting(free, needs) == count
    assert (choose(free, needs) is None) == (count == 0)


def test_a_half_goes_next_to_another_half() -> None:
    assert choose({"gpu": {"0": 1, "1": 0.5}}, {"gpu": 0.5}) == {"gpu": {"1": 0.5}}
    assert choose({"gpu": {"0": 0.5, "1": 1}, "memory_gb": {"": 9}}, {"gpu": 1, "memory_gb": 4}) == {
        "gpu": {"1": 1},
        "memory_gb": {"": 4},
    }


def test_those_leave_first_after_which_the_fewest_have_left() -> None:
    """Host a is full; on host b a device is free, and one more is enough for a replica that needs two."""
    capacity = {"a": parse_resources("gpu=2"), "b": parse_resources("gpu=2")}
    ledger = Ledger(capacity, [held(1, "a", "0"), held(2, "a", "1"), held(3, "b", "0")], ("a", "b"))
    old = [route(1), route(2), route(3)]
    assert ledger.turns(TWO_GPUS, old) == [route(3), route(1), route(2)]
    assert ledger.fewest_leaves(TWO_GPUS, old) == 1
    assert ledger.fewest_leaves(TWO_GPUS, old[:2]) == 2
    assert ledger.fewest_leaves(Demand({"gpu": 3}), old) is None
    assert (ledger.room(A_GPU), ledger.fits_ever(A_GPU), ledger.room(Demand({"gpu": 1}, ["a"]))) == (1, 4, 0)


def test_a_wait_names_what_is_short_and_what_leaves() -> None:
    since, gone = NOW - timedelta(seconds=12), NOW + timedelta(seconds=2)
    devices = [held(1, "a", "0", leaving_since=since), held(2, "a", "1", free_at=gone)]
    ledger = Ledger({"a": parse_resources("gpu=2")}, devices, ("a",))
    assert ledger.shortage(A_GPU, NOW) == (
        "a GPU: 2 of 2 in use, 1 is stopping on a for 12 s, another has just gone, and its driver frees it"
    )
    room = device_room(ledger, {route(9): A_GPU}, 1, {route(1): route(8)}, route(9), NOW)
    assert (room.free, room.turns, room.frees_at) == ({route(9): 0}, (route(1),), gone)


def test_memory_in_use_is_of_others_where_no_replica_owns_the_device() -> None:
    in_use = {"gpu": {"a": 70.0, "b": 11.23, "c": 0.9, "d": 1.0}, "gpu.1g": {"e": 0.0}}
    assert memory_of_others(in_use, {("gpu", "a")}) == {"gpu": {"b": 11.2, "d": 1.0}}
    assert memory_of_others(in_use, {("gpu", device) for device in "abcd"}) == {}
    assert others_in_words("gpu-2", {"gpu": {"b": 11.2}}) == ["gpu-2 device b: 11 GB used by no replica"]


def test_a_device_that_others_use_is_given_to_nobody_and_a_wait_names_it() -> None:
    devices = [held(number, "a", str(number)) for number in range(3)]
    others = {"a": {"gpu": {"3": 11.2}}, "closed": {"gpu": {"0": 5.0}}}
    ledger = Ledger({"a": parse_resources("gpu=4")}, devices, ("a",), others)
    assert (ledger.room(A_GPU), ledger.fits_ever(A_GPU), choose(ledger.free["a"], {"gpu": 0.5})) == (0, 4, None)
    assert ledger.shortage(A_GPU, NOW) == "a GPU: 3 of 4 in use, a device 3: 11 GB used by no replica"
    many = Ledger({"a": parse_resources("gpu=9")}, [], ("a",), {"a": {"gpu": dict.fromkeys("012345678", 2.0)}})
    assert many.shortage(A_GPU, NOW).endswith("a device 2: 2 GB used by no replica, and 6 more are used by no replica")


@pytest.mark.parametrize(
    ("resources", "is_known"), [("gpu=4", False), ("tpu=a+b", False), ("gpu=GPU-5d6f", True), ("gpu.1g=MIG-1", True)]
)
def test_a_driver_is_asked_for_gpus_that_have_its_names(resources: str, is_known: bool) -> None:  # noqa: FBT001
    assert knows_its_driver(parse_resources(resources)) is is_known


def lent(number: int, host: str, *devices: str) -> Sleeper:
    return Sleeper(route(number), host, {"gpu": dict.fromkeys(devices, 1)})


def test_what_a_sleeper_has_lent_is_given_away_last() -> None:
    ledger = Ledger({"a": parse_resources("gpu=3")}, [held(1, "a", "1")], ("a",), sleepers=[lent(2, "a", "0")])
    assert ledger.room(A_GPU) == 2
    assert choose(ledger.free["a"], {"gpu": 1}) == {"gpu": {"2": 1}}
    assert choose(ledger.free["a"], {"gpu": 2}) == {"gpu": {"2": 1, "0": 1}}


def test_a_sleeper_wakes_when_all_that_it_lent_is_free_and_of_two_only_one() -> None:
    capacity, sleepers = {"a": parse_resources("gpu=3")}, [lent(2, "a", "0", "1"), lent(3, "a", "1"), lent(4, "b", "0")]
    sleeping = [route(2), route(3), route(4), route(5)]
    assert Ledger(capacity, [held(1, "a", "1")], ("a",), sleepers=sleepers).lent_by(sleeping) == dict.fromkeys(
        sleeping[:3], False
    )
    free = Ledger(capacity, [held(1, "a", "2")], ("a",), sleepers=sleepers)
    assert free.lent_by(sleeping) == {route(2): True, route(3): False, route(4): False}
    old, new = route(8), route(9)
    room = device_room(free, {new: A_GPU._replace(sleeps=True)}, 1, {route(2): old, route(3): new}, new, NOW)
    assert (room.lent, room.sleepers) == ({route(2): True, route(3): True}, (new,)), "each revision by itself"


def test_who_holds_what_a_sleeper_of_the_target_has_lent_leaves_first() -> None:
    devices = [held(1, "a", "0"), held(2, "a", "1"), held(3, "a", "2")]
    ledger = Ledger({"a": parse_resources("gpu=3")}, devices, ("a",), sleepers=[lent(4, "a", "1")])
    old, new = route(8), route(9)
    routes = {route(1): old, route(2): old, route(3): old, route(4): new}
    assert device_room(ledger, {new: A_GPU}, 1, routes, new, NOW).turns == (route(2), route(1), route(3))


def test_what_a_replica_learns_of_its_devices() -> None:
    devices = {"gpu": {"4": 1.0, "7": 1.0}, "memory_gb": {"": 40.0}}
    assert variables_of(devices) == {"ROLLWAY_DEVICES": "gpu=4+7"}
    assert variables_of({"memory_gb": {"": 40.0}}) == {}
    assert (gpus_of(devices), gpus_of({"gpu.1g": {"m": 1}, "gpux": {"x": 1}})) == (["4", "7"], ["m"])
    assert marks_of("gpu=4+7,tpu=1") == {
        "{gpu}": "4,7",
        "{gpu.0}": "4",
        "{gpu.1}": "7",
        "{tpu}": "1",
        "{tpu.0}": "1",
    }
    variables = {"PORT": "1", "HOST": "h", "ROLLWAY_ROUTE": "r", "ROLLWAY_DEVICES": "gpu=4+7"}
    assert filled_in(["--gpu={gpu}", "{gpu.1}:{port}", "{tpu}"], variables) == ["--gpu=4,7", "7:1", "{tpu}"]


def test_needs_in_words() -> None:
    words = [in_words("gpu", 1), in_words("gpu", 0.5), in_words("gpu", 2), in_words("memory_gb", 40)]
    assert words == ["a GPU", "half a GPU", "2 GPUs", "40 of memory_gb"]
