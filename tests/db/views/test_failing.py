"""A deployment is said to fail while what it runs, or rolls out, does not start."""

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.views.deployment_views import deployment_named
from domain.model.picture import Standing
from tests.support.pictures.pictures import PROVISIONING, READY
from tests.support.rows.deployments import make_deployment, write

FAILED = "UPDATE deployments SET failed_starts = 3, last_failed_at = now(), failed_revision_id = %s"


@pytest.mark.parametrize(
    ("drawn", "failed", "stands"),
    [
        ("■■■", "v1", Standing("ready, failing", "bad")),
        ("■■■", "v2", Standing("ready", "good")),  # it was taken back
        ("■■|◇", "v2", Standing("deploying, failing", "bad")),
    ],
)
def test_what_was_taken_back_fails_no_more(engine: Engine, drawn: str, failed: str, stands: Standing) -> None:
    made = make_deployment(engine, drawn, status=PROVISIONING if "|" in drawn else READY)
    write(engine, FAILED, getattr(made, failed))
    view = in_transaction(engine, lambda connection: deployment_named(connection, made.name))
    assert view.standing == stands
