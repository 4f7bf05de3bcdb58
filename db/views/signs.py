"""The read for people: when those who do the work were last heard of."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

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


def signs_of_life(connection: Connection[Any]) -> SignsOfLife:
    """Workers and servers for proxies show one each second, and workers note one of beat every 3 s."""
    (signs,) = connection.cursor(row_factory=class_row(SignsOfLife)).execute(_SIGNS).fetchall()
    return signs
