"""Autoscaling rules and the values they read, as rows."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from uuid import UUID

from psycopg import Connection
from psycopg.rows import DictRow, dict_row
from pydantic_core import to_json

from db.connection.arrays import columns
from domain.autoscaling.rule import (
    NO_AUTOSCALING,
    Aggregate,
    AutoscalingRule,
    AutoscalingState,
    Comparator,
    MetricSource,
    MetricValue,
)
from domain.text.errors import UnreadableError

_RULE = columns("""
    deployment_id uuid, position int4, metric text, source text, path text, labels jsonb, aggregate text,
    comparator text, threshold float8, step int4, min_replicas int4, max_replicas int4, cooldown_seconds float8,
    max_age_seconds float8, series text
""")

_RULES = f"""
    SELECT {", ".join(f"a.{column}" for column in _RULE.types)}, v.value, v.at, v.missing, v.proxies, v.silent
      FROM autoscaling_rules a
      LEFT JOIN metric_values v ON v.deployment_id = a.deployment_id AND v.series = a.series
     WHERE a.deployment_id = ANY(%s)
     ORDER BY a.deployment_id, a.position
"""

_VALUES = columns("""
    deployment_id uuid, series text, value float8, at timestamptz, missing int4, proxies int4, silent jsonb
""")

_STORE_VALUES = f"""
    INSERT INTO metric_values AS v ({", ".join(_VALUES.types)})
    SELECT u.*
      FROM {_VALUES}
     WHERE EXISTS (SELECT FROM autoscaling_rules a WHERE a.deployment_id = u.deployment_id AND a.series = u.series)
     ORDER BY u.deployment_id, u.series
    ON CONFLICT (deployment_id, series) DO UPDATE
       SET value = excluded.value, at = excluded.at, missing = excluded.missing, proxies = excluded.proxies,
           silent = excluded.silent
     WHERE v.at < excluded.at
"""


def rules_of(connection: Connection, deployment_ids: Sequence[UUID]) -> dict[UUID, AutoscalingState]:
    """The rules by deployment; a deployment without any is left out. One statement."""
    rows: dict[UUID, list[DictRow]] = defaultdict(list)
    cursor = connection.cursor(binary=True, row_factory=dict_row)
    for row in cursor.execute(_RULES, (list(deployment_ids),)).fetchall():
        rows[row["deployment_id"]].append(row)
    return {deployment_id: _rule_set(rules) for deployment_id, rules in rows.items()}


def rules_of_one(connection: Connection, deployment_id: UUID) -> tuple[AutoscalingRule, ...]:
    """The rules that set its size, in their order; none where people do."""
    return rules_of(connection, [deployment_id]).get(deployment_id, NO_AUTOSCALING).rules


def replace_rules(connection: Connection, deployment_id: UUID, rules: Sequence[AutoscalingRule]) -> None:
    """Store these rules and no others; a value that none of them reads goes too."""
    connection.execute("DELETE FROM autoscaling_rules WHERE deployment_id = %s", (deployment_id,))
    _RULE.add(connection, "autoscaling_rules", [_row(deployment_id, *numbered) for numbered in enumerate(rules)])
    connection.execute(
        "DELETE FROM metric_values WHERE deployment_id = %s AND series <> ALL(%s)",
        (deployment_id, [rule.series for rule in rules]),
    )


def store_values(connection: Connection, values: Iterable[tuple[UUID, MetricValue]]) -> int:
    """Keep the values that some rule reads and that are newer than the ones known; returns how many. One statement."""
    rows = [
        (
            deployment_id,
            measurements.series,
            measurements.value,
            measurements.at,
            measurements.missing,
            measurements.proxies,
            to_json(measurements.silent),
        )
        for deployment_id, measurements in values
    ]
    return connection.execute(_STORE_VALUES, _VALUES.arrays(rows)).rowcount if rows else 0


def _rule_set(rows: Sequence[DictRow]) -> AutoscalingState:
    values = {row["series"]: row for row in rows if row["at"] is not None}
    metrics = [
        MetricValue(series, row["value"], row["at"], row["missing"], row["proxies"], tuple(row["silent"]))
        for series, row in values.items()
    ]
    return AutoscalingState(tuple(map(_rule, rows)), tuple(metrics))


def _rule(row: DictRow) -> AutoscalingRule:
    """A rule as it was validated when it was set: one that a later release would refuse must not stop all reads.

    Raises UnreadableError for words that only a newer release understands.
    """
    try:
        words = {
            "source": MetricSource(row["source"]),
            "aggregate": Aggregate(row["aggregate"]),
            "comparator": Comparator(row["comparator"]),
        }
    except ValueError as error:
        raise UnreadableError(f"this release of Rollway cannot read an autoscaling rule: {error}") from error
    return AutoscalingRule.model_construct(**{name: row[name] for name in AutoscalingRule.model_fields} | words)


def _row(deployment_id: UUID, position: int, rule: AutoscalingRule) -> list[object]:
    """The values of _RULE."""
    shared_columns = {"deployment_id": deployment_id, "position": position, "series": rule.series}
    values = {**rule.model_dump(mode="json"), "labels": to_json(rule.labels), **shared_columns}
    return [values[name] for name in _RULE.types]
