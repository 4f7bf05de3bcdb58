"""Keeps what callers got: of the last hour a row for each minute, and the sums that metrics show."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from psycopg import Connection

from db.locking.rows import columns
from domain.traffic.request_counts import NO_REQUESTS, NOBODY, OTHERS, Answering, Came, Requests

_CAME = columns("deployment text, revision_id uuid, fine int8, redirected int8, refused int8, failed int8, waited text")

_WAITED = """
    ARRAY(SELECT known + more FROM unnest(r.waited, excluded.waited) WITH ORDINALITY AS w (known, more, place)
           ORDER BY place)
"""
_ADD = f"""
       SET fine = r.fine + excluded.fine, redirected = r.redirected + excluded.redirected,
           refused = r.refused + excluded.refused, failed = r.failed + excluded.failed, waited = {_WAITED}
"""

# one order for all, so that two servers never wait for each other in a circle
_MINUTES = f"""
    INSERT INTO requests AS r (deployment_id, minute, revision_id, fine, redirected, refused, failed, waited)
    SELECT d.id, date_trunc('minute', clock_timestamp()), u.revision_id,
           u.fine, u.redirected, u.refused, u.failed, u.waited::int8[]
      FROM {_CAME} JOIN deployments d ON d.name = u.deployment AND d.lifecycle <> 'destroyed'
     ORDER BY d.id, u.revision_id
        ON CONFLICT (deployment_id, minute, revision_id) DO UPDATE {_ADD}
"""
_SUMS = f"""
    INSERT INTO request_sums AS r (deployment, revision_id, fine, redirected, refused, failed, waited)
    SELECT u.deployment, u.revision_id, u.fine, u.redirected, u.refused, u.failed, u.waited::int8[]
      FROM {_CAME} ORDER BY u.deployment, u.revision_id
        ON CONFLICT (deployment, revision_id) DO UPDATE {_ADD}, at = clock_timestamp()
"""

_PAST = (
    "DELETE FROM requests WHERE minute < clock_timestamp() - interval '62 minutes'",
    "DELETE FROM request_sums WHERE at < clock_timestamp() - interval '1 hour'",
)
_KNOWN = "SELECT name FROM deployments WHERE name = ANY(%s) AND lifecycle <> 'destroyed'"


def add_requests(connection: Connection[Any], came: Came, named: Collection[str]) -> None:
    """Add what came since the last look. `named`: the deployments that sums know by name."""
    known = {name for (name,) in connection.execute(_KNOWN, (sorted({deployment for deployment, _ in came}),))}
    its = {of: requests for of, requests in came.items() if of[0] in known}
    sums: defaultdict[Answering, Requests] = defaultdict(lambda: NO_REQUESTS)
    for (deployment, revision), requests in its.items():
        of = (deployment, revision) if deployment in named else (OTHERS, NOBODY)
        sums[of] += requests
    for statement, rows in ((_MINUTES, its), (_SUMS, sums)):
        if rows:
            connection.execute(statement, _CAME.arrays([(*of, *_values(requests)) for of, requests in rows.items()]))
    for past in _PAST:
        connection.execute(past)


def _values(requests: Requests) -> tuple[Any, ...]:
    return (*requests.classes, f"{{{','.join(map(str, requests.waited))}}}")
