"""New replicas are spread: each goes to the host that is up and has the fewest of its deployment."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.replicas.host_choice import EXTERNAL, HostUp, PlacingGrounds, Unplaced, hosts_by, place, takers

WEB, API = UUID(int=1), UUID(int=2)


def routes(*owners: UUID, external: bool = False) -> list[Unplaced]:
    return [Unplaced(owner, external) for owner in owners]


def spread(unplaced: Sequence[Unplaced], chosen: Sequence[str | None]) -> Counter[tuple[UUID, str | None]]:
    return Counter((replica.deployment_id, host) for replica, host in zip(unplaced, chosen, strict=True))


def test_the_host_with_the_fewest_of_the_deployment_is_chosen() -> None:
    new = routes(WEB)
    assert place(new, ["a", "b"], {(WEB, "a"): 2, (WEB, "b"): 1, (API, "b"): 9}, {"a": 2, "b": 10}) == ["b"]


def test_of_equal_hosts_the_one_with_the_fewest_of_all_then_the_first_by_name() -> None:
    assert place(routes(WEB), ["a", "b"], {}, {"a": 3, "b": 1}) == ["b"]
    assert place(routes(WEB), ["a", "b"], {}, {}) == ["a"]
    assert place(routes(WEB), ["a", "b"], {(WEB, "a"): 0}, {"a": 1, "b": 2}) == ["a"]


@pytest.mark.parametrize(
    ("before", "new", "chosen"),
    [
        ("a:2 b:0", 2, "b b"),
        ("a:2 b:0", 3, "b b a"),
        ("a:2 b:0", 4, "b b a b"),
        ("a:1 b:0 c:0", 5, "b c a b c"),
    ],
)
def test_each_new_replica_counts_as_one_where_the_next_is_placed(before: str, new: int, chosen: str) -> None:
    counts = {host: int(count) for host, count in (word.split(":") for word in before.split())}
    own = {(WEB, host): count for host, count in counts.items()}
    assert place(routes(*[WEB] * new), list(counts), own, counts) == chosen.split()


@pytest.mark.parametrize(("on_a", "chosen"), [(0, "b a"), (1, "b a"), (2, "b b")])
def test_a_new_replica_of_one_deployment_counts_as_one_for_the_others_too(on_a: int, chosen: str) -> None:
    new = routes(API, WEB)
    assert place(new, ["a", "b"], {(API, "a"): 1}, {"a": on_a, "b": 0}) == chosen.split()


def test_where_two_hosts_come_to_have_as_many_the_next_goes_where_fewer_of_all_are() -> None:
    assert place(routes(WEB, WEB), ["a", "b"], {(WEB, "b"): 1}, {"a": 0, "b": 5}) == ["a", "a"]


def test_a_host_without_any_replica_has_fewer_than_one_with_one() -> None:
    assert place(routes(WEB), ["a", "b"], {}, {"a": 1}) == ["b"]


@given(hosts=st.permutations(["a", "b", "c"]), new=st.lists(st.sampled_from([WEB, API]), max_size=6))
def test_every_worker_chooses_the_same_in_whichever_order_it_read_the_hosts(hosts: list[str], new: list[UUID]) -> None:
    unplaced = routes(*new)
    assert place(unplaced, hosts, {}, {}) == place(unplaced, sorted(hosts), {}, {})


def test_without_a_host_that_is_up_only_external_replicas_have_their_place() -> None:
    assert place(routes(WEB) + routes(API, external=True), [], {}, {}) == [None, EXTERNAL]


@given(
    counts=st.lists(st.integers(0, 8), min_size=1, max_size=5),
    new=st.lists(st.sampled_from([WEB, API]), max_size=20),
)
def test_however_they_stood_before_new_replicas_never_widen_the_gap(counts: list[int], new: list[UUID]) -> None:
    hosts = [f"host-{number}" for number in range(len(counts))]
    before = {(WEB, host): count for host, count in zip(hosts, counts, strict=True)}
    unplaced = routes(*new)
    chosen = place(unplaced, hosts, before, dict(zip(hosts, counts, strict=True)))
    after = Counter[tuple[UUID, str | None]](before) + spread(unplaced, chosen)
    for owner in (WEB, API):
        own = [after[owner, host] for host in hosts]
        had = [before.get((owner, host), 0) for host in hosts]
        assert max(own) - min(own) <= max(max(had) - min(had), 1)


OPEN, DEAF, DRAINED, BOTH = HostUp(0), HostUp(0, is_deaf=True), HostUp(0, is_drained=True), HostUp(0, True, True)  # noqa: FBT003


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ({"a": OPEN, "b": DRAINED}, ["a"]),
        ({"a": OPEN, "b": DEAF, "c": DRAINED}, ["a"]),
        ({"a": DEAF, "b": DRAINED}, ["b"]),
        ({"a": DEAF, "b": BOTH}, ["a", "b"]),
        ({"a": DRAINED, "b": DRAINED}, ["a", "b"]),
        ({"a": HostUp(3600), "b": DRAINED}, ["a"]),
        ({}, []),
    ],
)
def test_a_drained_host_gets_new_ones_only_where_no_other_is_asked(
    hosts: dict[str, HostUp], expected: list[str]
) -> None:
    assert sorted(takers(hosts)) == expected


@pytest.mark.parametrize(
    ("lacking", "expected"),
    [((), "a"), (("a",), "b"), (("a", "b"), "a"), (("b",), "a")],
)
def test_what_only_a_drained_host_can_run_is_made_there(lacking: tuple[str, ...], expected: str) -> None:
    grounds = PlacingGrounds([Unplaced(WEB, is_external=False, lacking=lacking)], {"a": OPEN, "b": DRAINED})
    assert hosts_by(grounds) == [expected]


SILENT, SILENT_DRAINED = HostUp(0, is_silent=True), HostUp(0, is_drained=True, is_silent=True)


@pytest.mark.parametrize(
    ("hosts", "lacking", "expected"),
    [
        pytest.param({"a": SILENT, "b": OPEN}, (), "b", id="another is heard"),
        pytest.param({"a": SILENT, "b": SILENT}, (), "a", id="all are silent: whoever looks was away himself"),
        pytest.param({"a": SILENT, "b": DRAINED}, (), "a", id="the other is drained"),
        pytest.param({"a": SILENT_DRAINED, "b": OPEN}, (), "b", id="drained beforehand"),
        pytest.param({"a": DEAF, "b": SILENT}, (), "b", id="the other is deaf"),
        pytest.param({"a": OPEN, "b": SILENT}, ("a",), "b", id="only the silent one has its secrets"),
        pytest.param({"a": DRAINED, "b": OPEN, "c": SILENT}, ("b",), "c", id="and rather than a drained one"),
        pytest.param({"a": DRAINED, "b": OPEN, "c": SILENT}, ("b", "c"), "a", id="but the drained one alone"),
    ],
)
def test_a_silent_host_gets_new_ones_only_where_no_other_takes_them(
    hosts: dict[str, HostUp], lacking: tuple[str, ...], expected: str
) -> None:
    assert hosts_by(PlacingGrounds([Unplaced(WEB, is_external=False, lacking=lacking)], hosts)) == [expected]
