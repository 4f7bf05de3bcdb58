"""`rollway rolling-update` against a real Postgres; no worker runs."""

import json
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.cli.conftest import Rollway
from tests.support.pictures.pictures import PENDING, PROVISIONING, READY
from tests.support.rows.deployments import make_deployment, write

pytestmark = pytest.mark.usefixtures("servers")

DOCKER = '{"runtime": "docker", "docker": {"image": "web:1", "port": 8080}, "env": {"A": "1"}}'


def spec_of(engine: Engine, name: str) -> dict[str, Any]:
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT spec FROM revisions WHERE name = %s", (name,)).scalar_one()
    return dict(found)


def update(rollway: Rollway, *arguments: str) -> str:
    ended = rollway("rolling-update", "web", "--no-wait", *arguments)
    assert ended.code == 0, ended.err
    return ended.out


def test_what_runs_is_rolled_out_with_another_command_and_named_by_its_content(
    rollway: Rollway, engine: Engine
) -> None:
    make_deployment(engine, "■■■", status=READY)
    before = spec_of(engine, "v1")
    command = ["python", "serve.py", "--fast", "--json"]
    said = update(rollway, "--json", "--", *command)
    name = json.loads(said)["revision"]
    assert name.startswith("web-")
    assert spec_of(engine, name) == {**spec_of(engine, name), **before, "command": command}
    again = update(rollway, "--", *command)
    assert again == f"web is already rolling out {name}\n"
    assert update(rollway) == again


def test_another_image_changes_nothing_but_the_image(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■■", status=READY)
    write(engine, "ALTER TABLE revisions DISABLE TRIGGER USER")
    write(engine, "UPDATE revisions SET spec = %s", DOCKER)
    assert update(rollway, "v7", "--image", "web:2") == "rollout of web to v7 started\n"
    assert spec_of(engine, "v7")["docker"] == {**spec_of(engine, "v7")["docker"], "image": "web:2", "port": 8080}
    assert spec_of(engine, "v7")["env"] == {"A": "1"}


def test_values_that_are_not_shown_stay_as_they_are(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■■", status=READY, spec={"command": ["sleep", "60"], "env": {"A": "s3cret"}})
    update(rollway, "v7", "--", "sleep", "61")
    assert spec_of(engine, "v7")["env"] == {"A": "s3cret"}


def test_what_runs_already_needs_nothing(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■■", status=READY)
    command = spec_of(engine, "v1")["command"]
    assert update(rollway, "--", *command) == "v1 is already active in web; nothing to do\n"


def test_asked_to_roll_back_it_turns_and_asked_again_it_has_nothing_to_do(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    assert update(rollway, "v2", "--rollback") == "web is going back\n"
    assert update(rollway, "--rollback") == "web is going back already\n"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "say what changes: an image, a command, or a revision that exists"),
        (["v9"], 1, "web has no revision v9; 'rollway status web' lists them"),
        (["--image", "web:2"], 2, "--image: v1 runs with runtime 'process', which has no image"),
        (["v2", "--", "sleep", "1"], 1, "revision v2 of web exists with another content"),
        (["V 2", "--", "sleep", "1"], 2, "revision: "),
        (["--", ""], 2, "command: "),
        (["--rollback", "--image", "web:2"], 2, "--rollback goes back to what ran before"),
        (["v9", "--rollback"], 1, "web does not go to v9 and does not run it, but v1"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused_before_anything_is_written(
    rollway: Rollway, engine: Engine, arguments: list[str], code: int, sentence: str
) -> None:
    make_deployment(engine, "■■■", status=READY)
    ended = rollway("rolling-update", "web", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith(sentence)
    assert ended.err.count("\n") == 1


def test_a_deployment_that_runs_nothing_has_nothing_to_change(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "", status=PENDING)
    ended = rollway("rolling-update", "web", "--", "sleep", "1")
    assert (ended.code, ended.err.partition(":")[0]) == (1, "web runs nothing that could be changed")
