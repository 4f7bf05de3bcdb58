from collections.abc import Iterator

import pytest

from tests.support.people.people_api import People, people_process
from tests.support.stack.servers import EmbeddedServer


@pytest.fixture(scope="module")
def people(
    module_database: str, redis_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[People]:
    """The server for people, for all tests of a module."""
    folder = tmp_path_factory.mktemp("people")
    made = People(people_process(module_database, redis_server.url, folder), module_database)
    made.server.start()
    yield made
    made.server.end(kill=True)
    made.engine.dispose()
