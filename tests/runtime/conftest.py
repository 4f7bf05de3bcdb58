from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import docker
import pytest

from runtime.docker.container import DockerPolicy
from runtime.docker.docker_runtime import DockerRuntime
from runtime.process.process_runtime import ProcessRuntime

ANYTHING = DockerPolicy(volumes=("/",), host_network=True)


@pytest.fixture
def runtime(replica_home: Path) -> ProcessRuntime:
    return ProcessRuntime(replica_home)


@pytest.fixture
def docker_runtime(docker_url: str, docker_api: docker.APIClient) -> Iterator[DockerRuntime]:
    """Of a worker host of its own; what it started is removed in the end."""
    made = DockerRuntime(f"host-{uuid4()}", docker_url, policy=ANYTHING)
    yield made
    for replica in made.everyone():
        docker_api.remove_container(replica.handle.removeprefix("docker:"), force=True, v=True)
    made.close()
