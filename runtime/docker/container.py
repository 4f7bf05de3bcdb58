"""A replica as a container: the rights of a revision, the configuration, and the engine's refusals."""

import ipaddress
import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

from domain.devices.needs import gpus_of
from domain.revisions.revision import filled_in
from domain.revisions.runtime_spec import DEFAULT_CONTAINER_PORT, DEFAULT_PIDS, DockerSpec
from runtime.protocol import Replica, ReplicaRequest, ReplicaStartError


class EngineRefusalError(Exception):
    """The engine refused; the message is its own, in one line."""


def docker_spec(request: ReplicaRequest) -> DockerSpec:
    if request.spec.docker is None:
        raise ValueError(f"revision {request.revision!r} is not for the runtime 'docker'")
    return request.spec.docker


def refusal_in_words(request: ReplicaRequest, refused: str) -> str:
    """A sentence for a person about a container that the engine did not start."""
    docker, text = docker_spec(request), refused.lower()
    if "port is already allocated" in text or "address already in use" in text:
        return f"a port for revision {request.revision!r} is taken on the engine's host: {refused}"
    if "network" in text and "not found" in text:
        return f"the network {docker.network!r} of revision {request.revision!r} is not on the Docker engine: create it"
    if "capabilities: [[gpu]]" in text:
        return f"revision {request.revision!r} asks for GPUs, and the Docker engine offers none to containers"
    if "range of cpus" in text or "memory" in text:
        return f"the Docker engine cannot give revision {request.revision!r} its docker.resources: {refused}"
    if "no command specified" in text:
        return f"the image {docker.image!r} of revision {request.revision!r} names no command: set one"
    if request.spec.command and "exec" in text and ("not found" in text or "no such file" in text or "denied" in text):
        command = request.spec.command[0]
        return f"the command {command!r} of revision {request.revision!r} cannot be run in its image: {refused}"
    return f"the Docker engine refuses to start revision {request.revision!r}: {refused}"


@dataclass(frozen=True, slots=True)
class DockerPolicy:
    """`volumes`: folders of the engine's host, with all that is in them, and names of volumes, that may be mounted.

    `host_network`: whether a container may share the network of the engine's host, or of another container.
    """

    volumes: Collection[str] = ()
    host_network: bool = False

    def check(self, request: ReplicaRequest) -> None:
        """Refuse what this host does not allow. Raises ReplicaStartError with the setting that would allow it."""
        docker = docker_spec(request)
        shares = docker.network is not None and (docker.network == "host" or docker.network.startswith("container:"))
        if shares and not self.host_network:
            raise ReplicaStartError(
                f"revision {request.revision!r} wants the network {docker.network!r}, "
                "which takes ROLLWAY_DOCKER_HOST_NETWORK=on in the environment of this host's workers"
            )
        refused = next((source for source in docker.volumes if not self._may_mount(source)), None)
        if refused is not None:
            raise ReplicaStartError(
                f"revision {request.revision!r} mounts {refused!r}, "
                "which ROLLWAY_DOCKER_VOLUMES in the environment of this host's workers does not name"
            )

    def _may_mount(self, source: str) -> bool:
        if not source.startswith("/"):
            return source in self.volumes
        path = posixpath.normpath(source)
        allowed = [posixpath.normpath(folder) for folder in self.volumes if folder.startswith("/")]
        return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in allowed)


NOTHING_OF_THE_HOST = DockerPolicy()


ROUTE_LABEL = "rollway.route"
OWNER_LABEL = "rollway.owner"
PORT_LABEL = "rollway.port"
_EXITED = re.compile(r"^Exited \((\d+)\)")

Json = Mapping[str, Any]


def container_name(route_id: UUID) -> str:
    """The name of a route's container: always the same, so that an engine cannot hold two replicas of a route."""
    return f"rollway-{route_id}"


def is_of(container: Json, route_id: UUID) -> bool:
    """Whether an inspected container was started for this route, and not by another program under its name."""
    return (container["Config"]["Labels"] or {}).get(ROUTE_LABEL) == str(route_id)


def owner_of(host: str, home: Path) -> str:
    """The label of this installation's containers: two installations may share an engine, and even names of hosts."""
    return f"{host}:{home.resolve()}"


