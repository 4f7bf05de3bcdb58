"""`rollway apply` against a real Postgres; no worker runs, so rows stay as the commands leave them."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from tests.cli.conftest import Rollway
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import make_deployment

WEB = """
deployment: web
replicas: 3
revision: {name: v1, command: sleep 60}
policy:
  strategy: rolling_update
  spec: {max_surge: 1, max_unavailable: 1}
"""
File = Callable[..., str]
pytestmark = pytest.mark.usefixtures("servers")


@pytest.fixture
def file(tmp_path: Path) -> File:
    def write(content: str = WEB, *changes: tuple[str, str]) -> str:
        for change in changes:
            assert change[0] in content
            content = content.replace(*change)
        path = tmp_path / "web.yaml"
        path.write_text(content)
        return str(path)

    return write


def value(engine: Engine, query: str) -> Any:
    with engine.connect() as connection:
        return connection.execute(text(query)).scalar_one()


def test_apply_creates_what_is_missing_and_says_so(rollway: Rollway, file: File, engine: Engine) -> None:
    ended = rollway("apply", "-f", file(), "--reason", "first day", "--actor", "ann")
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "web: created, 3 replicas wanted",
        "web: revision v1 added",
        "web: revision v1 activated",
    ]
    assert value(engine, "SELECT v.name FROM deployments d JOIN revisions v ON v.id = d.current_revision_id") == "v1"
    assert (
        value(engine, "SELECT count(*) FROM deployment_history WHERE actor = 'ann' AND message LIKE '%first day'") == 3
    )


def test_a_revision_that_is_too_large_is_refused_by_name_before_anything_is_written(
    rollway: Rollway, file: File, engine: Engine
) -> None:
    large = WEB.replace("web", "api").replace("command:", f"env: {{LARGE: {'x' * 300_000}}}, command:")
    ended = rollway("apply", "-f", file(f"{WEB}---\n{large}"))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("document 2, revision.env.LARGE: the command has 30")
    assert value(engine, "SELECT count(*) FROM deployments") == 0


def test_applied_again_there_is_nothing_to_do(rollway: Rollway, file: File, engine: Engine) -> None:
    rollway("apply", "-f", file())
    version = value(engine, "SELECT version FROM deployments")
    ended = rollway("apply", "-f", file())
    assert (ended.code, ended.out) == (0, "web: nothing to do\n")
    assert "note: a program that has changed is rolled out by 'rollway restart web'\n" in ended.err
    assert value(engine, "SELECT version FROM deployments") == version
    assert value(engine, "SELECT count(*) FROM commands") == 2


def test_what_differs_is_changed_and_what_is_left_out_stays(rollway: Rollway, file: File, engine: Engine) -> None:
    rollway("apply", "-f", file())
    ended = rollway("apply", "-f", file(WEB, ("max_surge: 1", "max_surge: 2"), ("replicas: 3", "replicas: 5")))
    assert ended.out.splitlines() == [
        "web: policy rolling_update, for rollouts from now on",
        "web: scaled from 3 to 5 replicas",
    ]
    ended = rollway("apply", "-f", file("deployment: web"))
    assert (ended.out, "rollway restart" in ended.err) == ("web: nothing to do\n", False)
    assert value(engine, "SELECT desired_replicas FROM deployments") == 5
    assert rollway("apply", "-f", file("deployment: web\npolicy:")).out == "web: policy removed\n"
    assert value(engine, "SELECT count(*) FROM policies") == 0


def test_another_revision_begins_a_rollout(rollway: Rollway, file: File, engine: Engine) -> None:
    make_deployment(engine, "■■■|■■■")
    ended = rollway("apply", "-f", file(WEB, ("v1", "v3"), ("sleep 60", "sleep 61")), "--json")
    (document,) = json.loads(ended.out)
    assert document["done"] == ["revision v3 added", "rollout from v2 to v3 started"]
    assert document["results"][-1]["activation"] == "begun"
    assert value(engine, "SELECT lifecycle FROM deployments") == "deploying"


def test_no_activate_only_registers(rollway: Rollway, file: File, engine: Engine) -> None:
    rollway("apply", "-f", file(), "--no-activate")
    assert value(engine, "SELECT count(*) FROM revisions") == 1
    assert value(engine, "SELECT current_revision_id FROM deployments") is None
    assert rollway("apply", "-f", file(WEB + "activate: false")).out == "web: nothing to do\n"


def test_a_revision_with_another_content_is_refused_before_anything_is_written(
    rollway: Rollway, file: File, engine: Engine
) -> None:
    rollway("apply", "-f", file())
    ended = rollway("apply", "-f", file(WEB, ("sleep 60", "sleep 61"), ("replicas: 3", "replicas: 9")))
    assert ended.code == 1
    assert ended.err.startswith("revision v1 of web exists with another content; ")
    assert "give it another name, or leave 'name' out, and the content names it" in ended.err
    assert value(engine, "SELECT desired_replicas FROM deployments") == 3


def test_one_refused_document_keeps_the_others_from_being_written(rollway: Rollway, file: File, engine: Engine) -> None:
    rollway("apply", "-f", file())
    two = f"deployment: api\n---\n{WEB.replace('sleep 60', 'sleep 61')}"
    assert rollway("apply", "-f", file(two)).code == 1
    assert value(engine, "SELECT count(*) FROM deployments") == 1


def test_a_rollout_to_another_revision_is_in_the_way_unless_superseded(
    rollway: Rollway, file: File, engine: Engine
) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    again = file(WEB, ("v1", "v3"), ("replicas: 3", "replicas: 4"))
    ended = rollway("apply", "-f", again, "--json")
    assert ended.code == 1
    assert json.loads(ended.out)["error"]["code"] == "deployment_already_in_progress"
    assert value(engine, "SELECT desired_replicas FROM deployments") == 3
    assert rollway("apply", "-f", again, "--supersede").code == 0
    assert value(engine, "SELECT count(*) FROM rollouts") == 2


def test_a_rollout_to_the_same_revision_is_left_running(rollway: Rollway, file: File, engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    ended = rollway("apply", "-f", file(WEB, ("v1", "v2"), ("60}", "60, working_directory: null}")))
    assert ended.out == "web: nothing to do\n"


def test_a_file_may_come_through_a_pipe(rollway: Rollway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(WEB.encode())))
    assert rollway("apply", "-f", "-").out.startswith("web: created")


def test_sent_twice_with_one_request_id_everything_happens_once(rollway: Rollway, file: File, engine: Engine) -> None:
    for _ in range(2):
        ended = rollway("apply", "-f", file(), "--request-id", "deploy-17")
        assert (ended.code, ended.out.partition("\n")[0]) == (0, "web: created, 3 replicas wanted")
    assert value(engine, "SELECT string_agg(request_id, ' ') FROM commands") == "deploy-17"
