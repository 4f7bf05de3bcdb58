"""The rules of autoscaling, and the values that they read."""

from sqlalchemy import CheckConstraint, Column, Float, ForeignKey, Integer, Table, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from db.schema.statuses import words
from db.schema.tables.base import at, metadata
from domain.autoscaling.rule import Aggregate, Comparator, MetricSource

autoscaling_rules = Table(
    "autoscaling_rules",
    metadata,
    Column("deployment_id", Uuid, ForeignKey("deployments.id"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("metric", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("labels", JSONB, nullable=False),
    Column("aggregate", Text, nullable=False),
    Column("comparator", Text, nullable=False),
    Column("threshold", Float, nullable=False),
    Column("step", Integer, nullable=False),
    Column("min_replicas", Integer, nullable=False),
    Column("max_replicas", Integer, nullable=False),
    Column("cooldown_seconds", Float, nullable=False),
    Column("max_age_seconds", Float, nullable=False),
    Column("series", Text, nullable=False),
    CheckConstraint(f"source IN ({words(MetricSource)})", "source"),
    CheckConstraint(f"aggregate IN ({words(Aggregate)})", "aggregate"),
    CheckConstraint(f"comparator IN ({words(Comparator)})", "comparator"),
    CheckConstraint("threshold NOT IN ('NaN', 'Infinity', '-Infinity')", "threshold"),
    CheckConstraint("step <> 0", "step"),
    CheckConstraint("0 <= min_replicas AND min_replicas <= max_replicas", "replicas"),
    CheckConstraint("cooldown_seconds >= 0 AND max_age_seconds > 0", "seconds"),
)

metric_values = Table(
    "metric_values",
    metadata,
    Column("deployment_id", Uuid, ForeignKey("deployments.id"), primary_key=True),
    Column("series", Text, primary_key=True),
    Column("value", Float, nullable=False),
    Column("missing", Integer, nullable=False, server_default="0"),
    at("at", now=True),
    CheckConstraint("value NOT IN ('NaN', 'Infinity', '-Infinity')", "value"),
    CheckConstraint("missing >= 0", "missing"),
)
