"""`rollway activate`, `scale` and `destroy` against a real Postgres; no worker runs."""

import json
import os
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from db.connection.transactions import transaction
from tests.cli.conftest import Rollway
from tests.support.pictures.pictures import PENDING, PROVISIONING, READY
from tests.support.rows.deployments import make_deployment, write

pytestmark = pytest.mark.usefixtures("servers")


def lifecycle(engine: Engine) -> str:
    with engine.connect() as connection:
        return str(connection.execute(text("SELECT lifecycle FROM deployments")).scalar_one())


def test_activate_begins_a_rollout_and_says_who_asked_and_why(rollway: Rollway, engine: Engine, user: str) -> None:
    make_deployment(engine, "■■■", status=READY)
    ended = rollway("activate", "web", "v2", "--reason", "new colours")
    assert (ended.code, ended.out) == (0, "rollout of web to v2 started\n")
    assert lifecycle(engine) == "deploying"
    with engine.connect() as connection:
        actor, reason = connection.execute(text("SELECT actor, reason FROM rollouts")).one()
    assert (actor, reason) == (user, "new colours")


def test_an_undo_to_what_has_only_ever_failed_is_asked_for_once_more(rollway: Rollway, engine: Engine) -> None:
    made = make_deployment(engine, "✗|■■■", status=READY)
    write(engine, "UPDATE routes SET status_reason = 'no such program' WHERE status = 'failed'")
    refused = rollway("undo", "web", "--to", "v1")
    said = "v1 of web has only ever failed: no such program; 'rollway undo web --to v1 --anyway' goes there anyway"
    assert (refused.code, refused.err) == (1, f"{said}.\n")
    assert lifecycle(engine) == "ready"
    write(engine, "UPDATE routes SET healthy_at = now() WHERE id = %s", made.routes[0])
    assert rollway("undo", "web", "--to", "v1").out == "web goes back to v1\n"


def test_an_undo_goes_where_it_is_told_to_go_anyway(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "✗|■■■", status=READY)
    assert rollway("undo", "web", "--to", "v1", "--anyway").out == "web goes back to v1\n"


def test_what_is_active_already_needs_nothing(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■■", status=READY)
    assert rollway("activate", "web", "v1").out == "v1 is already active in web; nothing to do\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["activate", "web", "v7"], "revision_not_found"),
        (["activate", "api", "v1"], "deployment_not_found"),
        (["activate", "web", "v1"], "deployment_already_in_progress"),
        (["scale", "My_API", "3"], "deployment_not_found"),
        (["destroy", "api", "--yes"], "deployment_not_found"),
        (["status", "api"], "deployment_not_found"),
        (["history", "api"], "deployment_not_found"),
        (["routes", "api"], "deployment_not_found"),
    ],
)
def test_a_refusal_is_one_sentence_or_one_document_and_exit_code_1(
    rollway: Rollway, engine: Engine, arguments: list[str], code: str
) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    plain = rollway(*arguments)
    assert (plain.code, plain.out, plain.err.count("\n")) == (1, "", 1)
    scripted = rollway(*arguments, "--json")
    error = json.loads(scripted.out)["error"]
    assert (scripted.code, scripted.err, error["code"]) == (1, "", code)
    assert plain.err.strip().startswith(error["message"])


def test_a_refusal_calls_options_as_they_are_typed(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    ended = rollway("promote", "web", "--full")
    assert (ended.code, ended.err) == (2, "--full needs a --reason, for the history.\n")


def test_scale_says_from_and_to(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■■", n=3)
    assert rollway("scale", "web", "5").out == "web scaled from 3 to 5 replicas\n"
    assert rollway("scale", "web", "5").out == "web has 5 replicas wanted already\n"
    assert json.loads(rollway("scale", "web", "0", "--json").out)["to"] == 0


def test_the_same_request_id_with_another_wish_is_refused(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine)
    assert rollway("scale", "web", "5", "--request-id", "r1").code == 0
    assert rollway("scale", "web", "5", "--request-id", "r1").code == 0
    assert json.loads(rollway("scale", "web", "6", "--request-id", "r1", "--json").out)["error"]["code"] == (
        "request_id_reused"
    )


def test_a_request_id_that_is_too_long_is_wrong_input(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine)
    ended = rollway("scale", "web", "5", "--request-id", "r" * 321)
    assert ended.code == 2
    assert "--request-id" in ended.err


def test_waiting_ends_with_exit_code_4_and_says_what_it_waits_for(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    ended = rollway("activate", "web", "v2", "--wait", "--timeout", "0.3")
    assert ended.code == 4
    assert ended.out.startswith("web is already rolling out v2\n")
    assert "\nwaited 0.3 s; web is deploying/provisioning: " in ended.err


def test_waiting_for_what_has_happened_returns_at_once(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■■")
    ended = rollway("activate", "web", "v1", "--wait", "--timeout", "5")
    assert ended.code == 0
    assert "■■■" in ended.out


def test_a_deployment_without_a_revision_has_nothing_to_wait_for(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "", status=PENDING)
    ended = rollway("scale", "web", "4", "--wait", "--timeout", "5")
    assert (ended.code, ended.out) == (0, "web scaled from 3 to 4 replicas\n")


def test_a_degraded_deployment_is_not_waited_for(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■")
    with transaction(engine) as connection:
        connection.execute("UPDATE deployments SET degraded_reason = 'no port is free', retry_at = now()")
    ended = rollway("activate", "web", "v1", "--wait")
    assert (ended.code, ended.err.splitlines()[-1]) == (1, "web is degraded: no port is free.")


def test_destroy_asks_first_and_without_a_terminal_wants_yes(
    rollway: Rollway, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_deployment(engine)
    with Path(os.devnull).open() as nobody, monkeypatch.context() as patched:
        patched.setattr("sys.stdin", nobody)
        ended = rollway("destroy", "web")
    assert (ended.code, lifecycle(engine)) == (2, "ready")
    assert "add --yes" in ended.err
    assert rollway("destroy", "web", "--yes").out == "web is being destroyed\n"
    assert rollway("destroy", "web", "--yes").out == "web is being destroyed already\n"
    assert lifecycle(engine) == "destroying"
    assert rollway("destroy", "web", "--yes", "--force").out == "web is being destroyed\n"


def test_while_it_is_destroyed_nothing_else_is_done(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine)
    rollway("destroy", "web", "--yes")
    assert rollway("activate", "web", "v1").code == 1
    assert rollway("scale", "web", "2").code == 1
