"""Bodies of requests: read whole, and refused when they are too large, before anybody parses them."""

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from domain.commands.messages import MOST_COMMAND_BYTES

TOO_LARGE = f"The body of a request may have {MOST_COMMAND_BYTES:,} bytes, as many as a command."


class BoundedBodies:
    """ASGI middleware: the app gets a body in one piece, or is not asked at all."""

    def __init__(self, app: ASGIApp, refusal: Response | None = None) -> None:
        self._app = app
        self._refusal = refusal or JSONResponse({"detail": TOO_LARGE}, 413, headers={"connection": "close"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = None if _announced(scope) > MOST_COMMAND_BYTES else await _read(receive)
        if body is None:
            await self._refusal(scope, receive, send)
            return
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def first_the_body() -> Message:
            return whole.pop() if whole else await receive()

        await self._app(scope, first_the_body, send)


def _announced(scope: Scope) -> int:
    """The content-length, which the server has checked to be a number; 0 without one."""
    return next((int(value) for name, value in scope["headers"] if name == b"content-length"), 0)


async def _read(receive: Receive) -> bytes | None:
    """All of it; None when it is too large. What came before a client hung up is a body too, that nobody waits for."""
    body = bytearray()
    while len(body) <= MOST_COMMAND_BYTES:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)
    return None
