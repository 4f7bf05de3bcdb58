"""What each command answers, in `result`."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from domain.steering.activation import Activation
from domain.traffic.published import Protocol


class Answer(BaseModel):
    """Base of them all."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Changed(Answer):
    """A deployment was changed."""

    deployment: str
    """Its name."""
    version: int
    """Its version from now on."""


class Created(Changed):
    """A deployment was created."""

    deployment_id: str
    """Its id."""


class RevisionAdded(Answer):
    """A revision is there."""

    deployment: str
    """The name of its deployment."""
    revision: str
    """Its name."""
    revision_id: str
    """Its id."""
    added: bool
    """Whether it is new."""


class PolicySet(Changed):
    """A policy was set."""

    policy: dict[str, Any] | None
    """It, with every setting."""


class GotEntrance(Answer):
    """One host name or path prefix."""

    kind: Literal["host", "prefix"]
    """Which of them."""
    value: str
    """As requests have it."""
    strip_prefix: bool
    """Whether replicas see the path without it."""


class TrafficSet(Changed):
    """A deployment is reached otherwise."""

    entrances: tuple[GotEntrance, ...]
    """By what it is reached; what another deployment has already is not among them."""
    request_timeout_seconds: float | None
    """As it was set."""
    idle_timeout_seconds: float | None
    """As it was set."""
    hedge_after_seconds: float | None
    """As it was set."""
    preview: bool
    """As it was set."""
    protocol: Protocol
    """As it was set."""


class RulesSet(Changed):
    """Autoscaling rules were set."""

    rules: tuple[dict[str, Any], ...]
    """They, with every setting."""


class MetricPushed(Answer):
    """A value was kept."""

    deployment: str
    """The name of its deployment."""
    metric: str
    """Its name."""
    value: float
    """It."""
    fires: bool
    """Whether a rule acts on it."""


class SteeredAnswer(Changed):
    """A deployment is on its way."""

    rollout_id: str | None
    """Of the rollout that is under way."""
    already: bool
    """Whether there was nothing to do."""


class Activated(SteeredAnswer):
    """A revision is to be the running one."""

    revision: str
    """Its name."""
    activation: Activation
    """What came of it: `first` revision, rollout `begun`, `resumed` or `superseded`, `moved` without a rollout, ..."""
    passed_over: dict[str, Any] = {}
    """Hosts that cannot have a secret of the revision, and why."""


class AppliedDocument(Answer):
    """What became of one document."""

    deployment: str
    """The name of its deployment."""
    done: tuple[str, ...]
    """What was done, in sentences; none: it was so already."""
    results: tuple[dict[str, Any], ...]
    """What the commands answered that did it, in their order."""
    rollout_id: str | None
    """The id of the rollout that began, or goes on with another size."""


class Applied(Answer):
    """Deployments are what the documents say."""

    documents: tuple[AppliedDocument, ...]
    """What became of each, in their order."""


class Turned(SteeredAnswer):
    """A rollout that was under way turns, or a revision is activated: then it and what came of that are named."""

    revision: str | None = None
    """Its name."""
    activation: Activation | None = None
    """What came of it."""
    passed_over: dict[str, Any] = {}
    """Hosts that cannot have a secret of the revision, and why."""


class Scaled(SteeredAnswer):
    """A deployment gets another size."""

    before: int | None = Field(default=None, alias="from")
    """How many were wanted before."""
    to: int | None = None
    """How many are wanted."""


class HostForgotten(Answer):
    """A host is forgotten."""

    host: str
    """Its name."""
    deployments: int
    """How many had replicas there."""


class RouteReported(Answer):
    """News of a replica."""

    deployment: str
    """The name of its deployment."""
    route: str
    """Its id."""
    status: str
    """As reported."""
    applied: bool
    """Whether it was news."""


class SubscriptionDeleted(Answer):
    """A subscription has ended."""

    subscription: str
    """Its name."""


class SubscriptionSet(Answer):
    """A subscription is as it was asked for."""

    subscription: str
    """Its name."""
    webhook: str | None
    """The name of its target."""
    task: str | None
    """Its Celery task."""
    queue: str | None
    """Of the task."""
