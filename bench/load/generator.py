"""The open loop: sends each request when it is due, whatever became of those before it."""

import asyncio
import ssl
import time
from collections import deque
from dataclasses import dataclass, field

from bench.load.connection import Connection
from bench.load.mix import DEFAULT_MIX, LONGEST_REQUEST, Kind, plan
from bench.load.report import FailureKind, LoadReport
from bench.load.tally import Exchange, Phase, epoch_of

_SWEEP_SECONDS = 0.1
_MOST_AT_ONCE = 100
_SMALLEST_NAP = 0.0005


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings:
    """`rate` requests a second for at most `seconds`, to `address` (host:port, loopback only), as `host`.

    Slow requests take up to `longest` seconds; one fails when its answer is `timeout` seconds late. `connections`: how
    many are kept alive from the start. `trusted`: a file of authorities, with which it speaks TLS. `most_open`: a
    request that is due while so many are open is a failure and is not sent.
    """

    address: str
    host: str
    trusted: str = ""
    rate: float
    seconds: float
    seed: int = 1
    first_phase: str = "start"
    timeout: float = 10.0
    connections: int = 32
    most_open: int = 8000
    longest: float = LONGEST_REQUEST
    mix: dict[Kind, float] = field(default_factory=lambda: dict(DEFAULT_MIX))


class Generator:
    """One run. Made and used inside an event loop."""

    def __init__(self, settings: LoadSettings) -> None:
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._context = ssl.create_default_context(cafile=settings.trusted) if settings.trusted else None
        self._plan = plan(settings.seed, settings.host, settings.mix, settings.longest)
        self._idle: deque[Connection] = deque()
        self._open: dict[Exchange, Connection | None] = {}
        self._connecting: set[asyncio.Task[None]] = set()
        self._sent = 0
        self._began = self._ends = 0.0
        self._over = asyncio.Event()
        self._all_done = asyncio.Event()
        self._epoch = epoch_of(self._loop.time())
        self._phases: list[Phase] = []

    async def run(self) -> LoadReport:
        """Until `stop` or the end of its time, then until every open request is answered or too late."""
        self.begin_phase(self._settings.first_phase)
        await asyncio.gather(*(self._connect_idle() for _ in range(self._settings.connections)))
        self._began = self._loop.time()
        self._ends = self._began + self._settings.seconds
        self._pump()
        sweeper = self._loop.create_task(self._sweep())
        await self._over.wait()
        if self._open:
            await self._all_done.wait()
        sweeper.cancel()
        self._phases[-1].ended = self._loop.time()
        for connection in self._idle:
            connection.close()
        await asyncio.sleep(0)  # so that they are closed when this returns
        phases = tuple(phase.report(self._epoch) for phase in self._phases)
        return LoadReport(phases=phases, cpu_seconds=time.process_time())

    def begin_phase(self, name: str) -> None:
        """Requests due from now on belong to this phase."""
        now = self._loop.time()
        if self._phases:
            self._phases[-1].ended = now
        self._phases.append(Phase(name, now))

    def stop(self) -> None:
        """Send no more."""
        self._over.set()

    def _pump(self) -> None:
        """Send what is due, and come back when the next one is."""
        now = self._loop.time()
        for _ in range(_MOST_AT_ONCE):
            due = self._began + self._sent / self._settings.rate
            if self._over.is_set() or due >= self._ends:
                self._over.set()
                return
            if due > now:
                self._loop.call_at(max(due, now + _SMALLEST_NAP), self._pump)
                return
            self._sent += 1
            self._send(Exchange(next(self._plan), self._phases[-1], due))
        self._loop.call_soon(self._pump)  # far behind: let the answers in before the next ones

    def _send(self, exchange: Exchange) -> None:
        now = self._loop.time()
        exchange.phase.sent(exchange, now)
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
                self._done(exchange)
                self._note_failure(exchange, FailureKind.CONNECT, str(error))
            return
        if exchange not in self._open:  # too late
            connection.close()
            return
        self._open[exchange] = connection
        connection.send(exchange, self._loop.time())

    async def _connect_idle(self) -> None:
        try:
            self._idle.append(await self._connect())
        except OSError:
            return  # the requests will say so

    async def _connect(self) -> Connection:
        host, _, port = self._settings.address.rpartition(":")
        _, connection = await self._loop.create_connection(
            lambda: Connection(self._answered, self._failed),
            host,
            int(port),
            ssl=self._context,
            server_hostname=self._settings.host if self._context else None,
        )
        return connection

    def _answered(self, connection: Connection, exchange: Exchange, revision: str) -> None:
        self._done(exchange)
        exchange.phase.answered(exchange, revision, self._loop.time())
        if connection.usable:
            self._idle.append(connection)

    def _failed(self, _: Connection, exchange: Exchange, kind: FailureKind, detail: str) -> None:
        self._done(exchange)
        self._note_failure(exchange, kind, detail)

    def _done(self, exchange: Exchange) -> None:
        del self._open[exchange]
        if self._over.is_set() and not self._open:
            self._all_done.set()

    def _note_failure(self, exchange: Exchange, kind: FailureKind, detail: str) -> None:
        exchange.phase.failed_with(exchange, kind, detail, self._loop.time(), self._epoch)

    async def _sweep(self) -> None:
        """End what is too late; cheaper than a timer for each request."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            limit = self._loop.time() - self._settings.timeout
            late = [(request, by) for request, by in self._open.items() if request.due + request.planned.takes < limit]
            for exchange, connection in late:
                if connection is not None:
                    connection.give_up(FailureKind.TIMEOUT, f"no answer within {self._settings.timeout} s")
                else:
                    self._done(exchange)
                    self._note_failure(exchange, FailureKind.CONNECT, f"none within {self._settings.timeout} s")
