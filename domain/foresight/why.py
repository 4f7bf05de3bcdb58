"""Why a deployment waits: what for, which inequality blocks it, how long that usually takes, and what happens then.

    it is destroyed                                           nothing
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

The decision is that of the shipped handlers, made anew from the snapshot.
"""

from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from domain.cycle.evaluator import EVALUATOR
from domain.cycle.transitions import ClassifiedDecision
from domain.foresight.awaited import Awaited, WaitsFor, in_the_way, next_try, of_route, promotion, start_held_until
from domain.foresight.blocked import buckets_of, target_of
from domain.foresight.ends import End, end_of, promoted_at
from domain.foresight.plan.around import NOTHING_KNOWN, Around
from domain.foresight.plan.world import cycle
from domain.foresight.rehearsal.learned import Span
from domain.model.deployment import Deployment, Lifecycle
from domain.strategies.buckets import Buckets
from domain.words.numbers import duration


@dataclass(frozen=True, slots=True)
class Why:
    """One wait. `sentence` says all of it; the rest is for programs.

    `name`: the last 8 digits of the route's id, the name of the host, or what a person types. `blocked_by`: the
    inequality, None where there is none. `usually_seconds`: how long that took in the past, None where nothing is
    learned. `then`: what happens in `left_seconds` if nothing else happens before; None: no clock runs.
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

    def as_json(self) -> dict[str, Any]:
        """The same as plain JSON values."""
        return asdict(self)


def why(deployment: Deployment, now: datetime, around: Around = NOTHING_KNOWN) -> Why:
    """Of this snapshot at the database's time `now`."""
    if deployment.status.lifecycle is Lifecycle.DESTROYED:
        gone = Awaited(WaitsFor.NOTHING, f"{deployment.name} is destroyed and waits for nothing")
        return _told(deployment, gone, End(None, "nothing follows"), now)
    decision = cycle(deployment, now)
    if decision.changes_anything and _is_held(around, now):
        held = Awaited(WaitsFor.TIME, f"{deployment.name} waits, as was found last: {around.said}")
        return _told(deployment, _with_worker(held, around), End(around.due_at, "a worker looks again"), now)
    if decision.changes_anything:
        return _told(deployment, _worker(decision, around), End(around.due_at, "that look is due"), now)
    if decision.clock_stopped:
        return _told(deployment, *_standing_still(deployment, decision, now), now)
    awaited = _with_worker(_awaited(deployment, decision, around, now), around)
    return _told(deployment, awaited, end_of(deployment, decision.due_at, now), now)


def _told(deployment: Deployment, awaited: Awaited, end: End, now: datetime) -> Why:
    left = max(0.0, (end.at - now).total_seconds()) if end.at is not None else None
    since = f", since {awaited.blocked_by}" if awaited.blocked_by else ""
    follows = f"; in {duration(timedelta(seconds=left))} {end.what}" if left else f"; {end.what}"
    if awaited.kind is WaitsFor.NOTHING and left is None:
        follows = ""
    return Why(
        deployment=deployment.name,
        state=str(deployment.status),
        sentence=f"{awaited.words}{since}{follows}",
        waits_for=awaited.kind,
        name=awaited.name,
        blocked_by=awaited.blocked_by,
        usually_seconds=awaited.usually,
        then=end.what,
        left_seconds=left,
    )


def _is_held(around: Around, now: datetime) -> bool:
    """Nobody looks before a time that the last look named: for a freeze, for others of its group, or after an error."""
    return bool(around.said) and around.due_at is not None and around.due_at > now


def _worker(decision: ClassifiedDecision, around: Around) -> Awaited:
    """The deployment waits for nothing else: what it will do is known."""
    name = decision.deployment.name
    missing = f" ({around.missing_worker})" if around.missing_worker else ""
    return Awaited(WaitsFor.WORKER, f"{name} waits for a worker to look{missing}, who finds: {decision.reason}")


def _with_worker(awaited: Awaited, around: Around) -> Awaited:
    """What a replica is to do, a worker does."""
    if not around.missing_worker or awaited.kind in (WaitsFor.PERSON, WaitsFor.NOTHING):
        return awaited
    return replace(awaited, kind=WaitsFor.WORKER, words=f"{awaited.words}; but {around.missing_worker}")


def _standing_still(deployment: Deployment, decision: ClassifiedDecision, now: datetime) -> tuple[Awaited, End]:
    """What ends a wait in which no clock of the rollout runs: a hold, the look at a canary, or a person."""
    if deployment.paused_at is None and deployment.hold is not None:
        held = Awaited(WaitsFor.TIME, f"{deployment.name} is not going forward: {deployment.hold.reason}")
        return held, End(deployment.hold.until, "it is looked at again")
    if deployment.paused_at is None and (end := _end_of_look(deployment, now)) is not None:
        look = Awaited(WaitsFor.TIME, f"{deployment.name} waits: {decision.reason.removeprefix('waiting: ')}")
        return look, end
    return _person(deployment, decision), End(None, "no clock of the rollout runs until then")


def _end_of_look(deployment: Deployment, now: datetime) -> End | None:
    """When the look at a canary ends by itself; None where it waits for a person."""
    goes_on = EVALUATOR.goes_on(deployment.rollout, now) if deployment.rollout else None
    return End(goes_on.latest, goes_on.then) if goes_on else None


def _person(deployment: Deployment, decision: ClassifiedDecision) -> Awaited:
    verb = "resume" if deployment.paused_at is not None else "promote"
    typed = f"rollway {verb} {deployment.name}"
    what = "it is paused" if verb == "resume" else decision.reason.removeprefix("waiting: ").partition("; '")[0]
    return Awaited(WaitsFor.PERSON, f"{deployment.name} waits for a person, since {what}: '{typed}' goes on", typed)


def _awaited(deployment: Deployment, decision: ClassifiedDecision, around: Around, now: datetime) -> Awaited:
    target = target_of(deployment)
    if target is None and deployment.status.lifecycle is Lifecycle.PENDING:
        typed = f"rollway activate {deployment.name} REVISION"
        words = f"{deployment.name} waits for a person to give it a first revision: '{typed}'"
        return Awaited(WaitsFor.PERSON, words, typed)
    buckets = buckets_of(deployment, target, now) if target is not None else Buckets.of((), deployment.id, now)
    if (start_at := start_held_until(deployment, buckets)) is not None and start_at == decision.due_at:
        return next_try(deployment, now)
    for routes in (buckets.starting, buckets.warming, buckets.sick, in_the_way(deployment, buckets)):
        if routes:
            return of_route(deployment, routes, around, now)
    if (at := promoted_at(deployment, buckets)) is not None:
        return promotion(deployment, at, now)
    return _time(deployment, decision, around)


def _time(deployment: Deployment, decision: ClassifiedDecision, around: Around) -> Awaited:
    said = around.said or decision.reason
    is_at_rest = deployment.status.lifecycle is Lifecycle.READY and deployment.degraded_reason is None
    if decision.due_at is None or is_at_rest:
        return Awaited(WaitsFor.NOTHING, f"{deployment.name} waits for nothing: {said}")
    return Awaited(WaitsFor.TIME, f"{deployment.name} waits for its next try: {said}")
