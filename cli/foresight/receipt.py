"""`rollway receipt`."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any
from uuid import UUID

import typer
from psycopg import Connection

from cli.options import AsJson
from cli.output import print_json, printer
from cli.servers import Reader
from cli.show.receipt import receipt_page
from db.audit.receipts import made_from_rows, receipt_before, sealed_receipt
from db.views.foresight import last_rollout_of
from domain.foresight.receipt import Seal, checked

Rollout = Annotated[
    str,
    typer.Argument(metavar="ROLLOUT", help="Its id; or a deployment, of which the last one is shown."),
]


@dataclass(frozen=True, slots=True)
class Found:
    """A receipt, and its seal once it has one."""

    receipt: dict[str, Any]
    seal: Seal | None


def receipt(*, rollout: Rollout, as_json: AsJson = False) -> None:
    """Show what a rollout promised, and what it did, from the steps that are on record.

    A worker seals the receipt within a minute after the end: with its SHA-256, and with that of the receipt before of
    the same deployment. From then on it is shown as it was sealed, also when the rollout itself is forgotten.
    """
    with Reader() as reader:
        found = reader.read(_found, rollout)
    if as_json:
        return print_json({"receipt": found.receipt, "seal": asdict(found.seal) if found.seal else None})
    return printer().print(receipt_page(found.receipt, found.seal))


def _found(connection: Connection[Any], named: str) -> Found:
    """Raises DeploymentNotFoundError or RolloutNotFoundError."""
    rollout_id = _id_of(connection, named)
    sealed = sealed_receipt(connection, rollout_id)
    if sealed is None:
        return Found(made_from_rows(connection, rollout_id), None)
    return Found(sealed.document, checked(sealed, receipt_before(connection, rollout_id)))


def _id_of(connection: Connection[Any], named: str) -> UUID:
    try:
        return UUID(named)
    except ValueError:
        return last_rollout_of(connection, named).id
