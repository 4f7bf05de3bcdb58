"""The strategies, by the name that policies use. Adding one is one file and one line here."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from domain.model.decision import Decision
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy, RolloutLimits, StrategySpec, UnreadableSpec
from domain.strategies.base import AbstractDeploymentStrategy
from domain.strategies.blue_green import BlueGreenStrategy
from domain.strategies.budget import Budget, resting_budget
from domain.strategies.canary.rollback import WeighingStrategy
from domain.strategies.canary.strategy import CanaryStrategy
from domain.strategies.recreate import RecreateStrategy
from domain.strategies.rolling_update import RollingUpdateStrategy
from domain.text.errors import InvalidInputError


class UnknownStrategy(WeighingStrategy[StrategySpec]):
    """Leads back a rollout whose strategy this release lacks, or whose settings it cannot read; never goes forward.

    A rollout that has a weight loses it on the way back, as a canary does.
    """

    spec_model: ClassVar[type[StrategySpec]] = StrategySpec
    weighs: ClassVar[bool] = False

    def budget(self, spec: StrategySpec, desired: int, before: int) -> Budget:  # noqa: ARG002
        """The budget is as narrow as outside a rollout."""
        return resting_budget(desired)

    def evaluate_cycle(self, deployment: Deployment, spec: StrategySpec, now: datetime) -> Decision:  # noqa: ARG002
        """Raise ValueError, which is an error of this rollout alone."""
        name = deployment.rollout.policy.strategy if deployment.rollout else ""
        raise ValueError(f"this release has no strategy {name!r} that knows these settings")


DeploymentStrategyRegistry = Mapping[str, AbstractDeploymentStrategy[Any]]

STRATEGIES: dict[str, AbstractDeploymentStrategy[Any]] = {
    "rolling_update": RollingUpdateStrategy(),
    "blue_green": BlueGreenStrategy(),
    "recreate": RecreateStrategy(),
    "canary": CanaryStrategy(),
}
UNKNOWN = UnknownStrategy()


class _PolicyInput(BaseModel):
    model_config = ConfigDict(extra="forbid")

    strategy: str
    spec: dict[str, Any] = Field(default_factory=dict)
    limits: RolloutLimits = Field(default_factory=RolloutLimits)


def parse_policy(raw: object, strategies: DeploymentStrategyRegistry = STRATEGIES) -> DeploymentPolicy:
    """A policy from `{"strategy": name, "spec": {...}, "limits": {...}}`.

    Raises InvalidInputError naming the field and what would be right.
    """
    try:
        policy_input = _PolicyInput.model_validate(raw)
        strategy = strategies.get(policy_input.strategy)
        if strategy is None:
            names = ", ".join(sorted(strategies))
            raise InvalidInputError.at("policy.strategy", f"must be one of {names}, not {policy_input.strategy!r}")
    except ValidationError as error:
        raise InvalidInputError.of(error, "policy", _PolicyInput) from None
    try:
        spec = strategy.spec_model.model_validate(policy_input.spec)
    except ValidationError as error:
        raise InvalidInputError.of(error, "policy.spec", strategy.spec_model) from None
    return DeploymentPolicy(policy_input.strategy, spec, policy_input.limits)


def chosen_policy(raw: object) -> DeploymentPolicy:
    """The policy that a person writes down. One by which every rollout would go back is refused; stored ones are read.

    Raises InvalidInputError.
    """
    policy = parse_policy(raw)
    for limit in ("timeout_seconds", "progress_timeout_seconds"):
        allowed = getattr(policy.limits, limit)
        for name, seconds in policy.spec.waits.items():
            if allowed is not None and seconds >= allowed:
                raise InvalidInputError.at(
                    f"policy.spec.{name}",
                    f"must be less than policy.limits.{limit}, {seconds:g} s are not less than {allowed:g} s: "
                    "every rollout would go back with all of its replicas healthy",
                )
    return policy


def stored_policy(raw: Mapping[str, Any]) -> DeploymentPolicy:
    """A rollout's own copy. What this release cannot read of it is an error of that rollout alone, when it decides."""
    try:
        return parse_policy(raw)
    except InvalidInputError:
        spec = UnreadableSpec(stored=raw["spec"], count_stopping=raw["spec"].get("count_stopping") is True)
        return DeploymentPolicy(raw["strategy"], spec, _limits(raw["limits"]))


def _limits(raw: object) -> RolloutLimits:
    try:
        return RolloutLimits.model_validate(raw)
    except ValidationError:
        return RolloutLimits()
