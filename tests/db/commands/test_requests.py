"""A request has one effect, however often and in whatever company it is sent."""

import threading
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.cycle.claim import claim_these
from domain.commands.base import RequestIdReusedError, StaleVersionError
from domain.revisions.revision import RevisionExistsError
from domain.text.errors import DeploymentNotFoundError, RollwayError
from tests.support.pictures.pictures import DESTROYED, DESTROYING
from tests.support.rows.databases import CLEANER, engine_on
from tests.support.rows.deployments import ROLLING, ask, make_deployment, snapshot, write
from tests.support.rows.rows import everything, told, wait_until_blocked
from tests.support.workers.payloads import ELSEWHERE


@pytest.mark.parametrize(
    ("task", "payload"),
    [
        ("create_deployment", {"deployment": "api", "policy": ROLLING}),
        ("add_revision", {"deployment": "web", "spec": {"command": ["sleep", "61"]}}),
        ("set_policy", {"deployment": "web", "policy": ROLLING}),
        ("activate_revision", {"deployment": "web", "revision": "v2"}),
        ("scale", {"deployment": "web", "desired_replicas": 4}),
        ("destroy", {"deployment": "web"}),
        ("report_route", {"status": "unhealthy"}),
    ],
)
def test_the_same_request_sent_eight_times_at_once_has_one_effect_and_equal_answers(
    database: str, engine: Engine, task: str, payload: dict[str, Any]
) -> None:
    made = make_deployment(engine, spec=ELSEWHERE)
    asked = {"request_id": "r-1", **payload, **({"route_id": str(made.routes[0])} if task == "report_route" else {})}
    many = [engine_on(database) for _ in range(4)]
    barrier, done = threading.Barrier(8, timeout=600), []

    def send(on: Engine) -> None:
        barrier.wait()
        done.append(ask(on, task, **asked))

    threads = [threading.Thread(target=send, args=(on,)) for on in many * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for on in many:
        on.dispose()
    assert sorted(answer.repeated for answer in done) == [False] + [True] * 7
    assert all(answer.result == done[0].result for answer in done)
    once = everything(engine)
    assert ask(engine, task, **asked).result == done[0].result
    assert everything(engine) == once
    assert len(once["commands"]) == 1
    assert len(told(engine)) == (task != "report_route")


@pytest.mark.parametrize(
    "value", [1e23, 1.7976931348623157e308, 5e-324, -0.0, 0.1, 1e22, 123456789012345678901234567890.0]
)
def test_a_repeated_number_is_the_same_number_however_postgres_writes_it(engine: Engine, value: float) -> None:
    make_deployment(engine)
    rule = {"metric": "busy", "comparator": ">", "threshold": 1, "step": 1, "max_replicas": 5, "source": "pushed"}
    ask(engine, "set_autoscaling_rules", deployment="web", rules=[rule])
    first, second = (
        ask(engine, "push_metric", request_id="r", deployment="web", metric="busy", value=value) for _ in "12"
    )
    assert (first.repeated, second.repeated) == (False, True)
    with pytest.raises(RequestIdReusedError):
        ask(engine, "push_metric", request_id="r", deployment="web", metric="busy", value=value + 1 if value < 9 else 1)


def test_a_refused_request_can_be_sent_again_when_its_reason_is_gone(engine: Engine) -> None:
    with pytest.raises(DeploymentNotFoundError):
        ask(engine, "destroy", request_id="r-1", deployment="web")
    make_deployment(engine)
    done = ask(engine, "destroy", request_id="r-1", deployment="web")
    assert (done.repeated, done.statuses) == (False, (DESTROYING,))


def test_a_request_that_comes_again_when_its_deployment_is_gone_has_its_answer(engine: Engine) -> None:
    make_deployment(engine, "")
    first = ask(engine, "destroy", request_id="r-1", deployment="web")
    write(engine, "UPDATE deployments SET lifecycle = 'destroyed'")
    again = ask(engine, "destroy", request_id="r-1", deployment="web")
    assert (again.result, again.repeated) == (first.result, True)


@pytest.mark.parametrize(
    ("task", "payload"),
    [
        ("scale", {"deployment": "web", "desired_replicas": 5}),
        ("scale", {"deployment": "web", "desired_replicas": 4, "actor": "someone else"}),
        ("destroy", {"deployment": "web"}),
    ],
)
def test_a_request_id_is_good_for_one_request(engine: Engine, task: str, payload: dict[str, Any]) -> None:
    make_deployment(engine)
    ask(engine, "scale", request_id="r-1", deployment="web", desired_replicas=4)
    before = everything(engine)
    with pytest.raises(RequestIdReusedError, match="r-1"):
        ask(engine, task, request_id="r-1", **payload)
    assert everything(engine) == before


def test_a_command_with_the_version_it_saw_goes_through_once(engine: Engine) -> None:
    make_deployment(engine)
    done = ask(engine, "scale", deployment="web", desired_replicas=4, expected_version=1)
    with pytest.raises(StaleVersionError, match="version 2, not 1"):
        ask(engine, "scale", deployment="web", desired_replicas=5, expected_version=1)
    ask(engine, "scale", deployment="web", desired_replicas=5, expected_version=done.result["version"])


def test_a_command_that_waited_for_the_end_of_its_deployment_does_not_bring_it_back(engine: Engine) -> None:
    made = make_deployment(engine, "", status=DESTROYING)
    said: list[BaseException] = []

    def destroy() -> None:
        try:
            ask(engine, "destroy", deployment="web")
        except RollwayError as error:
            said.append(error)

    with transaction(engine) as connection:
        claim_these(connection, [made.id])
        connection.execute("UPDATE deployments SET lifecycle = 'destroyed' WHERE id = %s", (made.id,))
        late = threading.Thread(target=destroy)
        late.start()
        wait_until_blocked(engine)
    late.join(10)
    assert [type(error) for error in said] == [DeploymentNotFoundError]
    assert snapshot(engine, made.id).status == DESTROYED


def test_a_lost_connection_is_not_seen_by_who_sends_a_command(engine: Engine, database: str) -> None:
    make_deployment(engine)
    ask(engine, "scale", deployment="web", desired_replicas=4)
    with psycopg.connect(database) as other:
        ended = other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> %s",
            (CLEANER,),
        ).fetchall()
    assert ended
    assert ask(engine, "scale", deployment="web", desired_replicas=5).result["to"] == 5


