"""Where a deployment is reached, and by which rules, in words for people."""

from collections.abc import Iterable, Iterator
from itertools import chain

from domain.traffic.entrances import in_order
from domain.traffic.snapshot import USUAL, Entrance, EntranceKind, RequestRules


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
    if rules.max_body_bytes is not None:
        yield f"bodies of {rules.max_body_bytes:,} bytes at most"
    if rules.pages:
        yield f"with pages of its own for {', '.join(status for status, _ in rules.pages)}"
    if rules.max_requests_per_second is not None:
        yield f"{rules.max_requests_per_second:,} requests a second at most"
