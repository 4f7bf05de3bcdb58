"""Snapshots from pictures: `deploying("■■|◇")` is a rollout from v1 to v2 with two old and one new replica.

■ healthy   △ degraded   ▲ unhealthy   ◇ provisioning   ✗ failed   ~ terminating
□ healthy, without traffic   ◌ provisioning, without traffic   ▫ healthy and parked for another minute
▣ healthy, on a drained host   ◈ provisioning, on a drained host
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from domain.handlers.scaling import ScalingHandler
from domain.model.decision import Decision, RouteChanges
from domain.model.deployment import Deployment, Rollout, Route
from domain.model.picture import symbol
from domain.model.policy import DeploymentPolicy, RolloutLimits
from domain.model.states import (
    DeploymentLifecycleStatus,
    DeploymentSubStep,
    Lifecycle,
    RouteStatus,
    TrafficStatus,
    Verdict,
)
from domain.strategies.builtin import parse_policy
from tests.support.pictures.values_within import with_autoscaling, with_canary

NOW = datetime(2026, 3, 14, 12, tzinfo=UTC)
V1 = UUID("00000000-0000-0000-0000-0000000000a1")
V2 = UUID("00000000-0000-0000-0000-0000000000a2")
V3 = UUID("00000000-0000-0000-0000-0000000000a3")
DEPLOYMENT = UUID("00000000-0000-0000-0000-0000000000d1")
ROLLOUT = UUID("00000000-0000-0000-0000-0000000000e1")

PENDING = DeploymentLifecycleStatus(Lifecycle.PENDING)
SCALING = DeploymentLifecycleStatus(Lifecycle.SCALING)
READY = DeploymentLifecycleStatus(Lifecycle.READY)
PROVISIONING = DeploymentLifecycleStatus(Lifecycle.DEPLOYING, DeploymentSubStep.PROVISIONING)
ROLLING_BACK = DeploymentLifecycleStatus(Lifecycle.DEPLOYING, DeploymentSubStep.ROLLING_BACK)
DESTROYING = DeploymentLifecycleStatus(Lifecycle.DESTROYING)
DESTROYED = DeploymentLifecycleStatus(Lifecycle.DESTROYED)

_SYMBOLS = {
    "■": (RouteStatus.HEALTHY, TrafficStatus.ACTIVE),
    "▣": (RouteStatus.HEALTHY, TrafficStatus.ACTIVE),
    "◈": (RouteStatus.PROVISIONING, TrafficStatus.ACTIVE),
    "□": (RouteStatus.HEALTHY, TrafficStatus.INACTIVE),
    "▫": (RouteStatus.HEALTHY, TrafficStatus.INACTIVE),
    "◌": (RouteStatus.PROVISIONING, TrafficStatus.INACTIVE),
    "△": (RouteStatus.DEGRADED, TrafficStatus.ACTIVE),
    "▲": (RouteStatus.UNHEALTHY, TrafficStatus.ACTIVE),
    "◇": (RouteStatus.PROVISIONING, TrafficStatus.ACTIVE),
    "✗": (RouteStatus.FAILED, TrafficStatus.ACTIVE),
    "~": (RouteStatus.TERMINATING, TrafficStatus.INACTIVE),
}

MISPLACED = {"▣": "■", "◈": "◇"}
"""By the symbols of replicas on drained hosts: what they are elsewhere."""


def route_id(number: int) -> UUID:
    """Of the n-th route of a picture, counted from 0 and from left to right; each is older than the next."""
    return UUID(int=number + 1)


def routes_of(picture: str, left: UUID, right: UUID, *, status_for: float = 3600) -> tuple[Route, ...]:
    """`left`|`right`; each route has had its status for `status_for` seconds at NOW. Without a bar all is right."""
    old, bar, new = picture.partition("|")
    sides = [(left, symbol) for symbol in old] + [(right, symbol) for symbol in new] if bar else []
    drawn = sides or [(right, symbol) for symbol in old]
    return tuple(
        Route(
            id=route_id(number),
            revision_id=revision,
            status=_SYMBOLS[symbol][0],
            traffic=_SYMBOLS[symbol][1],
            created_at=NOW - timedelta(days=1) + timedelta(seconds=number),
            status_changed_at=NOW - timedelta(seconds=status_for),
            parked_until=NOW + timedelta(minutes=1) if symbol == "▫" else None,
            is_misplaced=symbol in MISPLACED,
        )
        for number, (revision, symbol) in enumerate(drawn)
    )


def rolling_update(s: int | str = 1, u: int | str = 1, **spec: Any) -> DeploymentPolicy:
    return parse_policy({"strategy": "rolling_update", "spec": {"max_surge": s, "max_unavailable": u, **spec}})


def blue_green(**spec: Any) -> DeploymentPolicy:
    return parse_policy({"strategy": "blue_green", "spec": spec})


RECREATE = parse_policy({"strategy": "recreate"})


def rollout_of(policy: DeploymentPolicy, **changed: Any) -> Rollout:
    """v1 to v2, begun at NOW. `changed`: fields of the rollout, or of its canary."""
    return with_canary(
        Rollout(
            id=ROLLOUT,
            from_revision_id=V1,
            to_revision_id=V2,
            policy=policy,
            started_at=NOW,
            last_progress_at=NOW,
            deadline=NOW + timedelta(seconds=policy.limits.timeout_seconds),
            desired_at_start=3,
        ),
        **changed,
    )


def deploying(
    picture: str,
    n: int = 3,
    s: int | str = 1,
    u: int | str = 1,
    *,
    status_for: float = 3600,
    limits: RolloutLimits | None = None,
    rollout: dict[str, Any] | None = None,
    policy: DeploymentPolicy | None = None,
    spec: dict[str, Any] | None = None,
    **changed: Any,
) -> Deployment:
    """Deploying v2 (right of the bar) over v1 (left of it). `spec`: pacing, min_ready_seconds."""
    chosen = policy or rolling_update(s, u, **(spec or {}))
    if limits:
        chosen = replace(chosen, limits=limits)
    return replace(
        Deployment(
            id=DEPLOYMENT,
            name="web",
            desired_replicas=n,
            status=PROVISIONING,
            current_revision_id=V1,
            deploying_revision_id=V2,
            version=1,
            phase_started_at=NOW,
            rollout=rollout_of(chosen, **{"desired_at_start": n, **(rollout or {})}),
            routes=routes_of(picture, V1, V2, status_for=status_for),
        ),
        **changed,
    )


def rolling_back(picture: str, n: int = 3, s: int | str = 1, u: int | str = 1, **changed: Any) -> Deployment:
    """On the way back from v2 (right of the bar) to v1 (left of it)."""
    return deploying(picture, n, s, u, **{"status": ROLLING_BACK, **changed})


def resting(
    picture: str,
    n: int = 3,
    status: DeploymentLifecycleStatus = SCALING,
    *,
    status_for: float = 3600,
    **changed: Any,
) -> Deployment:
    """No rollout; v2 is current (right of the bar, or all when there is no bar), v1 is foreign (left of it)."""
    return with_autoscaling(
        Deployment(
            id=DEPLOYMENT,
            name="web",
            desired_replicas=n,
            status=status,
            current_revision_id=V2,
            deploying_revision_id=None,
            version=1,
            phase_started_at=NOW,
            routes=routes_of(picture, V1, V2, status_for=status_for),
        ),
        **changed,
    )


def drawn_changes(deployment: Deployment, changes: RouteChanges) -> str:
    """E.g. "create 1, promote □, drain ▲■": drained and promoted ones as symbols, in the order of the decision."""
    at = {elsewhere: here for here, elsewhere in MISPLACED.items()}
    drawn = {route.id: symbol(route.status, route.traffic) for route in deployment.routes}
    there = {route.id for route in deployment.routes if route.is_misplaced}
    symbols = {route: at.get(symbol, symbol) if route in there else symbol for route, symbol in drawn.items()}
    parts = []
    if changes.created:
        parts.append(f"create {changes.created}")
    if changes.promote_route_ids:
        parts.append("promote " + "".join(symbols[chosen] for chosen in changes.promote_route_ids))
    if changes.drain_route_ids:
        parts.append("drain " + "".join(symbols[chosen] for chosen in changes.drain_route_ids))
    if changes.park_route_ids:
        parts.append("park " + "".join(symbols[chosen] for chosen in changes.park_route_ids))
    if changes.woken:
        parts.append("wake " + "".join(symbols[chosen] for chosen, _ in changes.woken))
    return ", ".join(parts)


def happens(deployment: Deployment, decision: Decision) -> str:
    """The changes as a picture; "wait", "completed" or "give up" when there are none."""
    drawn = drawn_changes(deployment, decision.changes)
    match decision.verdict:
        case Verdict.SUCCESS:
            return f"completed: {drawn}" if drawn else "completed"
        case Verdict.SKIPPED:
            return "wait"
        case Verdict.GIVE_UP:
            return "give up"
    return drawn


def scaling(deployment: Deployment) -> str:
    """What scaling does with this deployment now, as a picture."""
    return happens(deployment, ScalingHandler().decide(deployment, NOW))
