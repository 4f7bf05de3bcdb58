"""The settings of probes, which ask a replica whether it is well."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

_USUAL_PATH = "/health"


class HealthCheck(BaseModel):
    """A probe: any 2xx or 3xx answer to GET `path` within `timeout_seconds` is a success; for gRPC it is SERVING."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(default=_USUAL_PATH, pattern=r"^/")
    """The path of the request, on the replica's PORT."""
    protocol: Literal["http1", "http2", "grpc"] = Field(
        default="http1", exclude_if=lambda protocol: protocol == "http1"
    )
    """The request: GET in HTTP/1.1 or HTTP/2, without TLS, or the standard `grpc.health.v1.Health/Check`."""
    service: str | None = Field(default=None, max_length=127, pattern=r"^[!-~]+$", exclude_if=lambda name: name is None)
    """The service for protocol grpc, such as shop.Cart; left out: the whole server."""
    host: str | None = Field(
        default=None,
        max_length=260,
        pattern=r"^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9])?(:[0-9]{1,5})?$",
        exclude_if=lambda host: host is None,
    )
    """The host name of the request, such as shop.example.com; left out: the replica's address and port."""
    interval_seconds: float = Field(default=5.0, ge=0.1, le=3600)
    """The time from one probe to the next."""
    timeout_seconds: float = Field(default=2.0, gt=0, le=300)
    """The time limit of an answer."""
    success_threshold: int = Field(default=1, ge=1, le=100)
    """Successes in a row that make a replica healthy."""
    failure_threshold: int = Field(default=3, ge=1, le=100)
    """Failures in a row that make a healthy replica unhealthy."""
    initial_delay_seconds: float = Field(default=0.0, ge=0, le=86400)
    """The time from the start of the replica to its first probe."""
    start_deadline_seconds: float = Field(default=60.0, gt=0, le=86400)
    """A replica that is not healthy this long after its start has failed. More than `initial_delay_seconds`."""

    @field_validator("protocol")
    @classmethod
    def _grpc_has_no_path(cls, protocol: str, info: ValidationInfo) -> str:
        path = info.data.get("path", _USUAL_PATH)
        if protocol == "grpc" and path != _USUAL_PATH:
            raise ValueError(f"grpc asks for no path, and path is {path!r}: leave path out")
        return protocol

    @field_validator("service")
    @classmethod
    def _grpc_has_services(cls, service: str | None, info: ValidationInfo) -> str | None:
        if service is not None and info.data.get("protocol", "grpc") != "grpc":
            raise ValueError("belongs to protocol grpc: leave it out, or set protocol: grpc")
        return service

    @property
    def request_line(self) -> str:
        """The question of one probe, in words."""
        host_part = f" as {self.host}" if self.host else ""
        if self.protocol != "grpc":
            return f"GET {self.path}{host_part}"
        return f"gRPC health check{f' of {self.service}' if self.service else ''}{host_part}"

    def host_header(self, address: str) -> str:
        """The Host header, or the authority of HTTP/2, of a probe to a replica at this address."""
        return self.host or address

    @model_validator(mode="after")
    def _deadline_leaves_time_to_probe(self) -> Self:
        if self.start_deadline_seconds <= self.initial_delay_seconds:
            raise ValueError(
                "start_deadline_seconds must be greater than initial_delay_seconds, or no probe is ever made"
            )
        return self
