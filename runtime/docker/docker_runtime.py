"""Replicas as containers of a Docker engine, local or remote, which outlive the worker that started them."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as StillRunningError
from typing import TYPE_CHECKING
from uuid import UUID

from runtime.docker.container import (
    NOTHING_OF_THE_HOST,
    OWNER_LABEL,
    PORT_LABEL,
    ROUTE_LABEL,
    DockerPolicy,
    EngineRefusalError,
    Json,
    container_config,
    container_name,
    docker_spec,
    is_of,
    listed_replica,
    refusal_in_words,
    replica_of,
)
from runtime.machine.free_ports import free_port, listens_at
from runtime.protocol import Replica, ReplicaRequest, ReplicaStartError, RuntimeUnavailableError

if TYPE_CHECKING:
    from runtime.docker.docker_engine import DockerEngine


SHARED_PORTS = range(30000, 32768)
"""Ports of containers in their host's network: next to those of processes, below those of outgoing connections."""

_LOCAL_ENGINE = "unix:///var/run/docker.sock"
_ROUNDS = 8


class DockerRuntime:
    """The Runtime for `runtime: docker`. It keeps no records: a replica is a container with a name and labels.

    `owner` is unique among all that use this engine (see `owner_of`): everyone() returns only its containers.
    `url` is the engine, else DOCKER_HOST, else this machine's. `address` is where the engine's host is reached and, if
    it is an IP, where ports are published. `start` waits `pull_patience_seconds` for a pull. `policy`: what containers
    may reach of the engine's host.
    """

    def __init__(  # noqa: PLR0913  (each but the first has a default, and is said by its name)
        self,
        owner: str,
        url: str | None = None,
        address: str = "127.0.0.1",
        *,
        timeout_seconds: int = 10,
        pull_patience_seconds: float = 2.0,
        policy: DockerPolicy = NOTHING_OF_THE_HOST,
    ) -> None:
        self._owner = owner
        self._url = url or os.environ.get("DOCKER_HOST") or _LOCAL_ENGINE
        self._address = address
        self._policy = policy
        self._timeout = timeout_seconds
        self._pulls = ImagePulls(lambda image: self._engine().pull(image), pull_patience_seconds)
        self._lock = threading.Lock()
        self._connected: DockerEngine | None = None

    def start(self, request: ReplicaRequest) -> Replica:
        """Start the replica of this route id, or return the one that was started before, even if it has ended.

        Raises ReplicaStartError when it cannot be started and leaves no container then; raises
        RuntimeUnavailableError while the engine is down, or the image is still being pulled.
        """
        for _ in range(_ROUNDS):
            container = self._inspect(request.route_id)
            if container is None:
                self._create(request)
            elif replica := replica_of(container, self._address):
                return self._reachable(request, replica)
            elif self._has_its_port_alone(container):
                self._run(request, container["Id"])
        raise RuntimeUnavailableError(f"the container of route {request.route_id} is changed by somebody else")

    def find(self, route_id: UUID) -> Replica | None:
        """The replica of this route id, running or ended; None when it was never started or its container is gone."""
        container = self._inspect(route_id)
        return replica_of(container, self._address) if container else None

    def everyone(self) -> Sequence[Replica]:
        """Every replica of this host; a container that was created and never started counts as ended."""
        containers = self._engine().labelled(f"{OWNER_LABEL}={self._owner}")
        return [replica for container in containers if (replica := listed_replica(container, self._address))]

    def provide_image(self, request: ReplicaRequest) -> None:
        """Have its image on the engine, as `pull` says. Raises as `start` does."""
        docker = docker_spec(request)
        if docker.pull == "always" or not self._engine().has_image(docker.image):
            self._pulls.provide(request)

    def terminate(self, route_id: UUID, _request: ReplicaRequest | None = None, /) -> None:
        """Send its main process the stop signal of its revision. No error when it is gone."""
        if container := self._inspect(route_id):
            self._engine().signal(container["Id"], container["Config"].get("StopSignal") or "SIGTERM")

    def kill(self, route_id: UUID, _request: ReplicaRequest | None = None, /) -> None:
        """Send SIGKILL to its main process, with which everything in the container ends. No error when it is gone."""
        if container := self._inspect(route_id):
            self._engine().signal(container["Id"], "SIGKILL")

    def forget(self, route_id: UUID) -> None:
        """Remove an ended container, its log with it. A running one is kept."""
        if container := self._inspect(route_id):
            self._engine().remove(container["Id"])

    def log_tail(self, route_id: UUID, lines: int) -> str:
        """The last lines of its output; empty when there is none, or the engine's log driver keeps none."""
        container = self._inspect(route_id) if lines > 0 else None
        return "\n".join(self._engine().log_tail(container["Id"], lines).splitlines()[-lines:]) if container else ""

    def close(self) -> None:
        """Close the connections to the engine; replicas run on."""
        with self._lock:
            if self._connected:
                self._connected.close()
            self._connected = None

    def _inspect(self, route_id: UUID) -> Json | None:
        """The container of a route, by its name, or by its label if somebody renamed it; None without one."""
        engine = self._engine()
        container = engine.inspect(container_name(route_id))
        if container is None:
            containers = engine.labelled(f"{ROUTE_LABEL}={route_id}")
            return engine.inspect(containers[0]["Id"]) if containers else None
        return container if is_of(container, route_id) else None

    def _create(self, request: ReplicaRequest) -> None:
        """Create the container, not running yet. If another worker was first, its container is the one."""
        engine, name = self._engine(), container_name(request.route_id)
        self._policy.check(request)
        try:
            if docker_spec(request).pull == "always":
                self._pulls.provide(request)
            created = self._is_created(request)
        except EngineRefusalError as error:
            raise ReplicaStartError(refusal_in_words(request, str(error))) from error
        if not created and (other := engine.inspect(name)) and not is_of(other, request.route_id):
            raise ReplicaStartError(f"a container that is not Rollway's has the name {name!r} on the Docker engine")

    def _is_created(self, request: ReplicaRequest) -> bool:
        """False when its name is taken.

        The engine is asked for the image only after a refusal: mostly the image is there.
        """
        engine, docker = self._engine(), docker_spec(request)
        shared = self._choose_port() if docker.network == "host" else None
        name, config = container_name(request.route_id), container_config(request, self._owner, self._address, shared)
        try:
            return engine.create(name, config)
        except EngineRefusalError:
            if docker.pull == "always":
                raise
        # here, it may have come with another replica's pull since the engine refused
        if not engine.has_image(docker.image):
            self._pulls.provide(request)
        return engine.create(name, config)

    def _run(self, request: ReplicaRequest, container: str) -> None:
        try:
            self._engine().start(container)
        except EngineRefusalError as error:
            self._engine().remove(container)
            raise ReplicaStartError(refusal_in_words(request, str(error))) from error

    def _reachable(self, request: ReplicaRequest, replica: Replica) -> Replica:
        """Return the replica, unless it runs where the engine publishes no ports: then remove it, and raise."""
        if replica.address or not replica.running:
            return replica
        self._engine().remove(container_name(request.route_id), running=True)
        raise ReplicaStartError(
            f"the Docker engine publishes no port in the network {docker_spec(request).network or 'default'!r} of "
            f"revision {request.revision!r}: name a bridge network in docker.network, or 'host'"
        )

    def _choose_port(self) -> int:
        """A port that no container of ours has, and no other program either where the engine's host is this one."""
        used = {container["Labels"][PORT_LABEL] for container in self._engine().labelled(PORT_LABEL)}
        port = free_port(SHARED_PORTS, lambda port: str(port) in used)
        if port is None:
            raise ReplicaStartError(f"no port from {SHARED_PORTS.start} to {SHARED_PORTS.stop - 1} is free")
        return port

    def _has_its_port_alone(self, created: Json) -> bool:
        """Whether it may be started. Two workers may have chosen the same port: then both remove it and try again."""
        port = created["Config"]["Labels"].get(PORT_LABEL)
        if port is None or len(self._engine().labelled(f"{PORT_LABEL}={port}")) == 1:
            return True
        self._engine().remove(created["Id"])
        return False

    def _engine(self) -> "DockerEngine":
        """The engine, connected at first use. Where no local engine listens, the SDK is not even imported."""
        # asked before each call, for the SDK leaks a socket when nobody listens
        if self._url.startswith("unix://") and not listens_at(self._url.removeprefix("unix://")):
            raise RuntimeUnavailableError(f"no Docker engine answers at {self._url}")
        with self._lock:
            if self._connected is None:
                from runtime.docker.docker_engine import DockerEngine  # noqa: PLC0415  # 0.2 s that others need not spend

                self._connected = DockerEngine(self._url, self._timeout)
            return self._connected


