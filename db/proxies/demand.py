"""Reads what proxies are asked of deployments whose autoscaling rules have source 'proxy', and who should tell."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from psycopg import Connection
from psycopg.rows import kwargs_row

from db.connection.engine import database_now
from db.locking.statuses import IS_LIVE
from db.proxies.measured import LiveProxy
from domain.autoscaling.request_load import DemandSeries
from domain.autoscaling.rule import ProxyMetric

# what a newer release may read of proxies is left to that one
_SERIES = """
    SELECT DISTINCT d.id AS deployment_id, d.name AS deployment,
           (SELECT count(*)::int FROM routes r
             WHERE r.deployment_id = d.id AND r.status = 'healthy' AND r.traffic_status = 'active') AS serving,
           a.series, a.metric, a.aggregate = 'avg' AS is_per_replica
      FROM autoscaling_rules a JOIN deployments d ON d.id = a.deployment_id
     WHERE a.source = 'proxy' AND a.metric = ANY(%s) AND a.aggregate IN ('avg', 'sum') AND d.lifecycle <> 'destroyed'
     ORDER BY deployment_id, a.series
"""

# One that was heard of lately may still send requests, though it counts as gone. Of two with one id one would be asked.
_PROXIES = f"""
    SELECT node_id, stats_address, told_at IS NOT NULL, coalesce({IS_LIVE}, false) AND NOT is_doubled AS is_asked
      FROM proxies p
     WHERE {IS_LIVE} OR p.last_seen_at > clock_timestamp() - interval '10 minutes'
     ORDER BY node_id
"""


class Demanded(NamedTuple):
    """The demand to read at the database's time `now`, who is asked, and the node ids of all that should tell."""

    series: Sequence[DemandSeries]
    asked: Sequence[LiveProxy]
    expected: frozenset[str]
    now: datetime


def demanded(connection: Connection[Any]) -> Demanded | None:
    """None where no rule reads what proxies tell."""
    series = connection.cursor(row_factory=kwargs_row(_series)).execute(_SERIES, (list(ProxyMetric),)).fetchall()
    if not series:
        return None
    now = database_now(connection)
    proxies = connection.execute(_PROXIES).fetchall()
    asked = [LiveProxy(*proxy) for *proxy, is_asked in proxies if is_asked]
    return Demanded(series, asked, frozenset(node for node, *_ in proxies), now)


def _series(metric: str, **fields: Any) -> DemandSeries:  # noqa: ANN401  (columns of every kind)
    return DemandSeries(metric=ProxyMetric(metric), **fields)
