"""The protocol of a runtime: what Rollway asks of a system that starts and stops replicas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable
from uuid import UUID

from domain.devices.needs import VISIBLE, Capacity, gpus_of, is_gpu, variables_of
from domain.revisions.revision import RevisionSpec, filled_in
from domain.revisions.secret_refs import references_of
from domain.text.storable import storable


@dataclass(frozen=True, slots=True)
class ReplicaRequest:
    """Run `spec` as the replica of `route_id`; asking twice for one route id starts one replica.

    `secrets`: what those variables of its `env` that are references came to on this host. `is_walled`: the revision
    does not choose to run as the worker's own user. `devices`: those that the replica owns; it sees no other GPU.
    """

    route_id: UUID
    deployment: str
    revision: str
    spec: RevisionSpec
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_walled: bool = False
    devices: Capacity = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        """The variables of its revision, with secrets in place of references. Raises ReplicaStartError without them."""
        if references_of(self.spec.env).keys() - self.secrets.keys():
            raise ReplicaStartError(f"the secrets of revision {self.revision!r} were not read before its start")
        return {name: self.secrets.get(name, str(value)) for name, value in self.spec.env.items()}

    def variables(self, host: str, port: int) -> dict[str, str]:
        """The variables of its revision, with its address filled in, and Rollway's own for a replica.

        `host`: where it listens unless the revision's own HOST says otherwise. Secrets are passed on as they are.
        """
        own = {
            "PORT": str(port),
            "ROLLWAY_DEPLOYMENT": self.deployment,
            "ROLLWAY_REVISION": self.revision,
            "ROLLWAY_ROUTE": str(self.route_id),
            **variables_of(self.devices),
        }
        if any(map(is_gpu, self.spec.needs)) and self.spec.docker is None:  # a container counts those it is given
            own[VISIBLE] = ",".join(gpus_of(self.devices))
        env = {"HOST": host, **self.env}
        plain = {name: value for name, value in env.items() if name not in self.secrets}
        (listens,) = filled_in([env["HOST"]], {"HOST": host, **own}) if "HOST" in plain else [env["HOST"]]
        filled = zip(plain, filled_in(list(plain.values()), {"HOST": listens, **own}), strict=True)
        return {**env, **dict(filled), "HOST": listens, **own}


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica as the runtime sees it. `exit_code` is None while it runs or when unknown.

    `address` is host:port, or None when the runtime does not know it: an external replica, a container that has ended.
    `listens`: whether it listens there itself; None where nobody can say. `stranger`: the process that does in its
    place. `cause`: why an ended one ended, where that is known.
    """

    route_id: UUID
    handle: str
    address: str | None
    running: bool
    exit_code: int | None = None
    listens: bool | None = field(default=None, compare=False)
    stranger: str = field(default="", compare=False)
    cause: str = field(default="", compare=False)


class ReplicaStartError(Exception):
    """The replica cannot be started at all (no such command, no such image); the message is one sentence."""

    def __init__(self, message: str) -> None:
        super().__init__(storable(message))


class RuntimeUnavailableError(OSError):
    """The replicas' runtime gives no answer now, or not yet (engine down, webhook away, image still being pulled).

    Nothing is known of the replica then: the caller changes nothing and tries again later.
    """


@runtime_checkable
class ImageRuntime(Protocol):
    """A runtime whose replicas come from images."""

    def provide_image(self, request: ReplicaRequest) -> None:
        """Have its image on the host, as its `pull` says. Raises ReplicaStartError, and OSError while that goes on."""


class Runtime(Protocol):
    """Starts, finds and stops replicas. Each call is safe to repeat after a crash at any point of an earlier one.

    Every call may raise OSError, mostly as RuntimeUnavailableError: then nothing is known of the replica, which is not
    the same as None or not running.
    """

    def start(self, request: ReplicaRequest) -> Replica:
        """Start the replica of this route id, or return the one that was started before. Raises ReplicaStartError."""

    def find(self, route_id: UUID) -> Replica | None:
        """The replica of this route id, running or ended; None when it was never started or was forgotten."""

    def everyone(self) -> Sequence[Replica]:
        """Every replica this runtime remembers on this host, running or ended."""

    def terminate(self, route_id: UUID, request: ReplicaRequest | None = None, /) -> None:
        """Ask it to end (SIGTERM). No error when it is gone.

        `request` is what it was started with, for a runtime that keeps nothing of it (external); others need none.
        """

    def kill(self, route_id: UUID, request: ReplicaRequest | None = None, /) -> None:
        """End it now, with its descendants (SIGKILL). No error when it is gone. `request` as for terminate."""

    def forget(self, route_id: UUID) -> None:
        """Drop what is remembered of an ended replica. A process's log stays; a container's goes with it."""

    def log_tail(self, route_id: UUID, lines: int) -> str:
        """The last lines of its output; empty when there is none."""
