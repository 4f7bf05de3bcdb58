"""The question of a probe on a connection of its own, as bytes, and what the answer comes to."""

from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlsplit

from domain.revisions.health_check import HealthCheck

AGENT = "rollway-probe"
_SUCCESS = range(200, 400)
_OF_A_HOST = (400, 421)
_KEPT_IN_URLS = "/?[]@!$&'()*+,;=:%~"


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """Whether it was a success, and what was seen in a few words ("GET /health answered 503").

    `is_late`: nothing was heard in time.
    """

    ok: bool
    detail: str
    is_late: bool = False


class Question(Protocol):
    """One question and its answer. It does no I/O: who holds the connection sends and hears for it."""

    def to_send(self) -> bytes:
        """Return what is to be sent now: at first the question."""

    def hear(self, data: bytes) -> ProbeAnswer | None:
        """Take in what came; the answer once it is there."""

    def unanswered(self) -> ProbeAnswer:
        """Return what it comes to when the connection ends before the answer."""


def of_status(check: HealthCheck, address: str, status: int) -> ProbeAnswer:
    """Judge a status of HTTP. Servers that know host names answer so to one that they do not know."""
    doubt = f" to Host: {address}; health_check.host names another" if status in _OF_A_HOST and not check.host else ""
    return ProbeAnswer(status in _SUCCESS, f"{check.asked} answered {status}{doubt}")


def host_and_port(address: str) -> tuple[str, int]:
    """Split "host:port". Raises ValueError for what is no such thing."""
    parts = urlsplit(f"//{address}")
    if not parts.hostname or parts.netloc != address:
        raise ValueError(f"{address!r} is not host:port")
    return parts.hostname, parts.port or 80


def target_of(path: str) -> str:
    """A path as requests carry it."""
    return quote(path.partition("#")[0], safe=_KEPT_IN_URLS)
