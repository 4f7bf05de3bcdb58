"""Real worker and beat processes over real servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.proxies.edge import api_process, envoy_process
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
def envoy(running_fleet: Fleet) -> Iterator[str]:
    """The url of an Envoy that has its routes from an api server, beside the fleet."""
    redis_url = running_fleet.environment["REDIS_URL"]
    api = api_process(running_fleet.database, redis_url, running_fleet.home)
    proxy = envoy_process(api, running_fleet.home)
    try:
        api.start()
        proxy.start()
        yield proxy.url
    finally:
        for process in (proxy, api):
            if process.process is not None:
                process.end(kill=True)
