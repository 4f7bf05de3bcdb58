"""The tasks as a worker runs them, short of the worker: answers that survive JSON, and wakes."""

import gc
import json
from typing import Any

import pytest
import redis
from celery.app.trace import trace_task
from sqlalchemy import Engine

import tasks.worker.composition
import tasks.worker.connections
from domain.commands.base import QUERIES
from domain.commands.registry import COMMANDS
from domain.text.errors import InvalidInputError
from tasks.app import app
from tasks.command_tasks import MAX_RETRIES, TASKS, answer_message
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import make_deployment, read, snapshot, write
from tests.support.rows.refused_writes import TRANSACTION_TIMEOUT, refused_writes
from tests.support.stack.servers import EmbeddedServer
from tests.support.workers.queues import drop_all, waiting

pytestmark = pytest.mark.usefixtures("this_process_is_a_worker")

NOBODYS = "00000000-0000-0000-0000-000000000000"


def answer(task: str, payload: Any) -> dict[str, Any]:
    return answer_message(task, {"payload": payload})


def test_every_command_and_query_is_a_task_of_its_own_name_that_keeps_its_result() -> None:
    assert set(TASKS) == {*COMMANDS, *QUERIES}
    for name, task in TASKS.items():
        assert app.tasks[name] == task
        assert task.ignore_result is False
        assert app.amqp.router.route({}, name)["queue"].name == "commands"


def test_an_answer_says_what_was_done_and_wakes_whose_turn_it_is(engine: Engine, redis_client: redis.Redis) -> None:
    made = make_deployment(engine)
    payload = {"request_id": "r-1", "deployment": "web", "revision": "v2"}
    first = answer("rollway.activate_revision", payload)
    deployment = snapshot(engine, made.id)
    assert deployment.rollout is not None
    assert json.loads(json.dumps(first)) == {
        "ok": True,
        "repeated": False,
        "result": {
            "deployment": "web",
            "revision": "v2",
            "activation": "begun",
            "rollout_id": str(deployment.rollout.id),
            "version": 2,
            "already": False,
        },
    }
    assert [arguments["sub_step"] for _, arguments in waiting(redis_client, "lifecycle")] == ["provisioning"]
    assert answer("rollway.activate_revision", payload) == {**first, "repeated": True}


@pytest.mark.parametrize(
    ("task", "payload", "code"),
    [
        ("rollway.scale", {"request_id": "1", "deployment": "api", "desired_replicas": 1}, "deployment_not_found"),
        ("rollway.scale", {"request_id": "1", "deployment": "web"}, "invalid_input"),
        ("rollway.scale", None, "invalid_input"),
        ("rollway.scale", ["web", 3], "invalid_input"),
        ("rollway.explode", {}, "unknown_command"),
        (
            "rollway.activate_revision",
            {"request_id": "1", "deployment": "web", "revision": "v2", "expected_version": 9},
            "stale_version",
        ),
        ("rollway.report_route", {"request_id": "1", "route_id": NOBODYS, "status": "failed"}, "route_not_found"),
    ],
)
def test_a_refusal_is_an_answer_too(
    engine: Engine, redis_client: redis.Redis, task: str, payload: Any, code: str
) -> None:
    make_deployment(engine)
    told = json.loads(json.dumps(answer(task, payload)))
    assert (told["ok"], told["error"]["code"]) == (False, code)
    assert told["error"]["message"]
    assert drop_all(redis_client, "lifecycle") == 0


@pytest.mark.parametrize("given", [{}, {"payload": {}, "colour": "red"}, {"payload": {}, "sender": "ci"}, {"load": {}}])
def test_arguments_that_no_command_has_are_refused(given: dict[str, Any]) -> None:
    told = answer_message("rollway.scale", given)
    assert (told["ok"], told["error"]["code"]) == (False, "invalid_input")
    assert told["error"]["message"].startswith("the arguments must be payload alone, or ")


def last_try(payload: Any) -> dict[str, Any]:
    """The answer of a worker to whom the command came back so often that it gives it to nobody else."""
    told: dict[str, Any] = app.tasks["rollway.scale"].apply(kwargs={"payload": payload}, retries=MAX_RETRIES).get()
    return told


