"""Which part of the requests each replica answers, as proxies are told, in the words of who sends them.

A replica's part is 1 / floor of them, or as much as all that are healthy would answer alike where that is more.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from uuid import UUID

from domain.model.deployment import Deployment, Route
from domain.model.states import RouteStatus
from domain.strategies.in_place import free_devices
from domain.traffic.capacity import sides
from domain.traffic.snapshot import Canary, DeploymentInTraffic, RequestRules, RouteInTraffic
from tests.support.pictures.pictures import ROLLING_BACK
from tests.support.worlds.promised import WHOLE, promised

FINE = Fraction(3, WHOLE)
"""Weights are whole hundredths of a percent."""


def broken_by_requests(deployment: Deployment) -> str | None:
    """In every state, whatever befell it: nobody new answers more than its part, and who is sick answers nothing."""
    rollout = deployment.rollout
    if rollout is None or rollout.canary is None or not rollout.canary.weight:
        return None
    answers = answered(deployment)
    new = [answers[route.id] for route in deployment.routes if route.revision_id == rollout.to_revision_id]
    if any(answers.values()) and max(new, default=Fraction()) > part(deployment) + FINE:
        return "a replica of a canary answers no more than its part, whoever else is lost"
    if any(answers.values()) and sum(answers.values()) < 1:
        return "no requests go to a side that is sick while somebody is healthy"
    return None


def idled(before: Deployment, after: Deployment) -> Iterator[str]:
    """Of an act of ours or of a person that neither changes the size nor takes requests from who does harm.

    Where no device is free the old side takes them with the replicas that it has.
    """
    if free_devices(before) == 0:
        return
    answers, then = answered(after), answered(before)
    most = max(answers.values(), default=Fraction())
    if most <= max(part(after) + FINE, *then.values(), Fraction()):
        return
    if any(not answers[route.id] for route in after.routes if route.is_serving):
        yield "no healthy replica idles while another answers more than its part by us"


def part(deployment: Deployment) -> Fraction:
    """Of all requests, what one replica answers at most, by docs/canary.md."""
    healthy = sum(route.is_serving for route in deployment.routes)
    return Fraction(1, max(1, min(_floor(deployment), healthy)))


def answered(deployment: Deployment) -> dict[UUID, Fraction]:
    """By each replica that is healthy. A side's requests are shared out evenly among those of it."""
    live, canary, baseline, weight, beside = sides(_in_traffic(deployment))
    parts = {route.id: Fraction() for route in deployment.routes}
    for side, share in ((live, WHOLE - weight - beside), (canary, weight), (baseline, beside)):
        healthy = [route for route in side if route.status is RouteStatus.HEALTHY]
        for route in healthy:
            parts[route.id] += Fraction(share, WHOLE * len(healthy))
    return parts


def _floor(deployment: Deployment) -> int:
    """As Postgres holds a rollout to it: the lowest for the sizes that it may have."""
    rollout = deployment.rollout
    if rollout is None:
        return promised(deployment).keep
    sizes = [size for size in (rollout.desired_at_start, rollout.desired_with_revision) if size is not None]
    moving = replace(deployment, paused_at=None, hold=None)
    return min(promised(replace(moving, desired_replicas=size)).keep for size in sizes)


def _in_traffic(deployment: Deployment) -> DeploymentInTraffic:
    rollout = deployment.rollout
    canary = rollout.canary if rollout else None
    routes = tuple(_published(deployment, route) for route in deployment.routes if _is_published(route))
    weighed = Canary(canary.weight, floor=_floor(deployment), baseline=_baseline(deployment)) if canary else None
    return DeploymentInTraffic(deployment.name, (), RequestRules(), routes, weighed)


def _baseline(deployment: Deployment) -> frozenset[UUID] | None:
    rollout = deployment.rollout
    if rollout is None or not getattr(rollout.policy.spec, "has_baseline", False):
        return None
    if deployment.status == ROLLING_BACK:
        return frozenset()
    old = (route for route in deployment.routes if route.revision_id == rollout.from_revision_id)
    return frozenset(route.id for route in old if route.created_at >= rollout.started_at)


def _is_published(route: Route) -> bool:
    return route.is_active and route.status is not RouteStatus.PROVISIONING


def _published(deployment: Deployment, route: Route) -> RouteInTraffic:
    return RouteInTraffic(
        id=route.id,
        revision=str(route.revision_id),
        revision_id=route.revision_id,
        address="10.0.0.1:8000",
        status=route.status,
        traffic=route.traffic,
        ratio=1.0,
        is_candidate=route.revision_id == deployment.deploying_revision_id,
        is_parked=route.parked_until is not None,
        is_current=route.revision_id == deployment.current_revision_id,
    )
