"""Chunks of many deployments, one of which goes wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Engine

from domain.changes import Decision
from domain.handlers.deploying_provisioning import DeployingProvisioningHandler
from domain.model import Deployment
from tests.support.deployments import make_deployment, read
from tests.support.pictures import PROVISIONING

Decide = Callable[[Deployment], Decision | None]


@dataclass(frozen=True)
class OneGoesWrong(DeployingProvisioningHandler):
    """Like the real one, but `wrong` decides about some."""

    wrong: Decide

    def decide(self, deployment: Deployment, now: datetime) -> Decision:
        return self.wrong(deployment) or super().decide(deployment, now)


def fleet(engine: Engine, count: int, picture: str = "■■■|") -> list[UUID]:
    return [make_deployment(engine, picture, name=f"web-{i}", status=PROVISIONING).id for i in range(count)]


def reason_of(engine: Engine, deployment_id: UUID) -> str:
    (row,) = read(engine, "SELECT reason FROM deployments WHERE id = %s", deployment_id)
    return str(row["reason"])
