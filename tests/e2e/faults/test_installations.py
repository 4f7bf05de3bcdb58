"""Who works with another database than its home or its Redis belongs to does not begin, and ends no replica."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from domain.installation.contract import CONTRACT, HOME_FILE, WRONG_INSTALLATION
from domain.model.lifecycle_events import RouteLifecycleType
from stack.home.folder import project_root
from tests.support.rows.databases import copy_of
from tests.support.stack.servers import EmbeddedServer
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e


@pytest.fixture
def other_database(template: str, postgres_server: EmbeddedServer) -> Iterator[str]:
    """Empty and migrated, of another installation."""
    with copy_of(template, postgres_server) as url:
        with psycopg.connect(url) as connection:
            connection.execute("UPDATE installation SET id = gen_random_uuid()")
        yield url


@pytest.fixture
def serving(fleet: Fleet) -> Fleet:
    """Two replicas."""
    fleet.start_workers("worker")
    fleet.start_beat()
    fleet.deploy_first(replicas=2)
    return fleet


def refusal(fleet: Fleet, *arguments: str, **environment: str) -> str:
    """What a process says on its standard error that does not begin."""
    ended = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=project_root(),
        env={**os.environ, **fleet.environment, **environment},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ended.returncode == WRONG_INSTALLATION, ended.stderr
    return ended.stderr.splitlines()[-1]


def as_worker(fleet: Fleet, **environment: str) -> str:
    return refusal(fleet, "celery", "-A", "tasks.app", "worker", "-P", "threads", "-n", "stray@%h", **environment)


def test_whoever_belongs_elsewhere_does_not_begin_and_all_replicas_live_on(
    serving: Fleet, other_database: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    alive = serving.replica_routes("web")
    other_home = tmp_path / "another"
    other_home.mkdir(mode=0o700)

    with subtests.test("a worker with another database on this home"):
        said = as_worker(serving, DATABASE_URL=other_database)
        assert said.startswith("Rollway does not begin: DATABASE_URL leads to installation ")
        assert f"remove the file '{HOME_FILE}' of ROLLWAY_HOME" in said
    with subtests.test("a worker of another installation on this Redis"):
        said = as_worker(serving, DATABASE_URL=other_database, ROLLWAY_HOME=str(other_home))
        assert "REDIS_URL is in use by installation" in said
        assert list(other_home.iterdir()) == [], "what does not begin takes over nothing"
    with subtests.test("a server for proxies with another database on this Redis"):
        assert "REDIS_URL is in use" in refusal(serving, "api", DATABASE_URL=other_database, ROLLWAY_API_PORT="7")
    with subtests.test("a beat of another home on this Redis"):
        (other_home / HOME_FILE).write_text(str(uuid4()))
        said = refusal(serving, "celery", "-A", "tasks.app", "beat", "--pidfile=", ROLLWAY_HOME=str(other_home))
        assert "REDIS_URL is in use" in said
    with subtests.test("a worker that is too old for the database"):
        with psycopg.connect(other_database) as connection:
            connection.execute("UPDATE installation SET contract = %s", (CONTRACT + 2,))
        said = as_worker(
            serving, DATABASE_URL=other_database, ROLLWAY_HOME=str(tmp_path / "new"), REDIS_URL=empty(serving)
        )
        assert f"this release knows no newer one than {CONTRACT + 1}: upgrade it" in said

    assert serving.replica_routes("web") == alive
    serving.wait_until_ready("web", "v1", 2)


def empty(fleet: Fleet) -> str:
    """Another database of the same Redis, which nobody uses."""
    return fleet.environment["REDIS_URL"].rpartition("/")[0] + "/1"


def test_a_home_that_is_handed_over_is_swept_no_more_by_those_who_had_it(serving: Fleet) -> None:
    """So a worker that still runs when its home belongs to another database ends nothing there."""
    (serving.home / HOME_FILE).write_text(str(uuid4()))
    with psycopg.connect(serving.environment["DATABASE_URL"]) as connection:
        connection.execute(
            "UPDATE routes SET stopped_at = now(), status = 'failed', traffic_status = 'inactive', status_reason = 'x'"
        )
    alive = serving.replica_routes("web")
    serving.waker.routes(RouteLifecycleType.SWEEP)
    eventually(lambda: "nothing is swept: home or Redis is of another installation" in serving.log("worker"))
    assert set(alive) <= set(serving.replica_routes("web"))
