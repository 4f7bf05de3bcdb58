"""Bounds what a revision may reach of a Docker engine's host: what the installation names, and else nothing."""

import posixpath
from collections.abc import Collection
from dataclasses import dataclass

from runtime.base import ReplicaRequest, ReplicaStartError
from runtime.docker.refusal import docker_spec


@dataclass(frozen=True, slots=True)
class DockerPolicy:
    """`volumes`: folders of the engine's host, with all that is in them, and names of volumes, that may be mounted.

    `host_network`: whether a container may share the network of the engine's host, or of another container.
    """

    volumes: Collection[str] = ()
    host_network: bool = False

    def check(self, request: ReplicaRequest) -> None:
        """Raises ReplicaStartError with what the revision may not, and which setting would allow it."""
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
