"""Containers on a real engine: asked to end, killed, forgotten, and what their output was."""

from uuid import uuid4

import docker
import pytest
from docker.types import LogConfig

from runtime.docker.docker_runtime import DockerRuntime
from tests.support.docker.busybox import IMAGE
from tests.support.docker.docker_images import asked, body, containers
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import ended

IGNORES_SIGTERM = "trap '' TERM; sleep 60 & echo up; wait; sleep 60"


def test_the_service_is_asked_by_sigterm_and_ends_by_itself(docker_runtime: DockerRuntime) -> None:
    replica = docker_runtime.start(asked())
    assert body(replica) == "web-12345678"
    docker_runtime.terminate(replica.route_id)
    assert ended(docker_runtime, replica.route_id).exit_code == 0
    docker_runtime.terminate(replica.route_id)
    docker_runtime.kill(replica.route_id)


def test_the_stop_signal_is_the_revisions(docker_runtime: DockerRuntime) -> None:
    command = "trap 'exit 7' USR1; trap 'exit 8' TERM; echo up; while :; do sleep 0.05; done"
    replica = docker_runtime.start(asked(command, stop_signal="SIGUSR1"))
    eventually(lambda: docker_runtime.log_tail(replica.route_id, 1) == "up")
    docker_runtime.terminate(replica.route_id)
    assert ended(docker_runtime, replica.route_id).exit_code == 7


def test_who_ignores_the_signal_is_killed_with_its_descendants(
    docker_runtime: DockerRuntime, docker_api: docker.APIClient
) -> None:
    replica = docker_runtime.start(asked(IGNORES_SIGTERM))
    eventually(lambda: docker_runtime.log_tail(replica.route_id, 1) == "up")
    docker_runtime.terminate(replica.route_id)
    with pytest.raises(AssertionError):
        eventually(lambda: containers(docker_api, replica.route_id)[0]["State"] != "running", within=0.3)
    docker_runtime.kill(replica.route_id)
    assert ended(docker_runtime, replica.route_id).exit_code == 137


def test_a_paused_container_runs_and_can_be_killed(docker_runtime: DockerRuntime, docker_api: docker.APIClient) -> None:
    replica = docker_runtime.start(asked())
    docker_api.pause(replica.handle.removeprefix("docker:"))
    found = docker_runtime.find(replica.route_id)
    assert found
    assert found.running
    assert [replica.running for replica in docker_runtime.everyone()] == [True]
    docker_runtime.kill(replica.route_id)
    assert not ended(docker_runtime, replica.route_id).running


def test_forgetting_removes_an_ended_container_and_keeps_a_running_one(
    docker_runtime: DockerRuntime, docker_api: docker.APIClient
) -> None:
    replica = docker_runtime.start(asked())
    docker_runtime.forget(replica.route_id)
    assert docker_runtime.find(replica.route_id) == replica
    docker_runtime.kill(replica.route_id)
    ended(docker_runtime, replica.route_id)
    for _ in range(2):
        docker_runtime.forget(replica.route_id)
    assert docker_runtime.find(replica.route_id) is None
    assert containers(docker_api, replica.route_id) == []


def test_a_container_that_was_created_and_never_started_is_forgotten_too(docker_runtime: DockerRuntime) -> None:
    request = asked()
    docker_runtime._create(request)
    docker_runtime.terminate(request.route_id)
    docker_runtime.kill(request.route_id)
    docker_runtime.forget(request.route_id)
    assert list(docker_runtime.everyone()) == []


def test_a_container_that_somebody_removed_is_gone(docker_runtime: DockerRuntime, docker_api: docker.APIClient) -> None:
    replica = docker_runtime.start(asked())
    docker_api.remove_container(replica.handle.removeprefix("docker:"), force=True)
    assert docker_runtime.find(replica.route_id) is None
    docker_runtime.terminate(replica.route_id)
    docker_runtime.kill(replica.route_id)
    docker_runtime.forget(replica.route_id)
    assert docker_runtime.log_tail(replica.route_id, 5) == ""


def test_the_log_tail_is_the_last_lines_of_both_streams(docker_runtime: DockerRuntime) -> None:
    request = asked("printf 'caf\\377\\n' >&2; i=0; while [ $i -lt 500 ]; do echo $i; i=$((i+1)); done; exit 1")
    docker_runtime.start(request)
    assert ended(docker_runtime, request.route_id).exit_code == 1
    # an engine reads the two streams side by side, so a line of the one may come late among those of the other
    everything = docker_runtime.log_tail(request.route_id, 1000).splitlines()
    assert sorted(everything) == sorted(["caf\N{REPLACEMENT CHARACTER}", *map(str, range(500))])
    assert docker_runtime.log_tail(request.route_id, 3).splitlines() == everything[-3:]
    assert docker_runtime.log_tail(request.route_id, 0) == ""
    assert docker_runtime.log_tail(uuid4(), 5) == ""


def test_output_that_the_engine_does_not_keep_is_no_output(
    docker_runtime: DockerRuntime, docker_api: docker.APIClient
) -> None:
    route_id = uuid4()
    made = docker_api.create_container(
        IMAGE,
        ["/bin/sleep", "60"],
        name=f"rollway-{route_id}",
        labels={"rollway.route": str(route_id)},
        host_config=docker_api.create_host_config(log_config=LogConfig(type="none")),
    )
    docker_api.start(made["Id"])
    assert docker_runtime.log_tail(route_id, 5) == ""
    docker_api.remove_container(made["Id"], force=True)
