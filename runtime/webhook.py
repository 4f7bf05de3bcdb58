"""One POST to a webhook within a total time, however slowly it answers."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import httpx

_MOST_BYTES = 2**16
"""Of an answer: of a longer one the rest is not read."""


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """What it answered: the status, and the text as far as it was read."""

    status: int
    text: str


def post(url: str, document: Mapping[str, object], headers: Mapping[str, str], seconds: float) -> WebhookAnswer:
    """Send the document as JSON and read the answer.

    Raises TimeoutError when the whole answer was not there after `seconds`, and what httpx raises.
    """
    return asyncio.run(_post(url, document, headers, seconds))


async def _post(url: str, document: Mapping[str, object], headers: Mapping[str, str], seconds: float) -> WebhookAnswer:
    # httpx bounds each read, and a total is what a byte every two seconds needs
    async with (
        asyncio.timeout(seconds),
        httpx.AsyncClient(timeout=seconds, verify=_trusted()) as client,
        client.stream("POST", url, json=document, headers=headers) as answer,
    ):
        body = bytearray()
        async for part in answer.aiter_bytes():
            body += part
            if len(body) >= _MOST_BYTES:
                break
        return WebhookAnswer(answer.status_code, bytes(body).decode(answer.encoding or "utf-8", "replace"))


@cache
def _trusted() -> ssl.SSLContext:
    """Made once: to read the certificates of the machine costs more than all else of a request."""
    return httpx.create_ssl_context()
