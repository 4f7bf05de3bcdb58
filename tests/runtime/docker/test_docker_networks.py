"""Where a container is reached: on a published port, on the network of its host, on one of the user's."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import docker
import pytest

from runtime.docker.docker_runtime import DockerRuntime
from tests.support.docker.docker_images import asked, body


def test_two_replicas_of_one_image_get_two_addresses(docker_runtime: DockerRuntime) -> None:
    replicas = [docker_runtime.start(asked()) for _ in range(2)]
    assert len({replica.address for replica in replicas}) == 2
    assert [body(replica) for replica in replicas] == ["web-12345678"] * 2


def test_on_the_network_of_the_host_rollway_chooses_the_port(docker_runtime: DockerRuntime) -> None:
    with ThreadPoolExecutor(4) as pool:
        replicas = list(pool.map(lambda _: docker_runtime.start(asked(network="host")), range(4)))
    assert len({replica.address for replica in replicas}) == 4
    assert [body(replica) for replica in replicas] == ["web-12345678"] * 4
    assert {replica.route_id: replica for replica in docker_runtime.everyone()} == {
        replica.route_id: replica for replica in replicas
    }


def test_two_workers_that_chose_the_same_port_of_the_host_choose_again(
    docker_runtime: DockerRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = docker_runtime.start(asked(network="host"))
    assert first.address
    chosen = [int(first.address.rpartition(":")[2])]
    choose = docker_runtime._choose_port
    monkeypatch.setattr(docker_runtime, "_choose_port", lambda: chosen.pop() if chosen else choose())
    second = docker_runtime.start(asked(network="host"))
    assert not chosen
    assert second.address != first.address
    assert body(second) == "web-12345678"


def test_a_network_of_the_users_publishes_ports_too(
    docker_runtime: DockerRuntime, docker_api: docker.APIClient
) -> None:
    name = f"rollway-test-{uuid4().hex[:8]}"
    docker_api.create_network(name, driver="bridge")
    replica = docker_runtime.start(asked(network=name))
    assert body(replica) == "web-12345678"
    docker_api.remove_container(replica.handle.removeprefix("docker:"), force=True)
    docker_api.remove_network(name)
