"""The sections `prepare`, `warm_up` and `park` of a revision: the work before a replica gets callers."""

import re
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from domain.revisions.shell_syntax import ProgramWords, split_command

WARM_UP_HEADER = "x-rollway-warm-up"
MOST_BODY_BYTES = 65_535
"""The bytes that HTTP/2 lets a client send before the server allows more."""
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_OWN_HEADERS = frozenset(
    ("connection", "content-length", "te", "trailer", "transfer-encoding", "upgrade", WARM_UP_HEADER)
)
_WITH_A_BODY = ("POST", "PUT", "PATCH")


def _small(body: str) -> str:
    if len(body.encode()) > MOST_BODY_BYTES:
        raise ValueError(f"must have at most {MOST_BODY_BYTES:,} bytes")
    return body


class WarmUpRequest(BaseModel):
    """One request, sent again until `times` answers in a row are 2xx and complete within `under_seconds`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    """The method of the request."""
    path: str = Field(pattern=r"^/[!-~]*$", max_length=2000)
    """The path of the request, with its query."""
    headers: dict[str, str] = Field(default_factory=dict, max_length=32)
    """Headers of the request, besides `x-rollway-warm-up: yes`. Host: that of the health check, or the address."""
    body: Annotated[str, AfterValidator(_small)] | None = None
    """The body of POST, PUT and PATCH; its type is application/json unless `headers` says otherwise."""
    times: int = Field(default=3, ge=1, le=100)
    """The number of good answers in a row after which the next request begins."""
    under_seconds: float = Field(default=2.0, gt=0, le=3600)
    """A good answer is complete within this time. A slow answer is read to its end, and does not count."""

    @field_validator("headers")
    @classmethod
    def _can_be_sent(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                raise ValueError(
                    f"{name!r} is refused: a header has a name without spaces, and ASCII text as its value"
                )
            if name.lower() in _OWN_HEADERS:
                raise ValueError(f"{name!r} is refused: Rollway sets it itself")
        if len({name.lower() for name in headers}) < len(headers):
            raise ValueError("has a header twice: names that differ only in upper and lower case are the same")
        return headers

    @field_validator("body")
    @classmethod
    def _belongs_to_its_method(cls, body: str | None, info: ValidationInfo) -> str | None:
        if body is not None and (method := info.data.get("method", "POST")) not in _WITH_A_BODY:
            raise ValueError(f"belongs to the methods {', '.join(_WITH_A_BODY)}, and method is {method}")
        return body

    def __str__(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]}"


class WarmUp(BaseModel):
    """Requests that are sent to a new replica's own address once it is healthy, one after the other."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    requests: tuple[WarmUpRequest, ...] = Field(min_length=1, max_length=20)
    """The requests, in this order: the next one begins when this one has its good answers."""
    at_most_seconds: float = Field(default=600.0, gt=0, le=86_400)
    """The time for all requests, from the first good health check. A replica that needs longer has failed."""

    @model_validator(mode="after")
    def _leaves_time_for_answers(self) -> Self:
        fastest = max(request.under_seconds for request in self.requests)
        if self.at_most_seconds <= fastest:
            raise ValueError(f"at_most_seconds must be greater than under_seconds, which is {fastest:g}")
        return self


class Prepare(BaseModel):
    """The work of a host before its first replica of this revision, and before a rollout touches any replica."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    image: bool = False
    """Pull the image. A command needs the image, so it is pulled for a command anyway."""
    command: Annotated[
        ProgramWords | None,
        BeforeValidator(split_command),
        Field(description="text, split as a shell does it, or a list of text"),
    ] = None
    """A program that ends with exit code 0 once the host is prepared. It runs with the user and the variables of a
    replica, and with runtime docker in a container of the image. It may be run again, and must bear that.
    """
    timeout_seconds: float = Field(default=3600.0, gt=0, le=86_400)
    """The time for one host. After it the command is killed, and has failed."""

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if not self.image and self.command is None:
            raise ValueError("needs a command, such as 'hf download org/model', or image: true with runtime docker")
        return self


class ParkRequest(BaseModel):
    """A request to a parked replica's own address; any 2xx is a success."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: Literal["GET", "POST", "PUT"] = "POST"
    """The method of the request."""
    path: str = Field(pattern=r"^/[!-~]*$", max_length=2000)
    """The path of the request, with its query."""

    @property
    def request(self) -> WarmUpRequest:
        """The request in the form in which it is sent."""
        return WarmUpRequest(method=self.method, path=self.path)


class Park(BaseModel):
    """The requests to a replica that is parked for a fast way back, and to one that is needed again."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sleep: ParkRequest
    """Sent `drain_seconds` after it was parked: the replica may then give back its memory, and that of its GPU."""
    wake: ParkRequest
    """Sent when its revision is to run again. The replica gets traffic once it is healthy after that."""
    awake_within_seconds: float = Field(default=60.0, gt=0, le=86_400)
    """A replica whose `wake` is not answered by 2xx within this time has failed."""
