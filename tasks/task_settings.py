"""The settings that workers, beat and commands read from the environment."""

import os
import socket
from functools import cache
from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from domain.devices.needs import VARIABLE, parse_resources
from domain.installation.settings import (
    REPLICA_PORTS,
    RIGHT_PORTS,
    LogLimits,
    Retention,
    Settings,
    absolute,
    ports_between,
)
from domain.replicas.host_choice import RIGHT_HOST_NAME, host_name
from domain.revisions.host_labels import labels_in
from domain.revisions.secret_refs import DEPLOYMENT, filled_in, reference_text
from domain.text.errors import InvalidInputError

KEY_PREFIX = "rollway:"
TRAFFIC_CHANNEL = f"{KEY_PREFIX}traffic"
"""Redis' channel for "what proxies should know may have changed"."""
MOST_SLOTS = 64
"""Workers that may share one handler."""
SIGNED_DAYS = 0.1
"""The least time for which a request id is known where commands are signed: a signature is good for two hours."""
_MAX_SECONDS = 86_400


def _redis_url(raw: str) -> str:
    parts = urlsplit(raw)
    if parts.scheme == "unix" and parts.path != "/" and not parts.hostname:
        return raw
    if parts.scheme not in ("redis", "rediss") or parts.port == 0:  # reading the port checks it
        raise ValueError(raw)
    if parts.scheme == "rediss" and "ssl_cert_reqs" not in parse_qs(parts.query):
        return f"{raw}{'&' if parts.query else '?'}ssl_cert_reqs=required"  # Celery wants to be told
    return raw


def _names(raw: object) -> object:
    return tuple(name for part in raw.split(",") if (name := part.strip())) if isinstance(raw, str) else raw


