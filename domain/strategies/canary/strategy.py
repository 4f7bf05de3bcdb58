"""Canary: the new revision gets a share of the requests by weight, step by step, and then the rest follows.

The share of step k is `weight`; its replicas are ceil(n x weight), at least 1, or a number. Old and new are held apart
and each is kept complete, within the budget of a rolling update: n + surge live, n - unavailable serving.

    0  its judge finds harm                             -> give up: back at once
    1  past the last step, an undo, or none wanted      -> the rest, as a rolling update does it
    2  old not n, or n + surge - canary where that is
       less; or canary not as many as its step wants    -> create, bring in, drain: both from one snapshot
    3  canary, or its baseline, not ready               -> wait
    4  a live proxy does not know the weight yet        -> wait
    5  the canary is there and has no weight yet, its
       step's seconds are over, its judge finds it good
       enough, or promote was asked                     -> the next weight; after the last one: the rest
    6  otherwise                                        -> look on: until then, or until a person says so

Where it has a mirror, its first stage has the weight 0: it gets copies of requests for some time.
What comes with the next weight is created before the weight: line 2 asks for the replicas of the step that follows as
soon as line 5 holds. The seconds of a step count from when every live proxy knew its weight.

A fresh baseline is as many more of the old side, none older than the rollout; where the surge leaves no room for
that many more, older ones go for it, and first what another canary left. When the canary ends they are old replicas
as the others are.

n=3 surge=1, steps 5 % and 50 %, new ones right of the bar:

    ■■■|  →  ■■■|◇  →  ■■■|■ 5 %  →  ■■|■  →  ■■|■◇  →  ■■|■■ 50 %  →  the rest: ■|■■◇  →  |■■■ completed

n=3 surge=2, step 5 %, with a fresh baseline:

    ■■■|  →  ■■■◇|◇  →  ■■■■|■ 5 %, and 5 % for the youngest old one  →  the rest: ■■■|■  →  ■■■|■◇  →  …
"""

from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from domain.model.canary import CanaryState
from domain.model.changes import Decision, RouteChanges, Stage
from domain.model.deployment import Deployment, RouteStatus
from domain.model.hold import Hold
from domain.model.waits import Waits, WaitsFor
from domain.strategies.base import AbstractDeploymentStrategy, deploying_revision
from domain.strategies.buckets import Buckets, ids, worst_first
from domain.strategies.budget import Budget, surge_budget
from domain.strategies.canary.judge import Judgement, judgement
from domain.strategies.canary.steps import CanarySpec, baseline, ends, ends_at, in_words, percent, size_at
from domain.strategies.canary.waiting import for_a_look, looking, soonest, still_coming, waits_for_sides
from domain.strategies.converge import converge
from domain.strategies.rolling_update import RollingUpdateStrategy
from domain.strategies.sentences import counted, draining, steps

_REST = RollingUpdateStrategy()


class CanaryStrategy(AbstractDeploymentStrategy[CanarySpec]):
    """The ladder above."""

    spec_model: ClassVar[type[CanarySpec]] = CanarySpec
    promotion: ClassVar[str | None] = "goes on to the next weight as soon as its replicas are healthy"
    weighs: ClassVar[bool] = True

    def budget(self, spec: CanarySpec, desired: int, before: int) -> Budget:  # noqa: ARG002  (one size for all)
        """That of a rolling update."""
        return surge_budget(desired, spec.max_surge, spec.max_unavailable)

    def evaluate_held(self, deployment: Deployment, spec: CanarySpec, hold: Hold, now: datetime) -> Decision:
        """The requests of a canary go on, so its judge does: harm leads back at once."""
        canary = deployment.rollout.canary if deployment.rollout else None
        judged = judgement(canary, spec, now) if canary and canary.weight else Judgement()
        if judged.gives_up:
            return Decision.give_up(judged.sentence)
        return replace(Decision.held(hold), recheck_at=min(hold.until, judged.next_at or hold.until))

    def evaluate_cycle(self, deployment: Deployment, spec: CanarySpec, now: datetime) -> Decision:
        """One cycle of the ladder above."""
        rollout = deployment.rollout
        canary = rollout.canary if rollout else None
        if rollout is None or canary is None or canary.weight is None:
            return _REST.evaluate_cycle(deployment, spec, now)
        judged = judgement(canary, spec, now)
        if judged.gives_up:
            return Decision.give_up(judged.sentence)
        if not deployment.desired_replicas:
            return _looked_at_again(_REST.evaluate_cycle(deployment, spec, now), judged)
        buckets = Buckets.of(deployment.routes, deploying_revision(deployment), now, spec.min_ready_seconds)
        over_at, budget = ends_at(canary, spec), self.budget_of(deployment, spec)
        is_over = judged.is_over or ends(rollout, canary, over_at, now)
        wanted = size_at(spec, deployment.desired_replicas, canary.stage + is_over)
        fresh = wanted if spec.has_baseline else 0
        sides = _sides(deployment, buckets, budget, (wanted, fresh), now)
        changes = _above_floor(deployment, sides[0].changes + sides[1].changes, budget)
        times = (over_at, buckets.next_change_at(now), *(side.recheck_at for side in sides))
        recheck_at = soonest((judged.next_at, *times), now)
        if changes:
            return Decision.moved(_said(deployment, changes, budget), changes, now)
        beside = sum(route.is_serving for route in baseline(deployment, rollout))
        if len(buckets.ready) < wanted or buckets.idle() or beside < fresh:
            waits = waits_for_sides(buckets, sides, wanted, spec.min_ready_seconds, now)
            return Decision.wait(still_coming(buckets, wanted, beside, fresh), recheck_at, waits)
        if canary.weight_known_at is None:
            what = f"every live proxy to acknowledge {percent(canary.weight)} for the canary"
            return Decision.wait(f"waiting for {what}", recheck_at, Waits(WaitsFor.PROXIES, f"waits for {what}"))
        if is_over:
            return _next(canary, spec, judged.sentence, now)
        said = looking(in_words(spec, canary.weight), over_at, judged, now)
        if over_at is None and not judged.decides:
            name = deployment.name
            typed = f"waiting: {said}; 'rollway promote {name}' goes on, 'rollway abort {name}' goes back"
            return Decision.look_on(typed, recheck_at, Waits(WaitsFor.PERSON, said))
        return Decision.look_on(f"waiting: {said}", recheck_at, for_a_look(said, judged, times, now))


