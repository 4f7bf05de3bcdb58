"""A fleet in which doctor finds nothing."""

from functools import partial
from typing import LiteralString
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.replicas.heartbeats import show_sign_of_life
from domain.planning.sealed_receipt import seal_receipt
from tests.support.pictures.pictures import PROVISIONING, READY
from tests.support.rows.deployments import HERE, SPEC, ask, make_deployment, write

_EVENT: LiteralString = """
    INSERT INTO outbox (subscription, deployment_id, id, type, deployment, at, data)
    SELECT 'pager', id, gen_random_uuid(), 'x', name, now() - interval '23 hours', '{}'
      FROM deployments WHERE name = 'web'
"""


_ENDED: LiteralString = """
    INSERT INTO rollouts (id, deployment_id, from_revision_id, to_revision_id, strategy, spec, limits, desired_at_start,
                          ceiling, floor, actor, reason, started_at, ended_at, outcome)
    SELECT %s, d.id, d.current_revision_id, v.id, 'recreate', '{}', '{}', 3, 3, 0, 'ann', '',
           now() - interval '3 hours', now() - interval '2 hours', 'completed'
      FROM deployments d JOIN revisions v ON v.deployment_id = d.id AND v.id <> d.current_revision_id
     WHERE d.name = 'web' ORDER BY v.id LIMIT 1
"""

_SEALED: LiteralString = """
    INSERT INTO receipts (rollout_id, deployment_id, number, text, sha256)
    SELECT %s, id, %s, %s, %s FROM deployments WHERE name = 'web'
"""


def _past(engine: Engine) -> None:
    """Three rollouts that ended, and their receipts."""
    receipt = None
    for _ in range(3):
        rollout = uuid4()
        receipt = seal_receipt({"rollout": str(rollout), "outcome": "completed"}, receipt)
        write(engine, _ENDED, rollout)
        write(engine, _SEALED, rollout, receipt.number, receipt.text, receipt.sha256)


@pytest.fixture
def host(engine: Engine) -> str:
    """A host that is up, and keeps its replicas from what steers them."""
    in_transaction(engine, partial(show_sign_of_life, host=HERE, address="127.0.0.1", replica_user="nobody"))
    return HERE


@pytest.fixture
def healthy_installation(engine: Engine, host: str) -> Engine:
    """A deployment at rest and one in a rollout, replicas with addresses of their own, receipts, and an event."""
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
    _past(engine)
    return engine
