"""Servers as others run them: behind a PgBouncer, with certificates, with a standby, with commands that are refused."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import redis

from db.audit.invariants import impossible_combinations
from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import in_transaction, make_engine, transaction
from migrations.schema import upgrade
from tests.support.faults.pooler import pgbouncer
from tests.support.faults.standby import Pair, postgres_with_standby
from tests.support.faults.tls import make_authority, make_certificate
from tests.support.rows.databases import engine_on, replay
from tests.support.stack.environment import needs_open_clone
from tests.support.stack.stack import ROOT, Fleet
from tests.support.stack.waiting import eventually

pytestmark = [pytest.mark.e2e, needs_open_clone]

HIS = ("config", "debug", "keys", "flushall", "flushdb", "save", "bgsave", "shutdown", "monitor", "acl", "sync")
"""What managed servers refuse."""
ALL_BUT_HIS = ["+@all", *(f"-{command}" for command in HIS)]


@pytest.fixture(params=["", "ignore_startup_parameters = options"], ids=["refuses options", "ignores options"])
def behind(request: pytest.FixtureRequest, database: str, pooler_folder: Path) -> Iterator[str]:
    with pgbouncer(database, pooler_folder, request.param) as url:
        yield url


@pytest.fixture
def pooler_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that the pooler may read, which runs as nobody where we are root."""
    folder = tmp_path_factory.mktemp("pooler")
    for above in (folder, *folder.parents):
        if above.stat().st_uid == os.geteuid() and above != above.parent:
            above.chmod(above.stat().st_mode | 0o011)
    folder.chmod(0o755)
    return folder


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


def test_a_rollout_goes_through_a_postgres_that_shows_a_certificate_and_a_stranger_is_refused(
    database: str, fleet: Fleet, pooler_folder: Path, tmp_path: Path
) -> None:
    make_certificate(pooler_folder / "tls")
    for file in (pooler_folder / "tls").iterdir():
        file.chmod(0o644)
    lines = ("sslmode = require", f"key_file = {pooler_folder}/tls/s.key", f"cert_file = {pooler_folder}/tls/s.pem")
    with pgbouncer(database, pooler_folder, "\n".join(f"client_tls_{line}" for line in lines)) as url:
        right, stranger = pooler_folder / "tls/ca.pem", make_authority(tmp_path / "stranger")
        checked = f"{url}?sslmode=verify-full&sslrootcert="
        fleet.start_workers("worker1", DATABASE_URL=f"{checked}{right}")
        fleet.deploy_first(replicas=1)
        for refused, why in (
            (f"{url}?sslmode=verify-full", "cannot be checked: name the file of its authority with ?sslrootcert="),
            (f"{checked}{stranger}", "shows a certificate that ?sslrootcert= of DATABASE_URL does not vouch for"),
            (f"{checked}{right}".replace("127.0.0.1", "localhost"), "shows a certificate for another name"),
        ):
            told = typed(fleet, "status", DATABASE_URL=refused, HOME=str(tmp_path))
            assert (told.returncode, told.stdout) == (3, "")
            assert why in told.stderr


def test_a_rollout_goes_through_a_redis_whose_provider_keeps_commands_to_himself(
    database: str, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    redis_client.acl_setuser(
        "tenant", enabled=True, passwords=["+s3cret"], keys=["*"], channels=["*"], commands=ALL_BUT_HIS
    )
    theirs = urlsplit(redis_url)
    fleet = Fleet(database, theirs._replace(netloc=f"tenant:s3cret@127.0.0.1:{theirs.port}").geturl(), tmp_path)
    try:
        fleet.start_workers("worker1")
        fleet.start_beat()
        fleet.deploy_first(replicas=1)
        assert typed(fleet, "slots", "2").stdout == "2 for each handler\n"
        assert redis_client.acl_log() == []
    finally:
        fleet.end()
        redis_client.acl_deluser("tenant")


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
