from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from tests.support.people.asking import page
from tests.support.proxies.edge import Edge, EdgeRoutes, api_process, edge_of, envoy_process
from tests.support.proxies.streaming import Node
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.databases import engine_on
from tests.support.rows.deployments import Made, make_deployment
from tests.support.stack.server_process import Process
from tests.support.stack.waiting import eventually


@pytest.fixture(scope="module")
def envoy_edge(module_database: str, module_redis: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    """An api process and an Envoy that it tells, for all tests of a module; each has a deployment of its own."""
    folder = tmp_path_factory.mktemp("edge")
    api = api_process(module_database, module_redis, folder)
    with edge_of(api, module_database, module_redis, folder) as made:
        yield made


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
    """A real Envoy that it tells."""
    made = envoy_process(api, tmp_path)
    made.start()
    yield made
    made.end(kill=True)


@pytest.fixture(scope="module")
def shared_server(
    module_database: str, module_redis: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[EdgeRoutes, Process]]:
    """One api process for all tests of this module."""
    folder = tmp_path_factory.mktemp("api")
    engine, made = engine_on(module_database), api_process(module_database, module_redis, folder)
    made.start()
    yield EdgeRoutes(engine, module_redis), made
    made.end(kill=True)
    engine.dispose()


@pytest.fixture
def node(shared_server: tuple[EdgeRoutes, Process]) -> Iterator[Node]:
    """A proxy that is played by hand."""
    with Node(shared_server[1]) as node:
        yield node


@pytest.fixture
def web(shared_server: tuple[EdgeRoutes, Process]) -> Made:
    routes, api = shared_server
    made = make_deployment(routes.engine, "■■■", n=1, name=f"web-{uuid4().hex[:6]}")
    routes.reached(made.id, made.name)
    routes.tell()
    eventually(lambda: made.name in [service["name"] for service in page(api.url, "/v1/traffic").json()["services"]])
    return made


@pytest.fixture
def eight_replicas(envoy_edge: Edge) -> Iterator[Made]:
    """A deployment with eight replicas to drain, one after the other."""
    with replicas("here") as (here,):
        made = envoy_edge.make("■" * 8, *[here] * 8)
        eventually(lambda: envoy_edge.ask(f"/{made.name}/").status_code == 200)
        yield made
