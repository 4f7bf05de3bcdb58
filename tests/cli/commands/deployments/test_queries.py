"""The tasks that other services ask how something is, beside what `rollway status --json` shows."""

import json
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.locking.row_locks import lock
from tasks.command_tasks import answer_message
from tests.cli.conftest import Rollway
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import make_deployment, read

pytestmark = pytest.mark.usefixtures("servers")


def test_a_query_tells_what_status_shows_even_of_a_deployment_that_somebody_holds(
    rollway: Rollway, engine: Engine
) -> None:
    made = make_deployment(engine, "■■■|◇", status=PROVISIONING)
    with transaction(engine) as holding:
        lock(holding, [made.id])
        assert holding.execute("SELECT").rowcount == 1  # so it is locked
        told = answer_message("rollway.get_deployment", {"payload": {"deployment": "web", "actor": "ci"}})
        rollout = answer_message("rollway.get_rollout", {"payload": {"rollout_id": str(made.rollout_id)}})
    shown = json.loads(rollway("status", "web", "--json").out)
    del shown["urls"], shown["deviations"], shown["callers"]
    assert json.loads(json.dumps(told)) == {
        "ok": True,
        "result": {**shown, **{name: told["result"][name] for name in ("now", "urls")}},
    }
    assert rollout == {"ok": True, "result": shown["rollout"]}
    assert (shown["state"], shown["picture"]) == ("deploying/provisioning", "■■■|◇")
    assert read(engine, "SELECT 1 FROM commands") == []


@pytest.mark.parametrize(
    ("task", "payload", "code"),
    [
        ("rollway.get_deployment", {"deployment": "api"}, "deployment_not_found"),
        ("rollway.get_deployment", {"deployment": "web", "request_id": "1"}, "invalid_input"),
        ("rollway.get_rollout", {"rollout_id": str(UUID(int=0))}, "rollout_not_found"),
        ("rollway.get_rollout", {"rollout_id": "web"}, "invalid_input"),
        ("rollway.get_rollout", None, "invalid_input"),
    ],
)
def test_a_question_that_has_no_answer_is_refused(task: str, payload: Any, code: str) -> None:
    told = answer_message(task, {"payload": payload})
    assert (told["ok"], told["error"]["code"]) == (False, code)
