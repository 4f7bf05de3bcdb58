"""Kill things in the middle of a rollout: it ends as promised, and nothing is created twice."""

import signal
import time

import pytest
import redis

from tests.support.stack.server_process import suspend
from tests.support.stack.servers import EmbeddedServer
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually
from tests.support.workers.queues import answer_of

pytestmark = pytest.mark.e2e

SLOW_START = "0.7"


@pytest.fixture
def under_way(fleet: Fleet) -> Fleet:
    """A rollout from v1 to v2 has made its first step; two workers and a beat are at it."""
    fleet.start_workers("worker1", "worker2")
    fleet.start_beat()
    fleet.deploy_first()
    fleet.add_revision("web", "v2", STARTUP_SECONDS=SLOW_START)
    fleet.activate("web", "v2")
    eventually(lambda: fleet.rows("SELECT FROM rollout_steps"), what="the first step")
    return fleet


def assert_ended_as_promised(fleet: Fleet, within: float = 120) -> None:
    fleet.wait_until_ready("web", "v2", 3, within=within)
    assert len(fleet.all_routes("web")) == 6, "a route was created twice"
    assert fleet.steps("web") == ["1 need_retry", "2 need_retry", "3 need_retry", "4 success"], "a step was made twice"
    eventually(lambda: fleet.replica_routes("web") == fleet.healthy("web"), what="one process for each live route")


def test_a_worker_killed_in_the_middle_of_a_rollout(under_way: Fleet) -> None:
    under_way.kill("worker1")
    assert_ended_as_promised(under_way)


def test_both_workers_killed_and_one_started_again(under_way: Fleet) -> None:
    under_way.kill("worker1")
    under_way.kill("worker2")
    under_way.start_workers("worker3")
    assert_ended_as_promised(under_way)


def test_beat_killed_and_started_again(under_way: Fleet) -> None:
    under_way.kill("beat")
    under_way.start_beat("another-beat")
    assert_ended_as_promised(under_way)


def test_redis_emptied_in_the_middle_of_a_rollout(under_way: Fleet, redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    assert_ended_as_promised(under_way)


def test_postgres_killed_and_started_again(under_way: Fleet, postgres_server: EmbeddedServer) -> None:
    postgres_server.kill()
    postgres_server.start()
    assert_ended_as_promised(under_way)


def test_commands_that_arrive_while_postgres_restarts_are_carried_out(
    fleet: Fleet, redis_client: redis.Redis, postgres_server: EmbeddedServer
) -> None:
    fleet.start_workers("worker1")
    names = [f"web-{number}" for number in range(6)]
    fleet.ask("create_deployment", deployment="before")
    postgres_server.stop()
    try:
        sent = [_create(fleet, name) for name in names]
        assert redis_client.exists(*(f"rollway:celery-task-meta-{task_id}" for task_id in sent)) == 0
    finally:
        postgres_server.start()
    for task_id in sent:
        assert answer_of(redis_client, task_id)["result"]["ok"] is True
    assert {row["name"] for row in fleet.rows("SELECT name FROM deployments")} == {"before", *names}


def _create(fleet: Fleet, name: str) -> str:
    payload = {"request_id": name, "deployment": name, "desired_replicas": 0}
    return str(fleet.producer.send_task("rollway.create_deployment", kwargs={"payload": payload}, queue="commands").id)


def test_replicas_live_on_when_every_worker_ends(fleet: Fleet) -> None:
    fleet.start_workers("worker1")
    fleet.start_beat()
    fleet.deploy_first()
    before = {process.pid for process in fleet.replica_processes("web")}
    assert fleet.ask_to_end("worker1") == 0
    fleet.start_workers("worker2")
    fleet.ask("scale", deployment="web", desired_replicas=4)
    fleet.wait_until_ready("web", "v1", 4)
    assert before < {process.pid for process in fleet.replica_processes("web")}


def test_a_worker_asked_to_end_finishes_the_chunk_in_hand(under_way: Fleet) -> None:
    assert under_way.ask_to_end("worker1") == 0
    assert_ended_as_promised(under_way)


def test_redis_restarted_under_load_has_its_workers_back_soon(under_way: Fleet, redis_server: EmbeddedServer) -> None:
    redis_server.kill()
    time.sleep(1)  # the outage itself
    redis_server.start()
    returned_at = time.monotonic()
    eventually(lambda: _works_again(under_way, returned_at), within=30, what="a worker to carry out a command")
    assert under_way.is_running("worker1")
    assert under_way.is_running("worker2")
    assert_ended_as_promised(under_way)


def _works_again(fleet: Fleet, returned_at: float) -> bool:
    """A command sent through Redis is carried out; sent again and again, since messages may be lost."""
    from celery import Celery  # noqa: PLC0415  (a producer that knows nothing of Rollway)

    options = {"global_keyprefix": "rollway:", "socket_timeout": 1}
    with Celery(broker=fleet.environment["REDIS_URL"]) as producer:
        producer.conf.broker_transport_options = options
        payload = {"request_id": f"after-restart-{returned_at}", "deployment": "after-restart"}
        producer.send_task("rollway.create_deployment", kwargs={"payload": payload}, queue="commands", retry=False)
    return bool(fleet.rows("SELECT FROM deployments WHERE name = 'after-restart'"))


def test_a_stopped_worker_holds_nobody_up(under_way: Fleet) -> None:
    """SIGSTOP: it keeps its Redis lock until that ends, and perhaps rows until its session is ended, after 30 s."""
    process = under_way._processes["worker1"]
    suspend(process.pid)
    try:
        assert_ended_as_promised(under_way, within=120)
    finally:
        process.send_signal(signal.SIGCONT)  # it may have been ended: it held up its host
