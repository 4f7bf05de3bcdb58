"""Where deployments are reached, and the proxies that lead there."""

from sqlalchemy import Boolean, CheckConstraint, Column, Float, ForeignKey, Index, Table, Text, Uuid

from db.schema.statuses import words
from db.schema.tables.base import at, metadata
from db.schema.types import SNAPSHOT
from domain.traffic.published import EntranceKind

entrances = Table(
    "entrances",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("value", Text, primary_key=True),
    Column("deployment_id", Uuid, ForeignKey("deployments.id"), nullable=False),
    Column("strip_prefix", Boolean, nullable=False, server_default="true"),
    CheckConstraint(f"kind IN ({words(EntranceKind)})", "kind"),
    Index("entrances_deployment_id_idx", "deployment_id"),
)

proxies = Table(
    "proxies",
    metadata,
    Column("node_id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("silence_seconds", Float, nullable=False),
    Column("acked_version", Text),
    Column("acked_snapshot", SNAPSHOT),
    at("acked_at"),
    at("first_seen_at", now=True),
    at("last_seen_at", now=True),
    CheckConstraint("silence_seconds > 0", "silence_seconds"),
)

publishers = Table("publishers", metadata, Column("id", Text, primary_key=True), at("seen_at", now=True))
