"""The entrances of a deployment: which are valid, those that a new one gets, and how people read them and the rules."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import chain
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from domain.text.errors import RollwayError
from domain.traffic.caller_match import Sticky
from domain.traffic.maintenance import FailurePages
from domain.traffic.snapshot import USUAL, Entrance, EntranceKind, RequestRules
from domain.traffic.tls import Tls, Upstream, why_no_certificate
from domain.traffic.wire import Protocol

SESSION_COOKIE = "__Host-rollway_session"
"""The cookie of a session of the page. Our proxies pass it to no replica, and take it from none.

By the beginning of its name browsers take it from the page's own host alone: no other name's cookies count for it.
"""
PAGE_HOST = "rollway.localhost"
"""The page's own host name on its own machine, which every browser finds there: no proxy of ours answers by it."""


def is_of_the_page(host: str) -> bool:
    """Whether a host name is the page's own, or below it, where a script may set cookies for the page's own."""
    bare = host.removesuffix(".")
    return bare == PAGE_HOST or bare.endswith(f".{PAGE_HOST}")


MAX_HOSTS = 100
PREVIEW_PREFIX = "preview."
"""A deployment that is reached as web.example.com shows its new revision as preview.web.example.com."""
_SHORTEST_TIMEOUT = 0.001
"""Proxies count in milliseconds, and 0 is no limit to them."""
_LARGEST_BODY = 1 << 30
_LONGEST_HOST = 253
_LONGEST_PREFIX = 200
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
HOST_NAME = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")
"""A lower-case host name; *. at its beginning matches every name below it."""
_OF_A_MACHINE = re.compile(r"localhost|(.*\.)?([0-9]+|0x[0-9a-f]*)")
"""A name whose last label is a number is an IP address to clients, in one of its forms: 127.0.0.1, 127.1, 0x7f.1."""
_SEGMENT = re.compile(r"[A-Za-z0-9._~-]+")


class EntranceTakenError(RollwayError):
    """The host name or path prefix is another deployment's; the message names both."""

    @classmethod
    def by(cls, owner: str, deployment: str, kind: str, value: str) -> Self:
        """The refusal to `deployment`."""
        why = f"{kind} {value} is {owner}'s, so {deployment} cannot have it; take it from {owner} first, or use another"
        return cls(why, deployment=deployment, entrance=value, owner=owner)

    def unnamed(self) -> Self:
        """The refusal without the owner of the entrance."""
        deployment, value = self.detail["deployment"], self.detail["entrance"]
        why = f"{value} is another deployment's, so {deployment} cannot have it; use another"
        return type(self)(why, deployment=deployment, entrance=value)


def _checked_host(value: str) -> str:
    if ":" in value:
        raise ValueError(f"{value!r} must be a host name alone, without a port")
    if len(value) > _LONGEST_HOST or not HOST_NAME.fullmatch(value):
        raise ValueError(f"{value!r} must be a lower-case host name such as web.example.com or *.example.com")
    if value.startswith("*.") and value.count(".") == 1:
        raise ValueError(f"{value!r} must stand for the names below two labels at least, such as *.example.com")
    if _OF_A_MACHINE.fullmatch(value.removeprefix("*.")):
        raise ValueError(
            f"{value!r} must not be localhost or an IP address, by which every path prefix is reached; "
            "path_prefix: / takes the requests that no other deployment takes"
        )
    if is_of_the_page(value):
        raise ValueError(f"{value!r} must not be {PAGE_HOST} or below it, which is the page's alone")
    if value.removeprefix("*.").startswith(PREVIEW_PREFIX):
        raise ValueError(f"{value!r} must not begin with {PREVIEW_PREFIX!r}, where new revisions are looked at")
    return value


