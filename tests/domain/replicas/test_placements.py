"""Where replicas that need devices are placed, and those that must wait."""

from typing import Any
from uuid import UUID

import pytest

from domain.devices.ledger import HeldDevice, Ledger
from domain.devices.needs import parse_resources
from domain.replicas.host_choice import (
    EXTERNAL,
    HostUp,
    Placement,
    PlacingGrounds,
    Unplaced,
    host_name,
    hosts_by,
    in_turn_for_devices,
    placements,
    refuse_to_forget,
    seconds_set_forward,
)
from domain.text.errors import WrongStateError
from tests.support.pictures.pictures import NOW

WEB, API = UUID(int=1), UUID(int=2)
A_GPU, A_HALF = {"gpu": 1}, {"gpu": 0.5}
UP = HostUp(0)


def needy(needs: dict[str, float] | None = None, owner: UUID = WEB, **more: Any) -> Unplaced:
    return Unplaced(owner, is_external=False, needs=A_GPU if needs is None else needs, **more)


def plain(**more: Any) -> Unplaced:
    return Unplaced(WEB, is_external=False, **more)


def hosts(names: str, **changed: HostUp) -> dict[str, HostUp]:
    return {name: changed.get(name, UP) for name in names}


def ledger(*held: str, **resources: str) -> Ledger:
    """By host its resources; `held`: such as "a 0"."""
    capacity = {host: parse_resources(text) for host, text in resources.items()}
    holdings = [HeldDevice(UUID(int=9), host, "gpu", device, 1) for host, device in (word.split() for word in held)]
    return Ledger(capacity, holdings, tuple(resources))


def grounds(*unplaced: Unplaced, up: str = "ab", **more: Any) -> PlacingGrounds:
    return PlacingGrounds(unplaced, more.pop("hosts", hosts(up)), **more)


def drawn(*placed: Placement) -> str:
    """E.g. "a:0 b:1 -": a host with the devices there; ! is put off, - waits for a host."""
    words = []
    for place in placed:
        devices = "+".join(device for its in (place.devices or {}).values() for device in its)
        words.append("!" if place.is_put_off else (place.host or "-") + (f":{devices}" if devices else ""))
    return " ".join(words)


@pytest.mark.parametrize(
    ("unplaced", "known", "expected"),
    [
        ([needy()], ledger(a="gpu=2", b="gpu=1"), "a:0"),
        ([needy(), needy()], ledger(a="gpu=2", b="gpu=1"), "a:0 b:0"),
        ([needy(), needy(), needy(), needy()], ledger(a="gpu=2", b="gpu=1"), "a:0 b:0 a:1 !"),
        ([needy(), needy()], ledger("a 0", a="gpu=2", b="gpu=0"), "a:1 !"),
        ([needy({"gpu": 2}), needy()], ledger(a="gpu=2", b="gpu=1"), "a:0+1 b:0"),
        ([needy(A_HALF), needy(A_HALF), needy(A_HALF)], ledger(a="gpu=1"), "a:0 a:0 !"),
        # who needs none goes to any host, and takes none
        ([plain(), needy(), plain()], ledger("a 0", a="gpu=1", b="gpu=1"), "a b:0 a"),
        ([plain(), plain()], ledger(a="gpu=1"), "a b"),
        # hosts whose devices nobody has read are none for a device
        ([needy()], ledger(b="gpu=1"), "b:0"),
        # the one with fewer of the deployment, as far as it has devices
        ([needy(), needy()], ledger(a="gpu=2"), "a:0 a:1"),
        # without a device it is put off, whatever its secrets
        ([needy(lacking=("a",))], ledger(a="gpu=1", b="gpu=1"), "b:0"),
        ([needy(lacking=("b",))], ledger(b="gpu=1"), "b:0"),
        ([needy(labels={"zone": "x"})], ledger(a="gpu=1"), "!"),
        ([needy(owner=API), needy()], ledger(a="gpu=1"), "a:0 !"),
    ],
)
def test_a_replica_is_placed_where_its_devices_are_free(unplaced: list[Unplaced], known: Ledger, expected: str) -> None:
    assert drawn(*placements(grounds(*unplaced, ledger=known))) == expected


def test_placing_takes_nothing_from_what_was_read() -> None:
    known = ledger(a="gpu=1")
    for _ in range(2):
        assert drawn(*placements(grounds(needy(), ledger=known))) == "a:0"


