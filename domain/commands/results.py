"""The answers of commands, in `result`."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from domain.steering.activation import Activation
from domain.traffic.caller_match import Sticky
from domain.traffic.tls import TlsSettings, UpstreamTls
from domain.traffic.wire import Protocol


class Answer(BaseModel):
    """An answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Changed(Answer):
    """A deployment was changed."""

    deployment: str
    """The name of the deployment."""
    version: int
    """The version of the deployment from now on."""


class Created(Changed):
    """A deployment was created."""

    deployment_id: str
    """The id of the deployment."""


class RevisionAdded(Answer):
    """A revision was added, or was there already."""

    deployment: str
    """The name of its deployment."""
    revision: str
    """The name of the revision."""
    revision_id: str
    """The id of the revision."""
    added: bool
    """Whether it is new."""


class PolicySet(Changed):
    """A policy is set."""

    policy: dict[str, Any] | None
    """The policy with every setting; null: there is none."""


class RulesSet(Changed):
    """Autoscaling rules were set."""

    rules: tuple[dict[str, Any], ...]
    """The rules with every setting."""


class MetricPushed(Answer):
    """A pushed value was stored."""

    deployment: str
    """The name of its deployment."""
    metric: str
    """The name of the metric."""
    value: float
    """The value that was stored."""
    fires: bool
    """Whether a rule acts on it."""


class SteeredAnswer(Changed):
    """A deployment is on its way to a revision."""

    rollout_id: str | None
    """The id of the rollout that is under way."""
    already: bool
    """Whether there was nothing to do."""
    noted: str | None = None
    """The session that holds the deployment; the command is done at most a second after it ends. null: it is done."""
    answering: str | None = None
    """The replicas that answer while a canary turns back, until the old ones can; null: the old ones can now."""


class Activated(SteeredAnswer):
    """A revision was activated."""

    revision: str
    """The name of the revision."""
    activation: Activation
    """The outcome: `first` revision, rollout `begun`, `resumed` or `superseded`, `moved` without a rollout, ..."""
    passed_over: dict[str, Any] = {}
    """Hosts that lack a secret of the revision, and why."""


class AppliedDocument(Answer):
    """The outcome of one document."""

    deployment: str
    """The name of its deployment."""
    done: tuple[str, ...]
    """The changes, in sentences; empty: nothing had to change."""
    results: tuple[dict[str, Any], ...]
    """The answers of the commands that made the changes, in their order."""
    rollout_id: str | None
    """The id of the rollout that began, or continues with another size."""
    notes: tuple[str, ...] = ()
    """The parts of the document that have no effect, and why, in sentences."""


class Applied(Answer):
    """The documents were applied."""

    documents: tuple[AppliedDocument, ...]
    """The outcome of each, in their order."""


class Turned(SteeredAnswer):
    """A rollout turns back, or a revision is activated; then `revision` and `activation` are set."""

    revision: str | None = None
    """The name of the revision."""
    activation: Activation | None = None
    """The outcome of the activation."""
    passed_over: dict[str, Any] = {}
    """Hosts that lack a secret of the revision, and why."""
    settings: tuple[str, ...] = ()
    """The settings that come back, in sentences that say when."""
    stays: tuple[str, ...] = ()
    """Settings that were changed without a rollout since the last one; an undo leaves them as they are."""


class Retried(Turned):
    """A rollout begins again, or failed starts are tried again."""

    forgotten: int | None = None
    """The number of failed starts that no longer hold anything back."""


class Scaled(SteeredAnswer):
    """A deployment gets another size."""

    before: int | None = Field(default=None, alias="from")
    """The number of replicas before."""
    to: int | None = None
    """The number of replicas."""
    rules: tuple[str, ...] = ()
    """The autoscaling rules, which may change it again."""


class RouteReported(Answer):
    """The status of a replica was reported."""

    deployment: str
    """The name of its deployment."""
    route: str
    """The id of the route."""
    status: str
    """The status that was reported."""
    applied: bool
    """Whether it differs from the status before."""


class GotEntrance(Answer):
    """A host name or path prefix."""

    kind: Literal["host", "prefix"]
    """Whether the entrance is a host name or a path prefix."""
    value: str
    """The host name, or the prefix, as requests have it."""
    strip_prefix: bool
    """Whether replicas see the path without it."""


class TrafficSet(Changed):
    """The entrances or the traffic settings of a deployment changed."""

    entrances: tuple[GotEntrance, ...]
    """The entrances that the deployment has now, without those that belong to another one already."""
    request_timeout_seconds: float | None
    """The longest time of a request; null: no limit."""
    idle_timeout_seconds: float | None
    """The longest time of silence in a request; null: no limit."""
    hedge_after_seconds: float | None
    """The time after which a request is also sent to a second replica; null: never."""
    preview: bool
    """Whether preview requests reach a new revision before it gets traffic."""
    protocol: Protocol
    """The protocol of its replicas."""
    tls: TlsSettings | None
    """The certificate by which it is reached over HTTPS; null: in clear text alone."""
    hold_seconds: float | None
    """The time for which a request waits while no replica serves; null: it is refused at once."""
    hold_callers: int
    """The most requests that wait at one proxy."""
    slow_start_seconds: float | None
    """The time in which the share of a new replica grows to a full one; null: it is full at once."""
    max_body_bytes: int | None
    """The largest body of a request; null: no limit."""
    max_requests_per_second: int | None
    """The most requests a second at each proxy; null: no limit."""
    upstream_tls: UpstreamTls | None
    """The certificate that replicas must show by TLS; null: they speak clear text."""
    sticky: Sticky | None
    """The cookie or header by which a caller stays with a replica; null: callers do not."""
    pages: dict[str, str] | None
    """HTML by the status with which a proxy answers when no replica has; null: a sentence of the proxy's."""


class MaintenanceSet(Changed):
    """A maintenance has begun, continues with other settings, or is over."""

    state: Literal["on", "off"]
    """Whether proxies answer callers by 503 themselves."""
    since: str | None
    """The time when it began, in ISO 8601."""
    already: bool
    """Whether there was nothing to do."""
