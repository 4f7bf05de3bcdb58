"""Autoscaling rules and the values they read, as rows."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Cursor
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

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

_STORE_VALUES = """
    INSERT INTO metric_values AS v (deployment_id, series, value, at, missing)
    SELECT u.deployment_id, u.series, u.value, u.at, u.missing
      FROM unnest(%(deployment_ids)s::uuid[], %(series)s::text[], %(values)s::float8[], %(ats)s::timestamptz[],
                  %(missing)s::int[]) AS u (deployment_id, series, value, at, missing)
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


def rules_of(cursor: Cursor[TupleRow], deployment_ids: Sequence[UUID]) -> dict[UUID, Ruled]:
    """By deployment, those with rules only; one statement."""
    rows: dict[UUID, list[TupleRow]] = defaultdict(list)
    for row in cursor.execute(_RULES, (list(deployment_ids),)).fetchall():
        rows[row[0]].append(row)
    return {
        deployment_id: Ruled(tuple(map(_rule, own)), tuple({row[13]: _value(row) for row in own if row[15]}.values()))
        for deployment_id, own in rows.items()
    }


def replace_rules(cursor: Cursor[TupleRow], deployment_id: UUID, rules: Sequence[AutoscalingRule]) -> None:
    """These rules and no others; a value that none of them reads goes too."""
    cursor.execute("DELETE FROM autoscaling_rules WHERE deployment_id = %s", (deployment_id,))
    if rules:
        cursor.executemany(_INSERT, [_columns(deployment_id, position, rule) for position, rule in enumerate(rules)])
    cursor.execute(
        "DELETE FROM metric_values WHERE deployment_id = %s AND series <> ALL(%s)",
        (deployment_id, [rule.series for rule in rules]),
    )


def store_values(cursor: Cursor[TupleRow], values: Iterable[tuple[UUID, MetricValue]]) -> int:
    """Keep the values that some rule reads and that are newer than the ones known; returns how many. One statement."""
    stored = list(values)
    if not stored:
        return 0
    return cursor.execute(
        _STORE_VALUES,
        {
            "deployment_ids": [deployment_id for deployment_id, _ in stored],
            "series": [value.series for _, value in stored],
            "values": [value.value for _, value in stored],
            "ats": [value.at for _, value in stored],
            "missing": [value.missing for _, value in stored],
        },
    ).rowcount


def _rule(row: TupleRow) -> AutoscalingRule:
    """As it was validated when it was set: one that a later release would refuse must not stop everybody's reading."""
    return AutoscalingRule.model_construct(
        metric=row[1],
        source=MetricSource(row[2]),
        path=row[3],
        labels=row[4],
        aggregate=Aggregate(row[5]),
        comparator=Comparator(row[6]),
        threshold=row[7],
        step=row[8],
        min_replicas=row[9],
        max_replicas=row[10],
        cooldown_seconds=row[11],
        max_age_seconds=row[12],
    )


def _value(row: TupleRow) -> MetricValue:
    return MetricValue(series=row[13], value=row[14], at=row[15], missing=row[16])


def _columns(deployment_id: UUID, position: int, rule: AutoscalingRule) -> dict[str, Any]:
    return {
        **rule.model_dump(mode="json"),
        "deployment_id": deployment_id,
        "position": position,
        "labels": Jsonb(rule.labels),
        "series": rule.series,
    }
