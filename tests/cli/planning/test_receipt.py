"""`rollway receipt` against a real Postgres."""

import json
import re

import pytest
from sqlalchemy import Engine

from db.audit.receipts import seal, unsealed
from db.connection.transactions import in_transaction, transaction
from tests.cli.conftest import Rollway
from tests.support.rows.deployments import ask, make_deployment, start_all, write
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet

pytestmark = pytest.mark.usefixtures("servers")


def rolled_out(engine: Engine, revision: str = "v1") -> None:
    """From v2 to v1, which is one replica; or back."""
    if revision == "v1":
        make_deployment(engine, "|■", n=1)
    coordinator = coordinator_without_redis(engine)
    ask(engine, "activate_revision", deployment="web", revision=revision, actor="ann", reason="sale")
    for _ in range(3):
        run_until_quiet(coordinator)
        start_all(engine)


def test_a_page_shows_what_was_promised_and_what_was_measured(rollway: Rollway, engine: Engine) -> None:
    rolled_out(engine)
    page = rollway("receipt", "web").out.splitlines()
    assert page[0] == "# web: v2 → v1, completed"
    assert "| at most 2 live | at most 2 live, 1 stopping next to them | kept |" in page
    assert "| at least 1 serving, unless a replica fails on its own | at least 1 serving | kept |" in page
    assert "| each step can be decided again | 3 of 3 come out the same | kept |" in page
    assert any("| ann | activate | " in line and ": sale |" in line for line in page)
    assert page[-1].startswith("Not sealed yet")


def test_a_sealed_receipt_is_shown_as_it_was_sealed_by_its_id_too(rollway: Rollway, engine: Engine) -> None:
    rolled_out(engine)
    with transaction(engine) as connection:
        ((deployment_id, rollout_id),) = unsealed(connection, 10)
        seal(connection, deployment_id, rollout_id)
    told = rollway("receipt", str(rollout_id), "--json")
    assert (told.code, json.loads(told.out)["receipt"]["outcome"]) == (0, "completed")
    assert json.loads(told.out)["seal"]["is_intact"] is True


def test_a_receipt_that_was_changed_is_shown_and_ends_with_exit_code_1(rollway: Rollway, engine: Engine) -> None:
    for revision in ("v1", "v2"):
        rolled_out(engine, revision)
        with transaction(engine) as connection:
            ((deployment_id, rollout_id),) = unsealed(connection, 10)
            seal(connection, deployment_id, rollout_id)
    assert rollway("receipt", str(rollout_id)).code == 0
    write(engine, "UPDATE receipts SET text = replace(text, '\"ann\"', '\"bob\"') WHERE number = 1")
    shown = rollway("receipt", str(rollout_id))
    assert (shown.code, shown.out.rstrip().endswith("CHANGED since then")) == (1, True)
    write(engine, "UPDATE receipts SET text = replace(text, '\"ann\"', '\"bob\"') WHERE number = 2")
    shown = rollway("receipt", str(rollout_id))
    assert (shown.code, "CHANGED since it was sealed" in shown.out) == (1, True)
    told = rollway("receipt", str(rollout_id), "--json")
    assert (told.code, json.loads(told.out)["seal"]["is_intact"]) == (1, False)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("nobody", "there is no deployment called nobody"),
        ("web", "web has had no rollout yet"),
        ("019f3c7a-0000-7000-8000-00009f2c1a3b", "there is no rollout 019f3c7a-0000-7000-8000-00009f2c1a3b"),
    ],
)
def test_what_is_no_rollout_gets_one_sentence(rollway: Rollway, engine: Engine, named: str, said: str) -> None:
    make_deployment(engine)
    ended = rollway("receipt", named)
    assert (ended.code, ended.out) == (1, "")
    assert said in ended.err


def test_what_came_otherwise_than_planned_is_told_as_long_as_the_rows_are_kept(
    rollway: Rollway, engine: Engine
) -> None:
    make_deployment(engine, "|■", n=1)
    write(engine, "UPDATE routes SET healthy_at = created_at + interval '1 second'")
    coordinator = coordinator_without_redis(engine)
    ask(engine, "activate_revision", deployment="web", revision="v1")
    for _ in range(3):
        run_until_quiet(coordinator)
        start_all(engine)
    write(engine, "UPDATE rollout_steps SET at = at - interval '41 seconds' WHERE step_no = 1")
    ((deployment_id, rollout_id),) = in_transaction(engine, lambda connection: unsealed(connection, 10))
    in_transaction(engine, lambda connection: seal(connection, deployment_id, rollout_id))
    late = re.search(r"Differences from the plan:\n\n- wave 1 took (\d+) s", rollway("receipt", "web").out)
    assert late
    assert int(late[1]) >= 41
    assert len(json.loads(rollway("receipt", "web", "--json").out)["deviations"]) == 1
    for table in ("routes", "deployment_history"):
        write(engine, f"UPDATE {table} SET rollout_id = NULL")
    write(engine, "DELETE FROM rollout_steps")
    write(engine, "DELETE FROM rollouts")
    assert "Otherwise" not in rollway("receipt", str(rollout_id)).out
