"""What a view says to the domain is what a command finds when it locks the deployment."""

from dataclasses import fields, replace

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.views.deployment_views import deployment_named
from domain.model.deployment import Route
from domain.model.states import DeploymentLifecycleStatus
from tests.support.pictures.pictures import PENDING, PROVISIONING, READY, ROLLING_BACK
from tests.support.rows.deployments import make_deployment, snapshot


@pytest.mark.parametrize(
    ("drawn", "status"), [("", PENDING), ("■▲□", READY), ("■■|◇", PROVISIONING), ("■|□▲", ROLLING_BACK)]
)
def test_a_view_and_a_lock_see_the_same_deployment(
    engine: Engine, drawn: str, status: DeploymentLifecycleStatus
) -> None:
    made = make_deployment(engine, drawn, status=status)
    seen = in_transaction(engine, lambda connection: deployment_named(connection, made.name)).snapshot
    routes = tuple(
        Route(**{field.name: getattr(route, field.name) for field in fields(Route)}) for route in seen.routes
    )
    assert replace(seen, routes=routes) == snapshot(engine, made.id)
