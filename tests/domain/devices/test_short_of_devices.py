"""Where devices are short: how many find theirs, who leaves first, and what a wait says of them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.devices.ledger import Demand, HeldDevice, Ledger, Sleeper, choose, device_room
from domain.devices.needs import parse_resources

NOW = datetime(2026, 1, 1, tzinfo=UTC)
A_GPU = Demand({"gpu": 1})
ONE_WITH_MEMORY = Demand({"gpu": 1, "memory_gb": 40})
OLD, NEW = UUID(int=8), UUID(int=9)


def route(number: int) -> UUID:
    return UUID(int=number)


def routes(*numbers: int) -> list[UUID]:
    return [route(number) for number in numbers]


def held(number: int, place: str, amount: float = 1, **times: Any) -> HeldDevice:
    """`place`: a host and the device there, such as "a 0"; a host alone for its memory."""
    host, _, device = place.partition(" ")
    return HeldDevice(
        route(number) if number else None, host, "gpu" if device else "memory_gb", device, amount, **times
    )


def hosts(*resources: str) -> dict[str, Any]:
    """Named a, b, c ..."""
    return {chr(ord("a") + place): parse_resources(text) for place, text in enumerate(resources)}


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


TWO_HOSTS = hosts("gpu=2", "gpu=1")


@pytest.mark.parametrize(
    ("allowed", "open_hosts", "now", "ever"),
    [(None, "ab", 2, 3), (["a"], "ab", 1, 2), (["b"], "ab", 1, 1), ([], "ab", 0, 0), (["a", "b"], "b", 1, 3)],
)
def test_only_hosts_that_may_run_a_revision_have_room_for_it(
    allowed: list[str] | None, open_hosts: str, now: int, ever: int
) -> None:
    ledger = Ledger(TWO_HOSTS, [held(1, "a 0")], open_hosts)
    demand = Demand({"gpu": 1}, allowed)
    assert (ledger.room(demand), ledger.fits_ever(demand)) == (now, ever)


@pytest.mark.parametrize(
    ("allowed", "count", "has_choice"),
    [
        (None, 2, True),
        (None, 3, False),
        (["a", "c"], 1, True),
        (["a", "c"], 2, False),
        (["c"], 1, False),
        (["c"], 0, True),
    ],
)
def test_there_is_a_choice_where_as_many_hosts_have_room(
    allowed: list[str] | None, count: int, *, has_choice: bool
) -> None:
    """Host c is full, and host a has room for two."""
    ledger = Ledger(hosts("gpu=2", "gpu=1", "gpu=1"), [held(1, "c 0")], "abc")
    assert ledger.has_choice(Demand({"gpu": 1}, allowed), count) is has_choice


def test_a_device_that_others_use_takes_nothing_from_its_neighbour() -> None:
    ledger = Ledger(hosts("gpu=2"), [], "a", {"a": {"gpu": {"1": 11.2}}})
    assert (ledger.room(Demand({"gpu": 0.5})), ledger.room(A_GPU)) == (2, 1)


def test_a_half_is_never_taken_of_a_device_that_is_full() -> None:
    assert choose({"gpu": {"0": 0, "1": 1}}, {"gpu": 0.5}) == {"gpu": {"1": 0.5}}


@pytest.mark.parametrize(
    ("open_hosts", "leaving", "order"),
    [
        ("abc", (1, 2, 3), (3, 1, 2)),  # on b one is enough
        ("abc", (3, 1, 2), (3, 1, 2)),
        ("abc", (4, 3), (3, 4)),  # on either host one is enough: by name
        ("abc", (3, 4), (3, 4)),
        ("ac", (3, 1, 2), (1, 2, 3)),  # nothing new comes to b
        ("abc", (7, 3, 9), (3,)),  # the others hold no device
    ],
)
def test_those_leave_first_whose_host_has_room_the_soonest(
    open_hosts: str, leaving: tuple[int, ...], order: tuple[int, ...]
) -> None:
    """On host a two replicas have a device each, on b and c one has both."""
    holdings = [held(1, "a 0"), held(2, "a 1"), held(3, "b 0"), held(3, "b 1"), held(4, "c 0"), held(4, "c 1")]
    ledger = Ledger(hosts("gpu=2", "gpu=2", "gpu=2"), holdings, open_hosts)
    assert ledger.turns(Demand({"gpu": 2}), routes(*leaving)) == routes(*order)


def test_where_nobody_holds_a_device_nobody_makes_room_by_leaving() -> None:
    ledger = Ledger(TWO_HOSTS, [held(1, "a 0")], "ab")
    assert (ledger.fewest_leaves(A_GPU, routes(5, 6)), ledger.fewest_leaves(A_GPU, routes(1, 5))) == (None, 1)
    assert Ledger(TWO_HOSTS, [held(1, "a 0")], "b").fewest_leaves(A_GPU, routes(1)) is None


def test_only_devices_have_holders_that_are_in_the_way_of_a_sleeper() -> None:
    """Of an amount no part is the sleeper's own, and who has gone already need not leave."""
    holdings = [held(1, "a 0"), held(2, "a 1"), held(3, "b 0"), held(4, "a", 40), held(0, "a 0", 0.5)]
    sleepers = [
        Sleeper(route(5), "a", {"gpu": {"0": 1}, "memory_gb": {"": 40}}),
        Sleeper(route(6), "a", {"gpu": {"1": 1}}),
    ]
    ledger = Ledger(hosts("gpu=2,memory_gb=80", "gpu=1"), holdings, "ab", sleepers=sleepers)
    assert ledger.holders_of(routes(5)) == {route(1)}
    assert ledger.holders_of(routes(5, 6)) == {route(1), route(2)}