def _checked_prefix(value: str) -> str:
    segments = value.split("/")[1:-1]
    is_valid = value.startswith("/") and value.endswith("/") and len(value) <= _LONGEST_PREFIX
    if is_valid and all(_SEGMENT.fullmatch(segment) and segment not in {".", ".."} for segment in segments):
        return value
    raise ValueError(
        f"{value!r} must begin and end with '/', such as /api/, and hold letters, digits, '.', '_', '~' and '-' only"
    )


Host = Annotated[str, AfterValidator(_checked_host)]
PathPrefix = Annotated[str, AfterValidator(_checked_prefix)]


class TrafficSettings(BaseModel):
    """The entrances of a deployment and the rules of its requests, as `RequestRules` has them.

    With neither hosts nor a prefix it has those of a new deployment.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    hosts: tuple[Host, ...] | None = Field(default=None, max_length=MAX_HOSTS)
    """Host names; `*.example.com` is every name below example.com. Each belongs to one deployment."""
    path_prefix: PathPrefix | None = None
    """The beginning of paths, with `/` at both ends. It belongs to one deployment."""
    strip_prefix: bool = True
    """Whether replicas see the path without the prefix."""
    request_timeout_seconds: float | None = Field(default=None, ge=_SHORTEST_TIMEOUT, le=86400)
    """The time limit of a request; left out: no limit."""
    hedge_after_seconds: float | None = Field(default=5.0, ge=0.01, le=3600)
    """The wait after which an idempotent request goes to a second replica too; null: it never does."""
    preview: bool = True
    """Whether preview requests reach a new revision before it gets traffic."""
    idle_timeout_seconds: float | None = Field(default=3600.0, ge=_SHORTEST_TIMEOUT, le=86400)
    """A request is cut after this silence in both directions; null: never."""
    protocol: Protocol = Protocol.HTTP1
    """The protocol to replicas; http2 for gRPC. Clients may speak either."""
    tls: Tls | None = None
    """The certificate for HTTPS; `auto`: one from an authority for each of its hosts."""
    hold_seconds: float | None = Field(default=None, ge=1, le=600)
    """The time that a request waits while no replica serves, as during `recreate`; left out: it gets 503 at once."""
    hold_callers: int = Field(default=1000, ge=1, le=100_000)
    """The most requests that wait at one proxy; the next one gets 503 at once."""
    slow_start_seconds: float | None = Field(default=None, ge=1, le=3600)
    """The time in which a new replica's share of the requests grows to a full one; left out: full at once."""
    max_body_bytes: int | None = Field(default=None, ge=1, le=_LARGEST_BODY)
    """The largest body of a request; a larger one gets 413; left out: no limit."""
    max_requests_per_second: int | None = Field(default=None, ge=1, le=1_000_000)
    """The most requests a second that each proxy takes for its host names; the next one gets 429; left out: no
    limit.
    """
    upstream_tls: Upstream = None
    """TLS to replicas; `true`: their certificates must be from an authority of the system."""
    sticky: Sticky | None = None
    """The cookie or header that keeps a caller on one replica; left out: each request goes to the replica with least to
    do.
    """
    pages: FailurePages | None = None
    """HTML pages by status, 502, 503 or 504, for callers without an answer of a replica; a replica's answer stays."""

    @model_validator(mode="after")
    def _can_be_limited(self) -> Self:
        """A limit of requests needs host names, which belong to one deployment; proxies share path prefixes."""
        if self.max_requests_per_second is not None and (not self.hosts or self.path_prefix):
            raise ValueError(
                "max_requests_per_second: is counted by host names: name them in hosts, without path_prefix"
            )
        return self

    @model_validator(mode="after")
    def _can_be_secured(self) -> Self:
        """TLS needs host names, which certificates are made out to."""
        if self.tls is None:
            return self
        if not self.hosts:
            raise ValueError("tls: certificates are made out to host names; name them in hosts")
        if self.tls.is_auto and (why := next(filter(None, map(why_no_certificate, self.hosts)), None)):
            raise ValueError(f"tls: {why}, or give a certificate")
        if self.tls.callers_ca and self.path_prefix:
            raise ValueError("tls.callers_ca: by path_prefix callers would come without a certificate; leave it out")
        return self

    @model_validator(mode="after")
    def _chooses_a_replica(self) -> Self:
        """A slow start gives a new replica fewer callers; sticky callers leave no choice."""
        if self.slow_start_seconds and self.sticky:
            raise ValueError("slow_start_seconds: with sticky callers stay with a replica; leave out one of the two")
        return self

    @property
    def rules(self) -> RequestRules:
        return RequestRules(
            self.request_timeout_seconds,
            self.hedge_after_seconds,
            self.preview,
            self.idle_timeout_seconds,
            self.protocol,
            self.tls,
            self.hold_seconds,
            self.hold_callers,
            self.slow_start_seconds,
            self.max_body_bytes,
            self.max_requests_per_second,
            self.sticky,
            self.upstream_tls,
            tuple(sorted((self.pages or {}).items())),
        )

    @property
    def is_default(self) -> bool:
        """Whether Rollway chooses the entrances, without those that belong to another deployment."""
        return self.hosts is None and self.path_prefix is None

    def entrances_of(self, deployment: str) -> tuple[Entrance, ...]:
        """Sorted, each once."""
        if self.is_default:
            return default_entrances(deployment, strip_prefix=self.strip_prefix)
        hosts = {Entrance(EntranceKind.HOST, host) for host in self.hosts or ()}
        prefix = {Entrance(EntranceKind.PREFIX, self.path_prefix, self.strip_prefix)} if self.path_prefix else set()
        return in_order(hosts | prefix)


