"""Real servers for every test that asks: one Postgres and one Valkey a process, a fresh migrated database a test.

A fixture imports what it needs when a test first asks for it, so that the pure tests start at once.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import closing
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, settings

from tests.support.stack.environment import empty_environment, hear_ctrl_c, keep_files_in_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import docker
    import redis
    from sqlalchemy import Engine

    from tasks.redis.wake import Waker
    from tests.support.people.people_api import People
    from tests.support.rows.databases import Copies
    from tests.support.stack.servers import EmbeddedServer

empty_environment()
keep_files_in_memory()
hear_ctrl_c()
os.environ["ROLLWAY_TRACEBACKS"] = "1"  # a fault of Rollway's own is never just a sentence here

# The same examples in every run; nightly and soak look for new ones. A mutant's failure need not be made small.
settings.register_profile("unit", max_examples=15, derandomize=True, deadline=None, database=None)
settings.register_profile("ci", max_examples=50, derandomize=True, deadline=None, database=None)
settings.register_profile("nightly", max_examples=1000, deadline=None)
settings.register_profile("soak", max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "20000")), deadline=None)
settings.register_profile("mutants", settings.get_profile("unit"), phases=(Phase.explicit, Phase.generate))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """As many processes as cores for `-n logical`; more for `-n auto`, since most tests wait most of the time."""
    cores = os.cpu_count() or 1
    return cores if config.option.numprocesses == "logical" else min(4 * cores, 12)


WAITING = ("e2e", "stack", "trust", "api")
"""Rooms of tests that wait for processes most of their time, those of the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that wait take turns with files that compute, the longest first, or only waiting would be left at last."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    rooms = {path: next((room for room in WAITING if room in path.parts), None) for path in files}
    waiting = [files[path] for room in WAITING for path in files if rooms[path] == room]
    computing = [tests for path, tests in files.items() if rooms[path] is None]
    items[:] = chain.from_iterable(chain.from_iterable(zip_longest(waiting, computing, fillvalue=())))


def pytest_collection_finish() -> None:
    """Ten thousand tests stay until the end: no collection of garbage looks at them."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """The last supervisor that a test started here has ended, and nobody has asked for its exit code."""
    if (started := sys.modules.get("stack.up")) is not None:
        for supervisor in started._LAUNCHED:
            supervisor.poll()


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    from tests.support.stack.servers import embedded_postgres

    with embedded_postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    from tests.support.stack.servers import embedded_redis

    with embedded_redis(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture(scope="session")
def template(postgres_server: EmbeddedServer) -> str:
    """The name of a database that has been migrated once; every test's database is a copy of it."""
    from tests.support.rows.databases import migrated_template

    return migrated_template(postgres_server)


@pytest.fixture(scope="session")
def copies(postgres_server: EmbeddedServer, template: str) -> Iterator[Copies]:
    from tests.support.rows.databases import Copies

    with closing(Copies(template, postgres_server)) as made:
        yield made


@pytest.fixture
def database(request: pytest.FixtureRequest, copies: Copies) -> Iterator[str]:
    """The URL of a migrated database in which nothing is. Every rollout in it is replayed in the end."""
    with copies.lent(is_replayed=request.node.get_closest_marker("decides_wrongly") is None) as url:
        yield url


@pytest.fixture
def empty_database(postgres_server: EmbeddedServer) -> Iterator[str]:
    """The URL of a database that no migration has seen."""
    from tests.support.rows.databases import without_tables

    with without_tables(postgres_server) as url:
        yield url


@pytest.fixture(scope="module")
def module_database(copies: Copies) -> Iterator[str]:
    """The same, for all tests of a module that share their workers."""
    with copies.lent() as url:
        yield url


@pytest.fixture
def engine(database: str, copies: Copies) -> Engine:
    """An engine on that database."""
    return copies.engine_on(database)


@pytest.fixture
def redis_url(redis_server: EmbeddedServer) -> str:
    """The URL of an empty Valkey."""
    return _emptied(redis_server)


@pytest.fixture(scope="module")
def module_redis(redis_server: EmbeddedServer) -> str:
    """The same, for all tests of a module: what another one's installation has left there would refuse it."""
    return _emptied(redis_server)


def _emptied(server: EmbeddedServer) -> str:
    import redis

    with redis.Redis.from_url(server.url) as client:
        client.flushall()
    return server.url


@pytest.fixture
def redis_client(redis_url: str) -> Iterator[redis.Redis]:
    import redis

    with redis.Redis.from_url(redis_url) as made:
        yield made


@pytest.fixture
def waker(redis_client: redis.Redis) -> Waker:
    """A real one; what it sends waits in Valkey, because no worker runs."""
    from tasks.redis.wake import Waker

    return Waker(redis_client)


@pytest.fixture
def replica_home(tmp_path: Path) -> Iterator[Path]:
    """A folder for replicas; none is left running at the end."""
    from runtime.process.process_table import drop_children_except
    from runtime.process.termination import stop_all
    from tests.support.stack.waiting import eventually
    from tests.support.workers.runtimes import given_back, processes_of

    with given_back(tmp_path):
        yield tmp_path
        stop_all(tmp_path, grace_seconds=0.1)  # and all that an account has left: nobody else may have it yet
        eventually(lambda: processes_of(tmp_path) == [])
    drop_children_except(())


@pytest.fixture(scope="module")
def people_server(
    module_database: str, module_redis: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[People]:
    """The server for people, for all tests of a module."""
    from tests.support.people.people_api import serving_people

    with serving_people(module_database, module_redis, tmp_path_factory.mktemp("people")) as made:
        yield made


@pytest.fixture(scope="session")
def docker_url() -> Iterator[str]:
    """The URL of a real Docker engine that holds IMAGE; the tests skip, saying why, where there is none."""
    from tests.support.docker.busybox import import_busybox
    from tests.support.docker.docker_engine import NoEngineError, any_engine

    try:
        with any_engine() as url:
            import_busybox(url)
            yield url
    except NoEngineError as error:
        pytest.skip(f"NO DOCKER ENGINE, SO THE DOCKER RUNTIME IS NOT TESTED HERE: {error}")


@pytest.fixture
def docker_api(docker_url: str) -> Iterator[docker.APIClient]:
    """That engine without Rollway."""
    import docker

    with docker.APIClient(base_url=docker_url) as made:
        yield made
