"""`rollway restart NAME` against a real Postgres, with a coordinator and no worker hosts."""

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.cli.conftest import Rollway
from tests.support.pictures.pictures import READY
from tests.support.rows.deployments import ask, drawn, make_deployment, mark, read, start_all
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet

pytestmark = pytest.mark.usefixtures("servers")

FILE = """
deployment: web
revision: {name: v1, command: sleep 60, working_directory: null}
"""


def restart(engine: Engine) -> None:
    """A restart of v1, to its end."""
    made = make_deployment(engine, "■■■", status=READY)
    ask(engine, "restart", deployment="web")
    coordinator = coordinator_without_redis(engine)
    while read(engine, "SELECT FROM deployments WHERE lifecycle <> 'ready'"):
        start_all(engine)
        mark(engine, made.id)
        run_until_quiet(coordinator)
    assert drawn(engine, made.id) == "■■■"


def test_a_restart_rolls_the_same_content_again_within_the_budget(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■■", status=READY)
    ended = rollway("restart", "web", "--reason", "the certificate changed")
    assert (ended.code, ended.out) == (0, "web restarts as v1.r2\n")
    (rollout,) = read(engine, "SELECT strategy, reason FROM rollouts")
    assert rollout == {"strategy": "rolling_update", "reason": "the certificate changed"}
    specs = read(engine, "SELECT spec FROM revisions WHERE name IN ('v1', 'v1.r2')")
    assert specs[0] == specs[1]
    (record,) = read(engine, "SELECT message FROM deployment_history WHERE phase = 'restart'")
    assert record["message"] == "started the rollout to v1.r2: the certificate changed"


def test_a_restart_while_a_rollout_is_under_way_is_refused(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■■", status=READY)
    rollway("restart", "web")
    ended = rollway("restart", "web", "--json")
    assert (ended.code, json.loads(ended.out)["error"]["code"]) == (1, "wrong_state")


def test_what_was_restarted_is_what_the_file_says(rollway: Rollway, engine: Engine, tmp_path: Path) -> None:
    restart(engine)
    file = tmp_path / "web.yaml"
    file.write_text(FILE)
    assert rollway("apply", "-f", str(file)).out == "web: nothing to do\n"


def test_an_undo_passes_a_restart_by(rollway: Rollway, engine: Engine) -> None:
    restart(engine)
    ended = rollway("undo", "web", "--json")
    assert json.loads(ended.out)["error"]["code"] == "no_previous_revision"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["web", "--part", "envoy"], "--part is for the stack: leave it out to restart web, or leave web out"),
        (["--wait"], "--wait waits for a deployment: name it; the stack's restart returns when all is up"),
    ],
)
def test_what_is_for_the_stack_and_for_a_deployment_is_not_mixed(
    rollway: Rollway, arguments: list[str], said: str
) -> None:
    ended = rollway("restart", *arguments)
    assert (ended.code, ended.err) == (2, f"{said}.\n")
