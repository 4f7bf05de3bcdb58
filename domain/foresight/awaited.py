"""What a deployment waits for, in words: a replica, its host or a secret there, or a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from domain.foresight.blocked import blocked_by, budget_now, min_ready_of
from domain.foresight.ends import promote_delay, route_name
from domain.foresight.plan.around import Around
from domain.foresight.rehearsal.learned import Span
from domain.model.deployment import Deployment, Lifecycle, Route, RouteStatus
from domain.strategies.backoff import next_start_at
from domain.strategies.buckets import Buckets
from domain.words.numbers import duration, number_of


class WaitsFor(StrEnum):
    """What kind of thing is waited for."""

    NOTHING = "nothing"
    WORKER = "worker"
    PERSON = "person"
    ROUTE = "route"
    HOST = "host"
    SECRET = "secret"  # noqa: S105  (the word, and no secret)
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Awaited:
    """What is waited for, in words. `name`: of the route or host, or what a person types. `usually`: of the past."""

    kind: WaitsFor
    words: str
    name: str | None = None
    usually: Span | None = None
    blocked_by: str | None = None


def start_held_until(deployment: Deployment, buckets: Buckets) -> datetime | None:
    """When the next start is tried after one that failed; None while one is tried, or where none has failed."""
    failures = deployment.start_failures
    if failures is None or failures.came_up_at is not None or buckets.starting:
        return None
    return next_start_at(failures)


def next_try(deployment: Deployment, now: datetime) -> Awaited:
    """The time of the next start, after starts that failed. Raises ValueError where none has."""
    failures = deployment.start_failures
    if failures is None:
        raise ValueError(f"no start of {deployment.name} has failed")
    words = f"{deployment.name} waits for its next try, after {number_of(failures.in_a_row, 'start')} failed in a row"
    since, pause = now - failures.last_at, next_start_at(failures) - failures.last_at
    return Awaited(WaitsFor.TIME, words, blocked_by=f"{duration(since)} since the last failure < {duration(pause)}")


def promotion(deployment: Deployment, at: datetime, now: datetime) -> Awaited:
    """The time `at` which a complete green set gets the traffic."""
    delay = promote_delay(deployment)
    blocked = f"{duration(delay - (at - now))} in health < {duration(delay)}"
    words = f"{deployment.name} waits for green to be healthy for promote_delay_seconds"
    return Awaited(WaitsFor.TIME, words, blocked_by=blocked)


def in_the_way(deployment: Deployment, buckets: Buckets) -> Sequence[Route]:
    """Those that are stopping, where anything waits for them."""
    if deployment.status.lifecycle is Lifecycle.DESTROYING:
        return deployment.routes
    budget = budget_now(deployment)
    return (*buckets.foreign_stopping, *buckets.stopping) if budget.count_stopping or budget.alone else ()


def of_route(deployment: Deployment, routes: Sequence[Route], around: Around, now: datetime) -> Awaited:
    """Of the one that has been at it for longest."""
    route = min(routes, key=lambda route: (route.status_changed_at, route.id))
    blocked = blocked_by(deployment, now)
    if (other := _of_host(deployment, route, around, blocked)) is not None:
        return other
    name, host = route_name(route), around.hosts.get(route.id)
    doing, usually = _doing(deployment, route, around)
    where = f" on host {host}" if host else ""
    for_seconds = duration(max(timedelta(), now - route.status_changed_at))
    often = f", usually {usually}" if usually else ""
    reason = around.reasons.get(route.id, "")
    said = f" ({reason})" if reason and route.status is not RouteStatus.HEALTHY else ""
    words = f"{deployment.name} waits for route {name}{where}, {doing} for {for_seconds}{often}{said}"
    return Awaited(WaitsFor.ROUTE, words, name, usually, blocked)


def _of_host(deployment: Deployment, route: Route, around: Around, blocked: str | None) -> Awaited | None:
    """The host, or what it lacks, when the replica can do nothing about it."""
    name, host = route_name(route), around.hosts.get(route.id)
    if host is None and route.id not in around.hosts:
        return None
    if host is None:
        words = f"{deployment.name} waits for a host that is up, for route {name}, which has none yet"
        return Awaited(WaitsFor.HOST, words, None, None, blocked)
    if host in around.down:
        words = f"{deployment.name} waits for host {host}, which is down with route {name}"
        return Awaited(WaitsFor.HOST, words, host, None, blocked)
    if route.status is RouteStatus.PROVISIONING and host in around.lacking:
        words = f"{deployment.name} waits for a secret on host {host}, for route {name}: {around.lacking[host]}"
        return Awaited(WaitsFor.SECRET, words, host, None, blocked)
    return None


def _doing(deployment: Deployment, route: Route, around: Around) -> tuple[str, Span | None]:
    """What the replica is at, and how long that usually takes."""
    match route.status:
        case RouteStatus.PROVISIONING:
            return "starting", Span.of(around.learned.starts) if around.learned.starts else None
        case RouteStatus.TERMINATING:
            return "stopping", Span.of(around.learned.stops) if around.learned.stops else None
        case RouteStatus.HEALTHY:
            least = min_ready_of(deployment)
            return "healthy", Span(least, least)
        case _:
            return str(route.status), None
