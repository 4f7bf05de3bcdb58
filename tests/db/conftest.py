from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from tests.support.rows.databases import engine_on


@pytest.fixture
def empty_engine(empty_database: str) -> Iterator[Engine]:
    """An engine on that database."""
    made = engine_on(empty_database)
    yield made
    made.dispose()


@pytest.fixture(scope="module")
def module_engine(module_database: str) -> Iterator[Engine]:
    """An engine on a database that all tests of a module share."""
    made = engine_on(module_database)
    yield made
    made.dispose()
