"""`rollway undo` against a real Postgres, with a coordinator and no worker hosts."""

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from tests.cli.conftest import Rollway
from tests.support.people.promoted import promoted_to_v2
from tests.support.rows.deployments import drawn, read
from tests.support.workers.coordinators import cycling

pytestmark = pytest.mark.usefixtures("servers")


def test_an_undo_of_a_manual_blue_green_rollout_moves_the_traffic_without_a_second_word(
    rollway: Rollway, engine: Engine
) -> None:
    promoted_to_v2(engine)
    with cycling(engine):
        ended = rollway("undo", "web", "--wait", "--timeout", "20")
    assert ended.code == 0
    assert ended.out.startswith("web goes back to v1\n")
    assert "promoted: 3 green in, 3 blue out" in ended.out
    (web,) = read(engine, "SELECT id FROM deployments")
    assert drawn(engine, web["id"]) == "□□□|■■■"
    (record,) = read(engine, "SELECT message FROM deployment_history WHERE phase = 'undo'")
    assert record["message"] == "started the rollout back to v1"


def test_an_undo_says_what_it_leaves_as_it_is(rollway: Rollway, engine: Engine) -> None:
    promoted_to_v2(engine)
    with cycling(engine):
        assert rollway("scale", "web", "4").code == 0
        ended = rollway("undo", "web")
    set_alone = "set by itself, and left as it is: scaled from 3 to 4 replicas, by "
    assert [line for line in ended.out.splitlines() if line.startswith(set_alone)] != [], ended.out


def test_an_undo_of_a_file_that_changed_settings_alone_puts_them_back(
    rollway: Rollway, engine: Engine, tmp_path: Path
) -> None:
    promoted_to_v2(engine)
    (tmp_path / "web.yaml").write_text("deployment: web\nreplicas: 4\n", encoding="utf-8")
    assert rollway("apply", "-f", str(tmp_path / "web.yaml")).code == 0
    ended = rollway("undo", "web")
    said = "web keeps its revision, and has the settings of before: scaled from 4 to 3 replicas\n"
    assert (ended.code, ended.out) == (0, said)
    again = rollway("undo", "web", "--json")
    message = json.loads(again.out)["error"]["message"]
    assert (again.code, message.partition("; ")[2]) == (1, "'rollway undo web --to v1' goes further back")


def test_a_second_undo_says_what_is_undone_already_and_what_would_go_further(rollway: Rollway, engine: Engine) -> None:
    promoted_to_v2(engine)
    with cycling(engine):
        rollway("undo", "web", "--wait", "--timeout", "20")
        ended = rollway("undo", "web", "--json")
    error = json.loads(ended.out)["error"]
    assert (ended.code, error["code"]) == (1, "already_undone")
    assert error["message"] == "the rollout of web to v2 is undone already, and web runs v1"


def test_an_undo_of_what_has_just_gone_back_finds_it_done(rollway: Rollway, engine: Engine) -> None:
    promoted_to_v2(engine)
    rollway("activate", "web", "v1")
    with cycling(engine):
        assert rollway("abort", "web", "--wait", "--timeout", "20").code == 0
        ended = rollway("undo", "web", "--wait", "--timeout", "20")
        assert (ended.code, ended.out.splitlines()[0]) == (0, "v2 is already active in web; nothing to do")
        with engine.begin() as connection:
            connection.execute(text("UPDATE rollouts SET ended_at = ended_at - interval '2 minutes'"))
        assert rollway("undo", "web").code == 1


def test_an_undo_while_an_undo_is_under_way_changes_nothing(rollway: Rollway, engine: Engine) -> None:
    promoted_to_v2(engine)
    rollway("undo", "web")
    ended = rollway("undo", "web")
    assert (ended.code, ended.out) == (0, "web is going back already\n")
