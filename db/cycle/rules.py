"""Autoscaling rules and the values they read, as rows."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from db.rows import columns, named_row
from domain.autoscaling.judging import MetricValue
from domain.autoscaling.rule import Aggregate, AutoscalingRule, Comparator, MetricSource

_RULES = """
    SELECT a.deployment_id, a.metric, a.source, a.path, a.labels, a.aggregate, a.comparator, a.threshold, a.step,
           a.min_replicas, a.max_replicas, a.cooldown_seconds, a.max_age_seconds, a.series, v.value, v.at, v.missing
      FROM autoscaling_rules a
      LEFT JOIN metric_values v ON v.deployment_id = a.deployment_id AND v.series = a.series
     WHERE a.deployment_id = ANY(%s)
     ORDER BY a.deployment_id, a.position
"""

_INSERT = """
    INSERT INTO autoscaling_rules (deployment_id, position, metric, source, path, labels, aggregate, comparator,
                                   threshold, step, min_replicas, max_replicas, cooldown_seconds, max_age_seconds,
                                   series)
    VALUES (%(deployment_id)s, %(position)s, %(metric)s, %(source)s, %(path)s, %(labels)s, %(aggregate)s,
            %(comparator)s, %(threshold)s, %(step)s, %(min_replicas)s, %(max_replicas)s, %(cooldown_seconds)s,
            %(max_age_seconds)s, %(series)s)
"""

_VALUES = columns(deployment_id="uuid", series="text", value="float8", at="timestamptz", missing="int4")

_STORE_VALUES = f"""
    INSERT INTO metric_values AS v (deployment_id, series, value, at, missing)
    SELECT u.deployment_id, u.series, u.value, u.at, u.missing
      FROM {_VALUES}
     WHERE EXISTS (SELECT FROM autoscaling_rules a WHERE a.deployment_id = u.deployment_id AND a.series = u.series)
     ORDER BY u.deployment_id, u.series
    ON CONFLICT (deployment_id, series) DO UPDATE
       SET value = excluded.value, at = excluded.at, missing = excluded.missing
     WHERE v.at < excluded.at
"""


@dataclass(frozen=True, slots=True)
class Ruled:
    """The rules of one deployment in their order, and the values that they read, as far as there are any."""

    rules: tuple[AutoscalingRule, ...] = ()
    metrics: tuple[MetricValue, ...] = ()


NO_RULES = Ruled()


class _RuleRow(NamedTuple):
    """A rule, and the value of its series: without `at` there is none."""

    deployment_id: UUID
    metric: str
    source: str
    path: str
    labels: dict[str, str]
    aggregate: str
    comparator: str
    threshold: float
    step: int
    min_replicas: int
    max_replicas: int
    cooldown_seconds: float
    max_age_seconds: float
    series: str
    value: float
    at: datetime | None
    missing: int


def rules_of(connection: Connection, deployment_ids: Sequence[UUID]) -> dict[UUID, Ruled]:
    """By deployment, those with rules only; one statement."""
    rows: dict[UUID, list[_RuleRow]] = defaultdict(list)
    cursor = connection.cursor(binary=True, row_factory=named_row(_RuleRow))
    for row in cursor.execute(_RULES, (list(deployment_ids),)).fetchall():
        rows[row.deployment_id].append(row)
    return {deployment_id: _ruled(found) for deployment_id, found in rows.items()}


def replace_rules(connection: Connection, deployment_id: UUID, rules: Sequence[AutoscalingRule]) -> None:
    """These rules and no others; a value that none of them reads goes too."""
    cursor = connection.cursor()
    cursor.execute("DELETE FROM autoscaling_rules WHERE deployment_id = %s", (deployment_id,))
    if rules:
        cursor.executemany(_INSERT, [_columns(deployment_id, position, rule) for position, rule in enumerate(rules)])
    cursor.execute(
        "DELETE FROM metric_values WHERE deployment_id = %s AND series <> ALL(%s)",
        (deployment_id, [rule.series for rule in rules]),
    )


def store_values(connection: Connection, values: Iterable[tuple[UUID, MetricValue]]) -> int:
    """Keep the values that some rule reads and that are newer than the ones known; returns how many. One statement."""
    rows = [(deployment_id, value.series, value.value, value.at, value.missing) for deployment_id, value in values]
    return connection.execute(_STORE_VALUES, _VALUES.arrays(rows)).rowcount if rows else 0


def _ruled(rows: Sequence[_RuleRow]) -> Ruled:
    values = {row.series: MetricValue(row.series, row.value, row.at, row.missing) for row in rows if row.at is not None}
    return Ruled(tuple(map(_rule, rows)), tuple(values.values()))


def _rule(row: _RuleRow) -> AutoscalingRule:
    """As it was validated when it was set: one that a later release would refuse must not stop everybody's reading."""
    return AutoscalingRule.model_construct(
        metric=row.metric,
        source=MetricSource(row.source),
        path=row.path,
        labels=row.labels,
        aggregate=Aggregate(row.aggregate),
        comparator=Comparator(row.comparator),
        threshold=row.threshold,
        step=row.step,
        min_replicas=row.min_replicas,
        max_replicas=row.max_replicas,
        cooldown_seconds=row.cooldown_seconds,
        max_age_seconds=row.max_age_seconds,
    )


def _columns(deployment_id: UUID, position: int, rule: AutoscalingRule) -> dict[str, Any]:
    return {
        **rule.model_dump(mode="json"),
        "deployment_id": deployment_id,
        "position": position,
        "labels": Jsonb(rule.labels),
        "series": rule.series,
    }
