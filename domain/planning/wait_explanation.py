"""Explains why a deployment waits: the target, the blocking inequality, the usual time, and the next event.

    it is destroyed                                           nothing
    it is at rest, and its revision has answered nobody       what proxies tell
    the next look would change something                      the worker that looks; until then what holds it:
                                                              a freeze, rollouts of its group, an error
    a person has to say so                                    that person, with no clock running
    a freeze, or the group, holds it                          its end, or those rollouts, with no clock running
    nobody does the work                                      a worker, besides what follows
    failing starts are held back                              the time of the next try
    a new replica is starting                                 its host, its secret, or the replica itself
    one is not healthy for long enough, or sick               that replica
    one is stopping and takes up room                         that replica
    otherwise                                                 a time, or nothing

The shipped handlers make the decision again from the snapshot.
"""

from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from domain.cycle.effects import after, turns_back, with_clock_running
from domain.cycle.transitions import ClassifiedDecision, passed
from domain.handlers.dispatch import cycle, handler_of
from domain.model.decision import COMES_TO, Waits, WaitsFor
from domain.model.deployment import Deployment, Route
from domain.model.states import Lifecycle, RouteStatus, Verdict
from domain.planning.plan_input import NOTHING_KNOWN, WaitContext
from domain.planning.replica_timings import Span
from domain.replicas.health import is_answering
from domain.text.numbers import duration

NEVER = "no clock ends this wait"
MOST_LOOKS, MOST_AT_REST = 2000, 20
"""The most looks in a row without a change: a judge looks each second, until the timeout."""


@dataclass(frozen=True, slots=True)
class End:
    """`what` happens `at` that time; None: no time is set."""

    at: datetime | None
    what: str


def waits_of(decision: ClassifiedDecision) -> Waits:
    """The wait of a decision. Raises ValueError for a decision that changes something."""
    if decision.waits is None:
        raise ValueError(f"{decision.deployment.name} does not wait: {decision.reason}")
    return decision.waits


def end_of(decision: ClassifiedDecision, now: datetime) -> End:
    """The first look after this one, which found a wait `now`, that finds something else."""
    waits = waits_of(decision)
    if waits.kind is WaitsFor.HOLD:
        return End(waits.until, "it is looked at again")
    if waits.kind is WaitsFor.PERSON and decision.clock_stopped:
        return End(None, "no clock of the rollout runs until then")
    first: datetime | None = None
    at: datetime | None = now
    for _ in range(MOST_LOOKS if decision.deployment.rollout else MOST_AT_REST):
        snapshot, before = after(decision, at or now), decision
        at = (decision.waits and decision.waits.until) or decision.due_at
        if at is None:
            return End(None, NEVER)
        first, decision = first or at, cycle(snapshot, at)
        if decision.changes_anything or _stands(decision, before):
            return End(at, _comes_to(snapshot, decision, at, waits.words))
    if decision.deployment.rollout is not None:
        return End(None, NEVER)  # a judge looks on, also on a way back that no deadline ends
    return End(first, "it is looked at again")


def _stands(decision: ClassifiedDecision, before: ClassifiedDecision) -> bool:
    """Whether it begins to wait for a person."""
    return waits_of(decision).kind is WaitsFor.PERSON is not waits_of(before).kind


def _comes_to(deployment: Deployment, decision: ClassifiedDecision, now: datetime, words: str) -> str:
    """What happens then. `words`: of the wait until then, which are not said again."""
    if decision.verdict is Verdict.SKIPPED:
        return f"it waits for approval: {waits_of(decision).words.removeprefix(f'{words}, ')}"
    because = _deadline(deployment, now) if decision.verdict is Verdict.EXPIRED else decision.reason
    if turns_back(decision):
        return f"the rollout goes back: {because}"
    if decision.verdict in (Verdict.EXPIRED, Verdict.GIVE_UP):
        return f"it is called degraded and tried again later: {because}"
    if decision.verdict is Verdict.SUCCESS:
        return f"{'scaling begins' if decision.to.lifecycle is Lifecycle.SCALING else 'it completes'}: {because}"
    return f"the next step: {because}"


def _deadline(deployment: Deployment, now: datetime) -> str:
    rollout = deployment.rollout
    running = replace(deployment, rollout=with_clock_running(rollout, now)) if rollout else deployment
    deadline = passed(handler_of(deployment).bounds(running), now)
    return f"{deadline.what} has passed" if deadline else ""