def test_a_request_that_an_earlier_release_stored_without_todays_fields_is_the_same_one(engine: Engine) -> None:
    made = make_deployment(engine)
    asked = {"request_id": "r-1", "deployment": "web", "desired_replicas": 4}
    first = ask(engine, "scale", **asked)
    write(engine, "UPDATE commands SET payload = payload - 'expected_version' - 'reason'")
    again = ask(engine, "scale", **asked)
    assert (again.repeated, again.result) == (True, first.result)
    with pytest.raises(RequestIdReusedError):
        ask(engine, "scale", **asked, expected_version=snapshot(engine, made.id).version)


def test_a_revision_that_an_earlier_release_stored_without_todays_fields_is_the_same_one(engine: Engine) -> None:
    make_deployment(engine)
    asked = {"deployment": "web", "name": "v3", "spec": {"command": ["sleep", "61"]}}
    ask(engine, "add_revision", **asked)
    write(engine, "UPDATE revisions SET spec = spec - 'user' - 'stop_grace_seconds' WHERE name = 'v3'")
    assert ask(engine, "add_revision", **asked).result["added"] is False
    with pytest.raises(RevisionExistsError):
        ask(engine, "add_revision", **{**asked, "spec": {"command": ["sleep", "61"], "stop_grace_seconds": 9}})
