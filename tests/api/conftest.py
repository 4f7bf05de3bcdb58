from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.deployments import engine_on
from tests.support.edge import Edge, EdgeRoutes, Process, api_process, envoy_process
from tests.support.servers import EmbeddedServer


@pytest.fixture(scope="module")
def edge(
    module_database: str, redis_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Edge]:
    """An api process and an Envoy that polls it, for all tests of a module; each has a deployment of its own."""
    folder = tmp_path_factory.mktemp("edge")
    engine = engine_on(module_database)
    api = api_process(module_database, redis_server.url, folder)
    api.start()
    envoy = envoy_process(api.port, folder)
    try:
        envoy.start()
        yield Edge(EdgeRoutes(engine, redis_server.url), api, envoy)
    finally:
        for one in (envoy, api):
            one.end(kill=True)
        engine.dispose()


@pytest.fixture
def routes(engine: Engine, redis_url: str) -> EdgeRoutes:
    return EdgeRoutes(engine, redis_url)


@pytest.fixture
def api(database: str, redis_url: str, tmp_path: Path) -> Iterator[Process]:
    """The server for proxies, in a process of its own that a test may end."""
    made = api_process(database, redis_url, tmp_path)
    made.start()
    yield made
    made.end(kill=True)


@pytest.fixture
def envoy(api: Process, tmp_path: Path) -> Iterator[Process]:
    """A real Envoy that polls it."""
    made = envoy_process(api.port, tmp_path)
    made.start()
    yield made
    made.end(kill=True)
