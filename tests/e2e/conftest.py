"""Real worker and beat processes over real servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.people.people_api import People, serving_people
from tests.support.proxies.edge import edge_before
from tests.support.stack.stack import Fleet


@pytest.fixture
def fleet(database: str, redis_url: str, tmp_path: Path) -> Iterator[Fleet]:
    """No process yet: a test starts the workers and beats that it is about. All end with the test."""
    fleet = Fleet(database, redis_url, tmp_path)
    yield fleet
    fleet.end()


@pytest.fixture(scope="module")
def running_fleet(module_database: str, module_redis: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Two workers and a beat for all tests of a module, each of which has a deployment of its own."""
    fleet = Fleet(module_database, module_redis, tmp_path_factory.mktemp("fleet"))
    fleet.start_workers("worker1", "worker2")
    fleet.start_beat()
    yield fleet
    fleet.end()


@pytest.fixture(scope="module")
def envoy_url(running_fleet: Fleet) -> Iterator[str]:
    """The url of an Envoy that has its routes from an api server, beside the fleet."""
    with edge_before(running_fleet.database, running_fleet.environment["REDIS_URL"], running_fleet.home) as url:
        yield url


@pytest.fixture(scope="module")
def server_beside_fleet(running_fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """The server for people beside it."""
    folder = tmp_path_factory.mktemp("people")
    with serving_people(running_fleet.database, running_fleet.environment["REDIS_URL"], folder) as made:
        yield made
