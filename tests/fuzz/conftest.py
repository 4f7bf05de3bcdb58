"""The world that the inputs come into."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.fuzz.world import World
from tests.support.proxies.edge import api_process
from tests.support.rows.deployments import make_deployment
from tests.support.stack.this_process import forget_servers
from tests.support.workers.payloads import ELSEWHERE


@pytest.fixture
def world(
    engine: Engine, database: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    """A stack with the deployment `web`, which this process and a server for proxies know."""
    for name, value in (("DATABASE_URL", database), ("REDIS_URL", redis_url), ("ROLLWAY_HOME", str(tmp_path / "home"))):
        monkeypatch.setenv(name, value)
    forget_servers()
    api = api_process(database, redis_url, tmp_path)
    api.start()
    routes = make_deployment(engine, "■■■", spec=ELSEWHERE).routes
    yield World(engine, tmp_path, api, routes)
    api.end(kill=True)
    forget_servers()
