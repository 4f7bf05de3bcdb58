"""Says what a wait is for: what its decision says of it, with what is known of replicas, hosts and secrets."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.model.decision import COMES_TO, Waits, WaitsFor
from domain.model.deployment import Deployment, Route
from domain.model.states import RouteStatus
from domain.planning.plan.wait_context import Around
from domain.planning.replica_timings import Span
from domain.replicas.answering import is_answering
from domain.text.numbers import duration


@dataclass(frozen=True, slots=True)
class Awaited:
    """The thing waited for, in words. `name`: of the route or host, or what a person types. `usually`: of the past."""

    kind: WaitsFor
    words: str
    name: str | None = None
    usually: Span | None = None


def awaited(deployment: Deployment, waits: Waits, around: Around, now: datetime) -> Awaited:
    """Return what is awaited: a replica, or its host or what that lacks, by what is known around the deployment."""
    if waits.kind is WaitsFor.ROUTE:
        return _of_route(deployment, waits, around, now)
    name = deployment.name
    if waits.kind is WaitsFor.PERSON:
        said = f"{name} waits for a person, since {waits.words}: '{waits.typed}' {COMES_TO.get(waits.verb, 'goes on')}"
        return Awaited(WaitsFor.PERSON, said, waits.typed)
    doing = "is not going forward" if waits.kind is WaitsFor.HOLD else "waits"
    return Awaited(waits.kind, f"{name} {doing}: {waits.words}")


def route_name(route: Route) -> str:
    """The last 8 digits of its id, as everywhere: the first ones are a time, which routes of one rollout share."""
    return route.id.hex[-8:]


def _of_route(deployment: Deployment, waits: Waits, around: Around, now: datetime) -> Awaited:
    """The route that has been at it for longest is named."""
    route = min(waits.routes, key=lambda route: (route.status_changed_at, route.id))
    if (other := _of_host(deployment, route, around)) is not None:
        return other
    name, host = route_name(route), around.hosts.get(route.id)
    doing, usually = _doing(route, waits, around)
    where = f" on host {host}" if host else ""
    for_seconds = duration(max(timedelta(), now - route.status_changed_at))
    often = f", usually {usually}" if usually else ""
    reason = around.reasons.get(route.id, "")
    said = f" ({reason})" if reason and route.status is not RouteStatus.HEALTHY else ""
    words = f"{deployment.name} waits for route {name}{where}, {doing} for {for_seconds}{often}{said}"
    return Awaited(WaitsFor.ROUTE, words, name, usually)


def _of_host(deployment: Deployment, route: Route, around: Around) -> Awaited | None:
    """The host, or what it lacks, when the replica can do nothing about it."""
    name, host = route_name(route), around.hosts.get(route.id)
    if host is None and route.id not in around.hosts:
        return None
    if host is None:
        words = f"{deployment.name} waits for a host that is up, for route {name}, which has none yet"
        return Awaited(WaitsFor.HOST, words)
    if host in around.down:
        words = f"{deployment.name} waits for host {host}, which is down with route {name}"
        return Awaited(WaitsFor.HOST, words, host)
    if route.status is RouteStatus.PROVISIONING and host in around.lacking:
        words = f"{deployment.name} waits for a secret on host {host}, for route {name}: {around.lacking[host]}"
        return Awaited(WaitsFor.SECRET, words, host)
    return None


def _doing(route: Route, waits: Waits, around: Around) -> tuple[str, Span | None]:
    """Return what the replica is at, and how long that usually takes."""
    match route.status:
        case RouteStatus.PROVISIONING:
            return "starting", Span.of(around.learned.starts) if around.learned.starts else None
        case RouteStatus.TERMINATING:
            return "stopping", Span.of(around.learned.stops) if around.learned.stops else None
        case RouteStatus.HEALTHY if waits.seconds is not None:
            return "healthy", Span(waits.seconds, waits.seconds)
        case RouteStatus.UNHEALTHY if is_answering(route):
            return "unhealthy, but answering callers,", None
        case _:
            return str(route.status), None
