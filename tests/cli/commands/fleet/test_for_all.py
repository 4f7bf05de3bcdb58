"""`--all` of `retry`, `pause` and `resume`: each deployment that is meant; one that is refused holds up no other."""

import json

import pytest
from sqlalchemy import Engine

from tests.cli.conftest import Rollway
from tests.support.pictures.pictures import PROVISIONING, READY
from tests.support.rows.deployments import make_deployment, snapshot, write

pytestmark = pytest.mark.usefixtures("servers")

FAILED = "UPDATE deployments SET failed_revision_id = %s, failed_starts = 9, last_failed_at = now() WHERE id = %s"


def test_retry_all_forgets_failed_starts_and_begins_nothing(rollway: Rollway, engine: Engine) -> None:
    web, api, well = (make_deployment(engine, "■■", name=name) for name in ("web", "api", "well"))
    for made in (web, api):
        write(engine, FAILED, made.v2, made.id)
    ended = rollway("retry", "--all", "--reason", "the database is back")
    said = [f"{name} is tried again now; 9 failed starts forgotten" for name in ("api", "web")]
    assert (ended.code, ended.out.splitlines()) == (0, said)
    assert [snapshot(engine, made.id).start_failures for made in (web, api)] == [None, None]
    assert snapshot(engine, well.id).version == 1
    assert "There is none" in rollway("retry", "--all").out


def test_pause_all_pauses_what_is_under_way(rollway: Rollway, engine: Engine) -> None:
    moving = make_deployment(engine, "■■|◇", status=PROVISIONING, name="moving")
    make_deployment(engine, "■■", status=READY, name="still")
    ended = rollway("pause", "--all", "--json")
    assert [each["deployment"] for each in json.loads(ended.out)] == ["moving"]
    assert snapshot(engine, moving.id).paused_at is not None


def test_resume_all_goes_on_with_what_is_paused_and_with_nothing_else(rollway: Rollway, engine: Engine) -> None:
    paused = [make_deployment(engine, "■■|◇", status=PROVISIONING, name=name) for name in ("api", "web")]
    moving = make_deployment(engine, "■■|◇", status=PROVISIONING, name="moving")
    make_deployment(engine, "■■", status=READY, name="still")
    for name in ("api", "web"):
        rollway("pause", name)
    ended = rollway("resume", "--all", "--reason", "the network is back")
    assert (ended.code, ended.out.splitlines()) == (0, ["api continues", "web continues"])
    assert [snapshot(engine, made.id).paused_at for made in paused] == [None, None]
    assert snapshot(engine, moving.id).version == 1
    assert "There is none: --all means every paused rollout" in rollway("resume", "--all").out


@pytest.mark.parametrize(
    "arguments", [["retry"], ["pause", "web", "--all"], ["resume", "--all", "--wait"]], ids=" ".join
)
def test_one_name_or_all_of_them(rollway: Rollway, arguments: list[str]) -> None:
    assert rollway(*arguments).code == 2
