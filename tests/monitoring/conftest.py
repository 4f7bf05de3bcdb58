from collections.abc import Iterator

import pytest
import redis

from tests.support.faults.watched import Watched, watched_fleet
from tests.support.stack.servers import EmbeddedServer


@pytest.fixture(scope="module")
def watched(
    module_database: str, redis_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    """One fleet for all tests of a module, with a real Prometheus that watches it, where there is one."""
    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
    with watched_fleet(module_database, redis_server.url, tmp_path_factory.mktemp("watched")) as made:
        yield made
