"""Routes, and the hosts that their replicas run on."""

from sqlalchemy import CheckConstraint, Column, Float, ForeignKey, Index, Integer, Table, Text, Uuid, text

from db.schema.statuses import ACTIVE, NOT_RUNNING, PRESENT, RUNNING, words
from db.schema.tables.base import at, metadata, new_id, revision_of_deployment
from db.schema.types import TRANSACTION_ID
from domain.model import RouteStatus, TrafficStatus

routes = Table(
    "routes",
    metadata,
    new_id(),
    Column("deployment_id", Uuid, ForeignKey("deployments.id"), nullable=False),
    Column("revision_id", Uuid, nullable=False),
    Column("rollout_id", Uuid, ForeignKey("rollouts.id")),
    Column("status", Text, nullable=False, server_default="provisioning"),
    at("status_changed_at", now=True),
    Column("traffic_status", Text, nullable=False),
    Column("traffic_ratio", Float, nullable=False, server_default="1"),
    Column("address", Text),
    Column("replica_handle", Text),
    at("started_at"),
    Column("probe_streak", Integer, nullable=False, server_default="0"),
    Column("status_reason", Text, nullable=False, server_default=""),
    Column("log_tail", Text),
    at("parked_until"),
    Column("host", Text),
    at("drain_started_at"),
    Column("drain_xid", TRANSACTION_ID),
    at("out_of_traffic_at"),
    at("stop_requested_at"),
    at("stopped_at"),
    at("created_at", now=True),
    revision_of_deployment("revision_id", "deployment_id"),
    CheckConstraint(f"status IN ({words(RouteStatus)})", "status"),
    CheckConstraint(f"traffic_status IN ({words(TrafficStatus)})", "traffic_status"),
    CheckConstraint("traffic_ratio BETWEEN 0 AND 1", "traffic_ratio"),
    CheckConstraint(f"{ACTIVE} OR traffic_status = 'inactive'", "gone_has_no_traffic"),
    CheckConstraint("status <> 'terminating' OR drain_started_at IS NOT NULL", "terminating_drains"),
    CheckConstraint(f"{NOT_RUNNING} OR started_at IS NOT NULL", "running_was_started"),
    CheckConstraint("status <> 'terminated' OR stopped_at IS NOT NULL", "terminated_was_stopped"),
    CheckConstraint("status <> 'failed' OR status_reason <> ''", "failed_says_why"),
    CheckConstraint("parked_until IS NULL OR traffic_status = 'inactive'", "parked_is_out_of_traffic"),
    Index("routes_live_idx", "deployment_id", postgresql_where=text(PRESENT)),
    Index("routes_unstopped_idx", "status", postgresql_where=text("stopped_at IS NULL")),
    Index("routes_deployment_id_idx", "deployment_id", "created_at"),
    Index("routes_host_idx", "host", postgresql_where=text("stopped_at IS NULL")),
    Index("routes_published_idx", "deployment_id", postgresql_where=text(RUNNING)),
    Index(
        "routes_draining_idx",
        "drain_started_at",
        postgresql_where=text("status = 'terminating' AND out_of_traffic_at IS NULL"),
    ),
)

hosts = Table(
    "hosts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("address", Text, nullable=False),
    at("last_seen_at", now=True),
    Column("silent_looks", Integer, nullable=False, server_default="0"),
    at("down_since"),
    at("registered_at", now=True),
    CheckConstraint("silent_looks >= 0", "silent_looks"),
)