def settings_of(deployment: str, entrances: tuple[Entrance, ...], rules: RequestRules) -> TrafficSettings:
    """The settings that give these; without a slow start where an earlier version took one with `sticky`."""
    prefix = next((each for each in entrances if each.kind is EntranceKind.PREFIX), None)
    strip_prefix = prefix is None or prefix.strip_prefix
    places: dict[str, object] = {"strip_prefix": strip_prefix}
    if entrances != default_entrances(deployment, strip_prefix=strip_prefix):
        hosts = [each.value for each in entrances if each.kind is EntranceKind.HOST]
        places |= {"hosts": hosts, "path_prefix": prefix and prefix.value}
    values = {field.name: getattr(rules, field.name) for field in fields(rules)}
    values["request_timeout_seconds"], values["pages"] = values.pop("timeout_seconds"), dict(rules.pages) or None
    if rules.sticky:
        values["slow_start_seconds"] = None
    return TrafficSettings.model_validate({**places, **values})


def default_entrances(deployment: str, *, strip_prefix: bool = True) -> tuple[Entrance, ...]:
    """Hosts NAME and NAME.localhost, prefix /NAME/; without those that such a name cannot have."""
    hosts = [host for host in (deployment, f"{deployment}.localhost") if _passes(_checked_host, host)]
    prefixes = [prefix for prefix in (f"/{deployment}/",) if _passes(_checked_prefix, prefix)]
    return in_order(
        [
            *(Entrance(EntranceKind.HOST, host) for host in hosts),
            *(Entrance(EntranceKind.PREFIX, prefix, strip_prefix) for prefix in prefixes),
        ]
    )


def in_order(entrances: Iterable[Entrance]) -> tuple[Entrance, ...]:
    """Hosts before prefixes, each by name."""
    return tuple(sorted(entrances, key=lambda entrance: (entrance.kind, entrance.value)))


def _passes(check: Callable[[str], str], value: str) -> bool:
    try:
        check(value)
    except ValueError:
        return False
    return True