def test_without_postgres_a_command_is_answered_when_patience_ends(
    postgres_server: EmbeddedServer, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_deployment(engine)
    payload = {"request_id": "r", "deployment": "web", "desired_replicas": 4}
    postgres_server.stop()
    try:
        with monkeypatch.context() as hurried:
            hurried.setattr("tasks.command_tasks.PATIENCE_SECONDS", 0.5)
            told = last_try(payload)
    finally:
        postgres_server.start()
    assert json.loads(json.dumps(told))["error"]["code"] == "unavailable"
    assert "PostgreSQL did not answer for 3 s" in told["error"]["message"]
    assert answer("rollway.scale", payload)["repeated"] is False


def test_a_command_that_took_postgres_too_long_is_answered_as_one_without_postgres(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_deployment(engine)
    monkeypatch.setattr("tasks.command_tasks.PATIENCE_SECONDS", 0.1)
    with refused_writes(engine, "commands", TRANSACTION_TIMEOUT):
        told = last_try({"request_id": "r", "deployment": "web", "desired_replicas": 4})
    assert told["error"]["code"] == "unavailable"


def test_a_try_in_vain_leaves_no_state_over_the_answer_of_the_next_one(
    engine: Engine, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_deployment(engine)
    monkeypatch.setattr("tasks.command_tasks.PATIENCE_SECONDS", 0.1)
    payload = {"request_id": "r", "deployment": "web", "desired_replicas": 4}
    route = {"delivery_info": {"exchange": "commands", "routing_key": "commands"}}
    with refused_writes(engine, "commands", TRANSACTION_TIMEOUT):
        ended = trace_task(app.tasks["rollway.scale"], "an-id", [], {"payload": payload}, request=route, app=app)
    assert waiting(redis_client, "commands") == [("rollway.scale", {"payload": payload})], ended
    assert redis_client.keys("*an-id*") == []
    del ended
    gc.collect()  # a result of Celery's asks Redis when it is collected: it must be there then


def test_a_command_is_given_back_to_a_redis_that_was_emptied_too(redis_client: redis.Redis) -> None:
    for _ in range(2):
        as_a_retry = {"exchange": "commands", "routing_key": "commands", "ignore_result": True}
        app.send_task("rollway.scale", kwargs={"payload": {}}, **as_a_retry)
        assert len(waiting(redis_client, "commands")) == 1
        redis_client.flushall()


def test_a_wake_runs_its_handler_and_may_be_sent_again(engine: Engine, redis_client: redis.Redis) -> None:
    make_deployment(engine, "■■■|", status=PROVISIONING)
    tasks.worker.connections.waker().deployments([PROVISIONING])
    ((_, arguments),) = waiting(redis_client, "lifecycle")
    drop_all(redis_client, "lifecycle")
    app.tasks["rollway.do_deployment_lifecycle_if_needed"](**arguments)
    assert len(read(engine, "SELECT 1 FROM rollout_steps")) == 1
    tasks.worker.connections.waker().deployments([PROVISIONING])
    assert drop_all(redis_client, "lifecycle") == 1


@pytest.mark.parametrize("tick", ["rollway.do_deployment_lifecycle", "rollway.do_deployment_lifecycle_if_needed"])
def test_of_two_beats_that_send_the_same_tick_one_does_the_work(engine: Engine, tick: str) -> None:
    make_deployment(engine, "■■■|", status=PROVISIONING)
    for _ in range(2):
        app.tasks[tick]("deploying", "provisioning", interval=5)
        write(engine, "UPDATE deployments SET due_at = now()")
        write(engine, "UPDATE routes SET status = 'healthy', started_at = now() WHERE status = 'provisioning'")
    assert len(read(engine, "SELECT 1 FROM rollout_steps")) == 1


@pytest.mark.parametrize(
    ("task", "arguments", "field"),
    [
        ("do_deployment_lifecycle", ("melting",), "lifecycle_type"),
        ("do_deployment_lifecycle_if_needed", ("deploying", "pondering"), "sub_step"),
        ("do_deployment_lifecycle", ("deploying",), "lifecycle_type"),
        ("do_route_lifecycle", ("fly",), "route_lifecycle_type"),
    ],
)
def test_an_event_nobody_knows_is_refused_by_its_field(task: str, arguments: tuple[str, ...], field: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        app.tasks[f"rollway.{task}"](*arguments)
    assert refused.value.detail["field"] == field
