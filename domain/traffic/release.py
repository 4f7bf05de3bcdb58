"""Traffic settings that come with a rollout: they hold from the exchange on, and leave on the way back.

    settings of v1   │ v1 v1 │ v2 starts      callers meet v1 alone
    settings of v2   │ v1 v1 │ v2 answers     from the exchange on, by the entrances of both
    settings of v2   │       │ v2 v2          completed: entrances that v2 lacks are free
    settings of v1   │ v1 v1 │                on the way back, as soon as v2 answers nobody

What a person sets without a rollout holds at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from domain.model.states import TrafficStatus
from domain.traffic.entrances import in_order
from domain.traffic.snapshot import (
    Canary,
    Entrance,
    EntranceKind,
    RequestRules,
    RouteInTraffic,
    known_rules,
    stored_together,
)
from domain.traffic.tls import CertificateKind
from domain.traffic.wire import Wire

Reached = tuple[tuple[Entrance, ...], RequestRules]
"""The entrances of a deployment, in their order, with the rules for its requests."""

_KINDS = {kind.value: kind for kind in EntranceKind}


def stored_release(
    traffic: Reached, certificates: Iterable[tuple[CertificateKind, str]], moment: str = ""
) -> dict[str, Any]:
    """The settings as a rollout keeps them: columns of its deployment by name, entrances, and certificates for them.

    `moment`: from when on they hold, in words.
    """
    entrances, rules = traffic
    return {
        "request_timeout_seconds": rules.timeout_seconds,
        "hedge_after_seconds": rules.hedge_after_seconds,
        "preview": rules.preview,
        "idle_timeout_seconds": rules.idle_timeout_seconds,
        "protocol": rules.protocol.value,
        "rules": stored_together(rules),
        "entrances": [[entrance.kind.value, entrance.value, entrance.strip_prefix] for entrance in entrances],
        "moment": moment,
        "certificates": sorted([kind.value, name] for kind, name in certificates),
    }


def known_release(raw: Mapping[str, Any] | None) -> Reached | None:
    """The settings as a rollout keeps them, without entrances of a kind that only a newer release knows."""
    if raw is None:
        return None
    rules = known_rules(
        raw["request_timeout_seconds"],
        raw["hedge_after_seconds"],
        raw["idle_timeout_seconds"],
        raw["protocol"],
        raw["rules"],
        preview=raw["preview"],
    )
    rows = raw["entrances"]
    return in_order(Entrance(_KINDS[kind], value, strip) for kind, value, strip in rows if kind in _KINDS), rules


def in_force(
    before: Reached, release: Reached | None, routes: Sequence[RouteInTraffic], canary: Canary | None
) -> Reached:
    """The settings that hold while these replicas are in traffic. `release`: the settings of the rollout under way."""
    is_met = any(route.is_candidate and route.traffic is TrafficStatus.ACTIVE for route in routes)
    if release is None or not is_met or (canary is not None and canary.weight == 0):
        return before
    both = {(entrance.kind, entrance.value): entrance for entrance in (*before[0], *release[0])}
    return in_order(both.values()), release[1]


def coming_wire(rules: RequestRules, release: Reached | None, routes: Iterable[RouteInTraffic]) -> Wire:
    """The wire of the next replica, where none is in traffic: a waiting request waits where it will be.

    `rules`: those in force. `release`: what comes with the rollout under way, unless that goes back.
    """
    if release is None or any(route.traffic is TrafficStatus.ACTIVE for route in routes):
        return rules.wire
    return release[1].wire


@dataclass(frozen=True, slots=True)
class LastRelease:
    """The last rollout that has ended, where it brought settings. `before` and `after`: as it keeps them.

    `is_completed`: otherwise it went back, or was left for another.
    """

    from_revision_id: UUID
    to_revision_id: UUID
    is_completed: bool
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def release_again(last: LastRelease, target: UUID, now: Reached) -> Mapping[str, Any] | None:
    """The settings that a rollout to `target` brings, where it takes back the last one or tries it again.

    None where it does neither, and where somebody has changed the settings since.

        v1 → v2 completed, with settings of v2     undo to v1: those of before
        v1 → v2 rolled back                        retry: those of v2
    """
    if last.is_completed:
        is_back = target == last.from_revision_id and now == known_release(last.after)
        return last.before if is_back else None
    is_again = target == last.to_revision_id and now == known_release(last.before)
    return last.after if is_again else None
