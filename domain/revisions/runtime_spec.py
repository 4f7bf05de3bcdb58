"""The sections `docker` and `external` of a revision's spec: the further settings of these runtimes."""

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

DEFAULT_CONTAINER_PORT = 8080
DEFAULT_PIDS = 4096
RESERVED_LABELS = "rollway."
_BYTES = re.compile(r"^(\d{1,15}(?:\.\d{1,15})?)([bkmgBKMG]?)$")
_LEAST_MEMORY, _MOST_MEMORY = 6 * 2**20, 2**50
_MEMORY: dict[str, str | int] = {"type": "integer", "minimum": _LEAST_MEMORY, "maximum": _MOST_MEMORY}


def _bytes(value: object) -> object:
    """512m is 536870912, as Docker reads it."""
    if not isinstance(value, str):
        return value
    match = _BYTES.match(value.strip())
    if match is None:
        raise ValueError("must be a number of bytes, or one with k, m or g behind it, such as '512m'")
    number, unit = match.groups()
    return int(float(number) * 1024 ** "bkmg".index(unit.lower() or "b"))


def _http_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or re.search(r"\s", value):
        raise ValueError("must be a URL such as 'https://example.com/replicas'")
    if parts.port == 0:
        raise ValueError("must be a URL whose port is not 0")
    return value


class DockerResources(BaseModel):
    """The most that one container may use; memory and cpus have no limit if they are left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    memory: (
        Annotated[
            int,
            Field(ge=_LEAST_MEMORY, le=_MOST_MEMORY, description="bytes, or '512m'"),
            BeforeValidator(_bytes),
            WithJsonSchema({"anyOf": [_MEMORY, {"type": "string", "pattern": _BYTES.pattern}]}),
        ]
        | None
    ) = None
    """The most memory, 6 MiB at least."""
    cpus: float | None = Field(default=None, ge=0.01, le=1024)
    """Processors; 0.5 is half of one."""
    pids: int | None = Field(default=None, ge=16, le=4_194_304)
    """Processes and threads; 4,096 if left out."""
    gpus: Literal["all"] | Annotated[int, Field(ge=1, le=64)] | None = None
    """The number of GPUs; the engine must support them."""


class DockerSpec(BaseModel):
    """A container. Its service listens on `port` on every interface of the container."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    image: str = Field(pattern=r"^[^\s-]\S*$", max_length=500)
    """An image of a registry, or of the engine itself."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """The port of the service, in its variable PORT. 8080 if left out; with `network: host` Rollway chooses it."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels of the container, besides Rollway's own."""
    resources: DockerResources = DockerResources()
    """The most that it may use."""
    pull: Literal["missing", "always", "never"] = "missing"
    """The time when the image is fetched: when it is missing, before every start, or never."""
    stop_signal: str = Field(default="SIGTERM", pattern=r"^SIG[A-Z0-9+]+$")
    """The signal that ends the service."""
    network: str | None = Field(default=None, min_length=1)
    """A network of the engine; its default bridge if left out. host: the network of the engine's host."""
    volumes: dict[str, str] = Field(default_factory=dict)
    """Each key is a folder of the engine's host, or a volume; its value is the folder in the container. Read-only."""
    cache_volumes: dict[str, str] = Field(default_factory=dict, exclude_if=lambda volumes: not volumes)
    """Writable volumes of the deployment, which its replicas on a host share: each name, and its folder there."""

    @model_validator(mode="before")
    @classmethod
    def _default_port(cls, value: object) -> object:
        """Filled in here, so that a port that is written down and one that is left out give the same name."""
        if not isinstance(value, dict) or value.get("network") == "host" or value.get("port") is not None:
            return value
        return {**value, "port": DEFAULT_CONTAINER_PORT}

    @field_validator("labels")
    @classmethod
    def _labels_are_not_rollways(cls, labels: dict[str, str]) -> dict[str, str]:
        if reserved := next((name for name in labels if name.startswith(RESERVED_LABELS)), None):
            raise ValueError(f"{reserved!r} is refused: labels that begin with {RESERVED_LABELS!r} are Rollway's own")
        return labels

    @field_validator("network")
    @classmethod
    def _has_a_network(cls, network: str | None, info: ValidationInfo) -> str | None:
        if network == "none":
            raise ValueError("'none' is refused: nobody could reach the replica; name a network, or leave it out")
        if network == "host" and info.data.get("port") is not None:
            raise ValueError("'host' goes without a port: Rollway chooses one and tells it as PORT; leave port out")
        return network

    @field_validator("volumes")
    @classmethod
    def _volumes_are_folders(cls, volumes: dict[str, str]) -> dict[str, str]:
        for source, folder in volumes.items():
            if not source or ":" in source or source.startswith(".") or ":" in folder or not folder.startswith("/"):
                raise ValueError(
                    f"{source!r}: {folder!r} is refused: it must be an absolute folder of the engine's host or the "
                    "name of a volume, and an absolute folder of the container"
                )
        return volumes

    @field_validator("cache_volumes")
    @classmethod
    def _caches_have_folders_of_their_own(cls, caches: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        folders = [folder.rstrip("/") for folder in (info.data.get("volumes") or {}).values()]
        for name, folder in caches.items():
            if not _CACHE_NAME.fullmatch(name) or not folder.strip("/") or not _CACHE_FOLDER.fullmatch(folder):
                raise ValueError(
                    f"{name!r}: {folder!r} is refused: it must be a name of letters, digits, '.', '_' and '-', "
                    "and an absolute folder of the container"
                )
            if folder.rstrip("/") in folders:
                raise ValueError(f"{name!r} is refused: {folder!r} is the folder of another volume")
            folders.append(folder.rstrip("/"))
        return caches


_CACHE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_CACHE_FOLDER = re.compile(r"/[^:\x00-\x1f]{0,999}")

_OWN_NAMES = ("lifecycle", "routes", "commands")
_OWN_BEGINNINGS = ("rollway.", "host.")
"""Rollway's own tasks and queues."""


class ExternalSpec(BaseModel):
    """The system that starts and stops a replica for Rollway: by a webhook or by a Celery task."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    webhook: Annotated[str, Field(max_length=2000), AfterValidator(_http_url)] | None = None
    """A URL; each request is a POST."""
    task: str | None = Field(default=None, pattern=r"^\S+$", max_length=200)
    """A task\'s name, on the broker of Rollway."""
    queue: str | None = Field(default=None, pattern=r"^\S+$", max_length=200)
    """The queue of the task; `celery` if left out."""

    @field_validator("task", "queue")
    @classmethod
    def _is_not_rollways(cls, name: str | None) -> str | None:
        if name is not None and (name in _OWN_NAMES or name.startswith(_OWN_BEGINNINGS)):
            raise ValueError(f"{name!r} is refused: Rollway's own workers read it; name one of the other system")
        return name

    @model_validator(mode="after")
    def _one_way_to_ask(self) -> Self:
        if (self.webhook is None) == (self.task is None):
            raise ValueError("needs one of webhook, such as 'https://example.com/replicas', and task, a Celery task")
        if self.queue is not None and self.task is None:
            raise ValueError("queue belongs to task: a webhook has none; leave it out")
        return self
