"""`rollway receipt`."""

from dataclasses import asdict
from typing import Annotated
from uuid import UUID

import typer

from cli.completing import deployments_offered
from cli.options import AsJson
from cli.servers import Reader
from cli.show.receipt import receipt_page
from cli.terminal.output import print_json, printer
from db.audit.shown import ReceiptView
from domain.commands.base import DEPLOYMENT

Rollout = Annotated[
    str,
    typer.Argument(
        metavar="ROLLOUT",
        help="Its id; or a deployment, of which the last one is shown.",
        autocompletion=deployments_offered,
    ),
]


def receipt(*, rollout: Rollout, as_json: AsJson = False) -> None:
    """Show what a rollout promised, and what it did, from the steps that are on record.

    A worker seals the receipt within a minute after the end: with its SHA-256, and with that of the receipt before of
    the same deployment. From then on it is shown as it was sealed, also when the rollout itself is forgotten.
    """
    with Reader() as reader:
        found = reader.view(ReceiptView, *_of(rollout))
    if as_json:
        return print_json(asdict(found))
    return printer().print(receipt_page(found.receipt, found.seal))


def _of(given: str) -> tuple[str, str]:
    """The path of the receipt of an id, or of the last one of a deployment, and what it names."""
    try:
        return "/v1/rollouts/{rollout}/receipt", str(UUID(given))
    except ValueError:
        return f"{DEPLOYMENT}/receipt", given