def _allowed(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Each is what a reference to it would be; a folder may end with a slash."""
    folders = tuple(entry.rstrip("/") if entry.startswith("file:") else entry for entry in entries)
    if any(reference_text(_braced(entry)).startswith("env:") for entry in folders):
        raise ValueError(entries)
    return folders


def _braced(text: str) -> str:
    """The path for an example deployment. Raises ValueError for braces that hold anything else."""
    if {"{", "}"} & set(text.replace(DEPLOYMENT, "")):
        raise ValueError(text)
    return filled_in(text, "web") or ""


def _of_variables(path: object) -> object:
    _braced(str(path))
    return absolute(path)


_NAMES = "names, separated by commas,"
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


def _labels(raw: object) -> object:
    return labels_in(raw) if isinstance(raw, str) else raw


def _resources(text: str) -> str:
    try:
        parse_resources(text)
    except InvalidInputError as error:
        raise ValueError(str(error)) from None
    return text


def _ports(text: str) -> str:
    ports_between(text)
    return text


def _seconds(variable: str, default: float) -> float:
    right = f"a number of seconds from 1 to {_MAX_SECONDS}"
    field: float = Field(default, ge=1, le=_MAX_SECONDS, validation_alias=variable, description=right)
    return field


class TaskSettings(Settings):
    """`chunk`: deployments for each transaction. `lock_seconds`: life of a lock whose worker is gone.

    `work_seconds`: how long one task claims chunks.
    """

    redis_url: Annotated[str, AfterValidator(_redis_url)] = Field(
        validation_alias="REDIS_URL",
        description="redis://:password@host:port/0, rediss://... or unix://:password@/path?db=0",
        repr=False,
    )
    """The broker, with locks, wakes and answers."""
    home: Annotated[Path, AfterValidator(Path.absolute)] = Field(
        Path(".rollway"), validation_alias="ROLLWAY_HOME", validate_default=True, description="a folder"
    )
    """The folder of the records and logs of replicas, and of the data of embedded servers."""
    host: Annotated[str, AfterValidator(host_name)] = Field(
        default_factory=socket.gethostname,
        validate_default=True,
        validation_alias="ROLLWAY_HOST",
        description=RIGHT_HOST_NAME,
    )
    """The name under which this machine runs replicas; left out, its host name."""
    host_address: str = Field(
        "127.0.0.1", validation_alias="ROLLWAY_HOST_ADDRESS", description="a host name or an address"
    )
    """The address at which proxies reach the replicas of this machine."""
    host_labels: Annotated[dict[str, str], BeforeValidator(_labels)] = Field(
        default_factory=dict,
        validation_alias="ROLLWAY_HOST_LABELS",
        description="labels, each once, separated by commas, as in zone=a,disk=ssd; 'host' is the name of each host",
    )
    """The labels of this machine, which revisions may require of their hosts, or be spread over."""
    host_resources: Annotated[str, AfterValidator(_resources)] = Field(
        "",
        validation_alias=VARIABLE,
        description="what this machine has for replicas, as in gpu=4,memory_gb=240; gpu=auto asks the driver",
    )
    """The devices and amounts that replicas of this machine may need; left out, it has none."""
    host_silence_seconds: float = _seconds("ROLLWAY_HOST_SILENCE_SECONDS", 15)
    """The seconds without a heartbeat after which a host is down, and its replicas are replaced on others."""
    drain_deadline_seconds: float = _seconds("ROLLWAY_DRAIN_DEADLINE_SECONDS", 60)
    """The seconds for which a leaving replica waits for proxies to acknowledge it."""
    replica_env: Names = Field((), validation_alias="ROLLWAY_REPLICA_ENV", description=f"{_NAMES} of variables")
    """What replica processes get of this environment, besides a short list; `AWS_*` is all that begin so."""
    replica_user: str | None = Field(
        None, validation_alias="ROLLWAY_REPLICA_USER", description="the name of a user, or @deployment"
    )
    """The user of replica processes whose revision names none; left out, the worker's own user."""
    replica_users: Names = Field((), validation_alias="ROLLWAY_REPLICA_USERS", description=f"{_NAMES} of users")
    """The users that replica processes may have, where the worker is root."""
    replica_processes: int | None = Field(
        None,
        ge=16,
        le=4_194_304,
        validation_alias="ROLLWAY_REPLICA_PROCESSES",
        description="a number from 16 to 4194304",
    )
    """The number of processes and threads of a deployment on a host, as its account; left out, a quarter of all."""
    replica_files: int = Field(
        65_536, ge=64, le=1_048_576, validation_alias="ROLLWAY_REPLICA_FILES", description="a number from 64 to 1048576"
    )
    """The number of files and sockets that one process of a replica may have open."""
    replica_ports: Annotated[str, AfterValidator(_ports)] = Field(
        f"{REPLICA_PORTS[0]}-{REPLICA_PORTS[-1]}", validation_alias="ROLLWAY_REPLICA_PORTS", description=RIGHT_PORTS
    )
    """The ports of replica processes; another range for each installation of one user on a machine."""
    docker_volumes: Names = Field(
        (), validation_alias="ROLLWAY_DOCKER_VOLUMES", description=f"{_NAMES} of folders and volumes"
    )
    """What containers may mount of the engine's host, read-only."""
    docker_host_network: bool = Field(
        default=False, validation_alias="ROLLWAY_DOCKER_HOST_NETWORK", description="on or off"
    )
    """Whether containers may share the network of the engine's host."""
    external_allow: Names = Field(
        (),
        validation_alias="ROLLWAY_EXTERNAL_ALLOW",
        description="beginnings of URLs, and queues, separated by commas, as in https://gpus.example.com/,queue:gpus",
    )
    """Whom `runtime: external` may ask for a revision that was added with a token for some deployments."""
    secrets_allow: Annotated[Names, AfterValidator(_allowed)] = Field(
        (),
        validation_alias="ROLLWAY_SECRETS_ALLOW",
        description="folders and commands, separated by commas, as in file:/run/secrets/{deployment},"
        "command:/usr/local/bin/secret-of {deployment}",
    )
    """Folders whose files, and beginnings of commands whose output, replicas may get as secrets."""
    secrets_env_file: Annotated[Path, BeforeValidator(_of_variables)] | None = Field(
        None,
        validation_alias="ROLLWAY_SECRETS_ENV_FILE",
        description="the absolute path of a file of NAME=value lines, as /etc/rollway/secrets/{deployment}",
    )
    """Variables that replicas may get as secrets, and that commands which print secrets are told."""
    command_keys: Annotated[Path, BeforeValidator(absolute)] | None = Field(
        None, validation_alias="ROLLWAY_COMMAND_KEYS", description="the absolute path of a file of keys"
    )
    """The file with a key for each sender; with it commands must be signed."""
    metrics_host: str = Field("127.0.0.1", validation_alias="ROLLWAY_METRICS_HOST", description="an address")
    """The address at which a worker or a beat shows its metrics, on the port below."""
    metrics_port: int | None = Field(
        None, ge=1, le=65_535, validation_alias="ROLLWAY_METRICS_PORT", description="a port from 1 to 65535"
    )
    """The port of its metrics, another one for each process of a machine; left out, it shows none."""
    webhooks: Annotated[Path, BeforeValidator(absolute)] | None = Field(
        None, validation_alias="ROLLWAY_WEBHOOKS", description="the absolute path of a file of targets"
    )
    """The file of the targets of events, with the secrets that sign them; without it no webhook gets events."""
    webhook_seconds: float = _seconds("ROLLWAY_WEBHOOK_SECONDS", 10)
    """The seconds in which a webhook must answer an event."""
    slots: int = Field(
        1, ge=1, le=MOST_SLOTS, validation_alias="ROLLWAY_SLOTS", description=f"a number from 1 to {MOST_SLOTS}"
    )
    """Workers that may share one handler, until `rollway slots` says otherwise."""
    chunk: int = 250
    lock_seconds: float = 5.0
    work_seconds: float = 10.0


@cache
def settings() -> TaskSettings:
    """The settings of this process, read from its environment at first use. Raises InvalidInputError."""
    return TaskSettings.from_environment(os.environ)


@cache
def retention() -> Retention:
    """Return how much of the past is kept, read in the same way. Raises InvalidInputError."""
    limits = Retention.from_environment(os.environ)
    if settings().command_keys and limits.commands_days < SIGNED_DAYS:
        message = f"ROLLWAY_KEEP_COMMANDS_DAYS must be {SIGNED_DAYS:g} or more where commands are signed"
        raise InvalidInputError(f"{message}: a signed one could be sent again", field="ROLLWAY_KEEP_COMMANDS_DAYS")
    return limits


@cache
def log_limits() -> LogLimits:
    """Return how big logs of replicas may become, read in the same way. Raises InvalidInputError."""
    return LogLimits.from_environment(os.environ)
