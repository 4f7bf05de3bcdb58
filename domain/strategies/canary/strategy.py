"""Canary: the new revision gets a share of the requests by weight, step by step, and then the rest follows.

The share of step k is `weight`; its replicas are ceil(n x weight), at least 1, or a number. Old and new are held apart
and each is kept complete, within the budget of a rolling update: n + surge live, n - unavailable serving.

    0  its judge finds harm                             -> give up: back at once
       it is undecided for good, and then: abort, and
       nobody has asked to promote                      -> give up: back as old ones can answer
    1  past the last step, or an undo                   -> the rest, as a rolling update does it
       before the first step, more of an earlier try is
       left than old ones can do without                -> less weight, and fewer of it, as old ones come up
    2  old not n, or n + surge - canary where that is
       less; or canary not as many as its step wants    -> create, bring in, drain: both from one snapshot
    3  canary, or its baseline, not ready               -> wait
    4  a live proxy does not know the weight yet        -> wait
    5  the canary is there and has no weight yet, its
       step's seconds are over, its judge finds it good
       enough, or promote was asked                     -> the next weight; after the last one: the rest
    6  otherwise                                        -> look on: until then, or until a person says so

At size 0 both sides leave and the stage stays, except for a promotion: no replica answers, so no seconds and no judge
end a step. A canary that nobody promoted waits, and its step begins again when it comes back.
Where it has a mirror, its first stage has the weight 0: it gets copies of requests for some time.
What comes with the next weight is created before the weight: line 2 asks for the replicas of the step that follows as
soon as line 5 holds. Where the surge has no room for them, the weight rises as they come: `sides` has the formula.
The seconds of a step count from when every live proxy knew its weight.

A fresh baseline is as many more of the old side, none older than the rollout; where the surge leaves no room for
that many more, older ones go for it, and first what another canary left. When the canary ends they are old replicas
as the others are.

n=3 surge=1, steps 5 % and 50 %, new ones right of the bar:

    ■■■|  →  ■■■|◇  →  ■■■|■ 5 %  →  ■■■|■ 33.33 %  →  ■■|■◇  →  ■■|■■ 50 %  →  the rest: ■|■■◇  →  |■■■ completed

n=3 surge=2, step 5 %, with a fresh baseline:

    ■■■|  →  ■■■◇|◇  →  ■■■■|■ 5 %, and 5 % for the youngest old one  →  the rest: ■■■|■  →  ■■■|■◇  →  …
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from domain.judge.judge import Judging
from domain.model.canary import CanaryState
from domain.model.decision import Decision, RouteChanges, Stage, Waits, WaitsFor
from domain.model.deployment import Deployment, Rollout, Route
from domain.model.policy import DeploymentPolicy
from domain.model.states import ROLLING_BACK
from domain.strategies.base import deploying_revision
from domain.strategies.budget import Buckets, Budget, surge_budget
from domain.strategies.canary.judge_step import (
    Judgement,
    cautions,
    doubts,
    for_a_look,
    for_proxies,
    judgement,
    looking,
    soonest,
    still_coming,
    waits_for_sides,
)
from domain.strategies.canary.rollback import WeighingStrategy, at_once, weight_back
from domain.strategies.canary.sizing import completed, sizes_at, sizes_kept
from domain.strategies.canary.steps import (
    CanarySpec,
    baseline,
    ends,
    ends_at,
    in_words,
    is_rising,
    weight_at,
)
from domain.strategies.converge import sized_as_kept
from domain.strategies.rolling_update import RollingUpdateStrategy
from domain.text.numbers import percent, weight_of

_REST = RollingUpdateStrategy()


class CanaryStrategy(WeighingStrategy[CanarySpec]):
    """The ladder above."""

    spec_model: ClassVar[type[CanarySpec]] = CanarySpec
    promotion: ClassVar[str | None] = "continues to the next weight as soon as its replicas are healthy"
    exchange: ClassVar[str] = "with the first weight"

    def budget(self, spec: CanarySpec, desired: int, before: int) -> Budget:  # noqa: ARG002  (one size for all)
        """That of a rolling update."""
        return surge_budget(desired, spec.max_surge, spec.max_unavailable)

    def undoing(self, policy: DeploymentPolicy) -> DeploymentPolicy:
        """Have no steps: an undo of a canary is a rolling update."""
        return _REST.undoing(policy)

    def judging(self, spec: CanarySpec) -> Judging | None:
        """Judge by its settings, and copies as its mirror has them."""
        if spec.judge is None and spec.mirror is None:
            return None
        return Judging(spec.judge, weight_of(spec.mirror.share) if spec.mirror else 0)

    def control(self, deployment: Deployment, rollout: Rollout, spec: CanarySpec) -> tuple[Route, ...]:
        """Take the fresh baseline, if it has one."""
        return baseline(deployment, rollout) if spec.has_baseline else ()

    def cautions(self, spec: CanarySpec, desired: int, *, is_plan: bool) -> Iterable[str]:
        """Sentences about wrong chances, and with `is_plan` about the way in which its judge decides."""
        return cautions(spec, desired) if is_plan else doubts(spec, desired)

    def keep_whole(self, deployment: Deployment, spec: CanarySpec, now: datetime) -> Decision:
        """Keep each side whole for its present weight. Its judge continues as its requests do: harm leads back.

        A person who paused it looks on instead of the judge. What an earlier try has left falls unless a person did.
        """
        rollout = deployment.rollout
        canary = rollout.canary if rollout else None
        goes_back = deployment.status == ROLLING_BACK
        buckets = Buckets.of(deployment.routes, deploying_revision(deployment), now, spec.min_ready_seconds)
        is_there = canary is not None and (canary.stage or buckets.target)
        if rollout is None or canary is None or canary.weight is None or goes_back or not is_there:
            return super().keep_whole(deployment, spec, now)
        judgement_now = Judgement() if deployment.paused_at else judgement(canary, spec, now)
        if judgement_now.harms or (judgement_now.gives_up and not rollout.promote_requested):
            return self._given_up(deployment, spec, judgement_now)
        deployment = sized_as_kept(deployment)
        if _is_left(canary, spec) and not deployment.paused_at:
            return self._falling(deployment, spec, canary, judgement_now, now)
        budget = self.budget_of(deployment, spec)
        sizes = sizes_kept(deployment, spec, canary, buckets, budget, now)
        both, step = completed(deployment, canary, buckets, budget, sizes, now)
        if step:
            return step
        times = (judgement_now.next_at, buckets.next_change_at(now), *(side.recheck_at for side in both))
        return Decision.wait(Waits(WaitsFor.NOTHING, "both sides are whole"), soonest(times, now))

    def go_back(self, deployment: Deployment, spec: CanarySpec, target: UUID, now: datetime) -> Decision:
        """Go back as old ones can answer. Harm that its judge finds on the way takes all requests away at once."""
        back = super().go_back(deployment, spec, target, now)
        canary = deployment.rollout.canary if deployment.rollout else None
        if canary is None or not canary.weight:
            return back
        judgement_now = judgement(canary, spec, now)
        if not judgement_now.harms:
            return replace(back, recheck_at=min(filter(None, (back.recheck_at, judgement_now.next_at)), default=None))
        sentence = at_once(deployment, canary.weight, judgement_now.reason, self.budget_of(deployment, spec))
        return Decision.moved(
            f"{sentence}: the canary gets no further requests", RouteChanges(stage=Stage(canary.stage, 0)), now
        )

    def evaluate_cycle(self, deployment: Deployment, spec: CanarySpec, now: datetime) -> Decision:
        rollout = deployment.rollout
        canary = rollout.canary if rollout else None
        if rollout is None or canary is None or canary.weight is None:
            return _REST.evaluate_cycle(deployment, spec, now)
        judgement_now = judgement(canary, spec, now)
        is_left = _is_left(canary, spec)
        if judgement_now.harms or (judgement_now.gives_up and not is_left and not rollout.promote_requested):
            return self._given_up(deployment, spec, judgement_now)
        if is_left:
            return self._falling(deployment, spec, canary, judgement_now, now)
        buckets = Buckets.of(deployment.routes, deploying_revision(deployment), now, spec.min_ready_seconds)
        budget = self.budget_of(deployment, spec)
        over_at = ends_at(canary, spec) if budget.desired else None
        rising = is_rising(canary, spec) and budget.desired > 0
        is_good = judgement_now.is_over and budget.desired > 0
        is_over = not rising and (is_good or ends(rollout, canary, over_at, now))
        sizes = sizes_at(spec, canary, canary.stage + is_over, budget)
        both, step = completed(deployment, canary, buckets, budget, sizes, now)
        if step:
            return step
        times = (over_at, buckets.next_change_at(now), *(side.recheck_at for side in both))
        recheck_at = soonest((judgement_now.next_at, *judgement_now.decides, *times), now)
        baseline_ready = sum(route.is_serving for route in baseline(deployment, rollout))
        if len(buckets.ready) < sizes.canary or buckets.idle() or baseline_ready < sizes.fresh:
            sentence = still_coming(buckets, sizes.canary, baseline_ready, sizes.fresh)
            waits = waits_for_sides(sentence, buckets, both, sizes.canary, spec.min_ready_seconds, now)
            return Decision.wait(waits, recheck_at)
        if canary.weight_known_at is None:
            return Decision.wait(for_proxies(canary.weight), recheck_at)
        if is_over or rising:
            because = judgement_now.reason if is_good else ""
            return _next(canary, spec, Stage(canary.stage + is_over, sizes.weight), because, now)
        sentence = looking(in_words(spec, canary.weight), over_at, judgement_now, now)
        return Decision.wait(for_a_look(sentence, over_at, judgement_now, times, now), recheck_at, clock_stopped=True)

    def _falling(
        self, deployment: Deployment, spec: CanarySpec, canary: CanaryState, judgement: Judgement, now: datetime
    ) -> Decision:
        """Take the weight of an earlier try, as fast as old replicas can answer it, until the first step may begin."""
        budget, current_weight = self.budget_of(deployment, spec), canary.weight or 0
        if (less := weight_back(deployment, current_weight, budget)) < current_weight:
            sentence = f"the canary gets {percent(less)} of the requests, which old ones cannot answer yet"
            return Decision.moved(sentence, RouteChanges(stage=Stage(0, less)), now)
        buckets = Buckets.of(deployment.routes, deploying_revision(deployment), now)
        sizes = sizes_at(spec, canary, 0, budget)
        both, step = completed(deployment, canary, buckets, budget, sizes, now)
        if step:
            return step
        times = (judgement.next_at, buckets.next_change_at(now), *(side.recheck_at for side in both))
        sentence = f"the canary answers {percent(current_weight)} of the requests until old ones can"
        return Decision.wait(waits_for_sides(sentence, buckets, both, sizes.canary, 0, now), soonest(times, now))

    def _given_up(self, deployment: Deployment, spec: CanarySpec, judgement: Judgement) -> Decision:
        canary = deployment.rollout.canary if deployment.rollout else None
        if canary is None or not judgement.harms:
            return Decision.give_up(judgement.reason)
        budget = self.budget_of(deployment, spec)
        return Decision.give_up(at_once(deployment, canary.weight or 0, judgement.reason, budget), harms=True)


def _is_left(canary: CanaryState, spec: CanarySpec) -> bool:
    """Whether an earlier try has left more than the first step gives."""
    return not canary.stage and (canary.weight or 0) > weight_at(spec, 1)


def _next(canary: CanaryState, spec: CanarySpec, stage: Stage, because: str, now: datetime) -> Decision:
    if stage.number > len(spec.stages) or stage.weight is None:
        sentence, stage = "the last step of the canary is over: the rest follows", replace(stage, weight=None)
    else:
        sentence, full = f"the canary gets {in_words(spec, stage.weight)}", weight_at(spec, stage.number)
        sentence = f"{sentence}, on the way to {percent(full)}" if stage.weight < full else sentence
    sentence = f"{sentence}, for {because}" if because and stage.number > canary.stage else sentence
    return Decision.moved(sentence, RouteChanges(stage=stage), now)