@dataclass(frozen=True, slots=True)
class WaitTarget:
    """The target of a wait, in words. `name`: a route, a host or a command to type. `usually`: its usual time.

    `brief`: the words for a page that has a button for the command; empty: the same.
    """

    kind: WaitsFor
    words: str
    name: str | None = None
    usually: Span | None = None
    brief: str = ""


def wait_target(deployment: Deployment, waits: Waits, context: WaitContext, now: datetime) -> WaitTarget:
    """The thing that a deployment waits for: a replica, its host, or something that the host lacks."""
    if waits.kind is WaitsFor.ROUTE:
        return _of_route(deployment, waits, context, now)
    name = deployment.name
    if waits.kind is WaitsFor.PERSON:
        sentence = (
            f"{name} waits for a person, since {waits.words}: '{waits.typed}' {COMES_TO.get(waits.verb, 'continues')}"
        )
        return WaitTarget(WaitsFor.PERSON, sentence, waits.typed, brief=waits.words)
    doing = "is not going forward" if waits.kind is WaitsFor.HOLD else "waits"
    return WaitTarget(waits.kind, f"{name} {doing}: {waits.words}")


def route_name(route: Route) -> str:
    """The last 8 digits of its id, as everywhere: the first ones are a time, which routes of one rollout share."""
    return route.id.hex[-8:]


def _of_route(deployment: Deployment, waits: Waits, context: WaitContext, now: datetime) -> WaitTarget:
    """The route that has been at it for longest is named."""
    route = min(waits.routes, key=lambda route: (route.status_changed_at, route.id))
    if (other := _of_host(deployment, route, context)) is not None:
        return other
    name, host = route_name(route), context.hosts.get(route.id)
    doing, usually = _doing(route, waits, context)
    where = f" on host {host}" if host else ""
    for_seconds = duration(max(timedelta(), now - route.status_changed_at))
    often = f", usually {usually}" if usually else ""
    reason = context.reasons.get(route.id, "")
    suffix = f" ({reason})" if reason and route.status is not RouteStatus.HEALTHY else ""
    words = f"{deployment.name} waits for route {name}{where}, {doing} for {for_seconds}{often}{suffix}"
    return WaitTarget(WaitsFor.ROUTE, words, name, usually)


def _of_host(deployment: Deployment, route: Route, context: WaitContext) -> WaitTarget | None:
    """The host, or the secret that it lacks, if the replica can do nothing about it."""
    name, host = route_name(route), context.hosts.get(route.id)
    if host is None and route.id not in context.hosts:
        return None
    if host is None:
        words = f"{deployment.name} waits for a host that is up, for route {name}, which has none yet"
        if why := context.without_host.get(route.id):
            words = f"{words}: {why}"
        return WaitTarget(WaitsFor.HOST, words)
    if host in context.down:
        words = f"{deployment.name} waits for host {host}, which is down with route {name}"
        return WaitTarget(WaitsFor.HOST, words, host)
    if route.status is RouteStatus.PROVISIONING and host in context.lacking:
        words = f"{deployment.name} waits for a secret on host {host}, for route {name}: {context.lacking[host]}"
        return WaitTarget(WaitsFor.SECRET, words, host)
    return None


def _doing(route: Route, waits: Waits, context: WaitContext) -> tuple[str, Span | None]:
    """The replica's present activity, and the usual time for it."""
    match route.status:
        case RouteStatus.PROVISIONING:
            return "starting", Span.of(context.timings.starts) if context.timings.starts else None
        case RouteStatus.TERMINATING:
            return "stopping", Span.of(context.timings.stops) if context.timings.stops else None
        case RouteStatus.HEALTHY if waits.seconds is not None:
            return "healthy", Span(waits.seconds, waits.seconds)
        case RouteStatus.UNHEALTHY if is_answering(route):
            return "unhealthy, but answering callers,", None
        case _:
            return str(route.status), None


