"""What Prometheus scrapes here: this server's own numbers for anybody, those of the fleet for who shows a token."""

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Response
from fastapi.security import HTTPBasic, HTTPBasicCredentials
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from api.proxies.parts import TheParts
from api.proxies.publisher import POSTGRES_ERRORS

_ASKS = HTTPBasic(auto_error=False)
metrics = APIRouter()


@metrics.get("/metrics")
async def of_this_server(parts: TheParts) -> Response:
    """Numbers of this process. They name nothing that runs here, so they need no token."""
    parts.observed.table_age.set(parts.publisher.age)
    parts.observed.proxies_live.set(len(parts.recorder.presence.live))
    return Response(generate_latest(parts.observed.registry), media_type=CONTENT_TYPE_LATEST)


@metrics.get("/metrics/fleet")
async def of_the_fleet(parts: TheParts, given: Annotated[HTTPBasicCredentials | None, Depends(_ASKS)]) -> Response:
    """What is true of the fleet, with names of deployments and hosts: for who shows a node id and its token.

    503 when Postgres cannot be read: no number is shown that may be true no more.
    """
    parts.access.check(given.username if given else "", given.password if given else "")
    try:
        return Response(await parts.fleet.text(), media_type=CONTENT_TYPE_LATEST)
    except POSTGRES_ERRORS as error:
        why = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise HTTPException(503, f"Postgres cannot be read: {why}") from error