def container_config(request: ReplicaRequest, owner: str, address: str, shared_port: int | None) -> dict[str, Any]:
    """The body of the engine's "create". `shared_port`: the port in the network of the engine's host, if it shares it.

    The environment is the revision's, then what Rollway tells a replica; nothing of the worker's own goes in. HOST,
    where to listen, is every interface of the container or, with a shared network, `address`; a revision may set its
    own.
    """
    spec, docker = request.spec, docker_spec(request)
    port = shared_port or docker.port or DEFAULT_CONTAINER_PORT
    host = (shared_port and _bound(address)) or "0.0.0.0"  # noqa: S104  # of the container only
    labels = {
        ROUTE_LABEL: str(request.route_id),
        "rollway.deployment": request.deployment,
        "rollway.revision": request.revision,
        OWNER_LABEL: owner,
    }
    bindings = {} if shared_port else {f"{port}/tcp": [{"HostIp": _bound(address), "HostPort": ""}]}
    variables = request.variables(host, port)
    return {
        "Image": docker.image,
        "Cmd": filled_in(spec.command, variables) if spec.command else None,
        "Env": [f"{name}={value}" for name, value in variables.items()],
        "Labels": docker.labels | labels | ({PORT_LABEL: str(shared_port)} if shared_port else {}),
        "WorkingDir": spec.working_directory or "",
        "StopSignal": docker.stop_signal,
        "ExposedPorts": {name: {} for name in bindings},
        "HostConfig": {
            "PortBindings": bindings,
            "NetworkMode": docker.network or "default",
            "RestartPolicy": {"Name": "no"},
            "SecurityOpt": ["no-new-privileges"],
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "3"}},
            "Binds": [f"{source}:{folder}:ro" for source, folder in docker.volumes.items()],
            "Mounts": [_cache(request, owner, name, folder) for name, folder in docker.cache_volumes.items()],
            **_limits(docker, gpus_of(request.devices)),
        },
    }


def replica_of(container: Json, address: str) -> Replica | None:
    """The replica of an inspected container; None for one that was created and never started."""
    state = container["State"]
    if state["Status"] == "created":
        return None
    labels = container["Config"]["Labels"] or {}
    bindings = [bound for bound in (container["NetworkSettings"]["Ports"] or {}).values() if bound]
    port = labels.get(PORT_LABEL) or (bindings[0][0]["HostPort"] if bindings else None)
    running = bool(state["Running"])
    exit_code = None if running else state["ExitCode"]
    return Replica(UUID(labels[ROUTE_LABEL]), _handle(container), _reachable_at(address, port), running, exit_code)


def listed_replica(container: Json, address: str) -> Replica | None:
    """The replica of a listed container. One that was created and never started counts as ended.

    None when its label holds no route id, because somebody else wrote it.
    """
    labels = container["Labels"]
    try:
        route_id = UUID(labels.get(ROUTE_LABEL, ""))
    except ValueError:
        return None
    public = next((str(port["PublicPort"]) for port in container.get("Ports", ()) if port.get("PublicPort")), None)
    running = container["State"] in {"running", "paused", "restarting"}
    exited = _EXITED.match(container["Status"])
    return Replica(
        route_id,
        _handle(container),
        _reachable_at(address, labels.get(PORT_LABEL) or public),
        running,
        int(exited[1]) if exited else None,
    )


def _cache(request: ReplicaRequest, owner: str, name: str, folder: str) -> dict[str, Any]:
    """A volume of the deployment alone: what another one runs must not be able to write what its replicas execute.

    No name of a deployment has an underscore, so that no two of them share a volume by their names.
    """
    labels = {"rollway.deployment": request.deployment, "rollway.cache": name, OWNER_LABEL: owner}
    volume = f"rollway-{sha256(owner.encode()).hexdigest()[:8]}_{request.deployment}_{name}"
    return {"Type": "volume", "Source": volume, "Target": folder, "VolumeOptions": {"Labels": labels}}


def _limits(docker: DockerSpec, gpus: Sequence[str]) -> dict[str, Any]:
    """`gpus`: the devices that the replica owns."""
    resources = docker.resources
    limits: dict[str, Any] = {"PidsLimit": resources.pids or DEFAULT_PIDS}
    if resources.memory:
        limits["Memory"] = resources.memory
    if resources.cpus:
        limits["NanoCpus"] = round(resources.cpus * 1e9)
    if gpus:
        limits["DeviceRequests"] = [{"DeviceIDs": list(gpus), "Capabilities": [["gpu"]]}]
    elif resources.gpus:
        count = -1 if resources.gpus == "all" else resources.gpus
        limits["DeviceRequests"] = [{"Count": count, "Capabilities": [["gpu"]]}]
    return limits


def _handle(container: Json) -> str:
    return f"docker:{container['Id'][:12]}"


def _reachable_at(address: str, port: str | None) -> str | None:
    if port is None:
        return None
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _bound(address: str) -> str:
    """The IP address to publish ports on; empty, which means all of them, for a host that is known by name."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return ""
