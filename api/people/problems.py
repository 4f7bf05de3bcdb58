"""Refusals by RFC 9457: the status of each, and its document."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse

from domain.commands.base import RequestIdReusedError, StaleVersionError
from domain.commands.registry import UnknownCommandError
from domain.installation.contract import UnfitServerError
from domain.installation.tokens import NotAllowedError, NoTokenError, TokenNotFoundError
from domain.outbox.delivery import SubscriptionNotFoundError
from domain.replicas.host_choice import HostNotFoundError
from domain.steering.gates import FreezeNotFoundError, GroupNotFoundError
from domain.text import errors
from domain.text.errors import RollwayError

MEDIA_TYPE = "application/problem+json"


class NoSuchResourceError(RollwayError):
    """Nothing has this path."""


class TwoSessionsError(RollwayError):
    """The request shows two sessions."""


class MethodNotAllowedError(RollwayError):
    """The path is known, but not with this method."""


class TooManyRequestsError(RollwayError):
    """The token, or the address that shows none, has asked too often."""


class InternalError(RollwayError):
    """An unforeseen fault of Rollway itself."""

    code = "server_fault"


STATUS: Mapping[type[RollwayError], int] = {
    TwoSessionsError: 400,
    NoTokenError: 401,
    NotAllowedError: 403,
    NoSuchResourceError: 404,
    errors.DeploymentNotFoundError: 404,
    HostNotFoundError: 404,
    errors.RevisionNotFoundError: 404,
    errors.RolloutNotFoundError: 404,
    errors.RouteNotFoundError: 404,
    FreezeNotFoundError: 404,
    GroupNotFoundError: 404,
    SubscriptionNotFoundError: 404,
    TokenNotFoundError: 404,
    UnknownCommandError: 404,
    MethodNotAllowedError: 405,
    RollwayError: 409,  # every other refusal: the state of what is asked for does not allow it
    StaleVersionError: 412,
    errors.TooLargeError: 413,
    errors.InvalidInputError: 422,
    RequestIdReusedError: 422,
    TooManyRequestsError: 429,
    InternalError: 500,
    errors.UnavailableError: 503,
    UnfitServerError: 503,
}


def status_of(kind: type[RollwayError]) -> int:
    """The status of the refusal, or of the nearest class above it that has one."""
    return next(STATUS[above] for above in kind.__mro__ if above in STATUS)


def problem(error: RollwayError) -> dict[str, Any]:
    """The document: the fields of RFC 9457, and `code`, `field` and `values` as everywhere else."""
    fields = error.as_json()
    field = {"field": fields["detail"].pop("field")} if "field" in fields["detail"] else {}
    return {
        "type": f"urn:rollway:{error.code}",
        "title": (type(error).__doc__ or "").partition("\n")[0].rstrip("."),
        "status": status_of(type(error)),
        "detail": error.message,
        "code": error.code,
        **field,
        "values": fields["detail"],
    }


def refusal(error: RollwayError) -> JSONResponse:
    headers: dict[str, str] = {}
    match error:
        case NoTokenError():
            headers = {"www-authenticate": 'Bearer realm="rollway"'}
        case TooManyRequestsError():
            headers = {"retry-after": str(error.detail["seconds"])}
        case MethodNotAllowedError():
            headers = {"allow": str(error.detail["allow"])}
        case errors.TooLargeError():
            headers = {"connection": "close"}
        case errors.UnavailableError():
            headers = {"retry-after": "1"}
    return JSONResponse(problem(error), status_of(type(error)), headers, MEDIA_TYPE)
