"""What a revision runs: an immutable spec, and the name that its content gives it."""

import hashlib
import json
import shlex
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

NAME_PATTERN = r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$"
Name = Annotated[str, Field(pattern=NAME_PATTERN, description="lower-case letters, digits, '-' and '.', 63 at most")]


DEPLOYMENT_NAME_PATTERN = r"^[a-z0-9]([a-z0-9.-]{0,52}[a-z0-9])?$"
"""Nine characters shorter, so that the name of a revision made from it is a name too."""

DeploymentName = Annotated[
    str, Field(pattern=DEPLOYMENT_NAME_PATTERN, description="lower-case letters, digits, '-' and '.', 54 at most")
]


def _split_command(value: object) -> object:
    return shlex.split(value) if isinstance(value, str) else value


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

    runtime: Literal["process"] = "process"
    command: Annotated[tuple[str, ...], BeforeValidator(_split_command), Field(min_length=1)]
    env: dict[str, str] = Field(default_factory=dict)
    working_directory: str | None = None
    health_check: HealthCheck | None = None
    drain_seconds: float = Field(default=2.0, ge=0, le=86400, description="for requests in flight, before SIGTERM")
    stop_grace_seconds: float = Field(default=10.0, ge=0, le=86400, description="between SIGTERM and SIGKILL")

    def canonical_json(self) -> str:
        """Every field, keys sorted, no white space: equal specs give equal text."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def revision_name(deployment: str, spec: RevisionSpec) -> str:
    """`<deployment>-<first 8 hex digits of the SHA-256 of the canonical JSON>`."""
    return f"{deployment}-{hashlib.sha256(spec.canonical_json().encode()).hexdigest()[:8]}"
