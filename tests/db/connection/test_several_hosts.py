"""A DATABASE_URL that names several hosts, as those write it who have a standby: the one that serves is found."""

import pytest
from sqlalchemy import Engine, make_url

from api.people.paths import DEPLOYMENT
from cli.client import Reader
from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import in_transaction, make_engine
from stack.parts.external_servers import check_database
from tests.support.rows.deployments import make_deployment
from tests.support.stack.ports import free_port

FORMS = {
    "of libpq": "postgresql://{login}@127.0.0.1:{dead},127.0.0.1:{port}/{database}?target_session_attrs={attributes}",
    "of SQLAlchemy": "postgresql+psycopg://{login}@/{database}?host=127.0.0.1:{dead}&host=127.0.0.1:{port}"
    "&target_session_attrs={attributes}",
    "by parameters": "postgresql://{login}@127.0.0.1/{database}?host=127.0.0.1,127.0.0.1&port={dead},{port}"
    "&target_session_attrs={attributes}",
}


@pytest.mark.parametrize("attributes", ["read-write", "primary"])
@pytest.mark.parametrize("form", FORMS)
def test_workers_commands_and_up_find_the_host_that_serves(
    database: str, engine: Engine, monkeypatch: pytest.MonkeyPatch, form: str, attributes: str
) -> None:
    make_deployment(engine)
    here, dead = make_url(database), free_port()
    url = FORMS[form].format(
        login=f"{here.username}:{here.password}",
        dead=dead,
        port=here.port,
        database=here.database,
        attributes=attributes,
    )
    address = f"127.0.0.1:{dead},127.0.0.1:{here.port}/{here.database}"
    settings = DatabaseSettings(url=url)
    assert settings.address == check_database(url) == address
    through = make_engine(settings)
    try:
        in_transaction(through, lambda connection: connection.execute("UPDATE deployments SET version = version"))
    finally:
        through.dispose()
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    with Reader() as reader:
        assert reader.ask(DEPLOYMENT, "web")["name"] == "web"
