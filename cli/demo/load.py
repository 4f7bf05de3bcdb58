"""The demo's load: a steady stream of requests through Envoy, sent on time while few of those before are unanswered."""

import asyncio
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

import httpx

from cli.terminal.exits import WaitTimedOutError

_PER_SECOND = 100
_MOST_IN_FLIGHT = 50  # a machine that is too busy for more is asked less often: that is no failure of the rollout
_TICK_SECONDS = 0.01
_TIMEOUT_SECONDS = 10.0
_SLOW_SECONDS = 1.0
_NEW_CONNECTION_EVERY = 10
_SLOW_EVERY = 50
_PATIENCE_SECONDS = 15.0


@dataclass(slots=True)
class Tally:
    """The fates of requests: failures by kind, good answers and faults by the revision that gave them.

    `worst_seconds`: of the slowest answer. The slow ones are meant to be slow, so `worst_seconds` leaves them out.
    """

    requests: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    revisions: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    worst_seconds: float = 0.0

    @property
    def failed(self) -> int:
        """The number of requests that got no answer, or a wrong one."""
        return self.failures.total()

    def met(self, revision: str) -> int:
        """Count the requests that this revision answered, well or not."""
        return self.revisions[revision] + self.faults[revision]

    def as_json(self) -> dict[str, object]:
        """All of it, for scripts."""
        return {
            "requests": self.requests,
            "failed": self.failed,
            "failures": dict(self.failures),
            "revisions": dict(self.revisions),
            "faults": dict(self.faults),
            "worst_seconds": round(self.worst_seconds, 3),
        }

    def __str__(self) -> str:
        """0 of 2519 requests failed (2 ReadError)."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.failures.most_common())
        return f"{self.failed} of {self.requests} requests failed{f' ({kinds})' if kinds else ''}"


class Load:
    """100 requests a second to one deployment, in a thread of its own: every tenth on a new connection, a few slow."""

    def __init__(self, envoy: str, host: str) -> None:
        self.tally = Tally()
        self._envoy = envoy
        self._host = host
        self._patience = _PATIENCE_SECONDS
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="load", daemon=True)

    def start(self) -> None:
        """Begin as soon as a first request is answered. Raises WaitTimedOutError when none is for 15 s."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (said := self._first_answer()) != "200":
            if time.monotonic() > deadline:
                message = f"waited {_PATIENCE_SECONDS:g} s; Envoy does not pass requests on to {self._host}: {said}"
                raise WaitTimedOutError(message, deployment=self._host)
            time.sleep(0.05)
        self._thread.start()

    def stop(self, patience: float = _PATIENCE_SECONDS) -> None:
        """Send no more, and wait for the answers that are still to come; what has none after `patience` s failed."""
        self._patience = patience
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _first_answer(self) -> str:
        try:
            return str(httpx.get(self._envoy, headers={"Host": self._host}, trust_env=False).status_code)
        except httpx.HTTPError as error:
            return type(error).__name__

    async def _run(self) -> None:
        kept, none_kept = httpx.Limits(max_connections=None), httpx.Limits(max_keepalive_connections=0)
        async with _client(kept) as keeping, _client(none_kept) as closing:
            pending: set[asyncio.Task[None]] = set()
            begun = time.monotonic()
            while not self._stopping.is_set():
                room = self.tally.requests + _MOST_IN_FLIGHT - len(pending)
                due = min(int((time.monotonic() - begun) * _PER_SECOND), room)
                for number in range(self.tally.requests, due):
                    client = keeping if number % _NEW_CONNECTION_EVERY else closing
                    task = asyncio.create_task(self._ask(client, slow=number % _SLOW_EVERY == 1))
                    pending.add(task)
                    task.add_done_callback(pending.discard)
                self.tally.requests = max(due, self.tally.requests)
                await asyncio.sleep(_TICK_SECONDS)
            if pending:
                _, late = await asyncio.wait(pending, timeout=self._patience)
                self.tally.failures["no answer"] += len(late)
                for task in late:
                    task.cancel()
        self.tally.failures += Counter()  # drops the kinds with no failure

    async def _ask(self, client: httpx.AsyncClient, *, slow: bool) -> None:
        path = f"/slow?seconds={_SLOW_SECONDS:g}" if slow else "/"
        begun = time.monotonic()
        try:
            answer = await client.get(f"{self._envoy}{path}", headers={"Host": self._host})
            match answer.status_code:
                case httpx.codes.OK:
                    self.tally.revisions[answer.json()["revision"]] += 1
                case httpx.codes.INTERNAL_SERVER_ERROR:
                    self.tally.faults[answer.json()["revision"]] += 1
                    self.tally.failures["500"] += 1
                case status:
                    self.tally.failures[str(status)] += 1
        except (httpx.HTTPError, ValueError, KeyError) as error:
            self.tally.failures[type(error).__name__] += 1
        if not slow:
            self.tally.worst_seconds = max(self.tally.worst_seconds, time.monotonic() - begun)


def _client(limits: httpx.Limits) -> httpx.AsyncClient:
    return httpx.AsyncClient(limits=limits, timeout=_TIMEOUT_SECONDS, trust_env=False, verify=False)  # noqa: S501  (http)
