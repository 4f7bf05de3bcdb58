"""The replicas that a share of the requests needs, and the share that replicas carry, where `keep` carry all."""

from typing import NamedTuple

from domain.model.states import RouteStatus, TrafficStatus
from domain.text.numbers import WHOLE
from domain.traffic.snapshot import DeploymentInTraffic, RouteInTraffic

_FINE = 2
"""Weights are whole hundredths of a percent: one this much lower needs no further replica."""


def needed(keep: int, weight: int) -> int:
    """The fewest replicas that serve a side with this weight; keep 10: 10 at 95 %, 1 at 5 %, and all at 100 %."""
    if weight == WHOLE:
        return keep
    return min(keep, max(weight > 0, -(-(weight - _FINE) * keep // WHOLE)))


def carried(keep: int, replicas: int) -> int:
    """The most of 10,000 requests that this number of replicas answers; keep 3: 3,333 for one."""
    return WHOLE * replicas // keep if replicas < keep else WHOLE


def weight_sent(weight: int, replicas: int, keep: int) -> int:
    """The part of 10,000 requests that proxies send to a side of this weight with this number of healthy replicas.

    none of them            -> none
    enough for the weight   -> the weight
    otherwise               -> what they carry; keep 6: 1,666 of 5,000 for one, 3,333 for two
    """
    if not replicas:
        return 0
    return weight if replicas >= needed(keep, weight) else carried(keep, replicas)


def shared_out(weight: int, keep: int, canary: int, baseline: int, rest: int) -> tuple[int, int | None]:
    """Share out 10,000 requests between the canary and its baseline, by the healthy replicas of each and of the rest.

    None for a baseline that answers with the rest: there is none, or without it the rest could not carry what is left.
    """
    canary_weight, baseline_weight = (weight_sent(weight, replicas, keep) for replicas in (canary, baseline))
    is_apart = baseline and rest and rest >= needed(keep, WHOLE - canary_weight - baseline_weight)
    return canary_weight, baseline_weight if is_apart else None


class Sides(NamedTuple):
    """The replicas that get all requests, the canary's share, or the baseline's equal share.

    `weight`, `baseline_weight`: how many of 10,000 requests the canary and its baseline get for now.
    """

    live: list[RouteInTraffic]
    canary: list[RouteInTraffic]
    baseline: list[RouteInTraffic]
    weight: int = 0
    baseline_weight: int = 0


def sides(deployment: DeploymentInTraffic) -> Sides:
    """The replicas in traffic, shared out.

    weight None                        all in traffic
    a weight, and one side not healthy the other side
    a weight, and current ones there   the current ones, and the candidates; what another canary left gets none, unless
                                       fewer current ones are healthy than the floor, or none
    and some of them for a baseline    of these as many as the canary has, the healthy ones first, if others are left
                                       who carry the rest
    a weight, and none but candidates  the candidates

    A canary gets no more than its weight, and no more than who is healthy of it carries by the floor; its baseline
    alike. Where fewer than the floor are healthy on both sides together, all of them get equal parts at most.

    n=6, 50 %, two of three hosts lost:   ■■|■  the canary gets 33.33 %
    """
    active = [route for route in deployment.routes if route.traffic is TrafficStatus.ACTIVE]
    settings = deployment.canary
    if settings is None or settings.weight is None:
        return Sides(active, [], [])
    old = [route for route in active if not route.is_candidate]
    live = [route for route in old if route.is_current]
    if _healthy(live) < max(1, settings.floor):
        live = old
    canary = [route for route in active if route.is_candidate]
    if not _healthy(canary):
        return Sides(live if _healthy(live) else active, [], [])
    if not _healthy(live):
        return Sides(active, [], [])
    enough = min(settings.floor, _healthy(live) + _healthy(canary))
    fresh = [route for route in live if route.id in (settings.baseline or ())]
    fresh.sort(key=_is_healthy, reverse=True)
    baseline = fresh[: len(canary)]
    rest = [route for route in live if route not in baseline]
    weight, baseline_weight = shared_out(settings.weight, enough, *map(_healthy, (canary, baseline, rest)))
    if baseline_weight is None:
        return Sides(live, canary, [], weight)
    return Sides(rest, canary, baseline, weight, baseline_weight)


def _healthy(routes: list[RouteInTraffic]) -> int:
    return sum(map(_is_healthy, routes))


def _is_healthy(route: RouteInTraffic) -> bool:
    return route.status is RouteStatus.HEALTHY


def is_preview(route: RouteInTraffic) -> bool:
    """Healthy, of the revision that is being rolled out, and not in traffic yet."""
    return (
        route.traffic is TrafficStatus.INACTIVE
        and route.is_candidate
        and not route.is_parked
        and route.status is RouteStatus.HEALTHY
    )


def with_a_share(routes: list[RouteInTraffic]) -> list[RouteInTraffic]:
    """The routes that get requests: those with a ratio above 0, or all when no ratio is."""
    return [route for route in routes if route.ratio > 0] or routes
