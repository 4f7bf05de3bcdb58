"""The chains of receipts, looked through: what was changed, or taken away from the middle, since it was sealed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from psycopg import Connection
from sqlalchemy import Engine

from db.audit.impossible import Finding
from db.connection.engine import in_transaction
from domain.foresight.receipts.receipt import Sealed, broken

Place = tuple[UUID, int]
AT_ONCE = 200

# a receipt outlives its deployment's row
_PAGE = """
    SELECT r.deployment_id, r.number, r.text, r.sha256, b.text, b.sha256,
           r.number = (SELECT min(number) FROM receipts WHERE deployment_id = r.deployment_id),
           coalesce((SELECT name FROM deployments WHERE id = r.deployment_id), r.deployment_id::text)
      FROM receipts r LEFT JOIN receipts b ON b.deployment_id = r.deployment_id AND b.number = r.number - 1
     WHERE (r.deployment_id, r.number) > (%s, %s)
     ORDER BY r.deployment_id, r.number
     LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class ChainPage:
    """What was found among some receipts. `last`: the place of the last one; None: there are no more."""

    findings: Sequence[Finding]
    last: Place | None


def chain_page(connection: Connection[Any], after: Place | None) -> ChainPage:
    """Look at the next receipts behind that place, each with the one before it."""
    rows = connection.execute(_PAGE, (*(after or (UUID(int=0), 0)), AT_ONCE)).fetchall()
    found = []
    for _, number, text, sha256, text_before, sha256_before, is_oldest, name in rows:
        before = None if text_before is None else Sealed(number - 1, text_before, sha256_before)
        if fault := broken(Sealed(number, text, sha256), before, is_oldest=is_oldest):
            found.append(Finding(name, "receipt_chain_broken", fault))
    return ChainPage(found, rows[-1][:2] if len(rows) == AT_ONCE else None)


def all_chains(engine: Engine) -> Iterator[Finding]:
    """Look at all receipts, page by page."""
    after: Place | None = None
    while True:
        page = in_transaction(engine, partial(chain_page, after=after))
        yield from page.findings
        if page.last is None:
            return
        after = page.last
