from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import docker
import pytest

from runtime.docker.policy import DockerPolicy
from runtime.docker.runtime import DockerRuntime
from runtime.process.ending import stop_all
from runtime.process.runtime import ProcessRuntime
from runtime.process.table import drop_children_except
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import given_back, processes_of

ANYTHING = DockerPolicy(volumes=("/",), host_network=True)


@pytest.fixture
def replica_home(tmp_path: Path) -> Iterator[Path]:
    with given_back(tmp_path):  # last: who takes its accounts next must not meet what ends here
        yield tmp_path
        stop_all(tmp_path, grace_seconds=0.1)
        eventually(lambda: processes_of(tmp_path) == [])
    drop_children_except(())


@pytest.fixture
def runtime(replica_home: Path) -> ProcessRuntime:
    return ProcessRuntime(replica_home)


@pytest.fixture
def docker_api(docker_url: str) -> Iterator[docker.APIClient]:
    """That engine without Rollway."""
    with docker.APIClient(base_url=docker_url) as client:
        yield client


@pytest.fixture
def docker_runtime(docker_url: str, docker_api: docker.APIClient) -> Iterator[DockerRuntime]:
    """Of a worker host of its own; what it started is removed in the end."""
    made = DockerRuntime(f"host-{uuid4()}", docker_url, policy=ANYTHING)
    yield made
    for replica in made.everyone():
        docker_api.remove_container(replica.handle.removeprefix("docker:"), force=True, v=True)
    made.close()
