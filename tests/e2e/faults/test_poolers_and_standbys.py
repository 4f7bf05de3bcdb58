"""A Postgres as others run it: behind a PgBouncer in transaction mode, and with a standby that takes its place."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from db.audit.impossible import impossible_combinations
from db.connection.engine import in_transaction, make_engine, transaction
from db.connection.settings import DatabaseSettings
from migrations.schema import upgrade
from tests.support.faults.pooler import pgbouncer
from tests.support.faults.standby import Pair, postgres_with_standby
from tests.support.rows.databases import engine_on, replay
from tests.support.stack.stack import ROOT, Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e


@pytest.fixture(params=["", "ignore_startup_parameters = options"], ids=["refuses options", "ignores options"])
def behind(request: pytest.FixtureRequest, database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("pooler")
    for above in (folder, *folder.parents):
        if above.stat().st_uid == os.geteuid() and above != above.parent:
            above.chmod(above.stat().st_mode | 0o011)  # it runs as nobody where we are root
    folder.chmod(0o755)
    with pgbouncer(database, folder, request.param) as url:
        yield url


def typed(fleet: Fleet, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What the command line says of the fleet."""
    command = [sys.executable, "-m", "cli.main", *words]
    given = {**os.environ, **fleet.environment, **environment}
    return subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False)


def steps(url: str) -> int:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT FROM rollout_steps").rowcount


def test_every_transaction_has_the_settings_of_its_session(behind: str) -> None:
    engine = make_engine(DatabaseSettings(url=behind))
    try:
        for _ in range(3):
            with transaction(engine) as connection:
                query = "SELECT current_setting('statement_timeout'), current_setting('TimeZone')"
                assert connection.execute(query).fetchall() == [("8s", "UTC")]
    finally:
        engine.dispose()


def test_a_rollout_ends_and_commands_read(behind: str, fleet: Fleet) -> None:
    fleet.start_workers("worker1", "worker2", DATABASE_URL=behind)
    fleet.start_beat()
    fleet.deploy_first()
    fleet.add_revision("web", "v2")
    fleet.activate("web", "v2")
    fleet.wait_until_ready("web", "v2", 3)
    for worker in ("worker1", "worker2"):
        assert "prepared statement" not in fleet.log(worker)
        assert "Traceback" not in fleet.log(worker)
    told = typed(fleet, "status", "web", DATABASE_URL=behind)
    assert (told.returncode, told.stderr) == (0, "")
    assert "3 of 3 replicas healthy" in told.stdout


@pytest.fixture
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with postgres_with_standby(tmp_path_factory.mktemp("pair")) as made:
        engine = engine_on(made.url)
        upgrade(engine)
        engine.dispose()
        yield made
        replay(made.standby.url)


@pytest.fixture
def rolling(pair: Pair, redis_url: str, tmp_path: Path) -> Iterator[Fleet]:
    """A rollout of four replicas that has taken its first step, as the standby knows too."""
    fleet = Fleet(pair.url, redis_url, tmp_path)
    fleet.start_workers("worker1", "worker2")
    fleet.start_beat()
    fleet.deploy_first(replicas=4)
    fleet.add_revision("web", "v2", STARTUP_SECONDS="1")
    fleet.activate("web", "v2")
    eventually(lambda: steps(pair.standby.url) > 0, what="the first step, at the standby")
    yield fleet
    fleet.end()


@pytest.mark.timeout(300)
def test_a_rollout_ends_after_a_failover_and_commands_find_the_new_primary(pair: Pair, rolling: Fleet) -> None:
    pair.primary.kill()
    pair.promote()
    rolling.wait_until_ready("web", "v2", 4, within=120)
    (rollout,) = rolling.rollouts("web")
    assert rollout["outcome"] == "completed"
    eventually(lambda: rolling.replica_routes("web") == rolling.healthy("web"), what="a process for each row, no more")
    assert in_transaction(rolling.engine, impossible_combinations) == []
    for line in (("status", "web"), ("migrate",), ("scale", "web", "5")):
        told = typed(rolling, *line)
        assert told.returncode == 0, told.stderr
    rolling.wait_until_ready("web", "v2", 5)
