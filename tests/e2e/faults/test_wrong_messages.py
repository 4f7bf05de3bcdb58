"""Whatever lies in a queue: the worker continues as the same process, and the command behind it is answered."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
import redis

from stack.home.folder import project_root
from tasks.redis.dead_letters import KEPT, how_many_aside, last_aside
from tests.support.rows.deployments import NOBODY
from tests.support.stack.servers import EmbeddedServer
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually
from tests.support.workers.envelopes import BROADCASTS, MALFORMED, body_of, envelope, raw
from tests.support.workers.queues import answer_of

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def fleet(module_database: str, module_redis: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """One worker for all tests here: none of them may end it."""
    fleet = Fleet(module_database, module_redis, tmp_path_factory.mktemp("fleet"))
    fleet.start_workers("worker1")
    pid = fleet.pid("worker1")
    yield fleet
    assert (fleet.is_running("worker1"), fleet.pid("worker1")) == (True, pid)
    fleet.end()


@pytest.fixture
def redis_client(redis_server: EmbeddedServer) -> Iterator[redis.Redis]:
    """Of the same Redis, with everything that is in it."""
    with redis.Redis.from_url(redis_server.url) as made:
        yield made


def push(client: redis.Redis, message: bytes, queue: str = "commands") -> None:
    client.lpush(f"rollway:{queue}", message)


def ask(client: redis.Redis) -> str:
    """A good command; returns its task's id."""
    message = envelope()
    push(client, json.dumps(message).encode())
    return str(message["headers"]["id"])


def test_no_message_ends_the_worker_or_holds_up_the_next_one(fleet: Fleet, redis_client: redis.Redis) -> None:
    pid, log_start = fleet.pid("worker1"), len(fleet.log("worker1"))
    for broadcast in BROADCASTS.values():
        redis_client.publish("rollway:/0.celery.pidbox", broadcast)
    eventually(lambda: "a broadcast was dropped" in fleet.log("worker1"), what="the first of them to be dropped")
    for number, (wrong, (message, words)) in enumerate(MALFORMED.items(), start=how_many_aside(redis_client) + 1):
        push(redis_client, message)
        told = answer_of(redis_client, ask(redis_client))
        assert (told["status"], told["result"]["error"]["code"]) == ("SUCCESS", "deployment_not_found"), wrong
        newest = last_aside(redis_client)[0]
        assert words in newest.why, wrong
        assert (newest.queue, newest.size) == ("commands", len(message)), wrong
        assert how_many_aside(redis_client) == number, wrong
        assert fleet.pid("worker1") == pid, wrong
    before = how_many_aside(redis_client)
    for queue in ("lifecycle", "routes", "host.here"):
        push(redis_client, b"{}", queue)
    eventually(lambda: how_many_aside(redis_client) == before + 3, what="the other queues")
    assert answer_of(redis_client, ask(redis_client))["status"] == "SUCCESS"
    assert "a message that does not fit was put aside" in fleet.log("worker1"), "in the same second as broadcasts"
    log = fleet.log("worker1")[log_start:]
    assert "Traceback" not in log
    assert "Connection to broker lost" not in log
    assert fleet.pid("worker1") == pid


def test_celery_may_look_at_a_worker_and_not_end_it(fleet: Fleet) -> None:
    assert fleet.producer.control.inspect(timeout=60, limit=1).ping()
    fleet.producer.control.shutdown()
    assert fleet.producer.control.inspect(timeout=60, limit=1).ping()
    assert fleet.is_running("worker1")


def test_a_forged_event_of_another_host_ends_no_replica_here(fleet: Fleet, redis_client: redis.Redis) -> None:
    fleet.deploy_first(replicas=1)
    before = [process.pid for process in fleet.replica_processes("web")]
    for host in ("elsewhere", "external"):
        for kind in ("sweep", "stop", "start", "probe"):
            body = body_of([[], {"route_lifecycle_type": kind, "host": host}, {}])
            push(redis_client, raw(body=body, headers__task="rollway.do_route_lifecycle"), "routes")
    refused = "raised unexpected: InvalidInputError('host: "
    eventually(lambda: fleet.log("worker1").count(refused) == 5, what="four looks for elsewhere, one sweep of external")
    assert "a replica without a route is ended" not in fleet.log("worker1")
    assert [process.pid for process in fleet.replica_processes("web")] == before != []


def test_doctor_says_how_many_messages_were_put_aside_and_why(fleet: Fleet, redis_client: redis.Redis) -> None:
    count = how_many_aside(redis_client) + KEPT + 1
    for _ in range(KEPT + 1):
        push(redis_client, b"hello\x1b[2J")
    eventually(lambda: how_many_aside(redis_client) == count, what="all to be put aside")
    told = doctor(fleet, "--json")
    aside = json.loads(told.stdout)["aside"]
    assert (told.returncode, aside["count"], len(aside["last"])) == (0, count, KEPT)
    assert aside["last"][0]["begins"] == "hello\ufffd[2J"
    assert f"{count} messages were put aside" in doctor(fleet).stdout
    without_redis = doctor(fleet, REDIS_URL=NOBODY)
    assert (without_redis.returncode, without_redis.stderr) == (0, "")
    assert "Redis does not answer, so nobody knows which messages were put aside" in without_redis.stdout


def doctor(fleet: Fleet, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cli.main", "doctor", *options]
    environment = {**os.environ, **fleet.environment, **variables}
    return subprocess.run(
        command, cwd=project_root(), env=environment, capture_output=True, text=True, check=False, timeout=900
    )


def test_missing_and_further_arguments_are_answered(fleet: Fleet, redis_client: redis.Redis) -> None:
    payload = {"request_id": uuid4().hex, "deployment": "nobody", "desired_replicas": 1}
    deep: Any = {}
    for _ in range(400):
        deep = {"a": deep}
    wrong: list[dict[str, Any]] = [
        {"kwargs": {}},
        {"kwargs": {"payload": payload, "colour": "red"}},
        {"kwargs": {"payload": payload, "self": 1}},
        {"args": [payload, 5]},
        {"args": [payload], "kwargs": {"payload": payload}},
        {"kwargs": {"payload": {**payload, "\ud800": 1}}},
        {"kwargs": {"payload": deep}},
        {"kwargs": {"payload": {**payload, "desired_replicas": float("inf")}}},
    ]
    for arguments in wrong:
        sent = fleet.producer.send_task("rollway.scale", queue="commands", **arguments)
        told = answer_of(redis_client, sent.id)
        assert (told["status"], told["result"]["error"]["code"]) == ("SUCCESS", "invalid_input"), arguments
    large = {**payload, "reason": "x" * 10_000_000}
    for reason, code in ((large, "too_large"), ({"__type__": "uuid", "__value__": 5}, "invalid_input")):
        sent = fleet.producer.send_task("rollway.scale", kwargs={"payload": reason}, queue="commands")
        assert answer_of(redis_client, sent.id)["result"]["error"]["code"] == code
    sent = fleet.producer.send_task("rollway.scale", args=[payload], queue="commands")
    assert answer_of(redis_client, sent.id)["result"]["error"]["code"] == "deployment_not_found"
