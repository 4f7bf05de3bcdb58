"""Traffic settings that come with a rollout: when they hold, how they are kept, and when they come again."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from domain.model.states import RouteStatus, TrafficStatus
from domain.traffic.release import LastRelease, coming_wire, in_force, known_release, release_again, stored_release
from domain.traffic.snapshot import Canary, Entrance, EntranceKind, RequestRules, RouteInTraffic
from domain.traffic.tls import CertificateKind
from domain.traffic.wire import Protocol, Wire

V1, V2, V3 = UUID(int=1), UUID(int=2), UUID(int=3)


def host(value: str) -> Entrance:
    return Entrance(EntranceKind.HOST, value)


def prefix(value: str, *, strip: bool) -> Entrance:
    return Entrance(EntranceKind.PREFIX, value, strip)


OLD = (host("a.example.com"), prefix("/web/", strip=True)), RequestRules(30.0, None, preview=False)
NEW = (host("b.example.com"), prefix("/web/", strip=False)), RequestRules(5.0, 2.0, True, 60.0, Protocol.HTTP2)  # noqa: FBT003
BOTH = (host("a.example.com"), host("b.example.com"), prefix("/web/", strip=False))


def routes(drawn: str) -> list[RouteInTraffic]:
    """Old replicas and, right of the bar, candidates; □ is out of traffic."""
    old, _, new = drawn.partition("|")
    return [
        RouteInTraffic(
            UUID(int=number),
            side,
            V2 if side == "v2" else V1,
            "10.0.0.1:80",
            RouteStatus.HEALTHY,
            TrafficStatus.INACTIVE if symbol == "□" else TrafficStatus.ACTIVE,
            1.0,
            is_candidate=side == "v2",
            is_parked=False,
        )
        for number, (symbol, side) in enumerate([*((its, "v1") for its in old), *((its, "v2") for its in new)])
    ]


@pytest.mark.parametrize(
    ("drawn", "canary", "is_met"),
    [
        ("■■|", None, False),
        ("■■|□", None, False),
        ("■■|■", None, True),
        ("■■|□■", None, True),
        ("|■", None, True),
        ("■■|■", Canary(weight=0), False),  # it gets copies at most
        ("■■|■", Canary(weight=1), True),
        ("■■|■", Canary(weight=None), True),
        ("■■|□", Canary(weight=500), False),
    ],
)
def test_settings_hold_from_when_callers_may_meet_the_new_revision(
    drawn: str, canary: Canary | None, *, is_met: bool
) -> None:
    assert in_force(OLD, NEW, routes(drawn), canary) == ((BOTH, NEW[1]) if is_met else OLD)
    assert in_force(OLD, None, routes(drawn), canary) == OLD


@pytest.mark.parametrize(
    ("drawn", "wire"),
    [("|", Wire(Protocol.HTTP2)), ("□|□", Wire(Protocol.HTTP2)), ("■□|", Wire()), ("□|■", Wire())],
)
def test_a_request_that_waits_for_the_first_replica_waits_where_that_will_be(drawn: str, wire: Wire) -> None:
    assert coming_wire(OLD[1], NEW, routes(drawn)) == wire
    assert coming_wire(OLD[1], None, routes(drawn)) == Wire()


CERTIFICATES = [(CertificateKind.ACME, "b.example.com"), (CertificateKind.ACME, "a.example.com")]


def test_they_are_kept_with_the_columns_of_their_deployment() -> None:
    """Rows of rollouts have this form."""
    rules = replace(NEW[1], hold_seconds=20)
    assert stored_release((NEW[0], rules), CERTIFICATES, "with the promotion") == {
        "request_timeout_seconds": 5.0,
        "hedge_after_seconds": 2.0,
        "preview": True,
        "idle_timeout_seconds": 60.0,
        "protocol": "http2",
        "rules": {"hold_seconds": 20},
        "entrances": [["host", "b.example.com", True], ["prefix", "/web/", False]],
        "moment": "with the promotion",
        "certificates": [["acme", "a.example.com"], ["acme", "b.example.com"]],
    }
    assert stored_release(NEW, [])["moment"] == ""


@pytest.mark.parametrize("reached", [OLD, NEW])
def test_they_are_read_as_they_were_kept_without_what_only_a_newer_release_knows(reached: Any) -> None:
    stored = json.loads(json.dumps(stored_release(reached, CERTIFICATES)))
    assert known_release(stored) == reached
    assert known_release({**stored, "entrances": [["sni", "x", True], *reversed(stored["entrances"])]}) == reached
    assert known_release(None) is None


KEPT_OLD, KEPT_NEW = stored_release(OLD, []), stored_release(NEW, [])


@pytest.mark.parametrize(
    ("is_completed", "target", "now", "again"),
    [
        # an undo of v1 → v2 brings back what was before
        (True, V1, NEW, KEPT_OLD),
        (True, V1, OLD, None),  # somebody has changed it since
        (True, V2, NEW, None),
        (True, V3, NEW, None),
        # what went back to v1 is tried again
        (False, V2, OLD, KEPT_NEW),
        (False, V2, NEW, None),
        (False, V1, OLD, None),
        (False, V3, OLD, None),
    ],
)
def test_an_undo_and_a_retry_bring_settings_again_unless_somebody_has_changed_them(
    is_completed: bool,  # noqa: FBT001
    target: UUID,
    now: Any,
    again: Mapping[str, Any] | None,
) -> None:
    assert release_again(LastRelease(V1, V2, is_completed, KEPT_OLD, KEPT_NEW), target, now) == again
