"""The answers of commands that say where a deployment is reached, and what becomes of requests."""

from typing import Literal

from domain.commands.answers import Answer, Changed
from domain.traffic.chosen import Sticky
from domain.traffic.tls import TlsSettings, UpstreamTls
from domain.traffic.wire import Protocol


class GotEntrance(Answer):
    """One host name or path prefix."""

    kind: Literal["host", "prefix"]
    """Whether the entrance is a host name or a path prefix."""
    value: str
    """The host name, or the prefix, as requests have it."""
    strip_prefix: bool
    """Whether replicas see the path without it."""


class TrafficSet(Changed):
    """A deployment is reached otherwise."""

    entrances: tuple[GotEntrance, ...]
    """The entrances that the deployment has now; what another one has already is not among them."""
    request_timeout_seconds: float | None
    """How long a request may take; null: as long as it likes."""
    idle_timeout_seconds: float | None
    """How long a request may be silent; null: for ever."""
    hedge_after_seconds: float | None
    """After how long a request is sent to a second replica; null: never."""
    preview: bool
    """Whether preview requests reach a new revision before it gets traffic."""
    protocol: Protocol
    """What replicas are asked in."""
    tls: TlsSettings | None
    """The certificate by which it is reached over HTTPS; null: in clear text alone."""
    hold_seconds: float | None
    """For how long a request waits while no replica serves; null: it is refused at once."""
    hold_callers: int
    """How many requests wait at a proxy at most."""
    max_body_bytes: int | None
    """How large the body of a request may be; null: as large as it likes."""
    max_requests_per_second: int | None
    """How many requests a second each proxy takes; null: as many as come."""
    upstream_tls: UpstreamTls | None
    """What is expected of replicas, which are asked by TLS; null: in clear text."""
    sticky: Sticky | None
    """By what a caller is known who stays with a replica; null: nobody does."""
    pages: dict[str, str] | None
    """HTML by the status with which a proxy answers when no replica has; null: a sentence of the proxy's."""


class MaintenanceSet(Changed):
    """A maintenance has begun, goes on otherwise, or is over."""

    state: Literal["on", "off"]
    """Whether proxies answer callers by 503 themselves."""
    since: str | None
    """When it began, as ISO 8601 has it."""
    already: bool
    """Whether there was nothing to do."""
