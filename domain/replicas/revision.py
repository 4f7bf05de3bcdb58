"""What a revision runs and which runtime runs it: an immutable spec, and the name that its content gives it."""

import hashlib
import json
import shlex
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

from domain.replicas.runtime_spec import DockerSpec, ExternalSpec
from domain.text import storable

MOST_SECONDS = 86_400
"""That a replica may take to leave."""

NAME_PATTERN = r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$"
Name = Annotated[str, Field(pattern=NAME_PATTERN, description="lower-case letters, digits, '-' and '.', 63 at most")]


DEPLOYMENT_NAME_PATTERN = r"^[a-z0-9]([a-z0-9.-]{0,52}[a-z0-9])?$"
"""Nine characters shorter, so that the name of a revision made from it is a name too."""

DeploymentName = Annotated[
    str, Field(pattern=DEPLOYMENT_NAME_PATTERN, description="lower-case letters, digits, '-' and '.', 54 at most")
]


def _split_command(value: object) -> object:
    return shlex.split(value) if isinstance(value, str) else value


def _with_a_program(command: tuple[str, ...]) -> tuple[str, ...]:
    if not command[0]:
        raise ValueError("must begin with the program to run, which '' is not")
    return command


def _variable_name(name: str) -> str:
    if not name or "=" in name or storable(name) != name:
        raise ValueError("must be the name of a variable: not empty, and without '=' and control characters")
    return name


VariableName = Annotated[str, AfterValidator(_variable_name)]


class HealthCheck(BaseModel):
    """An HTTP probe: any 2xx or 3xx answer to GET `path` within `timeout_seconds` is a success."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(default="/health", pattern=r"^/")
    interval_seconds: float = Field(default=5.0, ge=0.1, le=3600)
    timeout_seconds: float = Field(default=2.0, gt=0, le=300)
    success_threshold: int = Field(default=1, ge=1, le=100)
    failure_threshold: int = Field(default=3, ge=1, le=100)
    initial_delay_seconds: float = Field(default=0.0, ge=0, le=86400)
    start_deadline_seconds: float = Field(default=60.0, gt=0, le=86400)

    @model_validator(mode="after")
    def _deadline_leaves_time_to_probe(self) -> Self:
        if self.start_deadline_seconds <= self.initial_delay_seconds:
            raise ValueError(
                "start_deadline_seconds must be greater than initial_delay_seconds, or no probe is ever made"
            )
        return self


class RevisionSpec(BaseModel):
    """What to run. Without a health check a replica counts as healthy once it runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    runtime: Literal["process", "docker", "external"] = "process"
    command: Annotated[
        Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_with_a_program)] | None,
        BeforeValidator(_split_command),
        Field(validate_default=True, description="docker: the image's own, if left out; external: none"),
    ] = None
    env: dict[VariableName, str] = Field(default_factory=dict)
    working_directory: str | None = None
    user: str | None = Field(default=None, pattern=r"^[a-z_][a-z0-9_.-]{0,31}$", description="as whom a process runs")
    docker: DockerSpec | None = Field(default=None, validate_default=True)
    external: ExternalSpec | None = Field(default=None, validate_default=True)
    health_check: HealthCheck | None = None
    drain_seconds: float = Field(
        default=2.0, ge=0, le=MOST_SECONDS, description="for requests in flight, before SIGTERM"
    )
    stop_grace_seconds: float = Field(default=10.0, ge=0, le=MOST_SECONDS, description="between SIGTERM and SIGKILL")

    @field_validator("command", "working_directory", "user", "docker", "external")
    @classmethod
    def _fits_its_runtime(cls, value: object, info: ValidationInfo) -> object:
        if fault := _misfit(info.data.get("runtime"), info.field_name, value):
            raise ValueError(fault)
        return value

    def canonical_json(self) -> str:
        """Keys sorted, no white space: equal specs give equal text.

        Every field, but none that belongs to one runtime and that the revision does not use, so that a runtime added
        later changes no name.
        """
        unused = {name for name in ("user", "docker", "external") if getattr(self, name) is None}
        content = self.model_dump(mode="json", exclude=unused)
        return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _misfit(runtime: str | None, field: str | None, value: object) -> str | None:
    """Why this value of the field does not go with the runtime, or None. No runtime: that is the fault told."""
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
