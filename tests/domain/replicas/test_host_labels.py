"""Labels of hosts: no replica is ever placed where a label is missing, and each is spread as its revision says."""

import re
from collections import Counter
from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.replicas.host_choice import HostUp, PlacingGrounds, Unplaced, hosts_by
from domain.revisions.host_labels import (
    HOST,
    Labels,
    NoHostFitsError,
    has_labels,
    labels_in,
    missing_label,
    refuse_unfit,
    why_unplaced,
)

WEB, API = UUID(int=1), UUID(int=2)
FLEET: Mapping[str, Labels] = {"m1": {"zone": "a"}, "m2": {"zone": "b", "disk": "ssd"}, "m3": {}}


def up(labels: Labels | None = None, **states: bool) -> HostUp:
    return HostUp(0, **states, labels=labels)


def chosen(hosts: Mapping[str, HostUp], labels: Labels, new: int = 1, spread: str = HOST, **more: object) -> str:
    wanted = [Unplaced(WEB, is_external=False, labels=labels, spread=spread)] * new
    return " ".join(host or "-" for host in hosts_by(PlacingGrounds(wanted, hosts, **more)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("zone=a", {"zone": "a"}),
        (" zone=a , disk=ssd ,", {"zone": "a", "disk": "ssd"}),
        ("", {}),
        ("example.com/rack=7", {"example.com/rack": "7"}),
    ],
)
def test_a_host_has_its_labels_from_one_variable(text: str, labels: Labels) -> None:
    assert labels_in(text) == labels


@pytest.mark.parametrize("text", ["zone", "zone=", "=a", "zone=a,zone=b", "host=m1", "zone=a b", "z=" + "a" * 64])
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        labels_in(text)


@pytest.mark.parametrize(
    ("hosts", "labels", "expected"),
    [
        pytest.param({"m1": up(), "m2": up({"zone": "a"})}, {"zone": "a"}, "m2", id="it has the label"),
        pytest.param({"m1": up({"zone": "b"}), "m2": up()}, {"zone": "a"}, "-", id="nobody has it: none, not any"),
        pytest.param({"m1": up(), "m2": up()}, {"host": "m2"}, "m2", id="each host is called what it is called"),
        pytest.param(
            {"m1": up({"z": "a"}), "m2": up({"z": "a"})}, {"z": "a", "host": "m3"}, "-", id="each label counts"
        ),
        pytest.param(
            {"m1": up(), "m2": up({"z": "a"}, is_drained=True)}, {"z": "a"}, "m2", id="a drained one before none"
        ),
        pytest.param({"m1": up(), "m2": up({"z": "a"}, is_silent=True)}, {"z": "a"}, "m2", id="a silent one, too"),
        pytest.param({"m1": up(), "m2": up({"z": "a"}, is_deaf=True)}, {"z": "a"}, "m2", id="and a deaf one"),
        pytest.param({"m1": up(), "m2": HostUp(3600, labels={"z": "a"})}, {"z": "a"}, "m2", id="a clock is no label"),
        pytest.param(
            {"m1": up({"z": "a"}, is_drained=True), "m2": up({"z": "a"}), "m3": up()},
            {"z": "a"},
            "m2",
            id="the open one",
        ),
    ],
)
def test_only_hosts_with_the_labels_are_chosen_among(
    hosts: Mapping[str, HostUp], labels: Labels, expected: str
) -> None:
    assert chosen(hosts, labels) == expected


def test_a_secret_that_hosts_with_the_labels_lack_leads_to_no_other() -> None:
    wanted = Unplaced(WEB, is_external=False, lacking=("m1",), labels={"zone": "a"})
    assert hosts_by(PlacingGrounds([wanted], {"m1": up({"zone": "a"}), "m2": up()})) == ["m1"]


ZONES = {"a1": up({"zone": "a"}), "a2": up({"zone": "a"}), "b1": up({"zone": "b"}), "c": up(), "d": up()}


@pytest.mark.parametrize(
    ("spread", "new", "expected"),
    [
        ("host", 5, "a1 a2 b1 c d"),
        ("zone", 3, "a1 b1 c"),
        ("zone", 6, "a1 b1 c a2 d b1"),
        ("rack", 5, "a1 a2 b1 c d"),
    ],
)
def test_replicas_are_spread_over_hosts_or_over_the_values_of_a_label(spread: str, new: int, expected: str) -> None:
    assert chosen(ZONES, {}, new, spread) == expected


def test_what_a_zone_has_already_counts_on_a_drained_host_too() -> None:
    hosts = {"a1": up({"zone": "a"}, is_drained=True), "a2": up({"zone": "a"}), "b1": up({"zone": "b"})}
    assert chosen(hosts, {}, 2, "zone", of_deployment={(WEB, "a1"): 1}) == "b1 a2"


def test_replicas_of_other_labels_in_the_same_transaction_count() -> None:
    near = Unplaced(WEB, is_external=False, labels={"zone": "a"})
    anywhere = Unplaced(WEB, is_external=False)
    hosts = {"a1": up({"zone": "a"}), "a2": up({"zone": "a"}), "b1": up()}
    assert hosts_by(PlacingGrounds([near, anywhere, near, anywhere], hosts)) == ["a1", "b1", "a2", "a1"]


VALUES = st.sampled_from("ab")
LABELS = st.dictionaries(st.sampled_from(["zone", "disk"]), VALUES)
HOSTS = st.dictionaries(
    st.sampled_from([f"m{number}" for number in range(6)]),
    st.builds(HostUp, st.sampled_from([0.0, 3600.0]), st.booleans(), st.booleans(), st.booleans(), LABELS),
)
REQUIRED = st.one_of(LABELS, st.sampled_from([{"host": "m1"}, {"host": "m2", "zone": "a"}]))
WANTED = st.builds(
    Unplaced,
    st.sampled_from([WEB, API]),
    st.booleans(),
    st.lists(st.sampled_from(["m0", "m1"]), max_size=2),
    REQUIRED,
    st.sampled_from(["host", "zone", "rack"]),
)


