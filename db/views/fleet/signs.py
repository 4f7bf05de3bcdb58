"""The read for people: when those who do the work were last heard of."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from db.locking.live import IS_LIVE
from domain.replicas.silence import MISSED_AFTER
from domain.words.numbers import duration

_SIGNS = f"""
    SELECT clock_timestamp() AS now, (SELECT max(last_seen_at) FROM hosts) AS worker,
           (SELECT max(seen_at) FROM publishers) AS api, (SELECT ticked_at FROM beat) AS beat,
           ARRAY(SELECT name FROM hosts WHERE down_since IS NULL AND replica_user IS NULL ORDER BY name) AS unwalled,
           live.proxies, live.telling
      FROM (SELECT count(*)::int AS proxies, count(stats_address)::int AS telling FROM proxies p WHERE {IS_LIVE}) live
"""


@dataclass(frozen=True, slots=True)
class SignsOfLife:
    """The last signs at the database's time `now`: of any worker, server for proxies and beat. None: never.

    `telling`: how many of the live `proxies` tell what they answer, as judges need it. `unwalled`: the hosts that are
    up and whose processes run as the workers' own user.
    """

    now: datetime
    worker: datetime | None
    api: datetime | None
    beat: datetime | None
    unwalled: Sequence[str]
    proxies: int
    telling: int

    @property
    def missing_worker(self) -> str:
        """A sentence when no worker does anything; empty when one does."""
        if self.worker is None:
            return "no worker has been heard of yet, so nothing is started or stopped; 'rollway up' starts some"
        if self.now - self.worker <= MISSED_AFTER:
            return ""
        since = duration(self.now - self.worker)
        return f"no worker has been heard of for {since}, so nothing is started, probed or stopped; does one run?"

    @property
    def missing_wall(self) -> str:
        """A sentence when what runs reads what steers it; empty when there is an account between them."""
        if not self.unwalled:
            return ""
        where = ", ".join(self.unwalled[:3]) + (f" and {len(self.unwalled) - 3} more" if self.unwalled[3:] else "")
        return (
            f"processes on {where} run as the workers' own user and can read what steers the fleet; "
            "ROLLWAY_REPLICA_USER names another one"
        )

    @property
    def missing_evidence(self) -> str:
        """A sentence when a judge hears of no request, or not of all; empty when it does."""
        if not self.telling:
            return "no live proxy tells what it answers, so its judge will find nothing; seconds need no judge"
        if self.telling < self.proxies:
            return f"only {self.telling} of {self.proxies} live proxies tell what they answer: its judge sees no more"
        return ""


def signs_of_life(connection: Connection[Any]) -> SignsOfLife:
    """Workers and servers for proxies show one each second, and workers note one of beat every 3 s."""
    (signs,) = connection.cursor(row_factory=class_row(SignsOfLife)).execute(_SIGNS).fetchall()
    return signs
