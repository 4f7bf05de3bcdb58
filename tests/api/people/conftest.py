from collections.abc import Iterator

import pytest

from tests.support.people.people_api import People, people_process


@pytest.fixture(scope="module")
def people(module_database: str, module_redis: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """The server for people, for all tests of a module."""
    folder = tmp_path_factory.mktemp("people")
    made = People(people_process(module_database, module_redis, folder), module_database)
    made.server.start()
    yield made
    made.server.end(kill=True)
    made.engine.dispose()