@settings(max_examples=1000)
@given(hosts=HOSTS, wanted=st.lists(WANTED, max_size=8), counts=st.dictionaries(st.sampled_from(["m0", "m3"]), VALUES))
def test_in_whatever_fleet_every_placement_keeps_the_labels_and_none_is_withheld(
    hosts: dict[str, HostUp], wanted: list[Unplaced], counts: dict[str, str]
) -> None:
    of_all = {host: ord(value) - ord("a") for host, value in counts.items()}
    placed = hosts_by(PlacingGrounds(wanted, hosts, {}, of_all))
    for replica, host in zip(wanted, placed, strict=True):
        fitting = {name for name, each in hosts.items() if has_labels(replica.labels or {}, name, each.labels or {})}
        assert replica.is_external or (host in fitting if fitting else host is None)


@settings(max_examples=1000)
@given(hosts=HOSTS, new=st.integers(0, 12), spread=st.sampled_from(["host", "zone"]))
def test_in_whatever_fleet_a_spread_is_even_to_one(hosts: dict[str, HostUp], new: int, spread: str) -> None:
    wanted = [Unplaced(WEB, is_external=False, spread=spread)] * new
    placed = [host for host in hosts_by(PlacingGrounds(wanted, hosts)) if host]
    value = {name: name if spread == "host" else (each.labels or {}).get("zone") for name, each in hosts.items()}
    counts = Counter(value[host] for host in placed)
    assert not counts or max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize(
    ("required", "missing"),
    [
        ({"zone": "a"}, ""),
        ({}, ""),
        ({"host": "m3"}, ""),
        ({"zone": "c"}, "no host has zone=c; zone is a or b"),
        ({"rack": "7"}, "no host has the label rack"),
        ({"host": "m9"}, "no host is called m9; there is m1 or m2 or m3"),
        ({"zone": "a", "disk": "ssd"}, "no host has disk=ssd and zone=a together"),
        ({"zone": "c", "rack": "7"}, "no host has the label rack"),
        ({"host": "m1", "zone": "b"}, "no host has host=m1 and zone=b together"),
    ],
)
def test_the_label_that_is_missing_is_named(required: Labels, missing: str) -> None:
    assert missing_label(required, FLEET) == missing
    if not missing:
        return refuse_unfit("v2", required, FLEET)
    with pytest.raises(
        NoHostFitsError, match=f"^hosts: no host can take v2: {re.escape(missing)}; name labels"
    ) as refused:
        refuse_unfit("v2", required, FLEET)
    assert refused.value.detail == {"field": "hosts", "revision": "v2"}
    return refuse_unfit("v2", required, {})


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (5, "1 or 2 or 3 or 4 or 5"),
        (6, "1 or 2 or 3 or 4 or 5 or 1 more"),
        (8, "1 or 2 or 3 or 4 or 5 or 3 more"),
    ],
)
def test_of_many_values_five_are_shown(count: int, shown: str) -> None:
    hosts = {f"m{number}": {"rack": str(number)} for number in range(1, count + 1)}
    assert missing_label({"rack": "0"}, hosts) == f"no host has rack=0; rack is {shown}"
    called = " or ".join(f"m{part}" if part.isdecimal() else part for part in shown.split(" or "))
    assert missing_label({"host": "m0"}, hosts) == f"no host is called m0; there is {called}"


@pytest.mark.parametrize(
    ("count", "shown"),
    [(5, "d1, d2, d3, d4, d5"), (6, "d1, d2, d3, d4, d5 and 1 more"), (7, "d1, d2, d3, d4, d5 and 2 more")],
)
def test_of_many_hosts_that_are_down_five_are_named(count: int, shown: str) -> None:
    down: dict[str, Labels] = {f"d{number}": {"disk": "hd", "zone": "c"} for number in range(count, 0, -1)}
    assert why_unplaced({"zone": "c", "disk": "hd"}, FLEET, {**down, "d9": {"zone": "d"}}) == (
        f"no host that is up has disk=hd, zone=c; {shown}, with these labels, are down"
    )


def test_a_host_has_sixteen_labels_at_most() -> None:
    assert len(labels_in(",".join(f"l{number}=a" for number in range(16)))) == 16
    with pytest.raises(ValueError, match="l16=a"):
        labels_in(",".join(f"l{number}=a" for number in range(17)))


def test_the_refusal_says_what_would_be_right() -> None:
    with pytest.raises(NoHostFitsError, match=r"or give a host ROLLWAY_HOST_LABELS=rack=7,zone=a$"):
        refuse_unfit("v2", {"zone": "a", "rack": "7"}, FLEET)
    with pytest.raises(NoHostFitsError, match=r"name labels that one host has$"):
        refuse_unfit("v2", {"host": "m9"}, FLEET)


@pytest.mark.parametrize(
    ("down", "why"),
    [
        ({}, "no host that is up has zone=c; zone is a or b"),
        ({"m4": {"zone": "c"}}, "no host that is up has zone=c; m4, with these labels, is down"),
        (
            {"m4": {"zone": "c"}, "m5": {"zone": "c"}},
            "no host that is up has zone=c; m4, m5, with these labels, are down",
        ),
    ],
)
def test_a_replica_that_waits_says_which_label_and_who_has_it(down: Mapping[str, Labels], why: str) -> None:
    assert why_unplaced({"zone": "c"}, FLEET, down) == why
    assert why_unplaced({"zone": "a"}, FLEET, down) == ""