def _looked_at_again(decision: Decision, judged: Judgement) -> Decision:
    """While the last of it leave they have requests, and a judge."""
    times = (decision.recheck_at, judged.next_at)
    return replace(decision, recheck_at=min((at for at in times if at is not None), default=None))


def _sides(
    deployment: Deployment, buckets: Buckets, budget: Budget, sizes: tuple[int, int], now: datetime
) -> tuple[Decision, Decision]:
    """What the canary and the old side need to be complete. The canary's place in the ceiling is its own.

    `sizes`: of the canary and of its baseline.
    """
    if deployment.current_revision_id is None or deployment.rollout is None:
        raise ValueError(f"{deployment.name} is deploying without a current revision")
    target, (wanted, fresh) = deploying_revision(deployment), sizes
    new = tuple(route for route in deployment.routes if route.revision_id == target)
    old = tuple(route for route in deployment.routes if route.revision_id != target)
    taken = len(buckets.target) + (len(buckets.stopping) if budget.count_stopping else 0)
    elder = min(budget.desired, budget.ceiling - wanted - fresh)
    size = elder + fresh
    beside = Budget(size, budget.ceiling - max(wanted, taken), size, budget.count_stopping)
    kept = converge(replace(deployment, routes=old), deployment.current_revision_id, beside, now)
    if fresh and not kept.changes:
        young = baseline(deployment, deployment.rollout)
        elders = worst_first(route for route in buckets.foreign if route not in young)
        elders.sort(key=lambda route: route.revision_id == deployment.current_revision_id)
        kept = replace(kept, changes=RouteChanges.drain(ids(elders[: max(0, len(elders) - elder)])))
    live = len(buckets.foreign) + (len(buckets.foreign_stopping) if budget.count_stopping else 0)
    room = Budget(wanted, budget.ceiling - live - kept.changes.created, 0, budget.count_stopping)
    return converge(replace(deployment, routes=new), target, room, now), kept


def _above_floor(deployment: Deployment, changes: RouteChanges, budget: Budget) -> RouteChanges:
    """Only as many of those that serve leave as both sides together can spare."""
    promoted = set(changes.promote_route_ids)
    serving = {route.id for route in deployment.routes if route.is_serving}
    coming = sum(route.id in promoted and route.status is RouteStatus.HEALTHY for route in deployment.routes)
    spare = max(0, len(serving) + coming - budget.keep)
    leaving = [route_id for route_id in changes.drain_route_ids if route_id in serving]
    staying = set(leaving[spare:])
    return replace(changes, drain_route_ids=tuple(id_ for id_ in changes.drain_route_ids if id_ not in staying))


def _next(canary: CanaryState, spec: CanarySpec, because: str, now: datetime) -> Decision:
    if canary.stage >= len(spec.stages):
        said, weight = "the last step of the canary is over: the rest follows", None
    else:
        weight, _ = spec.stages[canary.stage]
        said = f"the canary gets {in_words(spec, weight)}"
    said = f"{said}, for {because}" if because else said
    return Decision.moved(said, RouteChanges(stage=Stage(canary.stage + 1, weight)), now)


def _said(deployment: Deployment, changes: RouteChanges, budget: Budget) -> str:
    target = deploying_revision(deployment)
    new = sum(spec.count for spec in changes.rollout_specs if spec.revision_id == target)
    return steps(
        counted("creating", new, "canary"),
        counted("creating", changes.created - new, "old"),
        counted("bringing", len(changes.promote_route_ids), "into traffic"),
        draining(len(changes.drain_route_ids), budget),
    )
