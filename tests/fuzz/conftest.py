"""The world that the inputs come into."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from db.connection.transactions import engine as engine_of_this_process
from tasks.task_settings import settings
from tasks.worker import connections
from tests.fuzz.world import World
from tests.support.proxies.edge import api_process
from tests.support.rows.deployments import make_deployment
from tests.support.workers.payloads import ELSEWHERE

_MADE_ONCE = (engine_of_this_process, settings, connections.redis_client, connections.waker)


@pytest.fixture
def world(
    engine: Engine, database: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    """A stack with the deployment `web`, which this process and a server for proxies know."""
    for name, value in (("DATABASE_URL", database), ("REDIS_URL", redis_url), ("ROLLWAY_HOME", str(tmp_path / "home"))):
        monkeypatch.setenv(name, value)
    _forget()
    api = api_process(database, redis_url, tmp_path)
    api.start()
    routes = make_deployment(engine, "■■■", spec=ELSEWHERE).routes
    yield World(engine, tmp_path, api, routes)
    api.end(kill=True)
    _forget()


def _forget() -> None:
    """Close what this process has opened, also for a test before."""
    if engine_of_this_process.cache_info().currsize:
        engine_of_this_process().dispose()
    if connections.redis_client.cache_info().currsize:
        connections.redis_client().close()
    for made in _MADE_ONCE:
        made.cache_clear()
