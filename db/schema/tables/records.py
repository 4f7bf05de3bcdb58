"""What is kept of what happened: steps of rollouts, the timeline for people, and commands."""

from sqlalchemy import CheckConstraint, Column, DateTime, ForeignKey, Index, Integer, Table, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from db.schema.statuses import words
from db.schema.tables.base import at, metadata, new_id
from domain.model import Verdict

rollout_steps = Table(
    "rollout_steps",
    metadata,
    Column("rollout_id", Uuid, ForeignKey("rollouts.id"), primary_key=True),
    Column("step_no", Integer, primary_key=True),
    Column("phase", Text, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("verdict", Text, nullable=False),
    Column("inputs", JSONB, nullable=False),
    Column("decision", JSONB, nullable=False),
    CheckConstraint(f"verdict IN ({words(Verdict)})", "verdict"),
)

deployment_history = Table(
    "deployment_history",
    metadata,
    new_id(),
    Column("deployment_id", Uuid, ForeignKey("deployments.id"), nullable=False),
    Column("rollout_id", Uuid, ForeignKey("rollouts.id")),
    Column("phase", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("error_code", Text),
    Column("target", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="1"),
    at("created_at", now=True),
    at("updated_at", now=True),
    CheckConstraint("attempts > 0", "attempts"),
    Index("deployment_history_deployment_id_idx", "deployment_id", "updated_at"),
)

commands = Table(
    "commands",
    metadata,
    Column("request_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("payload", JSONB, nullable=False),
    Column("actor", Text, nullable=False),
    Column("result", JSONB),
    at("created_at", now=True),
)
