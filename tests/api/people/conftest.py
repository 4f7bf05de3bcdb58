from collections.abc import Iterator

import pytest

from tests.support.people.people_api import People, serving_people


@pytest.fixture(scope="module")
def people_server(
    module_database: str, module_redis: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[People]:
    """The server for people, for all tests of a module."""
    folder = tmp_path_factory.mktemp("people")
    with serving_people(module_database, module_redis, folder) as made:
        yield made
