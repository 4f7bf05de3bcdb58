"""HTTP probes of replicas: one GET each, all at once, none waiting for another."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from uuid import UUID

import httpx

from domain.revision import HealthCheck

_SUCCESS = range(200, 400)


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """Ask the replica of `route_id` at `address` (host:port) as `check` says."""

    route_id: UUID
    address: str
    check: HealthCheck


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """Whether it was a success, and what was seen in a few words ("GET /health answered 503")."""

    ok: bool
    detail: str


async def probe(client: httpx.AsyncClient, address: str, check: HealthCheck) -> ProbeAnswer:
    """GET `check.path` once; the status line and headers must arrive within `check.timeout_seconds`. Never raises."""
    what = f"GET {check.path}"
    try:
        async with (
            asyncio.timeout(check.timeout_seconds),
            client.stream("GET", f"http://{address}{check.path}", timeout=None) as response,
        ):
            return ProbeAnswer(response.status_code in _SUCCESS, f"{what} answered {response.status_code}")
    except TimeoutError:
        return ProbeAnswer(ok=False, detail=f"{what}: no answer within {check.timeout_seconds:g} s")
    except httpx.ConnectError as error:
        return ProbeAnswer(ok=False, detail=f"{address} {_why_not_connected(error)}")
    except httpx.TransportError:
        return ProbeAnswer(ok=False, detail=f"{what}: the connection broke, or the answer is not HTTP")
    except (httpx.InvalidURL, ValueError):
        return ProbeAnswer(ok=False, detail=f"{what} at {address!r} is no valid request")


class Prober:
    """Keeps one event loop and client between calls. For use from one thread, as a context manager.

    Each probe has its own connection: a probe must see whether new connections are accepted, and an idle one kept
    open would hold up a replica that waits for its connections to close when it stops.
    """

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        self._client = httpx.AsyncClient(
            headers={"User-Agent": "rollway-probe", "Connection": "close"},
            follow_redirects=False,
            trust_env=False,
            verify=False,  # noqa: S501  # plain HTTP only; loading the certificates takes 0.1 s
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._runner as runner:
            runner.run(self._client.aclose())

    def probe_many(self, targets: Sequence[ProbeTarget]) -> dict[UUID, ProbeAnswer]:
        """One answer per route id, after the slowest target's own timeout at the latest."""
        return self._runner.run(self._probe_all(targets)) if targets else {}

    async def _probe_all(self, targets: Sequence[ProbeTarget]) -> dict[UUID, ProbeAnswer]:
        answers = await asyncio.gather(*(probe(self._client, target.address, target.check) for target in targets))
        return {target.route_id: answer for target, answer in zip(targets, answers, strict=True)}


def probe_many(targets: Sequence[ProbeTarget]) -> dict[UUID, ProbeAnswer]:
    """One round of probes by a Prober of its own."""
    with Prober() as prober:
        return prober.probe_many(targets)


def _why_not_connected(error: BaseException) -> str:
    """A refusal is the replica's; anything else (no file descriptor left, no route) may be the prober's own trouble."""
    cause: BaseException | None = error
    while cause:
        if isinstance(cause, OSError) and cause.errno:
            refused = isinstance(cause, ConnectionRefusedError)
            return "refused the connection" if refused else f"could not be reached: {os.strerror(cause.errno)}"
        cause = cause.__cause__ or cause.__context__
    return f"could not be reached: {error}"
