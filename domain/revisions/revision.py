"""What a revision runs, as an immutable spec: its runtime, its command's words, the name that its content gives it."""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from domain.revisions.health_check import HealthCheck
from domain.revisions.runtime_spec import DockerSpec, ExternalSpec
from domain.revisions.secret_refs import MOST_SECRETS, EnvValue, references_of
from domain.text.errors import RollwayError
from domain.text.storable import storable

MOST_SECONDS = 86_400
"""That a replica may take to leave."""


class RevisionExistsError(RollwayError):
    """A revision of that name exists with another content; revisions never change."""

    @classmethod
    def of(cls, deployment: str, revision: str) -> Self:
        """The refusal to give the revision another content."""
        message = (
            f"revision {revision} of {deployment} exists with another content; "
            "revisions never change: give it another name, or leave 'name' out, and the content names it"
        )
        return cls(message, deployment=deployment, revision=revision)


def _split_command(value: object) -> object:
    try:
        return shlex.split(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("has a quote that is not closed; as a list no quotes are needed: [python, serve.py]") from None


def _with_a_program(command: tuple[str, ...]) -> tuple[str, ...]:
    if not command[0]:
        raise ValueError("must begin with the program to run, which '' is not")
    return command


def _variable_name(name: str) -> str:
    if not name or "=" in name or storable(name) != name:
        raise ValueError("must be the name of a variable: not empty, and without '=' and control characters")
    return name


VariableName = Annotated[str, AfterValidator(_variable_name)]


_NAMED = frozenset(
    ("runtime", "command", "env", "working_directory", "health_check", "drain_seconds", "stop_grace_seconds")
)
"""The fields of the first releases: the name of a revision is made from them whatever their values are."""


class RevisionSpec(BaseModel):
    """The content of a revision. Without a health check a replica counts as healthy once it has run for 3 s."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    runtime: Literal["process", "docker", "external"] = "process"
    """What runs the replicas: processes of the worker's host, containers, or another system."""
    command: Annotated[
        Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_with_a_program)] | None,
        BeforeValidator(_split_command),
        Field(validate_default=True, description="text, split as a shell does it, or a list of text"),
    ] = None
    """The program with its arguments. process: required; docker: the image's own by default; external: none. Rollway
    fills in {port} and {host}, where the replica listens, and {route}, the id of its route.
    """
    env: dict[VariableName, EnvValue] = Field(default_factory=dict, repr=False)
    """Variables of the replica's environment; Rollway adds the deployment's name, PORT and others. Each is a text, in
    which Rollway fills in {port}, {host} and {route}, or a secret that the replica's host reads: {secret:
    'file:/run/secrets/db'}.
    """
    working_directory: str | None = None
    """The folder in which it runs. In a file, a relative path starts at the file's folder, which is also the default of
    a process. null, and the default of a command by message: the worker's folder.
    """
    user: str | None = Field(default=None, pattern=r"^[a-z_][a-z0-9_.-]{0,31}$")
    """The user of a process: one of ROLLWAY_REPLICA_USERS; left out, the host's ROLLWAY_REPLICA_USER."""
    docker: DockerSpec | None = Field(default=None, validate_default=True)
    """With runtime docker."""
    external: ExternalSpec | None = Field(default=None, validate_default=True)
    """With runtime external."""
    health_check: HealthCheck | None = None
    """Left out: a replica counts as healthy once it has run for 3 s."""
    drain: Literal["until_idle", "fixed"] = "until_idle"
    """How long a leaving replica waits for its answers: until the last has ended, if every live proxy reports them, or
    a fixed time.
    """
    drain_seconds: float = Field(default=2.0, ge=0, le=MOST_SECONDS)
    """For requests in flight if proxies do not report: from the moment at which no proxy sends more requests to
    SIGTERM.
    """
    drain_max_seconds: float = Field(default=3600.0, ge=0, le=MOST_SECONDS)
    """With `drain: until_idle`: answers that take longer are cut."""
    stop_grace_seconds: float = Field(default=10.0, ge=0, le=MOST_SECONDS)
    """From SIGTERM to SIGKILL."""

    @field_validator("command", "working_directory", "user", "docker", "external")
    @classmethod
    def _fits_its_runtime(cls, value: object, info: ValidationInfo) -> object:
        if fault := _misfit(info.data.get("runtime"), info.field_name, value):
            raise ValueError(fault)
        return value

    @field_validator("env")
    @classmethod
    def _secrets_have_a_host(cls, env: dict[str, EnvValue], info: ValidationInfo) -> dict[str, EnvValue]:
        if info.data.get("runtime") == "external" and (names := references_of(env)):
            named = ", ".join(names)
            raise ValueError(f"{named}: runtime 'external' takes no references: that system has secrets of its own")
        if len(references_of(env)) > MOST_SECRETS:
            raise ValueError(f"at most {MOST_SECRETS} of its variables may be secrets: each host is asked for each")
        return env

    def canonical_json(self) -> str:
        """Keys sorted, no white space: equal specs give equal text.

        Of the fields that came later those that the revision does not use are left out: a release that has one more
        changes no name.
        """
        fields = type(self).model_fields.items()
        unused = {name for name, field in fields if name not in _NAMED and getattr(self, name) == field.get_default()}
        content = self.model_dump(mode="json", exclude=unused)
        return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _misfit(runtime: str | None, field: str | None, value: object) -> str | None:
    """Say why this value of the field does not go with the runtime, or None. No runtime: that is the fault told."""
    match runtime, field, value:
        case "process", "command", None:
            return "is required with runtime 'process': what to run, such as 'python3 serve.py'"
        case "docker", "docker", None:
            return "is required with runtime 'docker', such as {image: 'web:1', port: 8080}"
        case "external", "external", None:
            return "is required with runtime 'external', such as {webhook: 'https://example.com/replicas'}"
        case None, _, _:
            return None
        case _, _, None:
            return None
        case "docker" | "external", "user", _:
            return f"belongs to runtime 'process', and this one is {runtime!r}: leave it out"
        case "external", "command" | "working_directory", _:
            return "must be left out with runtime 'external': the other system knows what to run"
        case "docker", "working_directory", str() if not value.startswith("/"):
            return "must be an absolute folder of the container with runtime 'docker', such as '/app'"
        case _, "docker" | "external", _ if runtime != field:
            return f"belongs to runtime {field!r}, and this one is {runtime!r}: leave it out, or set runtime: {field}"
    return None


def revision_name(deployment: str, spec: RevisionSpec) -> str:
    """`<deployment>-<first 8 hex digits of the SHA-256 of the canonical JSON>`."""
    return f"{deployment}-{hashlib.sha256(spec.canonical_json().encode()).hexdigest()[:8]}"


_FILLED_IN = {"{port}": "PORT", "{host}": "HOST", "{route}": "ROLLWAY_ROUTE"}


def filled_in(texts: Sequence[str], told: Mapping[str, str]) -> list[str]:
    """The words of a command, or values of variables, of one replica that is `told` its variables.

    ["--bind={port}"] -> ["--bind=8123"]

    Other braces stay as they are.
    """
    words = list(texts)
    for mark, name in _FILLED_IN.items():
        words = [word.replace(mark, told[name]) for word in words]
    return words
