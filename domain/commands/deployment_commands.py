"""Commands that describe a deployment: its spec, size, traffic and policy."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from domain.autoscaling.rule import MAX_RULES, AutoscalingRule
from domain.commands.base import POLICY, SPEC, Command, DeploymentCommand, Replicas
from domain.commands.results import (
    Created,
    MaintenanceSet,
    PolicySet,
    RevisionAdded,
    RulesSet,
    Scaled,
    SteeredAnswer,
    TrafficSet,
)
from domain.commands.steering_command import Case, SteeringCommand
from domain.installation.tokens import Role
from domain.revisions.revision import RevisionSpec
from domain.revisions.secret_refs import MASK, names_masked
from domain.steering import verbs
from domain.steering.command_effect import Effect
from domain.text.errors import RollwayError
from domain.text.storable import DeploymentName, Name
from domain.traffic.entrances import TrafficSettings
from domain.traffic.maintenance import USUAL_RETRY_SECONDS, checked_header, checked_page

_RULE = {"metric": "queue_length", "comparator": ">", "threshold": 100, "step": 1, "min_replicas": 2, "max_replicas": 9}


class DeploymentExistsError(RollwayError):
    """A deployment of that name exists with other settings."""


class CreateDeployment(Command):
    """Create a deployment."""

    task = "rollway.create_deployment"
    answer = Created
    role = Role.ADMIN
    example = {"deployment": "web", "policy": POLICY}

    deployment: DeploymentName
    """The name of the deployment."""
    desired_replicas: Replicas = 1
    """The number of replicas."""
    policy: dict[str, Any] | None = None
    """The strategy, its settings as `spec`, and the limits; null: no rollouts."""


class AddRevision(DeploymentCommand):
    """Add a revision. Adding the same one again is no error."""

    task = "rollway.add_revision"
    answer = RevisionAdded
    role = Role.OPERATOR
    example = {"name": "v2", "spec": SPEC}

    name: Name | None = None
    """Left out: `<deployment>-<8 hex digits>` of its content."""
    values_of: Name | None = None
    """An existing revision, whose values replace *** in `env`, the mask that people are shown."""
    spec: RevisionSpec
    """The spec of its replicas."""

    @field_validator("spec")
    @classmethod
    def _holds_no_mask(cls, spec: RevisionSpec, info: ValidationInfo) -> RevisionSpec:
        """Refuse a spec that was read with masked values: it would run with *** in their place."""
        if info.data.get("values_of") is None and (masked := names_masked(spec.env)):
            raise ValueError(f"env.{masked[0]}: {MASK} means a value that is not shown; write the value itself")
        return spec


class SetPolicy(DeploymentCommand):
    """Replace the policy, for rollouts that begin from now on."""

    task = "rollway.set_policy"
    answer = PolicySet
    role = Role.ADMIN
    example = {"policy": POLICY}

    policy: dict[str, Any] | None = Field(json_schema_extra={"x-fields": "policy"})
    """The strategy, its settings as `spec`, and the limits; null: no rollouts."""


class SetTraffic(DeploymentCommand, TrafficSettings):
    """Replace where the deployment is reached. With neither hosts nor a prefix: where a new deployment is."""

    task = "rollway.set_traffic"
    answer = TrafficSet
    role = Role.ADMIN
    example = {"hosts": ["web.example.com"]}

    with_rollout: bool = False
    """The settings come with the rollout under way: they hold as soon as callers meet its revision, and go with it."""


class SetMaintenance(DeploymentCommand):
    """Let proxies answer callers with 503 themselves, or end that.

    Previews are still reached, and rollouts continue.
    """

    task = "rollway.set_maintenance"
    answer = MaintenanceSet
    role = Role.OPERATOR
    example = {"state": "on", "reason": "the database moves"}

    state: Literal["on", "off"]
    """Whether it begins or ends; on again: it continues with the new settings."""
    page: Annotated[str, AfterValidator(checked_page)] | None = None
    """The HTML that callers get, with its styles in it; left out: a sentence."""
    allow: Annotated[str, Field(max_length=1000), AfterValidator(checked_header)] | None = None
    """Requests with this header get through: its name, or its name and its value as `name: value`."""
    retry_after_seconds: int = Field(default=USUAL_RETRY_SECONDS, ge=1, le=604_800)
    """The time in `retry-after`, after which callers try again."""

    @model_validator(mode="after")
    def _ends_without_more(self) -> Self:
        if self.state == "off" and (self.page is not None or self.allow is not None):
            raise ValueError("page and allow are for a maintenance that is on; leave them out, or say on")
        return self


class SetAutoscalingRules(DeploymentCommand):
    """Replace all autoscaling rules; the first that fires wins."""

    task = "rollway.set_autoscaling_rules"
    answer = RulesSet
    role = Role.ADMIN
    example = {"rules": [_RULE]}

    rules: tuple[AutoscalingRule, ...] = Field(max_length=MAX_RULES)
    """The rules, in their order; an empty list ends the autoscaling."""


class Scale(SteeringCommand):
    """Change the number of replicas, also in the middle of a rollout."""

    task = "rollway.scale"
    answer = Scaled
    is_planned = True
    example = {"desired_replicas": 5}

    desired_replicas: Replicas
    """The number of replicas."""
    with_rollout: bool = False
    """The size comes with the rollout under way: it is that of its revision, and goes with it."""

    def steer(self, case: Case) -> Effect:
        return verbs.scale(case.deployment, self.desired_replicas, with_rollout=self.with_rollout)


class Destroy(SteeringCommand):
    """Stop all replicas and delete the deployment, even in a rollout. The history stays.

    With `force` it ends at once, and its replicas count as stopped: for replicas that cannot be stopped, because their
    machine is gone for good. Replicas that still run are ended without a drain, by a sweep of their host.
    """

    task = "rollway.destroy"
    answer = SteeredAnswer
    role = Role.ADMIN

    force: bool = False
    """End it at once; its replicas count as stopped."""

    def steer(self, case: Case) -> Effect:
        return verbs.destroy(case.deployment, case.asking, force=self.force)
