"""What stands at the edge, for tests: the api process, Envoy, replicas that say who they are, and routes to them."""

import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, LiteralString
from uuid import UUID

import httpx
import redis
from sqlalchemy import Engine

from db.connection.transactions import transaction
from stack.parts.envoy import envoy_program
from tasks.task_settings import TRAFFIC_CHANNEL
from tests.support.people.asking import KEY
from tests.support.proxies import plain_http
from tests.support.proxies.web_replicas import Replica
from tests.support.rows.databases import engine_on
from tests.support.rows.deployments import Made, make_deployment, read, write
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import Process
from tests.support.stack.waiting import eventually
from traffic.edge_settings import InFront
from traffic.envoy.bootstrap import envoy_bootstrap

DRAIN: LiteralString = """
    UPDATE routes SET status = 'terminating', traffic_status = 'inactive', drain_started_at = clock_timestamp(),
                      drain_xid = pg_current_xact_id()
     WHERE id = ANY(%s)
"""
"""As the applier does it."""


def api_process(database: str, redis_url: str, folder: Path, **environment: str) -> Process:
    port, discovery = free_port(), free_port()
    environment = {
        "DATABASE_URL": database,
        "REDIS_URL": redis_url,
        "ROLLWAY_API_PORT": str(port),
        "ROLLWAY_DISCOVERY_PORT": str(discovery),
        "ROLLWAY_HOME": str(folder),
        "ROLLWAY_PROXY_KEY": KEY,
        **environment,
    }
    command = [sys.executable, "-m", "api"]
    return Process(command, port, folder / "api.log", f"http://127.0.0.1:{port}/healthz", environment)


def discovery_port(api: Process) -> int:
    """Where it tells Envoys."""
    return int(api.environment["ROLLWAY_DISCOVERY_PORT"])


def envoy_process(
    api: Process,
    folder: Path,
    node_id: str = "edge-1",
    restarts: tuple[str, ...] = ("--disable-hot-restart",),
    discovery: int | None = None,
    host: str = "127.0.0.1",
) -> Process:
    """One that listens to the server, or to what stands before it at the port `discovery`; to callers at `host`."""
    port, admin, stats = free_port(), free_port(), free_port()
    config = folder / f"{node_id}.yaml"
    config.write_text(
        envoy_bootstrap(
            node_id=node_id,
            key=KEY,
            listen=(host, port),
            admin=("127.0.0.1", admin),
            xds=("127.0.0.1", discovery or discovery_port(api)),
            stats=("127.0.0.1", stats),
            in_front=InFront.from_environment(api.environment),
        )
    )
    options = ["--concurrency", "2", "--log-level", "warn", *restarts]
    command = [str(envoy_program()), "--config-path", str(config), *options]
    return Process(command, port, folder / f"{node_id}.log", f"http://127.0.0.1:{admin}/ready")


@contextmanager
def edge_before(database: str, redis_url: str, folder: Path) -> Iterator[str]:
    """The url of an Envoy that has its routes from an api server, until the block ends."""
    api = api_process(database, redis_url, folder)
    proxy = envoy_process(api, folder)
    try:
        api.start()
        proxy.start()
        yield proxy.url
    finally:
        for process in (proxy, api):
            if process.process is not None:
                process.end(kill=True)


@dataclass
class EdgeRoutes:
    """Changes routes as the applier does, and tells proxies; the routes point at replicas of the test's own."""

    engine: Engine
    redis_url: str

    def tell(self) -> None:
        """What the workers do after a commit that may concern proxies."""
        with redis.Redis.from_url(self.redis_url) as client:
            client.publish(TRAFFIC_CHANNEL, b"")

    def reached(self, deployment: UUID, name: str) -> None:
        query = "INSERT INTO entrances (kind, value, deployment_id) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
        for kind, value in (("host", name), ("host", f"{name}.localhost"), ("prefix", f"/{name}/")):
            write(self.engine, query, kind, value, deployment)

    def at(self, route: UUID, address: str) -> None:
        write(self.engine, "UPDATE routes SET address = %s WHERE id = %s", address, route)

    def drain(self, *routes: UUID) -> None:
        """Take them out of traffic, and say so."""
        write(self.engine, DRAIN, list(routes))
        self.tell()

    def promote(self, coming: Iterable[UUID], leaving: Iterable[UUID]) -> None:
        """As the applier does it: both in one transaction, promotions first."""
        with transaction(self.engine) as connection:
            query = "UPDATE routes SET traffic_status = 'active' WHERE id = ANY(%s)"
            connection.execute(query, (list(coming),))
            connection.execute(DRAIN, (list(leaving),))
        self.tell()

    def ill(self, route: UUID, status: str) -> None:
        write(self.engine, "UPDATE routes SET status = %s WHERE id = %s", status, route)
        self.tell()

    def released(self, *routes: UUID) -> bool:
        query = "SELECT count(*) AS n FROM routes WHERE id = ANY(%s) AND out_of_traffic_at IS NOT NULL"
        return bool(read(self.engine, query, list(routes))[0]["n"] == len(routes))


@dataclass
class Edge:
    """An api process, an Envoy that it tells, and the deployments behind them."""

    routes: EdgeRoutes
    api: Process
    envoy: Process
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def make(self, drawn_as: str, *at: Replica | str, **settings: Any) -> Made:
        """A deployment of a name of its own whose routes are at these replicas, reached by that name."""
        name = settings.pop("name", f"web{next(self.numbers)}")
        made = make_deployment(self.routes.engine, drawn_as, **{"n": 1, "name": name, **settings})
        for route, replica in zip(made.routes, at, strict=True):
            self.routes.at(route, replica if isinstance(replica, str) else replica.address)
        self.routes.reached(made.id, made.name)
        self.routes.tell()
        return made

    def ask(self, path: str = "/", method: str = "GET", **headers: str) -> httpx.Response:
        return plain_http.request(method, self.envoy.url + path, headers=headers)

    def wait_for(self, path: str, status: int = 200, /, **headers: str) -> None:
        eventually(lambda: self.ask(path, **headers).status_code == status, what=f"{path} is answered with {status}")

    @contextmanager
    def asked_all_the_time(self, path: str) -> Iterator[Counter[int]]:
        """The statuses of what three clients get, each of which asks 200 times a second at most."""
        statuses, over = Counter[int](), Event()

        def client() -> None:
            while not over.wait(0.005):
                statuses[self.ask(path).status_code] += 1

        with ThreadPoolExecutor(3) as pool:
            clients = [pool.submit(client) for _ in range(3)]
            try:
                yield statuses
            finally:
                over.set()
            for each in clients:
                each.result()

    def seconds_of_a_drain(self, route: UUID) -> float:
        """From a drain until every live proxy has acknowledged it."""
        began = time.monotonic()
        self.routes.drain(route)
        eventually(lambda: self.routes.released(route))
        return time.monotonic() - began

    def known(self) -> set[str]:
        """The ids of the proxies that are written down."""
        return {str(row["node_id"]) for row in read(self.routes.engine, "SELECT node_id FROM proxies")}


@contextmanager
def edge_of(api: Process, database: str, redis_url: str, folder: Path) -> Iterator[Edge]:
    """Start the server, and an Envoy that it tells; end both."""
    engine, envoy = engine_on(database), envoy_process(api, folder)
    try:
        api.start()
        envoy.start()
        yield Edge(EdgeRoutes(engine, redis_url), api, envoy)
    finally:
        for process in (envoy, api):
            if process.process is not None:
                process.end(kill=True)
        engine.dispose()
