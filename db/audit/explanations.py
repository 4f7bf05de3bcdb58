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
    seen = waiting(connection, name)
    otherwise = deviations_of(connection, seen.view.rollout_id) if seen.view.rollout_id else []
    missing = seen.signs.missing_worker or seen.view.overdue
    told = why(seen.deployment, seen.now, replace(seen.around, missing_worker=missing))
    certificates = certificates_of(connection, seen.view.id)
    reached = reached_at(connection, seen.view.id)
    missed = [*troubles_of(certificates, reached.hosts)]
    said = {field.name: getattr(told, field.name) for field in fields(Why)}
    return WhyView(**said, deviations=otherwise, certificates=missed, brings=reached.brings)


def receipt_shown(connection: Connection[Any], named: UUID | str) -> ReceiptView:
    """The receipt of the rollout of that id, or of the last one of the deployment of that name.

    Once it is sealed, as it was sealed. Raises DeploymentNotFoundError and RolloutNotFoundError.
    """
    rollout_id = named if isinstance(named, UUID) else last_rollout_of(connection, named).id
    sealed = sealed_receipt(connection, rollout_id)
    if sealed is None:
        return ReceiptView(made_from_rows(connection, rollout_id), None)
    return ReceiptView(sealed.document, check_seal(sealed, receipt_before(connection, rollout_id)))