def test_without_a_ledger_there_are_hosts_alone() -> None:
    assert placements(grounds(plain(), plain(), plain(), later=1)) == [
        Placement("a"),
        Placement("b"),
        Placement("a"),
        Placement(None),
    ]
    assert placements(grounds(plain(), up="")) == [Placement(None)]


def test_those_that_must_wait_for_another_transaction_have_no_place_now() -> None:
    assert hosts_by(grounds(plain(), later=2)) == ["a", None, None]
    assert drawn(*placements(grounds(needy(), later=2, ledger=ledger(a="gpu=1")))) == "a:0 - -"


def test_devices_that_one_group_takes_are_not_given_to_another() -> None:
    """Replicas of different labels are placed one group after the other."""
    zone = HostUp(0, labels={"zone": "x"})
    both = [needy(), needy(labels={"zone": "x"}), needy()]
    found = placements(grounds(*both, hosts=hosts("ab", a=zone), ledger=ledger(a="gpu=1", b="gpu=1")))
    assert drawn(*found) == "a:0 ! b:0"


def test_groups_count_the_replicas_that_the_groups_before_them_got() -> None:
    zone = HostUp(0, labels={"zone": "x"})
    wanted = [plain(), plain(labels={"zone": "x"}), Unplaced(API, is_external=True), plain(labels={"disk": "ssd"})]
    assert hosts_by(grounds(*wanted, hosts=hosts("ab", a=zone, b=zone))) == ["a", "b", EXTERNAL, None]
    other = Unplaced(API, is_external=False, labels={"zone": "x"})
    assert hosts_by(grounds(plain(), other, hosts=hosts("ab", a=zone, b=zone))) == ["a", "b"]
    assert hosts_by(grounds(plain(), other, hosts=hosts("ab", a=zone, b=zone), of_all={"a": 1, "b": 3})) == ["a", "a"]


@pytest.mark.parametrize(
    ("unplaced", "more", "most", "turn"),
    [
        ([needy()], {}, 9, "a b c"),
        ([needy()], {}, 2, "a b"),
        ([needy()], {"of_deployment": {(WEB, "a"): 2, (WEB, "b"): 1, (API, "c"): 9}}, 9, "c b a"),
        ([needy()], {"of_all": {"a": 2, "b": 1}}, 9, "c b a"),
        ([needy()], {"of_deployment": {(WEB, "b"): 1}, "of_all": {"a": 2}}, 9, "c a b"),
        ([plain(), needy(A_HALF), plain()], {}, 9, "a b c"),
        ([needy(labels={"zone": "x"})], {}, 9, "b"),
        ([needy()], {"hosts": hosts("abc", a=HostUp(0, is_drained=True))}, 9, "b c"),
        # where they differ in their rules there is no one order
        ([needy(), needy(owner=API)], {}, 9, ""),
        ([needy(), needy(labels={"zone": "x"})], {}, 9, ""),
        ([needy(spread="zone")], {}, 9, ""),
        ([needy(), needy(lacking=("a",))], {}, 9, ""),
        ([needy(), Unplaced(API, is_external=False)], {}, 9, "a b c"),
    ],
)
def test_hosts_have_their_turn_for_replicas_that_need_devices(
    unplaced: list[Unplaced], more: dict[str, Any], most: int, turn: str
) -> None:
    fleet = hosts("abc", b=HostUp(0, labels={"zone": "x"}))
    assert " ".join(in_turn_for_devices(grounds(*unplaced, **{"hosts": fleet, **more}), most)) == turn


@pytest.mark.parametrize(
    ("showed", "passed", "shows", "forward"),
    [(100, 1, 101, 0), (100, 1, 102.5, 1.5), (100, 1, 41, 0), (100, 1, 900, 799)],
)
def test_a_clock_was_set_forward_by_what_is_too_much(
    showed: float, passed: float, shows: float, forward: float
) -> None:
    assert seconds_set_forward(showed, passed, shows) == forward


def test_only_a_host_that_is_down_is_forgotten() -> None:
    refuse_to_forget("m1", NOW)
    with pytest.raises(WrongStateError, match="host m1 is up; only a host that is down can be forgotten") as refused:
        refuse_to_forget("m1", None)
    assert refused.value.detail["host"] == "m1"


@pytest.mark.parametrize("name", ["a", "M-1.example_2", "a" * 63])
def test_a_host_may_be_called(name: str) -> None:
    assert host_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "a b", "a" * 64, EXTERNAL])
def test_no_host_may_be_called(name: str) -> None:
    with pytest.raises(ValueError, match=f"must be letters, digits, .* which {name!r} is not"):
        host_name(name)
