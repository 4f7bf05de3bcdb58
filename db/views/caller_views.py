"""The reads for people: what callers get, in the last minute and in the last hour."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row

from domain.traffic.request_counts import NO_REQUESTS, Requests, losses_in_words, waited_ms

_MOST_LOSING = 20

_SINCE = "(date_trunc('minute', clock_timestamp()) - interval '1 minute')"

_HOUR = """
    SELECT m.minute, least(60, extract(epoch FROM clock_timestamp() - m.minute))::float8,
           r.fine, r.redirected, r.refused, r.failed, r.waited
      FROM generate_series(date_trunc('minute', clock_timestamp()) - interval '59 minutes', clock_timestamp(),
                           interval '1 minute') AS m (minute)
      LEFT JOIN requests r ON r.deployment_id = %s AND r.minute = m.minute
     ORDER BY m.minute
"""

_NOW = f"""
    SELECT coalesce(v.name, ''), extract(epoch FROM clock_timestamp() - {_SINCE})::float8,
           r.fine, r.redirected, r.refused, r.failed, r.waited
      FROM requests r LEFT JOIN revisions v ON v.id = r.revision_id
     WHERE r.deployment_id = %s AND r.minute >= {_SINCE}
     ORDER BY v.created_at, r.minute
"""

_LOSING = f"""
    SELECT d.name AS deployment, r.requests / s.seconds AS per_second, r.failed / s.seconds AS failed_per_second,
           ARRAY(SELECT DISTINCT coalesce(v.name, '') FROM requests x LEFT JOIN revisions v ON v.id = x.revision_id
                  WHERE x.deployment_id = d.id AND x.minute >= {_SINCE} AND x.failed > 0 ORDER BY 1) AS revisions
      FROM (SELECT deployment_id, sum(failed)::float8 AS failed,
                   sum(fine + redirected + refused + failed)::float8 AS requests
              FROM requests WHERE minute >= {_SINCE} GROUP BY deployment_id) r
      JOIN deployments d ON d.id = r.deployment_id,
           LATERAL (SELECT extract(epoch FROM clock_timestamp() - {_SINCE})::float8 AS seconds) s
     WHERE r.failed > 0 AND (%(names)s::text[] IS NULL OR d.name = ANY(%(names)s))
     ORDER BY r.failed DESC, d.name LIMIT {_MOST_LOSING}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteView:
    """What callers got in one minute, per second; `seconds` of the minute have passed.

    `half_ms`, `most_ms`: the ms in which half of them, and 95 of 100, got their first byte; None where that is not
    known, or is above the longest time that is counted.
    """

    at: datetime
    seconds: float
    per_second: float
    failed_per_second: float
    refused_per_second: float
    half_ms: int | None
    most_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweringView:
    """What callers got from a revision within the last minute or two. `revision`: empty where no replica was there."""

    revision: str
    per_second: float
    failed_per_second: float
    refused_per_second: float
    half_ms: int | None
    most_ms: int | None


@dataclass(frozen=True, slots=True)
class CallersView:
    """What callers got. `minutes`: the last hour's; `now`: by revision, the oldest first; `losses`: its failures."""

    minutes: list[MinuteView]
    now: list[AnsweringView]
    losses: str = ""


@dataclass(frozen=True, slots=True)
class LosingView:
    """A deployment whose callers got failures within the last minute or two, and the revisions that failed.

    `sentence`: the same in words.
    """

    deployment: str
    per_second: float
    failed_per_second: float
    revisions: list[str]
    sentence: str


def callers_of(connection: Connection[Any], deployment_id: UUID) -> CallersView:
    minutes: defaultdict[datetime, Requests] = defaultdict(lambda: NO_REQUESTS)
    lasted: dict[datetime, float] = {}
    for minute, seconds, *counts in connection.execute(_HOUR, (deployment_id,)):
        minutes[minute] += _requests(counts)
        lasted[minute] = seconds
    now: defaultdict[str, Requests] = defaultdict(lambda: NO_REQUESTS)
    passed = 60.0
    for revision, passed, *counts in connection.execute(_NOW, (deployment_id,)):  # noqa: B007  (the same in each row)
        now[revision] += _requests(counts)
    total, seconds = sum(now.values(), NO_REQUESTS), max(passed, 1.0)
    failing = [revision for revision, its in now.items() if its.failed]
    losses = losses_in_words(total.count / seconds, total.failed / seconds, failing)
    return CallersView(
        [MinuteView(at=at, seconds=lasted[at], **_as_json(its, lasted[at])) for at, its in minutes.items()],
        [AnsweringView(revision=revision, **_as_json(its, passed)) for revision, its in now.items()],
        losses,
    )


def losing(connection: Connection[Any], names: Sequence[str] | None) -> list[LosingView]:
    """The deployments whose callers get failures now, the most failures first; of these names, or of all."""
    rows = connection.cursor(row_factory=dict_row).execute(_LOSING, {"names": None if names is None else list(names)})
    counts = ("per_second", "failed_per_second", "revisions")
    return [LosingView(**row, sentence=losses_in_words(*(row[name] for name in counts))) for row in rows]


def _requests(counts: Sequence[Any]) -> Requests:
    return NO_REQUESTS if counts[-1] is None else Requests.from_row(*counts)


def _as_json(its: Requests, seconds: float) -> dict[str, Any]:
    each = max(seconds, 1.0)
    return {
        "per_second": its.count / each,
        "failed_per_second": its.failed / each,
        "refused_per_second": its.refused / each,
        "half_ms": waited_ms(its.waited, 0.5),
        "most_ms": waited_ms(its.waited, 0.95),
    }
