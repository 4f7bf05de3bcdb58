"""Explains where a request goes, and why: by its name or path, to which replicas, or the proxy's own answer."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from domain.model.states import RouteStatus
from domain.text.errors import InvalidInputError
from domain.text.numbers import WHOLE
from domain.traffic.entrances import PAGE_HOST, is_of_the_page
from domain.traffic.tls_material import ANY_HOST, is_for
from traffic.routing_table import Prefix, Service, TrafficTable, Upstream


@dataclass(frozen=True, slots=True)
class AskedFor:
    """A URL of a request. `host`: in lower case, without its port. `path`: folded as a proxy does it."""

    scheme: str
    host: str
    path: str

    @classmethod
    def parse(cls, url: str) -> "AskedFor":
        """Read a URL; one without a scheme means plain HTTP. Raises InvalidInputError."""
        parts = _split(url if "://" in url else f"http://{url}")
        if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
            message = f"--explain must be a URL, such as http://web.localhost/health, not {url!r}"
            raise InvalidInputError(message, field="--explain")
        return cls(parts.scheme, parts.hostname, _folded(parts.path or "/"))


def _folded(path: str) -> str:
    """Fold a path as Envoy does before it decides by it: /a/../b is /b, and /a/%2E/b is /a/b."""
    parts: list[str] = []
    segments = path.replace("\\", "/").split("/")[1:]
    for segment in segments:
        match segment.lower().replace("%2e", "."):
            case "..":
                del parts[-1:]
            case ".":
                pass
            case _:
                parts.append(segment)
    ends = segments[-1].lower().replace("%2e", ".") in (".", "..")
    return f"/{'/'.join(parts)}{'/' if ends and parts else ''}"


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence of an explanation, and its topic in a word."""

    about: str
    says: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The way of a request. `service`: the deployment it belongs to, or None. `replicas`: those that may get it."""

    service: str | None
    said: tuple[Said, ...]
    replicas: tuple[Upstream, ...] = ()


def explain(table: TrafficTable, request: AskedFor) -> Explanation:
    """Follow a request without further headers through the table.

    host names first      web.example.com before *.example.com, the longest of those first
    then path prefixes    the longest first, only where the host name is nobody's
    """
    if is_of_the_page(request.host):
        below = "" if request.host == PAGE_HOST else f", and so is {request.host}"
        return Explanation(None, (Said("host", f"{PAGE_HOST} is the page's alone{below}: a proxy answers 421"),))
    by_host = _by_host(table, request.host)
    if by_host is not None:
        return _by_its_host(*by_host, request)
    by_path = _by_path(table, request.path)
    nobody = Said("host", f"{request.host} is no deployment's host name, so the path says whose it is")
    if by_path is None:
        return Explanation(
            None, (nobody, Said("path", f"no deployment has {request.path} either: a proxy answers 404"))
        )
    prefix, service = by_path
    bare = prefix.value.rstrip("/")
    inner = f"/{request.path.removeprefix(bare).lstrip('/')}" if prefix.strip and bare else request.path
    line = Said("path", f"{prefix.value} is {service.name}'s, the longest that fits; its replicas see {inner}")
    return _among(service, (nobody, line))


def _by_its_host(service: Service, name: str, request: AskedFor) -> Explanation:
    below = f"{request.host} lies below {name}, which is" if name.startswith(ANY_HOST) else f"{name} is"
    if name in service.preview_hosts:
        line = Said("host", f"{below} where a new revision of {service.name} is looked at")
        return _previewed(service, (line, *_by_callers(service, name, request)))
    line = Said("host", f"{below} {service.name}'s; its replicas see {request.path}")
    return _among(service, (line, *_by_tls(service, name, request)))


def _by_host(table: TrafficTable, host: str) -> tuple[Service, str] | None:
    """The deployment of a host name, and which of its names that is."""
    names = {name: service for service in table.services for name in (*service.hosts, *service.preview_hosts)}
    labels = host.split(".")
    above = (f"{ANY_HOST}{'.'.join(labels[begin:])}" for begin in range(1, len(labels)))
    best = next((name for name in (host, *above) if name in names), None)
    return None if best is None else (names[best], best)


def _by_path(table: TrafficTable, path: str) -> tuple[Prefix, Service] | None:
    fits = (
        (prefix, service)
        for service in table.services
        for prefix in service.prefixes
        if path == prefix.value.rstrip("/") or path.startswith(prefix.value)
    )
    return max(fits, key=lambda pair: len(pair[0].value), default=None)


def _by_tls(service: Service, host: str, request: AskedFor) -> Iterator[Said]:
    """The fate of https:// and of http:// by its host name `host`."""
    tls = service.rules.tls
    if tls is None:
        if request.scheme == "https":
            yield Said("tls", f"{service.name} has no traffic.tls, so no proxy speaks TLS for it: ask by http://")
        return
    if not _has_certificate(service, host):
        then = "the handshake fails" if request.scheme == "https" else "nobody is sent on to https://"
        yield Said("tls", f"{host} has no certificate, so {then}: 'rollway status {service.name}' says why")
    yield from _by_callers(service, host, request)


