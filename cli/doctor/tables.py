"""How big the tables are, and how many of their rows are cut next: nothing that could be wrong."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from rich.table import Table
from sqlalchemy import Engine

from cli.terminal.output import columns
from db.connection.engine import in_transaction
from db.retention.cut import commands_to_cut, page_of_past, rows_to_cut
from db.retention.rules import TableSize, table_sizes
from domain.installation.retention import Retention


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables. `past`: by table, how many rows may be cut."""

    sizes: Sequence[TableSize]
    past: Mapping[str, int]

    @property
    def document(self) -> list[dict[str, Any]]:
        """The tables as values of JSON."""
        return [{**asdict(size), "to_cut": self.past.get(size.name, 0)} for size in self.sizes]

    @property
    def shown(self) -> Table:
        """The tables for a terminal."""
        table = columns("TABLE", "ROWS", "BYTES", "TO CUT")
        for size in self.sizes:
            table.add_row(size.name, f"{size.rows:,}", f"{size.bytes:,}", f"{self.past.get(size.name, 0):,}")
        return table


def measured_tables(engine: Engine) -> Tables:
    """Measure all, and count what will be cut next by the settings of this shell."""
    retention = Retention.from_environment(os.environ)
    past = Counter(commands=in_transaction(engine, partial(commands_to_cut, retention=retention)))
    page = in_transaction(engine, partial(page_of_past, retention=retention, after=None))
    while page.ids or page.last:
        past += in_transaction(engine, partial(rows_to_cut, retention=retention, ids=page.ids))
        if page.last is None:
            break
        page = in_transaction(engine, partial(page_of_past, retention=retention, after=page.last))
    return Tables(in_transaction(engine, table_sizes), past)
