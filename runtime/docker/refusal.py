"""Says what a Docker engine refuses, in words for people."""

from domain.revisions.runtime_spec import DockerSpec
from runtime.base import ReplicaRequest


class EngineRefusalError(Exception):
    """The engine answered that it will not do this; the message is its own, in one line."""


def docker_spec(request: ReplicaRequest) -> DockerSpec:
    """The section `docker` of its spec."""
    if request.spec.docker is None:
        raise ValueError(f"revision {request.revision!r} is not for the runtime 'docker'")
    return request.spec.docker


def refusal_in_words(request: ReplicaRequest, refused: str) -> str:
    """One sentence for a person, out of the engine's own words about a container that it did not start."""
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
