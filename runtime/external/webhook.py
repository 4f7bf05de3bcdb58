"""One POST to a webhook within a total time, however slowly it answers."""

import asyncio
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import httpx

_MOST_BYTES = 2**16
"""The longest answer; the rest of a longer one is not read."""


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """The answer: its status, and the text as far as it was read."""

    status: int
    text: str


def post(url: str, body: bytes, headers: Mapping[str, str], seconds: float) -> WebhookAnswer:
    """Send the body, which is JSON, and read the answer. Raises what `post_within` raises."""
    return asyncio.run(post_within(url, body, {"content-type": "application/json", **headers}, seconds))


async def post_within(url: str, body: bytes, headers: Mapping[str, str], seconds: float) -> WebhookAnswer:
    """Send the body and read the answer.

    Raises TimeoutError when the whole answer was not there after `seconds`, and what httpx raises.
    """
    # httpx bounds each read, and a total is what a byte every two seconds needs
    async with (
        asyncio.timeout(seconds),
        httpx.AsyncClient(timeout=seconds, verify=_trusted()) as client,
        client.stream("POST", url, content=body, headers=headers) as answer,
    ):
        read = bytearray()
        async for part in answer.aiter_bytes():
            read += part
            if len(read) >= _MOST_BYTES:
                break
        return WebhookAnswer(answer.status_code, bytes(read).decode(answer.encoding or "utf-8", "replace"))


def why_not_reached(error: BaseException) -> str:
    """Say why a webhook could not be asked, without its address, which may hold what nobody else shall see."""
    for cause in _causes(error):
        match cause:
            case socket.gaierror():
                return "no machine of its name is known"
            case ConnectionRefusedError():
                return "nothing listens there"
            case ssl.SSLCertVerificationError():
                return "its certificate is not trusted here"
            case ssl.SSLError():
                return "it does not speak TLS as it should"
    return type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@cache
def _trusted() -> ssl.SSLContext:
    """Made once: to read the certificates of the machine costs more than all else of a request."""
    return httpx.create_ssl_context()
