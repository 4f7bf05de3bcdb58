"""What a real engine refuses is told in a sentence, and leaves nothing behind."""

from typing import Any
from uuid import uuid4

import docker
import pytest

from runtime.docker.docker_runtime import DockerRuntime
from runtime.protocol import ReplicaStartError
from tests.support.docker.busybox import IMAGE
from tests.support.docker.docker_images import asked, containers


def test_a_name_that_a_foreign_container_has_is_told(
    docker_runtime: DockerRuntime, docker_api: docker.APIClient
) -> None:
    request = asked()
    foreign = docker_api.create_container(IMAGE, "/bin/true", name=f"rollway-{request.route_id}")
    assert docker_runtime.find(request.route_id) is None
    with pytest.raises(ReplicaStartError, match="not Rollway's has the name"):
        docker_runtime.start(request)
    docker_api.remove_container(foreign["Id"])


@pytest.mark.parametrize(
    ("request_of", "said"),
    [
        (
            {"image": "nobody/has-this:1"},
            "image 'nobody/has-this:1' .* is not on the Docker engine, and docker.pull is",
        ),
        ({"image": "Not/An:Image:Name"}, "refuses to start revision 'web-12345678': .*invalid reference format"),
        ({"network": "no-such"}, "the network 'no-such' of revision 'web-12345678' is not on the Docker engine"),
        ({"network": "container:no-such"}, "No such container|conflicting options"),
        ({"resources": {"cpus": 1024}}, "cannot give revision 'web-12345678' its docker.resources: Range of CPUs"),
        ({"resources": {"gpus": "all"}}, "asks for GPUs, and the Docker engine offers none"),
        ({"command": ("no-such-program",)}, "the command 'no-such-program' .* cannot be run in its image"),
        ({"command": None}, f"the image '{IMAGE}' of revision 'web-12345678' names no command: set one"),
        ({"volumes": {"/no/such/folder\t": "/x/../.."}}, "refuses to start"),
        ({"stop_signal": "SIGNONSENSE"}, "refuses to start .*SIGNONSENSE"),
    ],
)
def test_what_cannot_be_started_is_told_in_one_sentence_and_leaves_no_container(
    docker_runtime: DockerRuntime, docker_api: docker.APIClient, request_of: dict[str, Any], said: str
) -> None:
    request = asked(**request_of)
    with pytest.raises(ReplicaStartError, match=said) as refused:
        docker_runtime.start(request)
    assert "\n" not in str(refused.value)
    assert containers(docker_api, request.route_id) == []


def test_a_network_that_publishes_no_port_is_told(docker_runtime: DockerRuntime, docker_api: docker.APIClient) -> None:
    name = f"rollway-test-{uuid4().hex[:8]}"
    docker_api.create_network(name, driver="bridge", internal=True)
    request = asked("sleep 60", network=name)
    with pytest.raises(ReplicaStartError, match=f"publishes no port in the network '{name}'"):
        docker_runtime.start(request)
    assert containers(docker_api, request.route_id) == []
    docker_api.remove_network(name)


@pytest.mark.parametrize("docker_section", [{"volumes": {"/etc": "/etc2"}}, {"network": "host"}])
def test_what_the_host_does_not_allow_is_told_and_leaves_no_container(
    docker_url: str, docker_api: docker.APIClient, docker_section: dict[str, Any]
) -> None:
    careful, request = DockerRuntime(f"host-{uuid4()}", docker_url), asked(**docker_section)
    with pytest.raises(ReplicaStartError, match="ROLLWAY_DOCKER_"):
        careful.start(request)
    assert containers(docker_api, request.route_id) == []
    careful.close()
