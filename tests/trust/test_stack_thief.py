"""Thieves on a machine where every part of a stack runs and neighbours do: behind the real account, and as others."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import httpx
import psutil
import pytest

from domain.installation.tokens import Role
from domain.revisions.revision import RevisionSpec
from runtime.process.account_pool import AccountPool
from runtime.process.accounts import Accounts
from runtime.process.process_runtime import ProcessRuntime
from runtime.protocol import ReplicaRequest
from stack.home.server_settings import load_settings
from tests.support.proxies import plain_http
from tests.support.stack.waiting import eventually
from tests.support.trust.port_thief import LOADS, STEALS
from tests.support.trust.thief import EVERY, Loot, WaitContext, around, asking, shared_folder

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT MAY CHANGE THE USER, SO THIS IS NOT TESTED HERE"),
]
STRANGER = 61_234
"""A user of the machine that runs nothing of Rollway."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WaitContext]:
    with around(tmp_path_factory.mktemp("stack"), tmp_path_factory.mktemp("other")) as made:
        yield made


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with shared_folder() as folder:
        yield folder


def loot(stack: WaitContext, runtime: ProcessRuntime, deployment: str, shared: Path) -> Loot:
    """What a thief of that deployment gets.

    The stack's worker knows no route of it, and ends it where a sweep meets it: then another one tries.
    """
    return stack.loot_of(eventually(lambda: said_by_a_thief(stack, runtime, deployment, shared)))


def said_by_a_thief(stack: WaitContext, runtime: ProcessRuntime, deployment: str, shared: Path) -> str:
    spec = RevisionSpec(command=stack.thief(shared))
    replica = runtime.start(ReplicaRequest(uuid4(), deployment, f"{deployment}-1", spec, is_walled=True))
    eventually(lambda: is_gone(runtime, replica.route_id))
    return runtime.log_tail(replica.route_id, 1)


def is_gone(runtime: ProcessRuntime, route_id: UUID) -> bool:
    """Whether it has ended; the sweep forgets it then."""
    replica = runtime.find(route_id)
    return replica is None or not replica.running


def test_a_thief_behind_the_account_of_its_deployment_gets_nothing(stack: WaitContext, open_folder: Path) -> None:
    parts = {"postgres", "valkey", "worker1", "beat", "api", "people", "envoy", "flower", "supervisor"}
    assert parts | stack.neighbours.keys() == stack.pids.keys()
    assert loot(stack, ProcessRuntime(stack.home.root, accounts=EVERY), "other", open_folder) == {}


def test_a_thief_of_the_same_deployment_reaches_its_own_kind_alone(stack: WaitContext, open_folder: Path) -> None:
    got = loot(stack, ProcessRuntime(stack.home.root, accounts=EVERY), "web", open_folder)
    assert got["neighbour"] == ["ends", "traces"]
    assert {name.removeprefix("environ of ").removeprefix("mem of ") for name in got if "folder" not in name} == {
        "neighbour"
    }


def test_a_thief_without_a_wall_gets_it_all(stack: WaitContext, open_folder: Path) -> None:
    """So that what is tried above could be had."""
    got = loot(stack, ProcessRuntime(stack.home.root, accounts=Accounts("root")), "other", open_folder)
    whole = {f"{what}{name}" for what in ("", "environ of ", "mem of ") for name in stack.pids}
    assert whole <= got.keys(), "as doctor says where there is no wall"
    assert str(stack.home.servers_file) in got
    assert {f"socket {path}" for path in stack.sockets()} <= got.keys()


def test_another_user_of_the_machine_gets_nothing(stack: WaitContext, open_folder: Path) -> None:
    said = subprocess.check_output(stack.thief(open_folder), user=STRANGER, group=STRANGER, extra_groups=(), cwd="/")
    assert stack.loot_of(said.decode().splitlines()[-1]) == {}


def test_no_part_has_a_socket_whose_name_is_everybodys(stack: WaitContext) -> None:
    names = stack.sockets()
    assert any(Path(name).is_relative_to(stack.home.envoy) for name in names)
    assert [name for name in names if name.startswith("@")] == []


