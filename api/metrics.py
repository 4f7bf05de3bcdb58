"""Pages that Prometheus scrapes: this server's own numbers for anybody, the fleet's for who shows a token."""

import base64
import binascii

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api.proxies.parts import parts_of
from api.proxies.publisher import POSTGRES_ERRORS


async def of_this_server(request: Request) -> Response:
    """Numbers of this process. They name nothing that runs here, so they need no token."""
    parts = parts_of(request)
    parts.observed.table_age.set(parts.publisher.age)
    parts.observed.proxies_live.set(len(parts.recorder.presence.live))
    return Response(generate_latest(parts.observed.registry), media_type=CONTENT_TYPE_LATEST)


async def of_the_fleet(request: Request) -> Response:
    """Answer with the fleet's numbers, by deployments and hosts: for who shows a node id and its token.

    503 when Postgres cannot be read: no number is shown that may be true no more.
    """
    parts = parts_of(request)
    parts.access.check(*_shown(request.headers.get("authorization", "")))
    try:
        return Response(await parts.fleet.text(), media_type=CONTENT_TYPE_LATEST)
    except POSTGRES_ERRORS as error:
        why = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise HTTPException(503, f"Postgres cannot be read: {why}") from error


def _shown(authorization: str) -> tuple[str, str]:
    """Name and password of HTTP Basic; empty where nothing is shown that is that."""
    scheme, _, given = authorization.partition(" ")
    try:
        name, _, password = base64.b64decode(given, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return (name, password) if scheme.lower() == "basic" else ("", "")


METRICS = [Route("/metrics", of_this_server), Route("/metrics/fleet", of_the_fleet)]