class ImagePulls:
    """Pulls each image once at a time. A pull continues when nobody waits for it, and ends with the worker."""

    def __init__(self, pull: Callable[[str], None], patience_seconds: float) -> None:
        self._pull_image = pull
        self._patience = patience_seconds
        self._lock = threading.Lock()
        self._running: dict[str, Future[None]] = {}

    def provide(self, request: ReplicaRequest) -> None:
        """Fetch the image of a revision. Raises ReplicaStartError when it is not available, or may not be pulled.

        Raises RuntimeUnavailableError while it is being pulled.
        """
        spec = docker_spec(request)
        what = f"the image {spec.image!r} of revision {request.revision!r}"
        if spec.pull == "never":
            raise ReplicaStartError(f"{what} is not on the Docker engine, and docker.pull is 'never'")
        try:
            self.fetch(spec.image)
        except EngineRefusalError as error:
            raise ReplicaStartError(f"{what} cannot be pulled: {error}") from error

    def fetch(self, image: str) -> None:
        """Wait until the image is on the engine. Raises EngineRefusalError when it is not available.

        Raises RuntimeUnavailableError when it takes longer than the patience: asked again, it waits for the same pull.
        """
        with self._lock:
            pull = self._running.get(image) or self._begin(image)
        try:
            pull.result(self._patience)
        except StillRunningError:
            if not pull.done():
                raise RuntimeUnavailableError(f"the image {image!r} is still being pulled") from None
            raise
        finally:
            with self._lock:
                if pull.done() and self._running.get(image) is pull:
                    del self._running[image]

    def _begin(self, image: str) -> Future[None]:
        pull: Future[None] = Future()
        self._running[image] = pull
        threading.Thread(target=self._pull, args=(image, pull), name=f"pull {image}", daemon=True).start()
        return pull

    def _pull(self, image: str, pull: Future[None]) -> None:
        try:
            self._pull_image(image)
        except BaseException as error:  # noqa: BLE001  # each start that waits for the pull raises it
            pull.set_exception(error)
        else:
            pull.set_result(None)
