"""One kind of resource on a proxy's stream: what it asked for, holds and refused, and what is on its way."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from traffic.resources import Named, ResourceKind, Watermark

GONE = ""
"""The version of a resource that the proxy must drop."""
NOTHING_YET = Watermark(0, "", "")
MOST_NAMES = 50_000
"""The most resources of one kind: an Envoy that comes back can name 40,000 in one message."""
LONGEST_NAME = 512
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class TooManyNamesError(Exception):
    """A proxy asks for, or claims to hold, more than any table of ours has. The sentence is for its operator."""


@dataclass(frozen=True, slots=True)
class DiscoveryRequest:
    """A proxy's request for one kind of resource.

    `holds`: versions by name, from another stream. `nonce`: of the response that it answers, "" for none; `error`: why
    it did not take that response over, "" when it did.
    """

    kind: ResourceKind
    subscribe: tuple[str, ...] = ()
    unsubscribe: tuple[str, ...] = ()
    holds: Mapping[str, str] = field(default_factory=dict)
    nonce: str = ""
    error: str = ""


@dataclass(slots=True)
class SentPart:
    """A response that is not answered yet: `versions` by name.

    With it the proxy knows this kind `as_of` a table, whose clusters are `clusters`.
    """

    nonce: str
    versions: dict[str, str]
    as_of: Watermark
    clusters: Named


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A refusal of one resource: it is not sent again before `not_before` (monotonic seconds), unless it changes."""

    version: str
    count: int
    not_before: float


@dataclass(slots=True)
class StreamPart:
    """One kind of resource. `most`: how many may be sent at once, while it is looked for which one is refused.

    `complete`: what the proxy was last seen to hold all of. `acknowledged`: the newest table whose part it holds.
    """

    is_asked: bool = False
    is_answered: bool = False
    subscribed: set[str] = field(default_factory=set)
    versions: dict[str, str] = field(default_factory=dict)
    refused: dict[str, _Refusal] = field(default_factory=dict)
    pending: SentPart | None = None
    most: int | None = None
    complete: Named | None = None
    acknowledged: Watermark = NOTHING_YET

    def hear(self, request: DiscoveryRequest, now: float) -> tuple[str, ...]:
        """Take in a request. Returns the names of the resources that it refuses.

        Raises TooManyNamesError when it says more than a proxy of ours can mean.
        """
        self._bound(request)
        self.complete = None
        self.is_asked = True
        self.is_answered |= bool(request.holds)
        self.versions |= request.holds
        refused = self._hear_answer(request, now)
        for name in request.unsubscribe:
            self.subscribed.discard(name)
            self.refused.pop(name, None)
            self.forget(name)
        for name in request.subscribe:
            self.subscribed.add(name)
            if name not in request.holds:  # who asks again waits for an answer
                self.forget(name)
        return refused

    def _bound(self, request: DiscoveryRequest) -> None:
        """Bound the request: it is kept as long as its stream lasts."""
        words = (*request.subscribe, *request.holds, *request.holds.values())
        if any(len(name) > LONGEST_NAME for name in words):
            raise TooManyNamesError(f"A name or version on a stream has {LONGEST_NAME} characters at most.")
        subscriptions = len(self.subscribed) + sum(name not in self.subscribed for name in request.subscribe)
        count = len(self.versions) + sum(name not in self.versions for name in request.holds)
        if max(subscriptions, count) > MOST_NAMES:
            sentence = f"A stream may name {MOST_NAMES:,} {request.kind} at most, and this one names more."
            raise TooManyNamesError(sentence)

    def forget(self, name: str) -> None:
        """The proxy may hold this no more, whatever it answers to what is under way."""
        self.complete = None
        self.versions.pop(name, None)
        if self.pending is not None:
            self.pending.versions.pop(name, None)

    def is_due(self, name: str, version: str, now: float) -> bool:
        """Whether this may be sent: not when it was refused a moment ago."""
        refusal = self.refused.get(name)
        return refusal is None or refusal.version != version or refusal.not_before <= now

    def _hear_answer(self, request: DiscoveryRequest, now: float) -> tuple[str, ...]:
        pending = self.pending
        if pending is None or pending.nonce != request.nonce:
            return ()
        self.pending = None
        if request.error:
            return self._hear_refusal(pending.versions, now)
        for name, version in pending.versions.items():
            self.refused.pop(name, None)
            if version == GONE:
                self.versions.pop(name, None)
            else:
                self.versions[name] = version
        self.most = None if self.most is None else 2 * self.most
        self.acknowledged = max(self.acknowledged, pending.as_of, key=number_of)
        return ()

    def _hear_refusal(self, versions: Mapping[str, str], now: float) -> tuple[str, ...]:
        """Send half of several to find the refused one; a single one gets a pause that doubles."""
        if len(versions) > 1:
            self.most = len(versions) // 2
            return tuple(versions)
        for name, version in versions.items():
            last = self.refused.get(name)
            count = last.count + 1 if last and last.version == version else 0
            self.refused[name] = _Refusal(version, count, now + min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**count))
        return tuple(versions)


def number_of(mark: Watermark) -> int:
    """The place of a table among the tables of this server."""
    return mark.number
