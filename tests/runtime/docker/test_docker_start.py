"""Containers on a real engine: started once, found again, told who they are, and refused in words."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import uuid4

import docker
import pytest

from cli.apply import read_file
from runtime.docker.docker_runtime import DockerRuntime
from runtime.protocol import ReplicaRequest
from tests.support.docker.busybox import IMAGE, REPOSITORY, busybox_layer
from tests.support.docker.docker_images import asked, body, containers
from tests.support.workers.runtimes import ROOT, ended

NOTHING_THERE = "cat: can't open '/cache/graph': No such file or directory"
OWN_COMMAND = 'CMD ["/bin/sh", "-c", "cd /srv; echo its own > index.html; exec httpd -f -p $PORT"]'


def test_a_container_serves_on_a_published_port_of_the_engine_and_is_found_there(docker_runtime: DockerRuntime) -> None:
    replica = docker_runtime.start(asked())
    assert replica.running
    assert replica.address
    assert replica.address.startswith("127.0.0.1:")
    assert body(replica) == "web-12345678"
    assert docker_runtime.find(replica.route_id) == replica
    assert list(docker_runtime.everyone()) == [replica]
    assert docker_runtime.start(asked(route_id=replica.route_id)) == replica


def test_it_is_told_who_it_is_and_nothing_of_the_worker(
    docker_runtime: DockerRuntime, docker_api: docker.APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://rollway:secret@db/rollway")
    request = asked(
        "env; pwd", env={"VERSION": "7", "PORT": "1"}, labels={"team": "a"}, port=9000, working_directory="/srv"
    )
    docker_runtime.start(request)
    ended(docker_runtime, request.route_id)
    lines = docker_runtime.log_tail(request.route_id, 50).splitlines()
    assert {
        "PORT=9000",
        "HOST=0.0.0.0",
        "VERSION=7",
        "ROLLWAY_DEPLOYMENT=web",
        "ROLLWAY_REVISION=web-12345678",
        f"ROLLWAY_ROUTE={request.route_id}",
        "/srv",
    } <= set(lines)
    assert "secret" not in "".join(lines)
    (found,) = containers(docker_api, request.route_id)
    assert found["Labels"]["team"] == "a"
    assert found["Labels"]["rollway.deployment"] == "web"
    assert found["Labels"]["rollway.revision"] == "web-12345678"
    assert found["Names"] == [f"/rollway-{request.route_id}"]


def test_the_image_has_a_command_of_its_own(docker_runtime: DockerRuntime, docker_api: docker.APIClient) -> None:
    made = docker_api.import_image_from_data(busybox_layer(), repository=REPOSITORY, tag="own", changes=[OWN_COMMAND])
    assert made
    replica = docker_runtime.start(asked(None, image=f"{REPOSITORY}:own"))
    assert body(replica) == "its own"


def test_the_example_serves_and_stops(docker_runtime: DockerRuntime, docker_api: docker.APIClient) -> None:
    (example,) = read_file(str(ROOT / "examples" / "docker.yaml"))
    assert example.revision
    section = example.revision.spec.docker
    assert section
    name, _, tag = section.image.partition(":")
    had_it = any(section.image in (image["RepoTags"] or ()) for image in docker_api.images())
    if not had_it:
        docker_api.tag(IMAGE, name, tag)
    replica = docker_runtime.start(ReplicaRequest(uuid4(), example.deployment, "v1", example.revision.spec))
    assert body(replica) == "version 1"
    docker_runtime.terminate(replica.route_id)
    assert ended(docker_runtime, replica.route_id).exit_code == 137
    docker_runtime.forget(replica.route_id)
    if not had_it:
        docker_api.remove_image(section.image, force=True)


def test_limits_and_volumes_reach_the_engine(
    docker_runtime: DockerRuntime, docker_api: docker.APIClient, tmp_path: Any
) -> None:
    (tmp_path / "model.txt").write_text("weights")
    request = asked(
        "cat /model/model.txt; echo; echo x > /model/new || echo read-only; grep NoNewPrivs /proc/self/status",
        resources={"memory": "64m", "cpus": 0.5},
        volumes={str(tmp_path): "/model"},
        stop_signal="SIGINT",
    )
    replica = docker_runtime.start(request)
    ended(docker_runtime, request.route_id)
    tail = docker_runtime.log_tail(request.route_id, 5)
    assert {"weights", "read-only", "NoNewPrivs:\t1"} <= set(tail.splitlines())
    found = docker_api.inspect_container(replica.handle.removeprefix("docker:"))
    assert found["HostConfig"]["Memory"] == 64 * 2**20
    assert found["HostConfig"]["NanoCpus"] == 500_000_000
    assert found["HostConfig"]["RestartPolicy"]["Name"] == "no"
    assert found["HostConfig"]["PidsLimit"] == 4096
    assert found["HostConfig"]["LogConfig"]["Config"] == {"max-size": "10m", "max-file": "3"}
    assert found["Config"]["StopSignal"] == "SIGINT"


def test_replicas_of_a_host_share_a_cache_that_outlives_them_and_other_deployments_have_their_own(
    docker_runtime: DockerRuntime, docker_api: docker.APIClient
) -> None:
    writes = asked("echo compiled > /cache/graph", cache_volumes={"graphs": "/cache"})
    docker_runtime.start(writes)
    assert ended(docker_runtime, writes.route_id).exit_code == 0
    docker_runtime.forget(writes.route_id)
    reads = asked("cat /cache/graph; echo again > /cache/graph && echo writable", cache_volumes={"graphs": "/cache"})
    for request, lines in (
        (reads, ["compiled", "writable"]),
        (
            replace(reads, route_id=uuid4(), deployment="shop"),
            [NOTHING_THERE, "writable"],
        ),
    ):
        docker_runtime.start(request)
        ended(docker_runtime, request.route_id)
        assert sorted(docker_runtime.log_tail(request.route_id, 5).splitlines()) == sorted(lines)
        docker_runtime.forget(request.route_id)
    volumes = docker_api.volumes(filters={"label": "rollway.cache=graphs"})["Volumes"]
    assert sorted(volume["Labels"]["rollway.deployment"] for volume in volumes) == ["shop", "web"]
    for volume in volumes:
        docker_api.remove_volume(volume["Name"])


def test_an_ended_replica_is_returned_and_not_started_again(docker_runtime: DockerRuntime) -> None:
    request = asked("echo once; exit 3")
    docker_runtime.start(request)
    gone = ended(docker_runtime, request.route_id)
    assert (gone.running, gone.exit_code, gone.address) == (False, 3, None)
    assert docker_runtime.start(request) == gone
    assert list(docker_runtime.everyone()) == [gone]
    assert docker_runtime.log_tail(request.route_id, 10) == "once"


def test_eight_threads_asking_for_one_route_start_one_container(
    docker_runtime: DockerRuntime, docker_url: str, docker_api: docker.APIClient
) -> None:
    request = asked()
    others = [DockerRuntime("another", docker_url) for _ in range(3)]
    with ThreadPoolExecutor(8) as pool:
        replicas = list(pool.map(lambda n: [docker_runtime, *others][n % 4].start(request), range(16)))
    for other in others:
        other.close()
    assert len(set(replicas)) == 1
    assert len(containers(docker_api, request.route_id)) == 1
    docker_api.remove_container(containers(docker_api, request.route_id)[0]["Id"], force=True)


def test_a_container_that_a_crash_left_unstarted_is_started_and_until_then_is_no_replica(
    docker_runtime: DockerRuntime, docker_api: docker.APIClient
) -> None:
    request = asked()
    docker_runtime._create(request)
    assert docker_runtime.find(request.route_id) is None
    assert [replica.running for replica in docker_runtime.everyone()] == [False]
    replica = docker_runtime.start(request)
    assert replica.running
    assert len(containers(docker_api, request.route_id)) == 1
    assert body(replica) == "web-12345678"


def test_a_renamed_container_is_found_by_its_label(docker_runtime: DockerRuntime, docker_api: docker.APIClient) -> None:
    replica = docker_runtime.start(asked())
    docker_api.rename(replica.handle.removeprefix("docker:"), f"renamed-{uuid4()}")
    assert docker_runtime.find(replica.route_id) == replica
    assert docker_runtime.start(asked(route_id=replica.route_id)) == replica


def test_every_worker_host_sees_its_own_containers_only(docker_runtime: DockerRuntime, docker_url: str) -> None:
    other = DockerRuntime(f"host-{uuid4()}", docker_url)
    replica = docker_runtime.start(asked("sleep 60"))
    assert list(other.everyone()) == []
    assert other.find(replica.route_id) == replica
    other.close()


def test_a_worker_without_an_engine_does_not_even_import_the_sdk() -> None:
    code = """
import sys
from uuid import uuid4
from runtime.protocol import RuntimeUnavailableError
from runtime.docker.docker_runtime import DockerRuntime
try:
    DockerRuntime("here", "unix:///no/such.sock").everyone()
except RuntimeUnavailableError as error:
    print(error, "docker" in sys.modules)
"""
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, env=ENV)
    assert said.stdout == "no Docker engine answers at unix:///no/such.sock False\n"


ENV = {name: value for name, value in os.environ.items() if name != "DOCKER_HOST"}
