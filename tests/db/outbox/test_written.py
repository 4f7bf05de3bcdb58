"""Events become rows with what they tell, or with it not at all."""

import psycopg
import pytest
from sqlalchemy import Engine

from db.commands.execute import execute
from db.connection.transactions import in_transaction
from db.replicas.kills import Kill, record_kills
from domain.commands.registry import parse_command
from domain.model.states import RouteStatus
from tests.support.people.promoted import green_waits
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import ask, become, make_deployment, mark, read, start_all, write
from tests.support.rows.sent_statements import sent_by
from tests.support.rows.windows import freeze, thaw
from tests.support.workers.coordinators import coordinator_without_redis, handler_for, run_until_quiet


def told(engine: Engine, subscription: str = "ci") -> list[str]:
    rows = read(engine, "SELECT type FROM outbox WHERE subscription = %s ORDER BY position", subscription)
    return [row["type"].removeprefix("rollway.") for row in rows]


def test_a_life_is_told_from_its_creation_to_its_end(engine: Engine) -> None:
    ask(engine, "set_subscription", subscription="ci", webhook="ci")
    coordinator = coordinator_without_redis(engine)
    policy = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 1}}
    ask(engine, "create_deployment", deployment="web", desired_replicas=1, policy=policy)
    for revision in ("v1", "v2"):
        ask(engine, "add_revision", deployment="web", name=revision, spec={"command": ["sleep", "60"]})
        ask(engine, "activate_revision", deployment="web", revision=revision)
        run_until_quiet(coordinator)
        start_all(engine)
        run_until_quiet(coordinator)
    (row,) = read(engine, "SELECT id FROM routes WHERE status = 'healthy'")
    become(engine, RouteStatus.FAILED, row["id"])
    ask(engine, "destroy", deployment="web", force=True)
    run_until_quiet(coordinator)
    assert told(engine) == [
        "deployment.created",
        "deployment.activated",
        "rollout.begun",
        "rollout.completed",
        "replica.failed",
        "deployment.destroying",
        "deployment.destroyed",
    ]
    (completed,) = read(engine, "SELECT data->'rollout' AS of FROM outbox WHERE type = 'rollway.rollout.completed'")
    shown = {name: completed["of"][name] for name in ("from_revision", "to_revision", "outcome")}
    assert shown == {"from_revision": "v1", "to_revision": "v2", "outcome": "completed"}


def test_a_subscription_has_the_types_and_deployments_that_it_asked_for(engine: Engine) -> None:
    scaled = ["rollway.deployment.scaled"]
    ask(engine, "set_subscription", subscription="all", webhook="ci")
    ask(engine, "set_subscription", subscription="web", webhook="ci", deployments=["web"])
    ask(engine, "set_subscription", subscription="scaled", celery_task="shop.scaled", types=scaled)
    for name in ("web", "api"):
        make_deployment(engine, name=name)
        ask(engine, "scale", deployment=name, desired_replicas=4)
        ask(engine, "activate_revision", deployment=name, revision="v2")
    assert told(engine, "all") == 2 * ["deployment.scaled", "rollout.begun"]
    assert told(engine, "web") == ["deployment.scaled", "rollout.begun"]
    assert told(engine, "scaled") == 2 * ["deployment.scaled"]
    ids = read(engine, "SELECT count(DISTINCT id) AS events, count(*) AS sent FROM outbox")
    assert ids == [{"events": 4, "sent": 8}], "an event is the same one for each subscription"
    ask(engine, "delete_subscription", subscription="all")
    assert told(engine, "all") == []


def test_that_a_person_is_waited_for_is_told_once_and_not_of_what_a_freeze_holds(engine: Engine) -> None:
    waiting = ["rollway.rollout.waiting"]
    ask(engine, "set_subscription", subscription="ci", webhook="ci", types=waiting)
    made = green_waits(engine)
    assert told(engine) == ["rollout.waiting"]
    coordinator = coordinator_without_redis(engine)
    mark(engine, made.id)
    run_until_quiet(coordinator)
    freeze(engine, pauses=True)
    run_until_quiet(coordinator)
    assert told(engine) == ["rollout.waiting"], "it is known already, and a freeze is no person"
    thaw(engine)
    run_until_quiet(coordinator)
    assert told(engine) == 2 * ["rollout.waiting"]


def test_a_replica_that_had_to_be_killed_is_told_once(engine: Engine) -> None:
    ask(engine, "set_subscription", subscription="ci", webhook="ci")
    made = make_deployment(engine, "■■■~")
    kills = [Kill(made.routes[3], made.id, 10)]
    for _ in range(2):
        in_transaction(engine, lambda connection: record_kills(connection, "here", kills))
    assert told(engine) == ["replica.killed"]
    (event,) = read(engine, "SELECT data->>'route_id' AS route, data->>'sentence' AS sentence FROM outbox")
    assert event == {"route": str(made.routes[3]), "sentence": "killed after 10 s: it did not end on SIGTERM"}


def test_what_is_rolled_back_is_told_to_nobody(engine: Engine) -> None:
    ask(engine, "set_subscription", subscription="ci", webhook="ci")
    made = make_deployment(engine, "■■■|", status=PROVISIONING)
    command = {"request_id": "r", "deployment": "web", "expected_version": 9, "desired_replicas": 4}
    with pytest.raises(Exception, match="at version 1, not 9"):
        execute(engine, parse_command("rollway.scale", command))
    write(engine, "UPDATE rollouts SET deadline = now() - interval '1 hour'")
    write(engine, "ALTER TABLE outbox ADD CONSTRAINT full_disk CHECK (type <> 'rollway.rollout.turned_back')")
    mark(engine, made.id)
    with pytest.raises(psycopg.errors.CheckViolation):
        coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert told(engine) == []
    assert read(engine, "SELECT sub_step FROM deployments") == [{"sub_step": "provisioning"}], "nor did it happen"


def test_without_a_subscription_nothing_is_written(engine: Engine) -> None:
    make_deployment(engine)
    ask(engine, "scale", deployment="web", desired_replicas=4)
    assert read(engine, "SELECT 1 FROM outbox") == []


def test_a_chunk_that_tells_of_fifty_takes_as_many_statements_as_one_that_tells_of_one(engine: Engine) -> None:
    ask(engine, "set_subscription", subscription="ci", webhook="ci")
    sent, counts = sent_by(engine), []
    for already, more in ((0, 1), (1, 49)):
        for number in range(already, already + more):
            make_deployment(engine, "|■■■", name=f"web-{number}", status=PROVISIONING)
        sent.clear()
        coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
        counts.append(len(sent))
    assert counts[0] == counts[1]
    assert told(engine) == 50 * ["rollout.completed"]