def enclosing(entrance: Entrance) -> tuple[Entrance, ...]:
    """The entrances that it lies in, the nearest first; not `/`, which takes only what nobody else takes.

    /web/login/         -> /web/
    a.web.example.com   -> web.example.com, *.web.example.com, example.com, *.example.com, com, *.com
    *.web.example.com   -> web.example.com, example.com, *.example.com, com, *.com
    """
    values = _prefixes(entrance.value) if entrance.kind is EntranceKind.PREFIX else _hosts(entrance.value)
    return tuple(Entrance(entrance.kind, value) for value in values)


def named_after(entrances: Iterable[Entrance]) -> dict[str, Entrance]:
    """The names of deployments that get one of these by default, whether or not they have it now."""
    by_name = {name: entrance for entrance in entrances for name in _names(entrance)}
    return {name: entrance for name, entrance in by_name.items() if _is_default(name, entrance)}


def _prefixes(prefix: str) -> Iterator[str]:
    while (prefix := prefix[: prefix.rfind("/", 0, -1) + 1]) not in {"/", ""}:
        yield prefix


def _hosts(host: str) -> Iterator[str]:
    is_wildcard, name = host.startswith("*."), host.removeprefix("*.")
    if is_wildcard:
        yield name
    while "." in name:
        name = name.partition(".")[2]
        yield from (name, f"*.{name}")


def _names(entrance: Entrance) -> tuple[str, ...]:
    if entrance.kind is EntranceKind.PREFIX:
        return (entrance.value[1:-1],)
    return entrance.value, entrance.value.removesuffix(".localhost")


def _is_default(name: str, entrance: Entrance) -> bool:
    return any((own.kind, own.value) == (entrance.kind, entrance.value) for own in default_entrances(name))


def entrances_in_words(entrances: Iterable[Entrance], rules: RequestRules = USUAL) -> str:
    """web, web.localhost, /web/, each request within 30 s; a prefix that is passed on says so."""
    words = [
        entrance.value + ("" if entrance.kind is EntranceKind.HOST or entrance.strip_prefix else " (passed on)")
        for entrance in in_order(entrances)
    ]
    return (", ".join(words) or "nowhere") + rules_in_words(rules)


def rules_in_words(rules: RequestRules) -> str:
    """Rules that a new deployment has not, each behind a comma; empty when there are none."""
    return "".join(f", {rule}" for rule in chain(_times(rules), _ways(rules), _limits(rules)))


def _times(rules: RequestRules) -> Iterator[str]:
    if rules.timeout_seconds:
        yield f"each request within {rules.timeout_seconds:g} s"
    if rules.hedge_after_seconds != USUAL.hedge_after_seconds:
        yield f"hedged after {rules.hedge_after_seconds:g} s" if rules.hedge_after_seconds else "never hedged"
    if not rules.preview:
        yield "without a preview"
    if rules.idle_timeout_seconds != USUAL.idle_timeout_seconds:
        idle = rules.idle_timeout_seconds
        yield f"cut when silent for {idle:g} s" if idle else "never cut when silent"


def _ways(rules: RequestRules) -> Iterator[str]:
    if rules.protocol is not USUAL.protocol:
        yield "replicas speak HTTP/2"
    if rules.upstream_tls is not None:
        yield "replicas speak TLS"
    if rules.tls is not None:
        yield "over HTTPS, with certificates from an authority" if rules.tls.is_auto else "over HTTPS"
    if rules.sticky is not None:
        yield f"callers stay with a replica by {rules.sticky.description}"


def _limits(rules: RequestRules) -> Iterator[str]:
    if rules.hold_seconds is not None:
        yield f"waiting {rules.hold_seconds:g} s while nothing serves"
    if rules.slow_start_seconds is not None:
        yield f"a new replica's share grows for {rules.slow_start_seconds:g} s"
    if rules.max_body_bytes is not None:
        yield f"bodies of {rules.max_body_bytes:,} bytes at most"
    if rules.pages:
        yield f"with pages of its own for {', '.join(status for status, _ in rules.pages)}"
    if rules.max_requests_per_second is not None:
        yield f"{rules.max_requests_per_second:,} requests a second at most"
