"""What docs/canary.md promises of weights: who continues, when, and that each side keeps replicas for its share."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil
from typing import Any

from domain.cycle.effects import routes_after
from domain.cycle.transitions import ClassifiedDecision
from domain.model.canary import CanaryState
from domain.model.deployment import Deployment, Rollout, Route
from tests.support.pictures.pictures import PROVISIONING
from tests.support.worlds.promised import WHOLE, promised, share
from tools.prove.clocks import GOOD, told
from tools.prove.laws.requests import FINE
from tools.prove.laws.wishes import harms
from tools.prove.state import State


def broken_by_weight(state: State, decision: ClassifiedDecision) -> Iterator[str]:
    """Judged as proxies would: by the routes as they are now."""
    before = state.deployment
    rollout, part = before.rollout, share(before)
    if rollout is None or rollout.canary is None or part is None:
        return
    if decision.changes.stage is not None and before.status == PROVISIONING:
        yield from _by_stage(state, rollout, rollout.canary, decision)
    if (stage := decision.changes.stage) is not None and stage.weight is not None and before.desired_replicas:
        yield from _by_weight(state, rollout, part, Fraction(stage.weight, WHOLE))
    if before.desired_replicas and (part or before.status == PROVISIONING):
        yield from _by_drains(before, decision, part)


def _by_stage(state: State, rollout: Rollout, canary: CanaryState, decision: ClassifiedDecision) -> Iterator[str]:
    stage = decision.changes.stage
    assert stage is not None
    if stage.number not in (canary.stage, canary.stage + 1):
        yield "weights come one after the other"
    if stage.number == canary.stage == 0 and (stage.weight or 0) < (canary.weight or 0):
        return  # what an earlier try has left goes as on the way back: at once, as old ones can answer
    if canary.weight_known_at is None:
        yield "the next weight waits until every live proxy has acknowledged this one"
    serving = _serving(state.deployment.routes, rollout, new=True)
    if not serving and state.deployment.desired_replicas:
        yield "a canary gets requests only when one of its replicas serves"
    if canary.stage in (0, stage.number) or rollout.promote_requested:
        return
    if not state.deployment.desired_replicas:
        yield "at size 0 a step is over for nobody but a person"
    spec: dict[str, Any] = rollout.policy.spec.model_dump()
    steps = ([spec["mirror"]] if spec["mirror"] else []) + list(spec["steps"])
    seconds = steps[canary.stage - 1]["seconds"]
    judge = spec["judge"] if canary.weight and not (spec["judge"] or {}).get("dry_run") else None
    known_at = canary.weight_known_at or state.now
    if judge is None and (seconds is None or state.now < known_at + timedelta(seconds=seconds)):
        yield "a step ends by a person, or by its seconds, counted from when every live proxy knew its weight"
    if judge is not None and state.now < known_at + timedelta(seconds=judge["at_least"]["seconds"]):
        yield "a judge looks for as long as it must at least"
    if judge is not None and told(rollout, state.now) != GOOD and not _undecided_is_enough(judge, known_at, state.now):
        yield "a judge continues only for good answers of this weight, or where being undecided for good is enough"


def _undecided_is_enough(judge: dict[str, Any], known_at: datetime, now: datetime) -> bool:
    return judge["if_undecided"] == "promote" and now >= known_at + timedelta(seconds=judge["at_most"]["seconds"])


def _by_weight(state: State, rollout: Rollout, part: Fraction, weight: Fraction) -> Iterator[str]:
    """Each that serves carries 1 / floor; where fewer serve on both sides together, all of them as much."""
    routes, keep = state.deployment.routes, promised(state.deployment).keep
    old, new = (_serving(routes, rollout, new=new) for new in (False, True))
    if weight > part and new < min(keep, ceil((weight - FINE) * keep)):
        yield "a weight rises only with its replicas"
    falls = weight < part and not harms(state.deployment, rollout, state.now)
    if falls and (1 - weight - FINE) * min(keep, old + new) > old:
        yield "a weight falls only by what the old side carries"


def _by_drains(before: Deployment, decision: ClassifiedDecision, part: Fraction) -> Iterator[str]:
    """Two hundredths of a percent of the requests ask for no further replica."""
    assert before.rollout is not None
    after = routes_after(before.routes, decision.changes, before.phase_started_at)
    keep = promised(before).keep
    for new, of_it in ((True, part), (False, 1 - part)):
        left = _serving(after, before.rollout, new=new)
        if left < _serving(before.routes, before.rollout, new=new):
            if left < min(keep, max(of_it > 0, ceil((of_it - Fraction(2, WHOLE)) * keep))):
                yield "a side with requests keeps replicas for its share of them by us"
            if part and before.rollout.canary and before.rollout.canary.weight_known_at is None:
                yield "nobody who answers leaves before every proxy knows the weight"


def _serving(routes: tuple[Route, ...], rollout: Rollout, *, new: bool) -> int:
    return sum(route.is_serving and (route.revision_id == rollout.to_revision_id) is new for route in routes)
