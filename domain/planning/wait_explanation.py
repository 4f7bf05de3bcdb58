"""Explains why a deployment waits: for what, which inequality blocks it, how long that usually takes, what then.

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

The decision is that of the shipped handlers, made anew from the snapshot.
"""

from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from domain.cycle.transitions import ClassifiedDecision
from domain.handlers.cycle import cycle
from domain.model.decision import WaitsFor
from domain.model.deployment import Deployment
from domain.model.states import Lifecycle
from domain.planning.next_event import End, end_of, waits_of
from domain.planning.plan.wait_context import NOTHING_KNOWN, Around
from domain.planning.replica_timings import Span
from domain.planning.wait_target import Awaited, awaited
from domain.text.numbers import duration


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
        """The answer as plain JSON values."""
        return asdict(self)


def why(deployment: Deployment, now: datetime, around: Around = NOTHING_KNOWN) -> Why:
    """Explain why this snapshot waits at the database's time `now`."""
    if deployment.status.lifecycle is Lifecycle.DESTROYED:
        gone = Awaited(WaitsFor.NOTHING, f"{deployment.name} is destroyed and waits for nothing")
        return _told(deployment, gone, End(None, "nothing follows"), now)
    decision = cycle(deployment, now)
    if decision.changes_anything and _is_held(around, now):
        held = Awaited(WaitsFor.TIME, f"{deployment.name} waits, as was found last: {around.said}")
        return _told(deployment, _with_worker(held, around), End(around.due_at, "a worker looks again"), now)
    if decision.changes_anything:
        return _told(deployment, _worker(decision, around), End(around.due_at, "that look is due"), now)
    waits, end = waits_of(decision), end_of(decision, now)
    if waits.kind is WaitsFor.NOTHING:
        return _told(deployment, _rests(decision, around), end, now)
    told = _with_worker(awaited(deployment, waits, around, now), around)
    cause = f"; the last start failed: {around.failure}" if around.failure else ""
    cause += f"; it goes back: {around.back}" if around.back else ""
    cause += f"; {around.unproven}" if around.unproven else ""
    cause += f"; {around.paused}" if around.paused else ""
    return _told(deployment, told, end, now, waits.blocked_by, cause)


def _told(  # noqa: PLR0913 -- the parts of one sentence
    deployment: Deployment, told: Awaited, end: End, now: datetime, blocked: str | None = None, cause: str = ""
) -> Why:
    left = max(0.0, (end.at - now).total_seconds()) if end.at is not None else None
    because = f", since {blocked}" if blocked else ""
    follows = f"; in {duration(timedelta(seconds=left))} {end.what}" if left else f"; {end.what}"
    if told.kind is WaitsFor.NOTHING and left is None:
        follows = ""
    return Why(
        deployment=deployment.name,
        state=str(deployment.status),
        sentence=f"{told.words}{because}{cause}{follows}",
        waits_for=told.kind,
        name=told.name,
        blocked_by=blocked,
        usually_seconds=told.usually,
        then=end.what,
        left_seconds=left,
    )


def _is_held(around: Around, now: datetime) -> bool:
    """Nobody looks before a time that the last look named: for a freeze, for others of its group, or after an error."""
    return bool(around.said) and around.due_at is not None and around.due_at > now


def _rests(decision: ClassifiedDecision, around: Around) -> Awaited:
    name = decision.deployment.name
    if around.unproven:
        return Awaited(WaitsFor.PROXIES, f"{name} waits for what proxies tell: {around.unproven}")
    return Awaited(WaitsFor.NOTHING, f"{name} waits for nothing: {around.said or decision.reason}")


def _worker(decision: ClassifiedDecision, around: Around) -> Awaited:
    """The deployment waits for nothing else: what it will do is known."""
    name = decision.deployment.name
    missing = f" ({around.missing_worker})" if around.missing_worker else ""
    return Awaited(WaitsFor.WORKER, f"{name} waits for a worker to look{missing}, who finds: {decision.reason}")


def _with_worker(told: Awaited, around: Around) -> Awaited:
    """Add that the worker is missing, where a replica is to do something: a worker does that."""
    if not around.missing_worker or told.kind in (WaitsFor.PERSON, WaitsFor.NOTHING):
        return told
    return replace(told, kind=WaitsFor.WORKER, words=f"{told.words}; but {around.missing_worker}")
