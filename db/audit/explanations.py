"""Shows people what takes decisions made once more: why a deployment waits, and receipts."""

from dataclasses import dataclass, fields, replace
from typing import Any
from uuid import UUID

from psycopg import Connection

from db.audit.receipts import deviations_of, made_from_rows, receipt_before, sealed_receipt
from db.certificates import certificates_of, troubles_of
from db.views.fleet_views import reached_at
from db.views.planning_views import last_rollout_of, waiting
from domain.planning.sealed_receipt import Seal, check_seal
from domain.planning.wait_explanation import Why, why


@dataclass(frozen=True, slots=True)
class WhyView(Why):
    """The reason why a deployment waits; `deviations`: what of its rollout came otherwise than planned so far.

    `certificates`: why one that it is reached by is missing, is not renewed, or is not believed by everybody.
    `brings`: what of its settings comes with its rollout, and from when on; empty where nothing does.
    """

    deviations: list[str]
    certificates: list[str]
    brings: str = ""


@dataclass(frozen=True, slots=True)
class ReceiptView:
    """A receipt, and its seal once it has one."""

    receipt: dict[str, Any]
    seal: Seal | None


def why_shown(connection: Connection[Any], name: str) -> WhyView:
    """Say why the deployment of that name waits. Raises DeploymentNotFoundError."""
    wait = waiting(connection, name)
    otherwise = deviations_of(connection, wait.view.rollout_id) if wait.view.rollout_id else []
    missing_worker = wait.signs.missing_worker or wait.view.overdue
    explanation = why(wait.deployment, wait.now, replace(wait.around, missing_worker=missing_worker))
    certificates = certificates_of(connection, wait.view.id)
    reach = reached_at(connection, wait.view.id)
    missed = [*troubles_of(certificates, reach.hosts)]
    shared = {field.name: getattr(explanation, field.name) for field in fields(Why)}
    return WhyView(**shared, deviations=otherwise, certificates=missed, brings=reach.brings)


def receipt_shown(connection: Connection[Any], rollout: UUID | str) -> ReceiptView:
    """The receipt of the rollout of that id, or of the last one of the deployment of that name.

    Once it is sealed, as it was sealed. Raises DeploymentNotFoundError and RolloutNotFoundError.
    """
    rollout_id = rollout if isinstance(rollout, UUID) else last_rollout_of(connection, rollout).id
    receipt = sealed_receipt(connection, rollout_id)
    if receipt is None:
        return ReceiptView(made_from_rows(connection, rollout_id), None)
    return ReceiptView(receipt.document, check_seal(receipt, receipt_before(connection, rollout_id)))
