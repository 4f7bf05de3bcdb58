"""Settings of a canary: its steps, each a weight and a time, and how many replicas it has at each."""

import re
from datetime import datetime, timedelta
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from domain.judge.judge_spec import Judge
from domain.model.canary import CanaryState
from domain.model.deployment import Deployment, Rollout, Route
from domain.strategies.budget import Budget, is_zero
from domain.strategies.rolling_update import RollingUpdateSpec
from domain.text.numbers import WHOLE, percent, weight_of
from domain.traffic.caller_match import Chosen
from domain.traffic.capacity import needed

_PERCENT = re.compile(r"[0-9]{1,2}(\.[0-9]{1,2})?%")


def _check_percent(value: object) -> object:
    if isinstance(value, str) and _PERCENT.fullmatch(value) and weight_of(value) > 0:
        return value
    raise ValueError('must be a share of the requests from "0.01%" to "99.99%", such as "5%"')


def _check_share(value: object) -> object:
    return value if value == "100%" else _check_percent(value)


def _check_step(value: object) -> object:
    return {"weight": value} if isinstance(value, (str, int, float)) else value


def _check_mirror(value: object) -> object:
    return {"share": value} if isinstance(value, str) else value


class CanaryStep(BaseModel):
    """A weight, and the time for which it lasts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    weight: Annotated[str, BeforeValidator(_check_percent), Field(description='"0.01%" to "99.99%"')]
    """The share of the requests that the new revision gets."""
    seconds: float | None = Field(default=None, gt=0, le=30 * 86400)
    """The duration of the step. Left out: until a person promotes it."""


class Mirror(BaseModel):
    """Copies of requests, before the first weight. The canary answers them, and its answers are dropped."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    share: Annotated[str, BeforeValidator(_check_share), Field(description='"0.01%" to "100%"')]
    """The share of reading requests that are copied: GET, HEAD and OPTIONS."""
    seconds: float = Field(default=60, gt=0, le=30 * 86400)
    """The time for which copies are sent before the first step."""


class CanarySpec(RollingUpdateSpec):
    """Settings of a canary. The budget holds at every step; pacing and min_ready_seconds also hold for the rest."""

    steps: tuple[Annotated[CanaryStep, BeforeValidator(_check_step)], ...] = Field(
        default=(CanaryStep(weight="5%"), CanaryStep(weight="25%"), CanaryStep(weight="50%")),
        min_length=1,
        max_length=20,
    )
    """Each `{weight: 5%, seconds: 60}`, or just `5%`. After the last one the rest is rolled."""
    replicas: Literal["auto"] | Annotated[int, Field(ge=1, le=10_000)] = "auto"
    """The number of replicas of the new revision at a step. auto: the number that its weight needs, ceil(n x weight). A
    number: more, up to the room that the budget leaves next to the old ones that carry the rest, and never fewer than
    its weight needs.
    """

    sticky: bool = False
    """Whether a cookie keeps each caller on one side. A caller of the canary stays there. The judge then uses refusals
    and redirections only if `refused` and `redirected` are given, because one caller could decide by them.
    """

    match: Chosen | None = None
    """`{header: x-beta}` or `{cookie: beta, value: early}`: callers who reach the canary from its first weight on,
    besides those of the weight. Not with a judge that decides: they are no sample.
    """

    mirror: Annotated[Mirror | None, BeforeValidator(_check_mirror)] = None
    """`{share: 10%, seconds: 60}`, or just `10%`: before the first step the canary gets copies of requests."""

    judge: Judge | None = None
    """The judge that ends a step by the answers of both revisions. Left out: its seconds end a step, or a person."""

    @model_validator(mode="before")
    @classmethod
    def _is_not_for_one_caller_to_say(cls, value: object) -> object:
        """Judge refusals and redirections of sticky callers only if told to: each of the few meets them each time."""
        if not isinstance(value, dict) or not value.get("sticky") or not isinstance(value.get("judge"), dict):
            return value
        return {**value, "judge": {"refused": None, "redirected": None, **value["judge"]}}

    @property
    def stages(self) -> tuple[tuple[int, float | None], ...]:
        """The weight and the seconds of each stage: that of its mirror, without a weight, and then its steps."""
        mirrored = ((0, self.mirror.seconds),) if self.mirror else ()
        return (*mirrored, *((weight_of(step.weight), step.seconds) for step in self.steps))

    @model_validator(mode="after")
    def _can_stand_beside(self) -> Self:
        if is_zero(self.max_surge):
            raise ValueError("max_surge must be at least 1: a canary runs next to the replicas that run")
        weights = [weight_of(step.weight) for step in self.steps]
        if sorted(set(weights)) != weights:
            raise ValueError("steps must have rising weights, such as [5%, 25%, 50%]")
        if self.judge and not self.judge.dry_run and any(step.seconds for step in self.steps):
            raise ValueError("steps have no seconds where a judge says when they are over; its at_least has some")
        if self.match and self.judge and not self.judge.dry_run:
            raise ValueError("match: chosen callers are no sample to judge by; leave judge out, or set its dry_run")
        return self

    @model_validator(mode="after")
    def _can_have_a_baseline(self) -> Self:
        if not self.has_baseline:
            return self
        least = 2 * (1 if self.replicas == "auto" else self.replicas)
        if not isinstance(self.max_surge, int) or self.max_surge < least:
            raise ValueError(
                f"max_surge must be a number of at least {least} with judge.baseline fresh: "
                "as many replicas as the canary has run next to it"
            )
        if weight_of(self.steps[-1].weight) > WHOLE // 2:
            raise ValueError(
                "steps must have weights of at most 50% with judge.baseline fresh, which gets as many requests"
            )
        return self

    @property
    def has_baseline(self) -> bool:
        """Whether new replicas of the old revision run next to the canary."""
        return self.judge is not None and self.judge.baseline == "fresh"


