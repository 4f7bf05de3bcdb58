"""A dump is restored under replicas that run: what both know serves on, the rest becomes what the dump says."""

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from cli.demo.demo_run import demo_load
from cli.demo.load.generator import Load
from domain.model.lifecycle_events import RouteLifecycleType
from stack.parts.postgres_account import installed_tree
from tests.support.proxies.edge import api_process, envoy_process
from tests.support.stack.server_process import Process
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e


@pytest.fixture
def api(fleet: Fleet) -> Iterator[Process]:
    api = api_process(fleet.database, fleet.environment["REDIS_URL"], fleet.home)
    api.start()
    yield api
    api.end(kill=True)


@pytest.fixture
def load(api: Process, fleet: Fleet) -> Iterator[Load]:
    """Requests to `kept` through an Envoy."""
    envoy = envoy_process(api, fleet.home)
    envoy.start()
    load = demo_load(envoy.url, "kept")
    yield load
    load.stop()
    envoy.end(kill=True)


def dump(fleet: Fleet, file: Path) -> None:
    run("pg_dump", "--format=custom", f"--file={file}", fleet.database)


def restore(fleet: Fleet, file: Path) -> None:
    """A worker that continues may read the tables meanwhile, in another order than they are dropped: then once more."""
    is_empty = False
    while not is_empty:
        with suppress(psycopg.errors.DeadlockDetected), psycopg.connect(fleet.database) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
            is_empty = True
    run("pg_restore", "--no-owner", "--single-transaction", f"--dbname={fleet.database}", str(file))


def run(program: str, *arguments: str) -> None:
    command = [str(installed_tree() / "bin" / program), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_what_the_dump_knows_serves_on_what_is_gone_comes_back_and_what_it_does_not_know_is_ended(
    fleet: Fleet, api: Process, load: Load, tmp_path: Path
) -> None:
    fleet.start_workers("worker", "forgotten")
    fleet.start_beat()
    for name in ("kept", "web"):
        fleet.deploy_first(name, replicas=2)
    dump(fleet, tmp_path / "dump")
    load.start()
    fleet.add_revision("web", "v2")
    fleet.activate("web", "v2")
    fleet.wait_until_ready("web", "v2", 2)
    fleet.deploy_first("late", replicas=1)
    kept = fleet.replica_routes("kept")

    fleet.kill("beat")
    assert fleet.ask_to_end("worker") == 0
    api.end()  # and one worker is forgotten, which continues
    restore(fleet, tmp_path / "dump")
    fleet.start_workers("worker-again")
    fleet.start_beat("beat-again")
    fleet.wait_until_ready("web", "v1", 2)
    api.start()

    fleet.waker.routes(RouteLifecycleType.SWEEP)
    eventually(lambda: fleet.replica_processes("late") == [], what="what the dump does not know to be ended")
    eventually(lambda: fleet.replica_routes("web") == fleet.healthy("web"), what="v2 to be ended")
    assert fleet.replica_routes("kept") == kept == fleet.healthy("kept")
    load.stop()
    assert load.tally.requests > 100
    assert load.tally.failed == {}