def _by_callers(service: Service, host: str, request: AskedFor) -> Iterator[Said]:
    """What callers must show, and the fate of plain HTTP."""
    if service.asks_callers:
        yield Said("tls", "callers must show a certificate of their own (callers_ca), and get in by https:// alone")
    if request.scheme == "https" or service.rules.tls is None:
        return
    if _has_certificate(service, host) and (service.rules.tls.redirect or service.asks_callers):
        yield Said("tls", "requests by http:// are redirected to https:// (308)")
    elif service.asks_callers:
        yield Said("tls", "requests by http:// get 403")


def _has_certificate(service: Service, host: str) -> bool:
    certificates = service.secured.certificates if service.secured else ()
    return is_for([name for certificate in certificates for name in certificate.names], host)


def _previewed(service: Service, lines: tuple[Said, ...]) -> Explanation:
    if not service.preview:
        none = Said("answer", "no revision is to be previewed at the moment: a proxy answers 503")
        return Explanation(service.name, (*lines, none))
    return Explanation(service.name, (*lines, _replicas("preview", service.preview)), service.preview)


def _among(service: Service, lines: tuple[Said, ...]) -> Explanation:
    """The explanation of a request whose deployment is known: the replicas that may answer."""
    if service.maintenance is not None:
        through = " unless the request has the header that gets through" if service.maintenance.allow else ""
        down = f"{service.name} is in maintenance: a proxy answers 503{through}"
        return Explanation(service.name, (*lines, Said("answer", down)))
    if not service.serving:
        return Explanation(service.name, (*lines, Said("answer", _without_replicas(service))))
    shares = tuple(_shares(service))
    replicas = tuple(dict.fromkeys(upstream for _, upstreams in shares for upstream in upstreams))
    return Explanation(service.name, (*lines, *(share for share, _ in shares)), replicas)


def _without_replicas(service: Service) -> str:
    if service.rules.hold_seconds is not None:
        return f"no replica serves: a request waits for one, for {service.rules.hold_seconds:g} s, and then gets 503"
    return f"no replica serves: a proxy answers 503; 'rollway why {service.name}' says what it waits for"


def _shares(service: Service) -> Iterator[tuple[Said, tuple[Upstream, ...]]]:
    """The replicas that get its requests. Each request may go to another, unless callers stay with one or on a side."""
    how = (
        _LEAST_ASKED
        if service.rules.sticky is None
        else f"a caller stays with one by {service.rules.sticky.description}"
    )
    canary = service.canary if service.weight else None
    baseline = service.baseline if service.baseline_weight and canary is not None else None
    rest = WHOLE - (service.weight if canary is not None else 0) - (service.baseline_weight if baseline else 0)
    if rest:
        yield _replicas(_percent("live", rest), service.live, how), service.live
    if baseline:
        yield _replicas(_percent("baseline", service.baseline_weight), baseline, how), baseline
    if canary is not None:
        has_cookie = service.sticky and service.rules.sticky is None
        note = "; the cookie of this canary keeps a caller on his side" if has_cookie else ""
        replicas = _replicas(_percent("canary", service.weight), canary, how)
        yield Said(replicas.about, f"{replicas.says}{note}"), canary
    if canary is not None and service.chosen is not None:
        yield Said("canary", f"{service.chosen.words} get to the canary whatever its weight is"), canary


_LEAST_ASKED = "the one with the fewest requests of two first"


def _percent(side: str, share: int) -> str:
    return side if share == WHOLE else f"{side}, {share / 100:g} %"


def _replicas(about: str, upstreams: tuple[Upstream, ...], how: str = _LEAST_ASKED) -> Said:
    """Healthy replicas are asked; the others only where too few of these are left."""
    if not upstreams:
        return Said(about, "no replica: a proxy answers 503")
    healthy = sum(upstream.status is RouteStatus.HEALTHY for upstream in upstreams)
    count = f"{len(upstreams)} replica{'s' if len(upstreams) > 1 else ''}"
    if healthy == len(upstreams):
        return Said(about, f"{count}, all healthy, {how}")
    if healthy:
        return Said(about, f"{count}, of which the {healthy} healthy come first")
    return Said(about, f"{count}, none of which is healthy, so that each is tried")
