"""The read for people: when those who do the work were last heard of."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from domain.numbers import duration

SILENT = timedelta(seconds=5)

_SIGNS = """
    SELECT clock_timestamp() AS now, (SELECT max(last_seen_at) FROM hosts) AS worker,
           (SELECT max(seen_at) FROM publishers) AS api, (SELECT ticked_at FROM beat) AS beat
"""


@dataclass(frozen=True, slots=True)
class SignsOfLife:
    """The last signs at the database's time `now`: of any worker, server for proxies and beat. None: never."""

    now: datetime
    worker: datetime | None
    api: datetime | None
    beat: datetime | None

    @property
    def missing_worker(self) -> str:
        """A sentence when no worker does anything; empty when one does."""
        if self.worker is None:
            return "no worker has been heard of yet, so nothing is started or stopped; 'rollway up' starts some"
        if self.now - self.worker <= SILENT:
            return ""
        since = duration(self.now - self.worker)
        return f"no worker has been heard of for {since}, so nothing is started, probed or stopped; does one run?"


def signs_of_life(connection: Connection[Any]) -> SignsOfLife:
    """Workers and servers for proxies show one each second, and workers note one of beat every 3 s."""
    (signs,) = connection.cursor(row_factory=class_row(SignsOfLife)).execute(_SIGNS).fetchall()
    return signs
