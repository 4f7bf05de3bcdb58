"""Reads a request: its path, its parameters, and its token."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from domain.installation.tokens import Token
from domain.model.deed_kinds import Kind
from domain.text.errors import InvalidInputError
from domain.text.storable import DeploymentName, Name, unstorable

P = TypeVar("P", bound="Parameters")
P_co = TypeVar("P_co", bound="Parameters", covariant=True)


def _storable(text: str) -> str:
    if fault := unstorable(text):
        raise ValueError(fault[1])
    return text


class Parameters(BaseModel):
    """The parameters of a query: none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PageParameters(Parameters):
    """The page of a list."""

    limit: int = Field(50, ge=1, le=500)
    """The most items of a page."""
    cursor: Annotated[str, Field(max_length=200), AfterValidator(_storable)] = ""
    """The `next` of the page before; left out, the first page."""


class NamedPageParameters(PageParameters):
    """The page of a list of things with names."""

    prefix: Annotated[str, Field(max_length=63), AfterValidator(_storable)] = ""
    """Only those whose names begin so."""


class RouteParameters(Parameters):
    """The choice of replicas."""

    gone: bool = False
    """Whether to list replicas that are gone, too."""
    limit: int = Field(50, ge=1, le=10_000)
    """The most replicas to list, the newest first, when `gone` is set."""


class HistoryParameters(PageParameters):
    """The page of a deployment's history."""

    people: bool = False
    """Whether to list only what people did."""


class ActivityParameters(HistoryParameters):
    """The records of the fleet's history that are wanted."""

    limit: int = Field(100, ge=1, le=10_000)
    """The most records, the newest first."""
    since: AwareDatetime | None = None
    """Only from then on; left out, within the last hour."""
    until: AwareDatetime | None = None
    """Only before then."""
    who: Annotated[str, Field(max_length=200), AfterValidator(_storable)] | None = None
    """Only what this person, service or handler did."""
    deployment: DeploymentName | None = None
    """Only what was done to this one."""
    kind: Kind | None = None
    """Only what people did of this kind."""


class StepParameters(Parameters):
    """The steps of a rollout that are wanted."""

    after: int = Field(0, ge=0, le=2_147_483_647)
    """Only those with greater numbers."""


class ProgressParameters(StepParameters):
    """The rollout of a deployment that is followed."""

    rollout: UUID | None = None
    """The id of the rollout; left out, none."""


class AbbreviatedParameters(Parameters):
    """The replicas of an abbreviated id, of whichever deployment."""

    id: str = Field(pattern="^[0-9a-f]{1,32}$")
    """The first or the last hexadecimal digits of the id, without hyphens."""


class LogPlace(Parameters):
    """The place up to which the log of a replica was read."""

    route: UUID
    """The id of the replica."""
    place: int | None = Field(None, ge=0, le=2**53)
    """The `place` of the answer before; left out, the last lines."""


class LogParameters(Parameters):
    """The logs that are wanted, and from where on."""

    lines: int = Field(100, ge=0, le=100_000)
    """The number of last lines, for replicas without a place."""
    places: tuple[LogPlace, ...] | None = Field(None, max_length=2_000)
    """Which replicas, those that are gone too; left out, all that run."""


class RevisionParameters(Parameters):
    """The revision that is wanted."""

    revision: Name | None = None
    """Only replicas of this one; left out, of all."""


class DifferenceParameters(Parameters):
    """The revision that another one is compared with."""

    other: Name
    """The name of the one that the other is held against."""


class EventParameters(Parameters):
    """The events that are wanted."""

    deployment: DeploymentName | None = None
    """Only those of this one; left out, of all that the token is for."""


@dataclass(frozen=True, slots=True)
class ReadRequest(Generic[P_co]):
    """A request for a read: the caller's token, the path, and the parameters."""

    token: Token
    path: Mapping[str, str]
    parameters: P_co

    @property
    def deployment(self) -> str:
        """The name in the path."""
        return self.path["deployment"]


def parameters_of(model: type[P], values: Mapping[str, object]) -> P:
    """The parameters of the query, or of the body. Raises InvalidInputError."""
    if fault := unstorable(dict(values)):
        raise InvalidInputError.at(*fault)
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise InvalidInputError.of(error, model=model) from None
