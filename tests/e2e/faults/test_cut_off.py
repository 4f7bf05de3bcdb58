"""A host cut off from Postgres, from Redis, or with its proxies: the others go on, and it does when it is back."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis

from db.connection.transactions import in_transaction
from db.proxies.acks import list_proxies
from runtime.process.termination import stop_all
from tasks.messaging.queues import SHARED_QUEUES, host_queue
from tasks.task_settings import KEY_PREFIX
from tests.support.faults.forwarder import Forwarder, forwarder
from tests.support.proxies import plain_http
from tests.support.proxies.edge import api_process, discovery_port, envoy_process
from tests.support.stack.server_process import Process
from tests.support.stack.stack import POLICY, Fleet
from tests.support.stack.waiting import NotInTimeError, eventually
from tests.support.workers.queues import answer_of

pytestmark = pytest.mark.e2e


@pytest.fixture
def wire(database: str) -> Iterator[Forwarder]:
    """The way to Postgres of the host that is cut off."""
    with forwarder(_port(database)) as made:
        yield made


@contextmanager
def two_hosts(fleet: Fleet, folder: Path, settings: Mapping[str, Mapping[str, str]]) -> Iterator[None]:
    """Two hosts with one deployment, which is about to get a revision of which two replicas start at once."""
    for host, own in settings.items():
        fleet.start_workers(f"worker-{host}", host=host, ROLLWAY_HOME=str(folder / host), **own)
    fleet.start_beat()
    fleet.deploy_first(replicas=4, policy={**POLICY, "spec": {"max_surge": 2, "max_unavailable": 0}})
    fleet.add_revision("web", "v2", STARTUP_SECONDS="0.7")
    yield
    for host in settings:
        stop_all(folder / host, grace_seconds=2)


@pytest.fixture
def cut_off(fleet: Fleet, wire: Forwarder, tmp_path: Path) -> Iterator[Fleet]:
    """The worker of `west` waits in vain for Postgres."""
    through = fleet.database.replace(f":{_port(fleet.database)}/", f":{wire.port}/")
    silence = {"ROLLWAY_HOST_SILENCE_SECONDS": "4"}
    settings = {
        "west": {"DATABASE_URL": through, **silence},
        "east": {"DATABASE_URL": fleet.database, **silence},
    }
    with two_hosts(fleet, tmp_path, settings):
        fleet.activate("web", "v2")
        eventually(lambda: fleet.rows("SELECT FROM rollout_steps"), what="the first step")
        wire.is_forwarding.clear()
        yield fleet
        wire.is_forwarding.set()


def _port(database: str) -> int:
    return int(database.rpartition(":")[2].partition("/")[0])


def queues_read(fleet: Fleet) -> dict[str, set[str]]:
    """The queues that each worker reads, by its host, as it says itself."""
    answers = fleet.producer.control.inspect(timeout=2).active_queues() or {}
    return {name.partition("@")[0]: {queue["name"] for queue in queues} for name, queues in answers.items()}


def test_it_rests_until_postgres_is_reached_and_the_others_go_on(
    cut_off: Fleet, wire: Forwarder, redis_client: redis.Redis
) -> None:
    own, all_of_them = {host_queue("west")}, {*SHARED_QUEUES, host_queue("west")}
    taken_by_both = [_scale(cut_off, 4) for _ in range(8)]
    eventually(lambda: queues_read(cut_off).get("worker-west") == own, within=30, what="the host to rest")
    for sent in taken_by_both:
        assert answer_of(redis_client, sent)["result"]["ok"] is True
    for size in range(5, 9):
        assert answer_of(redis_client, _scale(cut_off, size))["result"]["ok"] is True
    cut_off.wait_until_ready("web", "v2", 8)
    assert not cut_off.rows("SELECT FROM deployment_history WHERE result = 'error'"), "no deployment is to blame"
    assert [line for line in cut_off.log("worker-east").splitlines() if "Traceback" in line] == []
    wire.is_forwarding.set()
    eventually(lambda: queues_read(cut_off).get("worker-west") == all_of_them, what="it to work again")
    assert redis_client.llen(f"{KEY_PREFIX}commands") == 0


@pytest.fixture
def cut_off_from_redis(fleet: Fleet, redis_url: str, tmp_path: Path) -> Iterator[tuple[Fleet, Forwarder]]:
    """What the worker of `west` says to Redis is lost, and what it is told: it starts no replica that it gets."""
    with forwarder(_port(redis_url)) as wire:
        through = redis_url.replace(f":{_port(redis_url)}", f":{wire.port}")
        silence = {"ROLLWAY_HOST_SILENCE_SECONDS": "8"}
        settings = {"west": {"REDIS_URL": through, **silence}, "east": {"REDIS_URL": redis_url, **silence}}
        with two_hosts(fleet, tmp_path, settings):
            wire.is_forwarding.clear()
            fleet.activate("web", "v2")
            eventually(
                lambda: fleet.rows("SELECT FROM routes WHERE host = 'west' AND healthy_at IS NULL"),
                what="a new one there",
            )
            yield fleet, wire
            wire.is_forwarding.set()


def test_without_redis_it_gets_no_new_replicas_holds_up_nothing_and_what_it_runs_goes_on(
    cut_off_from_redis: tuple[Fleet, Forwarder], redis_client: redis.Redis
) -> None:
    fleet, wire = cut_off_from_redis
    for size in (5, 4, 5):
        assert _scaled(fleet, redis_client, size)["result"]["ok"] is True
    fleet.wait_until_ready("web", "v2", 5)
    (rollout,) = fleet.rollouts("web")
    assert (rollout["outcome"], rollout["failed_routes"]) == ("completed", 0)
    assert not fleet.rows("SELECT FROM deployment_history WHERE result = 'error'"), "no deployment is to blame"
    assert fleet.rows("SELECT name FROM hosts WHERE deaf_since IS NOT NULL AND down_since IS NULL") == [
        {"name": "west"}
    ]
    there = fleet.rows("SELECT status, status_reason FROM routes WHERE host = 'west' AND healthy_at IS NULL")
    assert there, "something was placed there before"
    assert all("has not been answered by Redis for" in route["status_reason"] for route in there)
    assert fleet.rows("SELECT FROM routes WHERE host = 'west' AND healthy_at IS NOT NULL AND status = 'failed'") == []
    wire.is_forwarding.set()
    eventually(
        lambda: not fleet.rows("SELECT FROM routes WHERE host = 'west' AND stopped_at IS NULL"), what="its stops"
    )
    eventually(lambda: not fleet.rows("SELECT FROM hosts WHERE deaf_since IS NOT NULL"), what="it to be asked again")
    fleet.ask("scale", deployment="web", desired_replicas=8)
    fleet.wait_until_ready("web", "v2", 8)
    assert fleet.rows("SELECT FROM routes WHERE host = 'west' AND status = 'healthy'"), "it gets new ones again"


@pytest.fixture
def proxies(fleet: Fleet, redis_url: str, tmp_path: Path) -> Iterator[tuple[Process, Process, Forwarder]]:
    """Two Envoys; the second one hears of the table by a wire that may fall silent."""
    api = api_process(fleet.database, redis_url, tmp_path)
    api.start()
    with forwarder(discovery_port(api)) as wire:
        near, far = (
            envoy_process(api, tmp_path, node, discovery=port) for node, port in (("near", None), ("far", wire.port))
        )
        try:
            near.start()
            far.start()
            yield near, far, wire
        finally:
            for process in (near, far, api):
                if process.process is not None:
                    process.end(kill=True)


def test_a_proxy_that_hears_nothing_keeps_its_replicas_until_it_is_silent_and_then_holds_up_nobody(
    fleet: Fleet, proxies: tuple[Process, Process, Forwarder]
) -> None:
    near, far, wire = proxies
    fleet.start_workers("worker1", "worker2")
    fleet.start_beat()
    fleet.deploy_first(replicas=3)
    fleet.add_revision("web", "v2")
    eventually(lambda: _asked(near) == _asked(far) == (200, "v1"), what="the first answers")
    wire.is_forwarding.clear()
    fleet.activate("web", "v2")
    told: list[tuple[int, str]] = []
    while _is_live(fleet, "far"):
        told += [_asked(near), _asked(far)]
        time.sleep(0.02)
    fleet.wait_until_ready("web", "v2", 3)
    told += [_asked(near) for _ in range(20)]
    assert {status for status, _ in told} == {200}, Counter(told)
    eventually(lambda: len(fleet.replica_processes("web")) == 3, what="the old ones to be stopped")
    assert {_asked(near) for _ in range(20)} == {(200, "v2")}
    wire.is_forwarding.set()
    eventually(lambda: _asked(far) == (200, "v2"), what="the other proxy to be told")


def _is_live(fleet: Fleet, node: str) -> bool:
    return any(proxy.node_id == node and proxy.is_live for proxy in in_transaction(fleet.engine, list_proxies))


def _asked(proxy: Process) -> tuple[int, str]:
    """The status that a caller gets, and the revision that answered."""
    answer = plain_http.get(proxy.url, headers={"host": "web.localhost"}, timeout=30)
    return answer.status_code, answer.json()["revision"] if answer.is_success else ""


def _scaled(fleet: Fleet, client: redis.Redis, size: int) -> dict[str, Any]:
    """Send the command until it is answered, with one id, as senders must: a message in a cut line reaches nobody."""
    request = uuid4().hex
    for _ in range(2):
        with suppress(NotInTimeError):
            return answer_of(client, _scale(fleet, size, request), within=10)
    return answer_of(client, _scale(fleet, size, request))


def _scale(fleet: Fleet, size: int, request: str = "") -> str:
    """Send the command, as another service does; returns its id."""
    payload = {"request_id": request or uuid4().hex, "actor": "test", "deployment": "web", "desired_replicas": size}
    return str(fleet.producer.send_task("rollway.scale", kwargs={"payload": payload}, queue="commands").id)
