"""Rights over HTTP: a token has a role, and perhaps only some deployments."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from domain.text.errors import RollwayError
from domain.text.storable import DeploymentName, Name

SECRET_BYTES = 32
SECRET_PREFIX = "rollway_"  # noqa: S105  (it begins every secret and is none)
"""Every token begins so, that one that lies in a log or in a repository is found."""
_DAYS = 3650
USUAL_DAYS = 90.0
"""The days after which a token for less than everything ends, unless its maker chooses otherwise."""


class Role(StrEnum):
    """The rights of a token's bearer: each role may do what the ones before it may."""

    VIEWER = "viewer"
    RELEASER = "releaser"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def usual_days(self) -> float | None:
        """The days after which a new token ends of which nothing else is said; None: an admin's has no end."""
        return None if self is Role.ADMIN else USUAL_DAYS

    def reaches(self, needed: "Role") -> bool:
        """Whether it has all rights of `needed`."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(needed)


class NoTokenError(RollwayError):
    """The request shows no token, or one that is unknown, revoked or expired."""


class NotAllowedError(RollwayError):
    """The token is known, and its role or its deployments do not reach that far."""


class TokenExistsError(RollwayError):
    """A token of that name exists."""


class TokenNotFoundError(RollwayError):
    """No token has that name."""


class NewToken(BaseModel):
    """A token that is to be made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    """The name of its bearer: the actor of its commands."""
    role: Role
    """The rights of its bearer."""
    deployments: tuple[DeploymentName, ...] = Field((), max_length=1000)
    """The deployments that it is for, which need not exist yet; none: all."""
    days: float | None = Field(None, gt=0, le=_DAYS)
    """The time after which it is refused; left out: never."""
    actor: str = Field(min_length=1, max_length=200)
    """The maker of the token."""


@dataclass(frozen=True, slots=True)
class Session:
    """A login to the page with a token. `id`: the beginning of the hash of the browser's secret.

    `address` and `browser`: where the log-in came from; empty where that is not known.
    """

    id: str
    token: str
    began_at: datetime
    ends_at: datetime
    last_used_at: datetime | None = None
    address: str = ""
    browser: str = ""


def login_path(secret: str) -> str:
    """The path of the link that logs in once, with its secret in the fragment, which no browser sends."""
    return f"/login#link={secret}"


class SessionEnd(StrEnum):
    """The reasons for which a session is over, each with its sentence."""

    ENDED = "ended"
    TOKEN = "token"  # noqa: S105  (a word, no secret)
    AGE = "age"

    @property
    def sentence(self) -> str:
        """The reason for the person who has to log in again."""
        match self:
            case SessionEnd.TOKEN:
                return "Your token was revoked or has expired."
            case SessionEnd.AGE:
                return "Your session was too old: log in again."
        return "Your session was ended."


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token as it is known here: its secret is not. `deployments`: those it is for; none: all."""

    name: str
    role: Role
    deployments: tuple[str, ...] = ()
    created_by: str
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None

    @property
    def is_for_all(self) -> bool:
        """Whether it is for every deployment, those of tomorrow too."""
        return not self.deployments

    def sees(self, deployment: str) -> bool:
        return self.is_for_all or deployment in self.deployments

    def may(self, role: Role) -> bool:
        """Whether it has all rights of `role`."""
        return self.role.reaches(role)

    def refuse_below(self, role: Role) -> None:
        """Raises NotAllowedError when the token's role is a lesser one."""
        if not self.may(role):
            message = f"this needs the role {role}, and the token {self.name} has {self.role}"
            raise NotAllowedError(message, needed=role, role=self.role)

    def refuse_others(self, deployment: str | None) -> None:
        """Raises NotAllowedError for a deployment that the token is not for; None: a command about all of them.

        The sentence is the same whether or not there is such a deployment.
        """
        if self.is_for_all or deployment in self.deployments:
            return
        what = "what is about the whole fleet" if deployment is None else deployment
        raise NotAllowedError(f"the token {self.name} is for {', '.join(self.deployments)}, not for {what}")
