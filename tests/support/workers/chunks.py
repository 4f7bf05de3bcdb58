"""Deployments that are worked on in one chunk."""

from uuid import UUID

from sqlalchemy import Engine

from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import make_deployment, read


def fleet(engine: Engine, count: int, picture: str = "■■■|") -> list[UUID]:
    """Their ids; they are called web-0, web-1, and so on."""
    return [make_deployment(engine, picture, name=f"web-{i}", status=PROVISIONING).id for i in range(count)]


def reason_of(engine: Engine, deployment_id: UUID) -> str:
    (row,) = read(engine, "SELECT reason FROM deployments WHERE id = %s", deployment_id)
    return str(row["reason"])
