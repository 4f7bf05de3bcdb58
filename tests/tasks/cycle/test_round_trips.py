"""How often a rollout waits for Postgres, station by station, counted on the wire: what is cheap must stay so."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, make_url

from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import make_engine
from tasks.redis.wake import Waker
from tests.support.faults.forwarder import Forwarder, forwarder
from tests.support.rows.deployments import read
from tests.support.stack.stations import STATIONS

MOST = {
    "a command": 4,
    "a chunk of one deployment that changes": 6,
    "a chunk of one that waits": 4,
    "starting a replica": 4,
    "a replica is healthy": 4,
    "asking a replica to stop": 4,
}


@pytest.fixture
def wire(database: str) -> Iterator[Forwarder]:
    port = make_url(database).port
    assert port
    with forwarder(port) as made:
        yield made


@pytest.fixture
def behind(database: str, wire: Forwarder) -> Iterator[Engine]:
    """An engine with one connection, which is always the one that was just used."""
    url = make_url(database).set(port=wire.port).render_as_string(hide_password=False)
    made = make_engine(DatabaseSettings(url=url, pool_size=1))
    yield made
    made.dispose()


@pytest.mark.parametrize("name", STATIONS)
def test_it_waits_for_postgres_so_often(behind: Engine, wire: Forwarder, waker: Waker, name: str) -> None:
    work = STATIONS[name](behind, waker)
    assert read(behind, "SELECT 1 AS one") == [{"one": 1}]  # so the connection is not asked first whether it lives
    before = wire.turns
    work()
    assert 0 < wire.turns - before <= MOST[name]
