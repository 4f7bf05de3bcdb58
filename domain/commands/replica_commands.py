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
    """Forget a worker host that is down and will not come back. Its replicas count as stopped."""

    task = "rollway.forget_host"
    answer = HostForgotten
    role = Role.ADMIN
    is_of_fleet = True

    host: str = Field(min_length=1, max_length=63)
    """The name of the host."""


class HostDrained(Answer):
    """A host is being drained."""

    host: str
    """The name of the host."""
    deployments: int
    """The number of deployments that have replicas there."""
    stay: tuple[str, ...]
    """The deployments whose replicas no other host takes now: these replicas stay until another host does."""


class DrainHost(Command):
    """Drain a worker host: it gets no new replicas, and its own are replaced on other hosts, within their policies."""

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
    """Put a drained host back in service."""

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
