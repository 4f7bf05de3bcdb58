"""A rollout over containers of a real Docker engine, with a worker killed in the middle of it."""

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from runtime.docker.container import OWNER_LABEL, owner_of
from tests.support.docker.busybox import IMAGE
from tests.support.docker.docker_images import SERVES_ITS_REVISION
from tests.support.proxies import plain_http
from tests.support.rows.deployments import HERE
from tests.support.stack.stack import POLICY, Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e


@pytest.fixture
def ours(docker_url: str, tmp_path: Path) -> Iterator[dict[str, list[str]]]:
    """Docker's filter for the containers of this test; none of them is left in the end."""
    filters = {"label": [f"{OWNER_LABEL}={owner_of(HERE, tmp_path)}"]}
    yield filters
    with docker.APIClient(base_url=docker_url) as client:
        for container in client.containers(all=True, filters=filters):
            client.remove_container(container["Id"], force=True, v=True)


@pytest.fixture
def docked(fleet: Fleet, ours: dict[str, list[str]], docker_url: str) -> Fleet:  # noqa: ARG001  (cleans up)
    """Two workers on a host with that engine, and a beat."""
    fleet.start_workers("worker1", "worker2", DOCKER_HOST=docker_url)
    fleet.start_beat()
    return fleet


def add_revision(fleet: Fleet, name: str, **more: object) -> None:
    spec = {
        "runtime": "docker",
        "command": ["/bin/sh", "-c", SERVES_ITS_REVISION],
        "docker": {"image": IMAGE, "pull": "never", "resources": {"memory": "32m"}},
        "health_check": {"path": "/", "interval_seconds": 0.5},
        "drain_seconds": 0.2,
        "stop_grace_seconds": 2,
        **more,
    }
    fleet.ask("add_revision", deployment="box", name=name, spec=spec)


def served(fleet: Fleet) -> list[str]:
    """What each healthy container says over HTTP that it is."""
    return [plain_http.get(f"http://{route['address']}/").text.strip() for route in fleet.routes("box")]


def runs(fleet: Fleet, revision: str) -> bool:
    return fleet.state("box")["lifecycle"] == "ready" and served(fleet) == [revision] * 2


def containers(docker_url: str, ours: dict[str, list[str]]) -> int:
    with docker.APIClient(base_url=docker_url) as client:
        return len(client.containers(filters=ours))


def test_a_rollout_over_containers_goes_on_when_a_worker_is_killed(
    docked: Fleet, docker_url: str, ours: dict[str, list[str]]
) -> None:
    docked.ask("create_deployment", deployment="box", desired_replicas=2, policy=POLICY)
    for name in ("v1", "v2"):
        add_revision(docked, name)
    docked.ask("activate_revision", deployment="box", revision="v1")
    eventually(lambda: runs(docked, "v1"), what="two containers of v1")
    docked.ask("activate_revision", deployment="box", revision="v2")
    eventually(lambda: docked.rows("SELECT FROM rollout_steps"), what="the first step")
    docked.kill("worker1")
    eventually(lambda: runs(docked, "v2"), what="two containers of v2")
    assert len(docked.all_routes("box")) == 4, "a route was created twice"
    eventually(lambda: containers(docker_url, ours) == 2, what="one container for each live route")


def test_a_container_that_is_killed_is_replaced(docked: Fleet, docker_url: str) -> None:
    docked.ask("create_deployment", deployment="box", desired_replicas=2, policy=POLICY)
    add_revision(docked, "v1")
    docked.ask("activate_revision", deployment="box", revision="v1")
    eventually(lambda: runs(docked, "v1"), what="two containers of v1")
    lost = docked.routes("box")[0]
    with docker.APIClient(base_url=docker_url) as client:
        client.kill(lost["replica_handle"].removeprefix("docker:"))
    eventually(
        lambda: runs(docked, "v1") and lost["id"] not in {route["id"] for route in docked.routes("box")}, 40, "another"
    )
    (failed,) = docked.routes("box", "failed")
    assert failed["id"] == lost["id"]


def test_a_container_is_warmed_up_where_its_engine_lets_it_listen(docked: Fleet) -> None:
    docked.ask("create_deployment", deployment="box", desired_replicas=2, policy=POLICY)
    add_revision(docked, "v1", warm_up={"requests": [{"path": "/", "times": 5, "under_seconds": 10}]})
    docked.ask("activate_revision", deployment="box", revision="v1")
    eventually(lambda: runs(docked, "v1"), what="two containers of v1")
    query = "SELECT warm_up_started_at <= warmed_at AND warmed_at <= healthy_at AS in_order FROM routes"
    assert docked.rows(query) == [{"in_order": True}] * 2