def test_what_is_open_to_every_user_of_the_machine_tells_no_password(stack: WaitContext) -> None:
    settings = load_settings(stack.home)
    assert settings
    passwords = (settings.postgres_password, settings.redis_password, settings.flower_password, settings.proxy_key)
    listening = {
        connection.laddr.port
        for pid in {pid for name, pid in stack.pids.items() if name not in stack.neighbours}
        for connection in psutil.Process(pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert len(listening) >= 6
    told = {port: opened(port) for port in listening}
    assert any("# HELP" in text for text in told.values()), "numbers are open"
    assert not [port for port, text in told.items() for password in passwords if password in text]


def opened(port: int) -> str:
    """What anybody is told there."""
    told = ""
    with plain_http.Client(timeout=5) as client:
        for path in ("/", "/metrics", "/metrics/fleet", "/stats", "/clusters", "/config_dump", "/openapi.json"):
            try:
                told += client.get(f"http://127.0.0.1:{port}{path}").text
            except httpx.HTTPError:
                return told
    return told


@pytest.mark.parametrize("is_scoped", [True, False])
@pytest.mark.parametrize("role", Role)
def test_a_thief_of_each_role_gets_nothing_through_the_stack(
    stack: WaitContext, open_folder: Path, role: Role, *, is_scoped: bool
) -> None:
    """Each token tries to let a program run that takes what it can; the stack's own worker starts it."""
    name = f"thief-{role}-{'one' if is_scoped else 'all'}"
    with asking(stack.home, Role.ADMIN) as owner, asking(stack.home, role, *([name] if is_scoped else [])) as thief:
        assert owner.post("/v1/deployments", json={"deployment": name, "desired_replicas": 1}).status_code == 201
        python, option, code, things = stack.thief(open_folder)
        spec = {"command": [python, option, f"{code}\nsys.stdout.flush()\nimport time; time.sleep(600)", things]}
        added = thief.post(f"/v1/deployments/{name}/revisions", json={"name": "v1", "spec": spec})
        if role in {Role.VIEWER, Role.RELEASER}:
            assert added.status_code == 403
            return
        assert thief.post(f"/v1/deployments/{name}/activate", json={"revision": "v1"}).status_code == 200
        said = eventually(lambda: printed(thief, name), what="the thief to have tried all")
        assert stack.loot_of(said) == {}


def printed(client: httpx.Client, name: str) -> str:
    items = client.post(f"/v1/deployments/{name}/logs", json={"lines": 1}).raise_for_status().json()["items"]
    return next((item["text"] for item in items if '"tried"' in item["text"]), "")


def test_no_two_of_them_run_as_the_same_user_and_postgres_as_its_own(stack: WaitContext) -> None:
    users = {name: psutil.Process(pid).uids().real for name, pid in stack.pids.items()}
    own = {users[name] for name in ("postgres", *stack.neighbours)}
    assert len(own) == 3
    assert not own & {0, 65534}


def test_what_the_parts_write_is_for_their_user_alone(stack: WaitContext) -> None:
    open_to_others = [
        path
        for path in stack.home.root.rglob("*")
        if path.is_file() and path.stat().st_mode & 0o077 and "replicas" not in path.parts
    ]
    assert open_to_others == []


def test_a_replica_that_loads_is_not_replaced_by_who_listens_at_its_port(stack: WaitContext) -> None:
    """The thief is a replica of another deployment, and knows the port by the command line."""
    loaded = Path(f"/tmp/loaded-{uuid4().hex}")
    with asking(stack.home, Role.ADMIN) as owner:
        begin(owner, "thief", ["python3", "-c", STEALS, str(loaded), "1", "answers"])
        eventually(lambda: is_healthy(owner, "thief"), what="the thief to look around")
        begin(owner, "loads", ["python3", "-c", LOADS, "--port={port}", str(loaded)], health_check={})
        stolen = eventually(lambda: printed_last(owner, "thief"), what="a port to be stolen")
        reason = eventually(lambda: reason_of(owner, "loads"))
        loaded.touch()
        try:
            uid = AccountPool(stack.home.root).accounts()
            assert reason == f"port {stolen} is held by user {uid['thief']}, of the deployment 'thief'"
            eventually(lambda: is_healthy(owner, "loads"))
            settings = load_settings(stack.home)
            assert settings
            url = f"http://127.0.0.1:{settings.ports.envoy}/loads/"
            eventually(lambda: plain_http.get(url).text == f"user {uid['loads']}")
            assert {plain_http.get(url).text for _ in range(20)} == {f"user {uid['loads']}"}
        finally:
            loaded.unlink()


def begin(owner: httpx.Client, name: str, command: list[str], **spec: object) -> None:
    for path, body in (
        ("", {"deployment": name, "desired_replicas": 1}),
        (f"/{name}/revisions", {"name": "v1", "spec": {"command": command, "working_directory": "/", **spec}}),
        (f"/{name}/activate", {"revision": "v1"}),
    ):
        owner.post(f"/v1/deployments{path}", json=body).raise_for_status()


def printed_last(client: httpx.Client, name: str) -> str:
    items = client.post(f"/v1/deployments/{name}/logs", json={"lines": 1}).raise_for_status().json()["items"]
    return next((str(item["text"]).strip() for item in items), "")


def is_healthy(client: httpx.Client, name: str) -> bool:
    return any(route["status"] == "healthy" for route in routes_of(client, name))


def reason_of(client: httpx.Client, name: str) -> str:
    """Why a replica of it had to end."""
    reasons = (str(route["reason"]) for route in routes_of(client, name))
    return next((reason for reason in reasons if "is held by" in reason), "")


def routes_of(client: httpx.Client, name: str) -> list[dict[str, object]]:
    routes = client.get(f"/v1/deployments/{name}/routes", params={"gone": True}).raise_for_status().json()
    items: list[dict[str, object]] = routes["items"] if isinstance(routes, dict) else routes
    return items