@dataclass(frozen=True, slots=True)
class Why:
    """One wait. `sentence` tells all of it; the other fields are for programs and pages.

    `name`: the last 8 digits of the route's id, the name of the host, or what a person types. `blocked_by`: the
    inequality, None where there is none. `usually_seconds`: how long that took in the past, None where nothing is
    learned. `then`: what happens in `left_seconds` if nothing else happens before; None: no clock runs. `evidence`: the
    verdict of a canary's judge so far, and what would decide it; `brief`: the sentence without them.
    """

    deployment: str
    state: str
    sentence: str
    waits_for: WaitsFor
    name: str | None
    blocked_by: str | None
    usually_seconds: Span | None
    then: str
    left_seconds: float | None
    evidence: tuple[str, ...]
    brief: str

    def as_json(self) -> dict[str, Any]:
        """The answer as plain JSON values."""
        return asdict(self)


def why(deployment: Deployment, now: datetime, context: WaitContext = NOTHING_KNOWN) -> Why:
    """Explain why this snapshot waits at the database's time `now`."""
    if deployment.status.lifecycle is Lifecycle.DESTROYED:
        gone = WaitTarget(WaitsFor.NOTHING, f"{deployment.name} is destroyed")
        return _why(deployment, gone, End(None, "nothing follows"), now)
    decision = cycle(deployment, now)
    if decision.changes_anything and _is_held(context, now):
        held_target = WaitTarget(WaitsFor.TIME, f"{deployment.name} waits, as was found last: {context.last_reason}")
        return _why(deployment, _with_worker(held_target, context), End(context.due_at, "a worker looks again"), now)
    if decision.changes_anything:
        return _why(deployment, _worker(decision, context), End(context.due_at, "that look is due"), now)
    waits, end = waits_of(decision), end_of(decision, now)
    if waits.kind is WaitsFor.NOTHING:
        return _why(deployment, _rests(decision, context), end, now)
    target = _with_worker(wait_target(deployment, waits, context, now), context)
    cause = f"; the last start failed: {context.failure}" if context.failure else ""
    cause += f"; it goes back: {context.back}" if context.back else ""
    cause += f"; {context.unproven}" if context.unproven else ""
    cause += f"; {context.paused}" if context.paused else ""
    return _why(deployment, target, end, now, waits.blocked_by, cause, waits.evidence)


def _why(  # noqa: PLR0913 -- the parts of one sentence
    deployment: Deployment,
    target: WaitTarget,
    end: End,
    now: datetime,
    blocked: str | None = None,
    cause: str = "",
    evidence: tuple[str, ...] = (),
) -> Why:
    remaining = max(0.0, (end.at - now).total_seconds()) if end.at is not None else None
    because = f", since {blocked}" if blocked else ""
    follows = f"; in {duration(timedelta(seconds=remaining))} {end.what}" if remaining else f"; {end.what}"
    if target.kind is WaitsFor.NOTHING and remaining is None:
        follows = ""
    return Why(
        deployment=deployment.name,
        state=str(deployment.status),
        sentence="; ".join((f"{target.words}{because}", *evidence)) + f"{cause}{follows}",
        waits_for=target.kind,
        name=target.name,
        blocked_by=blocked,
        usually_seconds=target.usually,
        then=end.what,
        left_seconds=remaining,
        evidence=evidence,
        brief=f"{target.brief or target.words}{because}{cause}{follows}",
    )


def _is_held(context: WaitContext, now: datetime) -> bool:
    """Nobody looks before a time that the last look named: for a freeze, for others of its group, or after an error."""
    return bool(context.last_reason) and context.due_at is not None and context.due_at > now


def _rests(decision: ClassifiedDecision, context: WaitContext) -> WaitTarget:
    name = decision.deployment.name
    if context.unproven:
        return WaitTarget(WaitsFor.PROXIES, f"{name} waits for what proxies tell: {context.unproven}")
    return WaitTarget(WaitsFor.NOTHING, f"{name} is not waiting for anything: {context.last_reason or decision.reason}")


def _worker(decision: ClassifiedDecision, context: WaitContext) -> WaitTarget:
    """The deployment waits for a worker alone: its next decision is known."""
    name = decision.deployment.name
    suffix = f" ({context.missing_worker})" if context.missing_worker else ""
    return WaitTarget(WaitsFor.WORKER, f"{name} waits for a worker to look{suffix}, who finds: {decision.reason}")


def _with_worker(target: WaitTarget, context: WaitContext) -> WaitTarget:
    """Add that the worker is missing, where a replica is to do something: a worker does that."""
    if not context.missing_worker or target.kind in (WaitsFor.PERSON, WaitsFor.NOTHING):
        return target
    return replace(target, kind=WaitsFor.WORKER, words=f"{target.words}; but {context.missing_worker}")
