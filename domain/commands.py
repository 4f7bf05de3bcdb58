"""What people and other services may ask for: one validated payload for each command, by the task's name."""

from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from domain.autoscaling.rule import MAX_RULES, AutoscalingRule, MetricName, MetricNumber
from domain.replicas.address import plausible_address
from domain.replicas.revision import DeploymentName, Name, RevisionSpec
from domain.traffic.entrances import TrafficSettings

REQUEST_ID_LENGTH = 200
MAX_REPLICAS = 10_000
Replicas = Annotated[int, Field(ge=0, le=MAX_REPLICAS, strict=True)]


class Command(BaseModel):
    """What every command carries. Sending it again with the same `request_id` does nothing twice."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    task: ClassVar[str]

    request_id: str = Field(min_length=1, max_length=REQUEST_ID_LENGTH)
    actor: str = Field(default="unknown", min_length=1, max_length=200)
    reason: str = Field(default="", max_length=1000)
    schema_version: Literal[1] = 1


class DeploymentCommand(Command):
    """A command to one deployment. `expected_version` refuses it when the deployment has changed since."""

    deployment: DeploymentName
    expected_version: int | None = None


class CreateDeployment(Command):
    """Create a deployment. `policy`: {"strategy": name, "spec": {...}, "limits": {...}}; none: no rollouts."""

    task = "rollway.create_deployment"

    deployment: DeploymentName
    desired_replicas: Replicas = 1
    policy: dict[str, Any] | None = None


class AddRevision(DeploymentCommand):
    """Add a revision; without a name its content names it. Adding the same one again is no error."""

    task = "rollway.add_revision"

    name: Name | None = None
    spec: RevisionSpec


class SetPolicy(DeploymentCommand):
    """Replace the policy, for rollouts that begin from now on; null removes it."""

    task = "rollway.set_policy"

    policy: dict[str, Any] | None


class SetTraffic(DeploymentCommand, TrafficSettings):
    """Replace where the deployment is reached. With neither hosts nor a prefix: where a new deployment is."""

    task = "rollway.set_traffic"


class SetAutoscalingRules(DeploymentCommand):
    """Replace all autoscaling rules; the first that fires wins. An empty list ends the autoscaling."""

    task = "rollway.set_autoscaling_rules"

    rules: tuple[AutoscalingRule, ...] = Field(max_length=MAX_RULES)


class PushMetric(Command):
    """The value of a metric now, for rules with source "pushed". It is as old as its arrival here."""

    task = "rollway.push_metric"

    deployment: DeploymentName
    metric: MetricName
    value: MetricNumber


class ActivateRevision(DeploymentCommand):
    """Make a revision the running one. `supersede` leaves a rollout that is under way.

    `desired_replicas`: a new size that comes with the new revision, and goes again should it be rolled back.
    """

    task = "rollway.activate_revision"

    revision: Name
    supersede: bool = False
    desired_replicas: Replicas | None = None


class Pause(DeploymentCommand):
    """Hold a rollout where it is: nothing is created or drained, and its clocks stand still."""

    task = "rollway.pause"


class Resume(DeploymentCommand):
    """Go on with a paused rollout; its deadlines move by the time it was paused."""

    task = "rollway.resume"


class Promote(DeploymentCommand):
    """Move the traffic to a green set, as soon as it is healthy."""

    task = "rollway.promote"


class Abort(DeploymentCommand):
    """Leave a rollout: old and new trade places, within the same budget."""

    task = "rollway.abort"


class Undo(DeploymentCommand):
    """Go back to a revision that ran before: the named one, else the one before the current one."""

    task = "rollway.undo"

    revision: Name | None = None


class Retry(DeploymentCommand):
    """Begin the last rollout that was rolled back once more; one that is just rolling back turns forward again."""

    task = "rollway.retry"


class Scale(DeploymentCommand):
    """Set the desired number of replicas, in the middle of a rollout too."""

    task = "rollway.scale"

    desired_replicas: Replicas


class Destroy(DeploymentCommand):
    """Drain every replica and end the deployment, whatever it is doing.

    `force`: end it now, its replicas taken as stopped: for those that nobody can stop, since what ran them is gone.
    """

    task = "rollway.destroy"

    force: bool = False


class ForgetHost(Command):
    """Forget a worker host that is down and never comes back: its replicas are taken as stopped."""

    task = "rollway.forget_host"

    host: str = Field(min_length=1, max_length=63)


class ReportRoute(Command):
    """What another system knows of a replica of the runtime `external`. One that stopped unasked has failed."""

    task = "rollway.report_route"

    route_id: UUID
    status: Literal["healthy", "unhealthy", "failed", "stopped"]
    address: Annotated[str, Field(max_length=300), AfterValidator(plausible_address)] | None = None
    detail: str = Field(default="", max_length=1000)


COMMANDS: dict[str, type[Command]] = {
    command.task: command
    for command in (
        CreateDeployment,
        AddRevision,
        SetPolicy,
        SetTraffic,
        SetAutoscalingRules,
        PushMetric,
        ActivateRevision,
        Pause,
        Resume,
        Promote,
        Abort,
        Undo,
        Retry,
        Scale,
        Destroy,
        ForgetHost,
        ReportRoute,
    )
}