def ends_at(canary: CanaryState, spec: CanarySpec) -> datetime | None:
    """The end of the present step; None: a person ends it, or it has not begun."""
    _, seconds = spec.stages[canary.stage - 1] if 0 < canary.stage <= len(spec.stages) else (0, None)
    if seconds is None or canary.weight_known_at is None:
        return None
    return canary.weight_known_at + timedelta(seconds=seconds)


def ends(rollout: Rollout, canary: CanaryState, over_at: datetime | None, now: datetime) -> bool:
    """Whether the present step is over, once its weight is reached; before the first there is nothing to look at."""
    return canary.stage == 0 or rollout.promote_requested or (over_at is not None and over_at <= now)


def weight_at(spec: CanarySpec, stage: int) -> int:
    """The weight of the canary at the end of a stage; after the last stage, that of the last one."""
    return spec.stages[min(stage, len(spec.stages)) - 1][0] if stage else 0


def is_rising(canary: CanaryState, spec: CanarySpec) -> bool:
    """Whether the weight of the present step is still to be reached."""
    return canary.weight is not None and canary.weight < weight_at(spec, canary.stage)


def size_at(spec: CanarySpec, budget: Budget, stage: int) -> int:
    """The canary's replicas at a stage; n=10: 1 at 5 %, 3 at 25 %, 5 at 50 %, and 5 until the rest."""
    weight = weight_at(spec, stage)
    if spec.replicas == "auto":
        return max(1, -(-budget.desired * weight // WHOLE))
    return min(max(spec.replicas, needed(budget.keep, weight)), budget.desired)


def in_words(spec: CanarySpec, weight: int) -> str:
    """The canary's share at this weight, in words: 5 % of the requests."""
    if spec.mirror and not weight:
        return f"copies of {percent(weight_of(spec.mirror.share))} of the requests that only read"
    return f"{percent(weight)} of the requests{f', and {spec.match.words}' if spec.match else ''}"


def baseline(deployment: Deployment, rollout: Rollout) -> tuple[Route, ...]:
    """Live replicas of the old revision that are no older than the rollout, and so than its canary."""
    return tuple(
        route
        for route in deployment.active_routes
        if route.revision_id == rollout.from_revision_id and route.created_at >= rollout.started_at
    )
