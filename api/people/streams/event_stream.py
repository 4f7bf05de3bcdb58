"""`/v1/events`: server-sent events, from now on, or from the event that `Last-Event-ID` names."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from api.people.auth import Access
from api.people.problems import TooManyRequestsError
from api.people.requests import EventParameters, parameters_of
from api.people.streams.change_feed import ChangeReader, Listener
from domain.installation.tokens import Token

_BEAT_SECONDS = 4.0
"""A comment is sent after 4 s without an event: a page that misses two of them knows that the stream is dead."""
_MOST_STREAMS, _MOST_OF_A_TOKEN = 1_000, 50
_PIECE = 65_536
"""The whole of a large fleet is sent in pieces of 64 KiB, so that no buffer holds all of it for each stream."""
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


@dataclass(frozen=True, slots=True)
class Streams:
    """The handler of `/v1/events`."""

    access: Access
    reader: ChangeReader

    async def answer(self, request: Request) -> Response:
        """Raises NoTokenError, NotAllowedError, InvalidInputError and TooManyRequestsError."""
        token = await self.access.on_page(request)
        parameters = parameters_of(EventParameters, request.query_params)
        if parameters.deployment is not None:
            token.refuse_others(parameters.deployment)
        self._refuse_too_many(token)
        listener = self.reader.listen(token, parameters.deployment, self.access.session_of(request))
        events = self._events(listener, request.headers.get("last-event-id"))
        return StreamingResponse(events, 200, _HEADERS, "text/event-stream")

    def _refuse_too_many(self, token: Token) -> None:
        """Raises TooManyRequestsError: no token may take the streams of all others."""
        of_token = sum(listener.token.name == token.name for listener in self.reader.listeners)
        for count, most, whose in (
            (len(self.reader.listeners), _MOST_STREAMS, ""),
            (of_token, _MOST_OF_A_TOKEN, f" of the token {token.name}"),
        ):
            if count >= most:
                raise TooManyRequestsError(f"{most} streams{whose} are open, which is the most", seconds=10)

    async def _events(self, listener: Listener, last_event_id: str | None) -> AsyncIterator[bytes]:
        try:
            await self.reader.begins()
            if last_event_id is None:
                yield f"retry: 1000\nid: {self.reader.cursor}\nevent: begun\ndata: {{}}\n\n".encode()
            else:
                yield b"retry: 1000\n\n"
                missed = await self.reader.missed(listener, last_event_id)
                for start in range(0, len(missed), _PIECE):
                    yield missed[start : start + _PIECE]
            async for piece in _pieces(listener):
                yield piece
        finally:
            self.reader.leave(listener)


async def _pieces(listener: Listener) -> AsyncIterator[bytes]:
    while True:
        try:
            piece = await asyncio.wait_for(listener.queue.get(), _BEAT_SECONDS)
        except TimeoutError:
            piece = b": still here\n\n"
        if piece is None:
            return
        yield piece
