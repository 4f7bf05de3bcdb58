"""The line that makes a machine a host, the settings that the machine gets, and addresses that it cannot reach.

    https://rollway.example.com#SECRET
    └─ the server for people ─┘ └─ known to nobody else: the proof and the key of the settings are made from it

The settings are sealed on the machine that prints the line, and opened on the machine that becomes a host. So neither
the database nor anything between the two machines can read them, and nobody needs to check the server's certificate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from ipaddress import ip_address
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from domain.installation.settings import database_address
from domain.text.errors import InvalidInputError, RollwayError

LASTS = timedelta(hours=1)
JOIN_PATH = "/v1/hosts/join"

SHARED = (
    *("DATABASE_URL", "REDIS_URL", "ROLLWAY_CERTIFICATE_KEY", "ROLLWAY_HOST_SILENCE_SECONDS"),
    *("ROLLWAY_DRAIN_DEADLINE_SECONDS", "ROLLWAY_SLOTS", "ROLLWAY_WEBHOOK_SECONDS", "ROLLWAY_EXTERNAL_ALLOW"),
    *("ROLLWAY_ACME_DIRECTORY", "ROLLWAY_ACME_EMAIL", "ROLLWAY_ACME_CHALLENGE"),
    *("ROLLWAY_REPLICA_ENV", "ROLLWAY_REPLICA_USER", "ROLLWAY_REPLICA_PROCESSES", "ROLLWAY_REPLICA_FILES"),
    *("ROLLWAY_REPLICA_PORTS", "ROLLWAY_LOG_MEGABYTES", "ROLLWAY_LOG_FILES"),
)
"""The variables that all hosts share, so a new host gets them. Its name, address, labels and secrets differ."""
SHARED_BEGINNINGS = ("ROLLWAY_KEEP_",)
SHARED_FILES = ("ROLLWAY_COMMAND_KEYS", "ROLLWAY_WEBHOOKS")
"""Variables that name files; a new host gets the text of these files."""


class HostTakenError(RollwayError):
    """A host of that name is up."""


@dataclass(frozen=True, slots=True)
class Invitation:
    """The address of a server for people, and a secret: together they make one machine a host."""

    url: str
    secret: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The invitation in the argument of the line. Raises InvalidInputError."""
        url, _, secret = text.strip().partition("#")
        if not secret or not url.startswith(("https://", "http://")) or not urlsplit(url).hostname:
            right = "it is what 'rollway hosts join' prints on a machine of the installation, as in https://HOST#SECRET"
            raise InvalidInputError(f"LINE must be an address with a secret: {right}", field="line")
        return cls(url.rstrip("/"), secret)

    def __str__(self) -> str:
        return f"{self.url}#{self.secret}"

    @property
    def proof(self) -> str:
        """The text that the new host shows to get the settings. It does not open them."""
        return sha256(f"rollway asks {self.secret}".encode()).hexdigest()


class JoinRequest(BaseModel):
    """The request of a machine that becomes a host."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    invitation: str = Field(pattern="^[0-9a-f]{64}$")
    """The proof that the machine knows the secret of the line."""
    machine: str = Field(pattern="^[0-9a-f]{32}$")
    """The number that the machine has chosen: with the same number it may use the line again."""
    host: str = Field(min_length=1, max_length=63)
    """The name of the new host."""


class SharedSettings(BaseModel):
    """The settings that a new host gets: variables, and the text of files by the variable that names the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    environment: dict[str, str]
    files: dict[str, str]


def shared_of(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that a new host gets."""
    return {name: value for name, value in environ.items() if value and _is_shared(name)}


def _is_shared(name: str) -> bool:
    return name in SHARED or name.startswith(SHARED_BEGINNINGS)


def refuse_unreachable(environ: Mapping[str, str]) -> None:
    """Raises InvalidInputError where the address of a server would lead another machine to itself."""
    for variable, what, hosts in (
        ("DATABASE_URL", "PostgreSQL", _database_hosts(environ["DATABASE_URL"])),
        ("REDIS_URL", "Redis", _redis_hosts(environ["REDIS_URL"])),
    ):
        if any(map(is_here, hosts)):
            option = f"--{variable.lower().replace('_', '-')}"
            where = "a socket of this machine" if any(not host or host.startswith("/") for host in hosts) else hosts[0]
            raise InvalidInputError(
                f"{variable} leads to {where}, where no other machine finds {what}: let it listen at an address that "
                f"others reach, and name that in {variable}, or for the new host alone with {option}",
                field=variable,
            )


def _database_hosts(url: str) -> list[str]:
    address = database_address(url)
    hosts, _, _ = (address, "", "") if address.startswith("/") else address.partition("/")
    return [host if host.startswith("/") else host.rpartition(":")[0].strip("[]") for host in hosts.split(",")]


def _redis_hosts(url: str) -> list[str]:
    return [urlsplit(url).hostname or ""]


def is_here(host: str) -> bool:
    """Whether an address leads each machine to itself."""
    if not host or host.startswith("/") or host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def as_lines(environment: Mapping[str, str]) -> str:
    """An environment as systemd reads it from a file: NAME=value, in quotes where it must be."""
    return "".join(f"{name}={_quoted(value)}\n" for name, value in environment.items())


def _quoted(value: str) -> str:
    if value and not set(value) & set(" \t\"'\\#;`"):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def in_lines(text: str) -> dict[str, str]:
    """The variables in such a file, also in one of another author. Skips lines that set no variable."""
    environment: dict[str, Any] = {}
    for line in map(str.strip, text.splitlines()):
        name, separator, value = line.partition("=")
        if separator and not line.startswith(("#", ";")):
            environment[name.strip()] = _unquoted(value.strip())
    return environment


def _unquoted(value: str) -> str:
    if len(value) < 2 or value[0] not in "\"'" or value[-1] != value[0]:  # noqa: PLR2004  (two quotes)
        return value
    inner = value[1:-1]
    return inner if value[0] == "'" else inner.replace('\\"', '"').replace("\\\\", "\\")
