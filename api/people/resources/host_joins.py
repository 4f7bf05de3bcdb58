"""Gives a machine that becomes a host the sealed settings of the installation, once for each line."""

from dataclasses import asdict, dataclass
from functools import partial

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.people.auth import Access
from api.people.resources.routing import Methods
from db.host_invitations import join_host
from domain.installation.host_invitation import JOIN_PATH, JoinRequest
from domain.replicas.host_choice import host_name
from domain.text.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class SealedSettings:
    """The settings of the installation. `sealed`: the text that only the line opens."""

    sealed: str


_UNKNOWN = "this line is unknown; 'rollway hosts join' on a machine of the installation prints another"


class HostJoins:
    """The route of machines that join. They have no token; the proof in place of it works once, and opens nothing."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def routes(self) -> list[Route]:
        return [Route(JOIN_PATH, Methods({"POST": self._join}))]

    async def _join(self, request: Request) -> Response:
        join_request = _join_request(await request.body())
        join = partial(join_host, request=join_request)
        sealed = await self._access.given_for(request, join_request.invitation, join, _UNKNOWN)
        return JSONResponse(asdict(SealedSettings(sealed)), headers={"cache-control": "no-store"})


def _join_request(body: bytes) -> JoinRequest:
    try:
        join_request = JoinRequest.model_validate_json(body)
        host_name(join_request.host)
    except ValidationError as error:
        raise InvalidInputError.of(error, model=JoinRequest) from None
    except ValueError as error:
        raise InvalidInputError(f"host: {error}", field="host") from None
    return join_request
