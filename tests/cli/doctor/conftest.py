"""A fleet in which doctor finds nothing."""

from functools import partial
from typing import LiteralString

import pytest
from sqlalchemy import Engine

from db.connection.engine import in_transaction
from db.replicas.hosts import show_sign_of_life
from tests.support.pictures.pictures import PROVISIONING, READY
from tests.support.rows.deployments import HERE, SPEC, ask, make_deployment, write

_EVENT: LiteralString = """
    INSERT INTO outbox (subscription, deployment_id, id, type, deployment, at, data)
    SELECT 'pager', id, gen_random_uuid(), 'x', name, now() - interval '23 hours', '{}'
      FROM deployments WHERE name = 'web'
"""


@pytest.fixture
def host(engine: Engine) -> str:
    """A host that is up, and keeps its replicas from what steers them."""
    in_transaction(engine, partial(show_sign_of_life, host=HERE, address="127.0.0.1", replica_user="nobody"))
    return HERE


@pytest.fixture
def fleet(engine: Engine, host: str) -> Engine:
    """A deployment at rest and one in a rollout, each replica with an address of its own, and an event on its way."""
    for name, picture, status in (("web", "■■■", READY), ("api", "■■■|", PROVISIONING)):
        make_deployment(engine, picture, name=name, status=status)
    write(
        engine,
        "UPDATE routes SET address = concat(%s::text, ':', nth) FROM"
        " (SELECT id, 20000 + row_number() OVER () AS nth FROM routes) n WHERE n.id = routes.id",
        host,
    )
    ask(engine, "add_revision", deployment="web", spec=SPEC)
    write(
        engine,
        "INSERT INTO subscriptions (name, webhook, give_up_after_seconds, actor)"
        " VALUES ('pager', 'PAGER', 86400, 'ann')",
    )
    write(engine, _EVENT)
    return engine
