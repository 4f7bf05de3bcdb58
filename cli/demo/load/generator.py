"""An open loop of load: each request is sent when it is due, whatever happened to earlier ones."""

import asyncio
import math
import ssl
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field

import httpx

from cli.demo.load.connection import Connection
from cli.demo.load.mix import DEFAULT_MIX, LONGEST_REQUEST, Kind, plan
from cli.demo.load.tally import Exchange, FailureKind, LoadReport, Tally
from cli.terminal.exits import WaitTimedOutError

_SWEEP_SECONDS = 0.1
_MOST_AT_ONCE = 100
_SMALLEST_NAP = 0.0005
_LONGER_NAP = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings:
    """`rate` requests a second for at most `seconds`, to `address` (host:port), as `host`.

    Slow requests take up to `longest` seconds; one fails when its answer is `timeout` seconds late. `connections`: the
    number opened before the first request. `trusted`: a file of authorities, with which it speaks TLS. `most_open`: a
    request that is due while this many are open is due later, as are all after it, or, unless the load `waits`, fails.
    """

    address: str
    host: str
    trusted: str = ""
    rate: float
    seconds: float = math.inf
    seed: int = 1
    first_phase: str = "start"
    timeout: float = 10.0
    connections: int = 0
    most_open: int = 50
    waits: bool = True
    longest: float = LONGEST_REQUEST
    mix: Mapping[Kind, float] = field(default_factory=lambda: dict(DEFAULT_MIX))


class Generator:
    """A run of load. Other threads may look at its `tally`, begin a phase and stop it."""

    def __init__(self, settings: LoadSettings) -> None:
        self._settings = settings
        self._loop: asyncio.AbstractEventLoop
        self._context = ssl.create_default_context(cafile=settings.trusted) if settings.trusted else None
        self._plan = plan(settings.seed, settings.host, settings.mix, settings.longest)
        self._idle: deque[Connection] = deque()
        self._open: dict[Exchange, Connection | None] = {}
        self._connecting: set[asyncio.Task[None]] = set()
        self._sent = 0
        self._began = self._ends = 0.0
        self._over = self._hurries = False
        self._epoch = time.time() - time.monotonic()
        self._tallies: list[Tally] = []
        self.begin_phase(settings.first_phase)

    @property
    def tally(self) -> Tally:
        """The counts of the phase that is under way."""
        return self._tallies[-1]

    def begin_phase(self, name: str) -> Tally:
        """Count the requests due from now on in this phase."""
        now = self._epoch + time.monotonic()
        if self._tallies:
            self.tally.ended_at = now
        self._tallies.append(Tally(name, self._epoch, now))
        return self.tally

    def stop(self, *, waits: bool = True) -> None:
        """Send no more. Open requests are waited for, or else fail."""
        self._hurries = self._hurries or not waits
        if not self._over:
            self._over = True
            self.tally.ended_at = self._epoch + time.monotonic()

    async def run(self) -> LoadReport:
        """Send requests until `stop` or the end of its time, then wait for the open ones, until they are too late."""
        self._loop = asyncio.get_running_loop()
        await asyncio.gather(*(self._connect_idle() for _ in range(self._settings.connections)))
        self._began = time.monotonic()
        self._ends = self._began + self._settings.seconds
        self._pump()
        while self._open or not self._over:
            await asyncio.sleep(_SWEEP_SECONDS)
            self._end_late()
        for connection in self._idle:
            connection.close()
        await asyncio.sleep(0)  # so that they are closed when this returns
        return LoadReport(phases=tuple(tally.report() for tally in self._tallies), cpu_seconds=time.process_time())

    def _pump(self) -> None:
        """Send the due requests, and return when the next one is due."""
        now = time.monotonic()
        for _ in range(_MOST_AT_ONCE):
            due = self._began + self._sent / self._settings.rate
            if self._over or due >= self._ends:
                self.stop()
                return
            if due > now:
                self._loop.call_at(max(due, now + _SMALLEST_NAP), self._pump)
                return
            if self._settings.waits and len(self._open) >= self._settings.most_open:
                self._began += now + _LONGER_NAP - due
            else:
                self._sent += 1
                self._send(Exchange(next(self._plan), self.tally, due))
        self._loop.call_soon(self._pump)  # far behind: let the answers in before the next ones

    def _send(self, exchange: Exchange) -> None:
        now = time.monotonic()
        exchange.tally.note_sent(exchange, now)
        if len(self._open) >= self._settings.most_open:
            self._note_failure(exchange, FailureKind.NOT_SENT, f"{len(self._open)} requests are open")
            return
        connection = None if exchange.planned.closes else self._idle_connection()
        self._open[exchange] = connection
        if connection is not None:
            connection.send(exchange, now)
            return
        task = self._loop.create_task(self._connect_and_send(exchange))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    def _idle_connection(self) -> Connection | None:
        while self._idle:
            connection = self._idle.popleft()
            if connection.usable:
                return connection
        return None

    async def _connect_and_send(self, exchange: Exchange) -> None:
        try:
            connection = await self._connect()
        except OSError as error:
            if exchange in self._open:
                self._failed(exchange, FailureKind.CONNECT, str(error))
            return
        if exchange not in self._open:  # too late
            connection.close()
            return
        self._open[exchange] = connection
        connection.send(exchange, time.monotonic())

    async def _connect_idle(self) -> None:
        with suppress(OSError):  # which each request will say
            self._idle.append(await self._connect())

    async def _connect(self) -> Connection:
        host, _, port = self._settings.address.rpartition(":")
        _, connection = await self._loop.create_connection(
            lambda: Connection(self._note_answer, self._failed),
            host,
            int(port),
            ssl=self._context,
            server_hostname=self._settings.host if self._context else None,
        )
        return connection

    def _note_answer(self, connection: Connection, exchange: Exchange) -> None:
        del self._open[exchange]
        exchange.tally.note_answer(exchange, time.monotonic())
        if connection.usable:
            self._idle.append(connection)

    def _failed(self, exchange: Exchange, kind: FailureKind, detail: str) -> None:
        del self._open[exchange]
        self._note_failure(exchange, kind, detail)

    def _note_failure(self, exchange: Exchange, kind: FailureKind, detail: str) -> None:
        exchange.tally.failed_with(exchange, kind, detail, time.monotonic())

    def _end_late(self) -> None:
        """End late requests; cheaper than a timer for each request."""
        limit = time.monotonic() - self._settings.timeout
        late = [
            (request, by)
            for request, by in self._open.items()
            if self._hurries or request.due + request.planned.takes < limit
        ]
        detail = "nobody waits for it" if self._hurries else f"none within {self._settings.timeout} s"
        for exchange, connection in late:
            if connection is not None:
                connection.give_up(FailureKind.NO_ANSWER, detail)
            else:
                self._failed(exchange, FailureKind.NO_ANSWER if self._hurries else FailureKind.CONNECT, detail)


