"""`rollway status` shows how far each host is with the preparation of a revision."""

import json

import pytest
from sqlalchemy import Engine

from tests.cli.conftest import Rollway
from tests.support.pictures.pictures import READY
from tests.support.rows.deployments import Made, make_deployment, read, write
from tests.support.rows.hosts import up

pytestmark = pytest.mark.usefixtures("servers")

ROWS = """
    INSERT INTO preparations (revision_id, deployment_id, host, state, words, started_at, ended_at)
    VALUES (%(revision)s, %(of)s, 'a', 'done', 'all there', now() - interval '94 s', now() - interval '60 s'),
           (%(revision)s, %(of)s, 'b', 'failed', 'disk full', now() - interval '90 s', now() - interval '88 s'),
           (%(revision)s, %(of)s, 'c', 'running', '43 %% of 14 GB', now() - interval '1 h', NULL),
           (%(revision)s, %(of)s, 'd', 'waiting', '', NULL, NULL)
"""


@pytest.fixture
def made(engine: Engine) -> Made:
    up(engine, *"abcd")
    made = make_deployment(engine, "■■■", status=READY)
    (runs,) = read(engine, "SELECT current_revision_id AS id FROM deployments WHERE id = %s", made.id)
    with engine.begin() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.execute(ROWS, {"revision": runs["id"], "of": made.id})
    return made


@pytest.mark.usefixtures("made")
def test_a_row_for_each_host(rollway: Rollway) -> None:
    shown = json.loads(rollway("status", "web", "--json").out)["preparations"]
    assert [(each["host"], each["state"], each["words"]) for each in shown] == [
        ("a", "done", "all there"),
        ("b", "failed", "disk full"),
        ("c", "running", "43 % of 14 GB"),
        ("d", "waiting", ""),
    ]
    assert [shown[0]["seconds"], shown[1]["seconds"], shown[3]["seconds"]] == [34, 2, None]
    assert shown[2]["seconds"] >= 60 * 60


def test_people_read_it_while_a_host_is_not_prepared(rollway: Rollway, engine: Engine, made: Made) -> None:
    page = " ".join(rollway("status", "web").out.split())
    assert "hosts a done after 34 s: all there; b failed after 2 s: disk full; c running for 1 h" in page
    write(engine, "DELETE FROM preparations WHERE state <> 'done' AND deployment_id = %s", made.id)
    assert "all there" not in rollway("status", "web").out
