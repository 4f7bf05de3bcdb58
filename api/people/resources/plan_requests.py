"""Requests for plans: admitted, read from Postgres, computed in another process, dropped when the client leaves."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from psycopg import Connection
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from api.people.auth import Access, names_withheld
from api.people.plans.workers import AskedPlan, PlanWorkers
from api.people.reads import forecasts
from api.people.resources.command_resources import Forecast, planned
from db.connection.transactions import in_transaction
from db.views.documents import begin_reading
from domain.commands.apply.document import Apply
from domain.commands.base import Command
from domain.installation.tokens import Token

T = TypeVar("T")
_CLIENT_LEFT = 499


@dataclass(frozen=True, slots=True)
class Foresight:
    """Answers requests for plans of commands."""

    access: Access
    thinkers: PlanWorkers = field(default_factory=PlanWorkers)

    async def answer(
        self, forecast: Forecast, request: Request, token: Token, path: Mapping[str, str], body: bytes
    ) -> Response:
        """The requested plan. Raises the refusals of the command, and TooManyRequestsError."""
        with self.access.work.let_in(token) as bill:
            command = planned(forecast, token, path, body)
            questions = await run_in_threadpool(self._questions, token, command)

            def pay(seconds: float) -> None:
                bill.seconds = seconds

            thought = await _unless_left(request, self.thinkers.think(questions, pay))
        if thought is None:
            return Response(status_code=_CLIENT_LEFT)
        whole = b'{"items": %b}' % thought if isinstance(command, Apply) else thought[1:-1]
        return Response(whole, media_type="application/json", headers={"cache-control": "no-store"})

    def _questions(self, token: Token, command: Command) -> Sequence[AskedPlan]:
        def find(connection: Connection) -> Sequence[AskedPlan]:
            begin_reading(connection)
            with names_withheld(token):
                return forecasts.questions(connection, command)

        return in_transaction(self.access.engine, find)


async def _unless_left(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of the work; None, and the work ends, once the client has hung up. The body has been read."""
    working, leaving = asyncio.create_task(work), asyncio.create_task(_hung_up(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.wait((working, leaving))


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
