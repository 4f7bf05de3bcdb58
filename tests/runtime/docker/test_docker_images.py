"""Images that a real engine pulls from a small registry."""

from collections.abc import Iterator
from typing import Any

import docker
import pytest

from runtime.docker.docker_engine import DockerEngine
from runtime.docker.docker_runtime import DockerRuntime
from runtime.protocol import ReplicaRequest, ReplicaStartError, RuntimeUnavailableError
from tests.support.docker.busybox import busybox_layer
from tests.support.docker.docker_images import asked
from tests.support.docker.docker_registry import Registry, registry
from tests.support.stack.waiting import eventually


@pytest.fixture
def pulled_from(docker_api: docker.APIClient) -> Iterator[Registry]:
    with registry(busybox_layer()) as held:
        yield held
        if any(held.image in (image["RepoTags"] or ()) for image in docker_api.images()):
            docker_api.remove_image(held.image, force=True)


def test_a_missing_image_is_pulled_once_and_an_image_to_pull_always_each_time(
    docker_runtime: DockerRuntime, pulled_from: Registry
) -> None:
    assert docker_runtime.start(asked("sleep 60", image=pulled_from.image, pull="missing")).running
    pulls = pulled_from.pulls
    assert pulls
    assert docker_runtime.start(asked("sleep 60", image=pulled_from.image, pull="missing")).running
    assert pulled_from.pulls == pulls
    assert docker_runtime.start(asked("sleep 60", image=pulled_from.image, pull="always")).running
    assert pulled_from.pulls > pulls


def test_a_slow_pull_holds_up_no_other_start_and_is_awaited_at_later_looks(
    docker_url: str, docker_runtime: DockerRuntime, pulled_from: Registry
) -> None:
    hasty = DockerRuntime(docker_runtime._owner, docker_url, pull_patience_seconds=0.1)
    request = asked("sleep 60", image=pulled_from.image, pull="missing")
    pulled_from.gate.clear()
    for _ in range(3):
        with pytest.raises(RuntimeUnavailableError, match="is still being pulled"):
            hasty.start(request)
    assert hasty.start(asked("sleep 60")).running
    assert hasty.find(request.route_id) is None
    pulled_from.gate.set()
    assert eventually(lambda: started(hasty, request)).running
    assert pulled_from.pulls <= 2, "each look began a pull of its own"
    hasty.close()


def test_an_image_can_be_pulled_before_any_container_is_made(
    docker_runtime: DockerRuntime, pulled_from: Registry, docker_api: docker.APIClient
) -> None:
    request = asked("sleep 60", image=pulled_from.image, pull="missing")
    docker_runtime.provide_image(request)
    pulls = pulled_from.pulls
    assert (pulls > 0, docker_runtime.find(request.route_id)) == (True, None)
    docker_runtime.provide_image(request)
    assert pulled_from.pulls == pulls
    docker_api.remove_image(pulled_from.image, force=True)
    pulled_from.missing = True
    with pytest.raises(ReplicaStartError, match="cannot be pulled"):
        docker_runtime.provide_image(request)


def test_an_image_that_arrives_just_after_the_engine_missed_it_is_used(
    docker_runtime: DockerRuntime, pulled_from: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = DockerEngine.has_image

    def arrives_first(engine: DockerEngine, image: str) -> bool:
        engine.pull(image)
        return looks(engine, image)

    monkeypatch.setattr(DockerEngine, "has_image", arrives_first)
    assert docker_runtime.start(asked("sleep 60", image=pulled_from.image, pull="missing")).running


def started(runtime: DockerRuntime, request: ReplicaRequest) -> Any:
    try:
        return runtime.start(request)
    except RuntimeUnavailableError:
        return None


def test_an_image_that_cannot_be_pulled_is_told(docker_runtime: DockerRuntime, pulled_from: Registry) -> None:
    pulled_from.missing = True
    for _ in range(2):
        with pytest.raises(
            ReplicaStartError, match=f"the image '{pulled_from.image}' .* cannot be pulled: .*not found|unknown"
        ):
            docker_runtime.start(asked(image=pulled_from.image, pull="missing"))