class Load:
    """A generator in a thread of this process, from `start` to `stop`."""

    def __init__(self, settings: LoadSettings) -> None:
        self._settings = settings
        self._generator = Generator(settings)
        self._report: Future[LoadReport] = Future()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self.begin_phase = self._generator.begin_phase

    @property
    def tally(self) -> Tally:
        """The counts of the phase that is under way."""
        return self._generator.tally

    def start(self, patience: float = 60.0) -> None:
        """Begin once a first request is answered; at once where `patience` is 0.

        Raises WaitTimedOutError after `patience` seconds without an answer.
        """
        deadline = time.monotonic() + patience
        while patience and (answer := self._first_answer()) != "200":
            if time.monotonic() > deadline:
                host = self._settings.host
                message = f"waited {patience:g} s; Envoy does not pass requests on to {host}: {answer}"
                raise WaitTimedOutError(message, deployment=host)
            time.sleep(0.05)
        self._thread.start()

    def stop(self, *, waits: bool = True) -> None:
        """Send no more. Open requests are waited for, or else fail. Raises the error that ended the load before."""
        self._generator.stop(waits=waits)
        if self._thread.ident is not None:
            self.report()

    def report(self) -> LoadReport:
        """Wait for the end, and report all phases."""
        self._thread.join()
        return self._report.result()

    def _run(self) -> None:
        try:
            self._report.set_result(asyncio.run(self._generator.run()))
        except BaseException as error:  # noqa: BLE001  (`stop` raises it)
            self._report.set_exception(error)

    def _first_answer(self) -> str:
        address, header = f"http://{self._settings.address}/", {"Host": self._settings.host}
        try:
            return str(httpx.get(address, headers=header, trust_env=False).status_code)
        except httpx.HTTPError as error:
            return type(error).__name__
