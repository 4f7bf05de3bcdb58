"""What a container is created with, and what of its host it may reach: as the engine is told, without an engine."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from domain.revisions.revision import RevisionSpec
from domain.revisions.secret_refs import SecretReference
from runtime.docker.container import DockerPolicy, container_config
from runtime.protocol import ReplicaRequest, ReplicaStartError


def asked(**docker: Any) -> ReplicaRequest:
    spec = RevisionSpec.model_validate({"runtime": "docker", "docker": {"image": "web:1", **docker}})
    return ReplicaRequest(UUID(int=7), "web", "web-2", spec)


def test_a_container_has_safe_limits_without_being_asked_for() -> None:
    assert container_config(asked(), "here:/home", "127.0.0.1", None)["HostConfig"] == {
        "PortBindings": {"8080/tcp": [{"HostIp": "127.0.0.1", "HostPort": ""}]},
        "NetworkMode": "default",
        "RestartPolicy": {"Name": "no"},
        "SecurityOpt": ["no-new-privileges"],
        "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "3"}},
        "Binds": [],
        "Mounts": [],
        "PidsLimit": 4096,
    }


def test_what_a_revision_asks_for_is_told_and_volumes_are_never_writable() -> None:
    request = asked(resources={"memory": "1g", "cpus": 1.5, "pids": 64}, volumes={"/srv/models": "/models"})
    host = container_config(request, "here:/home", "127.0.0.1", None)["HostConfig"]
    assert (host["Memory"], host["NanoCpus"], host["PidsLimit"]) == (2**30, 1_500_000_000, 64)
    assert host["Binds"] == ["/srv/models:/models:ro"]


def test_a_container_gets_the_devices_that_it_owns_and_counts_them_itself() -> None:
    owns = replace(asked(), devices={"gpu": {"GPU-5d6f": 1.0, "GPU-77aa": 1.0}})
    config = container_config(owns, "here:/home", "127.0.0.1", None)
    (request,) = config["HostConfig"]["DeviceRequests"]
    assert request == {"DeviceIDs": ["GPU-5d6f", "GPU-77aa"], "Capabilities": [["gpu"]]}
    assert "ROLLWAY_DEVICES=gpu=GPU-5d6f+GPU-77aa" in config["Env"]
    assert not [variable for variable in config["Env"] if variable.startswith("CUDA_VISIBLE_DEVICES")]


def test_a_cache_is_a_writable_volume_of_its_deployment_and_host_that_nobody_must_allow() -> None:
    request = asked(cache_volumes={"compiled": "/root/.cache/vllm"}, volumes={"models": "/models"})
    DockerPolicy(("models",)).check(request)
    (mount,) = container_config(request, "here:/home", "127.0.0.1", None)["HostConfig"]["Mounts"]
    assert (mount["Type"], mount["Target"], mount.get("ReadOnly")) == ("volume", "/root/.cache/vllm", None)
    assert mount["VolumeOptions"]["Labels"] == {
        "rollway.deployment": "web",
        "rollway.cache": "compiled",
        "rollway.owner": "here:/home",
    }

    def source(request: ReplicaRequest, owner: str) -> str:
        return str(container_config(request, owner, "127.0.0.1", None)["HostConfig"]["Mounts"][0]["Source"])

    others = [(replace(request, deployment="web-2"), "here:/home"), (request, "there:/home"), (request, "here:/home2")]
    assert len({source(request, "here:/home"), *(source(*other) for other in others)}) == 4
    assert source(replace(request, revision="web-3", route_id=UUID(int=8)), "here:/home") == mount["Source"]


@pytest.mark.parametrize(
    ("port", "shared_port", "host"), [(9000, None, "0.0.0.0"), (None, None, "0.0.0.0"), (None, 25_001, "10.0.0.7")]
)
def test_variables_of_a_container_are_told_where_it_listens(
    port: int | None, shared_port: int | None, host: str
) -> None:
    request = asked(port=port) if port else asked(network="host") if shared_port else asked()
    env = {"URLS": "http://{host}:{port}", "SECRET": SecretReference(secret="env:S"), "OTHER": "{x}"}
    request = replace(request, spec=request.spec.model_copy(update={"env": env}), secrets={"SECRET": "{port}"})
    told = container_config(request, "here:/home", "10.0.0.7", shared_port)["Env"]
    listens = f"http://{host}:{port or shared_port or 8080}"
    assert {f"URLS={listens}", "SECRET={port}", "OTHER={x}", f"HOST={host}"} <= set(told)


@pytest.mark.parametrize(
    ("volumes", "source"),
    [
        ((), "/srv/models"),
        ((), "models"),
        (("/srv/models",), "/srv/models-of-others"),
        (("/srv/models",), "/srv/models/../../etc"),
        (("/srv/models",), "/srv"),
        (("/srv/models",), "//var/run/docker.sock"),
        (("models",), "/models"),
        (("/srv/models", "other"), "models"),
    ],
)
def test_a_volume_that_nobody_named_is_refused(volumes: tuple[str, ...], source: str) -> None:
    with pytest.raises(ReplicaStartError, match=r"revision 'web-2' mounts .* ROLLWAY_DOCKER_VOLUMES .* does not name"):
        DockerPolicy(volumes).check(asked(volumes={source: "/x"}))


@pytest.mark.parametrize(
    ("volumes", "source"),
    [
        (("/srv/models",), "/srv/models"),
        (("/srv/models/",), "/srv/models/llama//8b"),
        (("/",), "/etc"),
        (("models",), "models"),
    ],
)
def test_a_volume_that_is_named_is_mounted_with_what_is_in_it(volumes: tuple[str, ...], source: str) -> None:
    DockerPolicy(volumes).check(asked(volumes={source: "/x"}))


@pytest.mark.parametrize("network", ["host", "container:postgres"])
def test_the_network_of_the_host_and_of_other_containers_takes_a_setting(network: str) -> None:
    with pytest.raises(ReplicaStartError, match="takes ROLLWAY_DOCKER_HOST_NETWORK=on"):
        DockerPolicy().check(asked(network=network))
    DockerPolicy(host_network=True).check(asked(network=network))
    DockerPolicy().check(asked(network="web"))
