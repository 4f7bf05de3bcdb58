"""Commands that tell of replicas and their hosts: of other systems, and of people."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from domain.autoscaling.rule import MetricName, MetricNumber
from domain.commands.base import Command
from domain.commands.results import Answer, MetricPushed, RouteReported
from domain.installation.tokens import Role
from domain.revisions.address import plausible_address
from domain.text.storable import DeploymentName


class PushMetric(Command):
    """The value of a metric now, for rules with source "pushed". It is as old as its arrival here."""

    task = "rollway.push_metric"
    answer = MetricPushed
    role = Role.OPERATOR
    example = {"metric": "queue_length", "value": 12.0}

    deployment: DeploymentName
    """The name of the deployment."""
    metric: MetricName
    """The name of the metric in the rules."""
    value: MetricNumber
    """The value that it has now."""


class HostForgotten(Answer):
    """A host is forgotten."""

    host: str
    """The name of the host."""
    deployments: int
    """The number of deployments that had replicas there."""


class ForgetHost(Command):
    """Forget a worker host that is down and never comes back: its replicas are taken as stopped."""

    task = "rollway.forget_host"
    answer = HostForgotten
    role = Role.ADMIN
    is_of_fleet = True

    host: str = Field(min_length=1, max_length=63)
    """The name of the host."""


class HostDrained(Answer):
    """A host is being emptied."""

    host: str
    """The name of the host."""
    deployments: int
    """The number of deployments that have replicas there."""
    stay: tuple[str, ...]
    """The names of those that no other host takes now: their replicas stay until one does."""


class DrainHost(Command):
    """Empty a worker host: it gets no new replicas, and those there are replaced on others, within their policies."""

    task = "rollway.drain_host"
    answer = HostDrained
    role = Role.ADMIN
    is_of_fleet = True

    host: str = Field(min_length=1, max_length=63)
    """The name of the host."""


class HostUndrained(Answer):
    """A host takes replicas again."""

    host: str
    """The name of the host."""


class UndrainHost(Command):
    """Let a host that was drained have replicas again."""

    task = "rollway.undrain_host"
    answer = HostUndrained
    role = Role.ADMIN
    is_of_fleet = True

    host: str = Field(min_length=1, max_length=63)
    """The name of the host."""


class ReportRoute(Command):
    """Report a replica of the runtime `external`, which another system runs. One that stopped unasked has failed."""

    task = "rollway.report_route"
    answer = RouteReported
    role = Role.OPERATOR
    is_of_fleet = True
    example = {"status": "healthy"}

    route_id: UUID
    """The id of the replica, as the request to start it named it."""
    status: Literal["healthy", "unhealthy", "failed", "stopped"]
    """The status of the replica."""
    address: Annotated[str, Field(max_length=300), AfterValidator(plausible_address)] | None = None
    """host:port where it answers, once it has one."""
    detail: str = Field(default="", max_length=1000)
    """Why, for people."""
