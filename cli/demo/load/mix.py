"""The requests of a load: their kinds, and a seeded plan of their order."""

import hashlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle


class Kind(StrEnum):
    """One way to use a service."""

    GET = "get"
    GET_CLOSE = "get, new connection"
    POST_CLOSE = "post, new connection"
    UPLOAD = "upload, 100 KB"
    UPLOAD_LARGE = "upload, 1 MB"
    SLOW_GET = "slow get"
    SLOW_POST = "slow post"


DEFAULT_MIX: Mapping[Kind, float] = {
    Kind.GET: 0.845,
    Kind.GET_CLOSE: 0.12,
    Kind.UPLOAD: 0.015,
    Kind.UPLOAD_LARGE: 0.002,
    Kind.SLOW_GET: 0.01,
    Kind.SLOW_POST: 0.008,
}
"""The share of each kind, of a service that takes uploads."""

LONGEST_REQUEST = 3.0
"""Seconds that a slow request takes, by default."""

_SMALL, _LARGE = 100_000, 1_000_000
_VARIANTS = 5


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """A request as bytes. `takes`: the seconds for which it lasts however fast it is answered.

    A body goes in `pieces` of about one size, spread over `takes`. `sha256` is the body's, empty when nobody checks it.
    """

    kind: Kind
    head: bytes
    takes: float = 0.0
    body: bytes = b""
    pieces: int = 1
    sha256: str = ""

    @property
    def idempotent(self) -> bool:
        """Whether a proxy may send it again."""
        return not self.head.startswith(b"POST")

    @property
    def closes(self) -> bool:
        """Whether it has a connection of its own."""
        return self.kind in {Kind.GET_CLOSE, Kind.POST_CLOSE}


def plan(
    seed: int, host: str, mix: Mapping[Kind, float] = DEFAULT_MIX, longest: float = LONGEST_REQUEST
) -> Iterator[PlannedRequest]:
    """Plan requests without end; the same ones for the same seed. None of them takes more than `longest` seconds."""
    chance = random.Random(seed)  # noqa: S311  (no secret: the same seed makes the same plan)
    kinds, shares = list(mix), list(mix.values())
    variants = {kind: cycle([_variant(kind, host, chance, longest) for _ in range(_VARIANTS)]) for kind in kinds}
    while True:
        for kind in chance.choices(kinds, shares, k=1000):
            yield next(variants[kind])


def _variant(kind: Kind, host: str, chance: random.Random, longest: float) -> PlannedRequest:
    match kind:
        case Kind.GET:
            return PlannedRequest(kind, _head("GET", "/", host))
        case Kind.GET_CLOSE:
            return PlannedRequest(kind, _head("GET", "/", host, "Connection: close"))
        case Kind.POST_CLOSE:
            return PlannedRequest(kind, _head("POST", "/", host, "Connection: close", "Content-Length: 0"))
        case Kind.UPLOAD:
            return _upload(kind, host, chance.randbytes(_SMALL), 4, longest * chance.uniform(0.02, 0.2))
        case Kind.UPLOAD_LARGE:
            return _upload(kind, host, chance.randbytes(_LARGE), 10, longest * chance.uniform(0.2, 0.7))
        case Kind.SLOW_GET | Kind.SLOW_POST:
            seconds = round(longest * chance.uniform(0.3, 1), 2)
            method = "GET" if kind is Kind.SLOW_GET else "POST"
            more = () if kind is Kind.SLOW_GET else ("Content-Length: 0",)
            return PlannedRequest(kind, _head(method, f"/slow?seconds={seconds}", host, *more), takes=seconds)


def _upload(kind: Kind, host: str, body: bytes, pieces: int, seconds: float) -> PlannedRequest:
    head = _head("POST", "/upload", host, f"Content-Length: {len(body)}")
    return PlannedRequest(kind, head, seconds, body, pieces, hashlib.sha256(body).hexdigest())


def _head(method: str, target: str, host: str, *more: str) -> bytes:
    return "\r\n".join((f"{method} {target} HTTP/1.1", f"Host: {host}", *more, "", "")).encode()
