from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Engine

from tests.support.deployments import engine_on
from tests.support.servers import EmbeddedServer


@pytest.fixture
def empty_database(postgres_server: EmbeddedServer) -> Iterator[str]:
    """The URL of a database that no migration has seen."""
    name = f"empty_{uuid4().hex[:8]}"
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield f"{postgres_server.url.rpartition('/')[0]}/{name}"
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def empty(empty_database: str) -> Iterator[Engine]:
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
