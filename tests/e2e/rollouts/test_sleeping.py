"""Parked replicas that sleep, and are awake and healthy before they serve again: real workers, a real Envoy."""

import json
import sys
from collections import Counter
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.support.proxies.edge import edge_before
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e

SERVICE = Path(__file__).parents[2] / "support" / "workers" / "model_service.py"
PARK = {"sleep": {"path": "/sleep"}, "wake": {"path": "/wake_up"}}
IN_PLACE = {"strategy": "rolling_update", "spec": {"max_unavailable": 1, "sleep_seconds": 600}}
BLUE_GREEN = {"strategy": "blue_green", "spec": {"auto_promote": True, "scale_down_delay_seconds": 600}}


def add(fleet: Fleet, revision: str, park: dict[str, Any] | None = PARK, **env: str) -> None:
    spec = {"command": [sys.executable, str(SERVICE)], "env": env, "drain_seconds": 0.2, "needs": {"gpu": 1}}
    check = {"interval_seconds": 0.5, "start_deadline_seconds": 120}
    spec |= {"health_check": check} | ({"park": park} if park else {})
    fleet.ask("add_revision", deployment="model", name=revision, spec=spec)


def deploy(
    fleet: Fleet, policy: dict[str, Any], *, park: dict[str, Any] | None = PARK, gpus: int = 2, **env: str
) -> None:
    """v1 is parked, and v2 serves; each of them on a device of a host with so many."""
    fleet.start_workers("worker1", "worker2", ROLLWAY_HOST_RESOURCES=f"gpu={gpus}")
    fleet.start_beat()
    fleet.ask("create_deployment", deployment="model", desired_replicas=1, policy=policy)
    add(fleet, "v1", park, **env)
    fleet.activate("model", "v1")
    eventually(lambda: fleet.serving("model") == ["v1"], what="v1")
    add(fleet, "v2")
    fleet.activate("model", "v2")
    eventually(lambda: fleet.serving("model") == ["v2"], what="v2")


def parked(fleet: Fleet) -> dict[str, Any]:
    (row,) = fleet.rows("SELECT r.* FROM routes r JOIN revisions v ON v.id = r.revision_id WHERE v.name = 'v1'")
    return row


def heard(fleet: Fleet) -> list[str]:
    with urlopen(f"http://{parked(fleet)['address']}/heard", timeout=120) as answer:
        return list(json.load(answer)["heard"])


def until_asleep(fleet: Fleet) -> None:
    eventually(lambda: parked(fleet)["slept_at"] is not None, what="v1 to sleep")
    assert heard(fleet) == ["/sleep"]
    assert parked(fleet)["status"] == "provisioning"


def ask(url: str) -> str:
    try:
        with urlopen(Request(url, headers={"host": "model.localhost"}), timeout=10) as answer:
            return str(json.load(answer)["revision"])
    except HTTPError as error:
        return "asleep" if b"revision" in error.read() else str(error.code)


@pytest.mark.parametrize(("gpus", "policy"), [(2, BLUE_GREEN), (1, IN_PLACE)], ids=["beside", "in its place"])
def test_an_undo_wakes_a_sleeping_model_on_its_device_and_no_caller_meets_it_asleep(
    fleet: Fleet, gpus: int, policy: dict[str, Any]
) -> None:
    """On one device v2 sleeps for it; until then nobody serves, since one replica may be missing."""
    deploy(fleet, policy, gpus=gpus, LOAD_SECONDS="20")
    until_asleep(fleet)
    before = parked(fleet)
    answers, over = Counter[str](), Event()
    with edge_before(fleet.database, fleet.environment["REDIS_URL"], fleet.home) as url:
        eventually(lambda: ask(url) == "v2", what="Envoy to know it")

        def call() -> None:
            while not over.wait(0.02):
                answers[ask(url)] += 1

        caller = Thread(target=call)
        caller.start()
        fleet.ask("undo", deployment="model")
        eventually(lambda: answers["v1"], what="v1 to serve again")
        eventually(lambda: fleet.state("model")["lifecycle"] == "ready", what="the end of the undo")
        settled = answers["v1"] + 20
        eventually(lambda: answers["v1"] >= settled, what="callers after it")
        over.set()
        caller.join()
    assert set(answers) <= ({"v1", "v2"} if gpus > 1 else {"v1", "v2", "503"}), "no caller has met a model that sleeps"
    after = parked(fleet)
    same = ("id", "host", "devices", "replica_handle", "started_at", "address")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}, "the process that slept"
    assert heard(fleet) == ["/sleep", "/wake_up"]
    assert len(fleet.rows("SELECT FROM routes")) == 2, "no replica was started for it"
    holders = "SELECT route_id FROM held_devices WHERE device = %s AND free_at IS NULL"
    (device,) = after["devices"]["gpu"]
    assert [row["route_id"] for row in fleet.rows(holders, device)] == [after["id"]]


def test_a_replica_that_does_not_wake_has_failed_as_one_that_does_not_start(fleet: Fleet) -> None:
    deploy(fleet, BLUE_GREEN, park={**PARK, "awake_within_seconds": 2}, BROKEN="/wake_up", WAKE_SECONDS="0.1")
    until_asleep(fleet)
    route_id = parked(fleet)["id"]
    fleet.ask("undo", deployment="model")
    eventually(lambda: fleet.rows("SELECT FROM routes WHERE id = %s AND status = 'failed'", route_id), what="its end")
    (row,) = fleet.rows("SELECT status_reason FROM routes WHERE id = %s", route_id)
    assert row["status_reason"].startswith("not awake within 2 s: POST /wake_up: the last was 500: ")
    eventually(lambda: [each["outcome"] for each in fleet.rollouts("model")][-1] == "rolled_back", what="the way back")
    assert fleet.serving("model") == ["v2"], "as where any first replica of a blue-green rollout of one fails"


def test_a_worker_that_is_killed_while_it_sends_one_to_sleep_leaves_it_to_the_next(fleet: Fleet) -> None:
    deploy(fleet, BLUE_GREEN, BROKEN="/sleep")
    eventually(lambda: parked(fleet)["asleep_at"] is not None, what="v1 to be sent to sleep")
    assert parked(fleet)["status"] == "provisioning", "it may have heard it, though it says that it has not"
    eventually(lambda: "/sleep: the last was 500" in parked(fleet)["status_reason"], what="its answer")
    for name in ("worker1", "worker2"):
        fleet.kill(name)
    before = len(heard(fleet))
    fleet.start_workers("worker3", ROLLWAY_HOST_RESOURCES="gpu=2")
    eventually(lambda: len(heard(fleet)) > before, what="the next worker to try")
    fleet.ask("undo", deployment="model")
    eventually(lambda: fleet.serving("model") == ["v1"], what="v1, which has never slept")