@pytest.mark.parametrize(
    ("holdings", "demand", "words"),
    [
        ([held(1, "a 0"), held(1, "a", 40)], ONE_WITH_MEMORY, "40 of memory_gb: 40 of 60 in use"),
        ([held(1, "a 0"), held(2, "a 1"), held(1, "a", 10)], ONE_WITH_MEMORY, "a GPU: 2 of 2 in use"),
        ([held(1, "a 0"), held(3, "b 0")], A_GPU, "a GPU: 1 of 2 in use"),
    ],
)
def test_a_wait_names_the_kind_that_is_short_on_the_hosts_that_may_run_it(
    holdings: Sequence[HeldDevice], demand: Demand, words: str
) -> None:
    ledger = Ledger(hosts("gpu=2,memory_gb=60", "gpu=4,memory_gb=900"), holdings, "ax")
    assert ledger.shortage(demand, NOW) == words


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ((None, None), ""),
        ((ago(12), None), ", 1 is stopping on a for 12 s"),
        ((ago(12), ago(70)), ", 2 are stopping on b for 1 min 10 s"),
        ((ago(70), ago(12)), ", 2 are stopping on a for 1 min 10 s"),
        ((ago(-5), None), ", 1 is stopping on a for 0 s"),  # the clock was set back
    ],
)
def test_a_wait_names_the_replica_that_stops_for_the_longest(
    times: tuple[datetime | None, datetime | None], words: str
) -> None:
    first, second = times
    holdings = [
        held(1, "a 0", leaving_since=first),
        held(1, "a 1", leaving_since=first),
        held(2, "b 0", leaving_since=second),
    ]
    assert Ledger(TWO_HOSTS, holdings, "ab").shortage(A_GPU, NOW) == f"a GPU: 3 of 3 in use{words}"


def test_what_has_gone_no_longer_stops_and_the_first_of_them_frees_its_devices() -> None:
    soon, later = ago(-2), ago(-9)
    holdings = [held(1, "a 0", leaving_since=ago(30), free_at=later), held(2, "a 1", free_at=soon), held(3, "b 0")]
    ledger = Ledger(TWO_HOSTS, holdings, "ab")
    assert ledger.shortage(A_GPU, NOW) == "a GPU: 3 of 3 in use, another has just gone, and its driver frees it"
    assert (ledger.frees_at, Ledger(TWO_HOSTS, holdings[2:], "ab").frees_at) == (soon, None)


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        ("012", "a device 1: 2 GB used by no replica, a device 2: 2 GB used by no replica"),
        ("0123", "a device 2: 2 GB used by no replica, and 1 more are used by no replica"),
    ],
)
def test_a_wait_names_three_devices_that_others_use(devices: str, words: str) -> None:
    ledger = Ledger(hosts("gpu=4"), [], "a", {"a": {"gpu": dict.fromkeys(devices, 2.0)}})
    assert ledger.shortage(A_GPU, NOW).endswith(words)


LIVE = {route(1): OLD, route(2): NEW, route(3): OLD}
HOLDINGS = [held(1, "a 0"), held(2, "a 1"), held(3, "b 0")]


@pytest.mark.parametrize(
    ("desired", "target", "demands", "turns", "short"),
    [
        (3, NEW, {NEW: A_GPU}, (1, 3), [NEW]),
        (2, NEW, {NEW: A_GPU}, (), []),  # as many find devices
        (3, None, {NEW: A_GPU}, (), [NEW]),
        (3, OLD, {NEW: A_GPU}, (), [NEW]),  # what needs no devices waits for none
        (3, OLD, {OLD: A_GPU, NEW: A_GPU}, (2,), [OLD, NEW]),
        (2, OLD, {OLD: Demand({"gpu": 2}), NEW: A_GPU}, (2,), [OLD]),
    ],
)
def test_old_replicas_have_their_turns_while_fewer_find_devices_than_there_should_be(
    desired: int, target: UUID | None, demands: Mapping[UUID, Demand], turns: tuple[int, ...], short: list[UUID]
) -> None:
    ledger = Ledger(hosts("gpu=3", "gpu=2"), HOLDINGS, "ab")
    room = device_room(ledger, demands, desired, LIVE, target, NOW)
    assert (room.turns, list(room.shortage)) == (tuple(routes(*turns)), short)


def test_who_holds_what_a_sleeper_of_another_revision_lent_leaves_no_sooner() -> None:
    sleepers = [Sleeper(route(4), "a", {"gpu": {"1": 1}}), Sleeper(route(5), "a", {"gpu": {"0": 1}})]
    ledger = Ledger(hosts("gpu=2"), [held(1, "a 0"), held(2, "a 1")], "a", sleepers=sleepers)
    live = {route(1): OLD, route(2): OLD, route(4): NEW, route(5): OLD}
    sleeping = {OLD: A_GPU, NEW: Demand({"gpu": 1}, sleeps=True)}
    room = device_room(ledger, sleeping, 1, live, NEW, NOW)
    assert (room.turns, room.sleepers) == (tuple(routes(2, 1)), (NEW,))
    assert room.lent == {route(4): False, route(5): False}


def test_of_two_sleepers_of_one_revision_only_one_wakes_by_the_same_device() -> None:
    lent = {"gpu": {"0": 1}}
    ledger = Ledger(hosts("gpu=1"), [], "a", sleepers=[Sleeper(route(number), "a", lent) for number in (4, 5, 6)])
    live = {route(4): OLD, route(5): OLD, route(6): NEW}
    assert device_room(ledger, {}, 1, live, NEW, NOW).lent == {route(4): True, route(5): False, route(6): True}
