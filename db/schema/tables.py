"""The tables. Text with CHECKs rather than native enums; timestamptz everywhere; partial indexes for the sweeps."""

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    event,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from db.schema.guards import CEILING, FLOOR
from db.schema.statuses import ACTIVE, NOT_RUNNING, PRESENT, RUNNING, words
from db.schema.types import PgSnapshot, Xid8
from domain.autoscaling.rule import Aggregate, Comparator, MetricSource
from domain.model import DeploymentSubStep, Lifecycle, RolloutOutcome, RouteStatus, TrafficStatus, Verdict
from domain.traffic.published import EntranceKind

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)


def _id() -> Column[object]:
    return Column("id", Uuid, primary_key=True, server_default=text("uuidv7()"))


def _at(name: str, *, now: bool = False) -> Column[object]:
    default = text("clock_timestamp()") if now else None
    return Column(name, DateTime(timezone=True), nullable=not now, server_default=default)


def _revision_of_deployment(column: str, deployment: str, *, later: bool = False) -> ForeignKeyConstraint:
    """A revision belongs to its deployment: both ids are referenced together."""
    return ForeignKeyConstraint([column, deployment], ["revisions.id", "revisions.deployment_id"], use_alter=later)


deployments = Table(
    "deployments",
    metadata,
    _id(),
    Column("name", Text, nullable=False),
    Column("desired_replicas", Integer, nullable=False),
    Column("lifecycle", Text, nullable=False, server_default="pending"),
    Column("sub_step", Text),
    Column("current_revision_id", Uuid),
    Column("deploying_revision_id", Uuid),
    Column("rollout_id", Uuid, ForeignKey("rollouts.id", use_alter=True)),
    Column("version", BigInteger, nullable=False, server_default="1"),
    _at("due_at"),
    _at("paused_at"),
    _at("phase_started_at", now=True),
    Column("phase_attempts", Integer, nullable=False, server_default="0"),
    Column("reason", Text, nullable=False, server_default=""),
    Column("degraded_reason", Text),
    _at("retry_at"),
    Column("failed_revision_id", Uuid),
    Column("failed_starts", Integer, nullable=False, server_default="0"),
    _at("last_failed_at"),
    _at("last_autoscaled_at"),
    Column("request_timeout_seconds", Float),
    Column("history_id", Uuid),
    Column("history_key", Text),
    _at("created_at", now=True),
    _revision_of_deployment("current_revision_id", "id", later=True),
    _revision_of_deployment("deploying_revision_id", "id", later=True),
    CheckConstraint("desired_replicas >= 0", "desired_replicas"),
    CheckConstraint(f"lifecycle IN ({words(Lifecycle)})", "lifecycle"),
    CheckConstraint(f"sub_step IN ({words(DeploymentSubStep)})", "sub_step"),
    CheckConstraint("(lifecycle = 'deploying') = (deploying_revision_id IS NOT NULL)", "deploying_has_revision"),
    CheckConstraint("(lifecycle = 'deploying') = (rollout_id IS NOT NULL)", "deploying_has_rollout"),
    CheckConstraint("(lifecycle = 'deploying') = (sub_step IS NOT NULL)", "deploying_has_sub_step"),
    CheckConstraint("deploying_revision_id <> current_revision_id", "deploying_is_another_revision"),
    CheckConstraint(
        "lifecycle NOT IN ('scaling', 'ready', 'deploying') OR current_revision_id IS NOT NULL", "working_has_revision"
    ),
    CheckConstraint("paused_at IS NULL OR lifecycle = 'deploying'", "only_rollouts_pause"),
    CheckConstraint("(degraded_reason IS NULL) = (retry_at IS NULL)", "degraded_is_retried"),
    CheckConstraint("request_timeout_seconds > 0", "request_timeout"),
    CheckConstraint(
        "failed_starts >= 0 AND (failed_starts = 0 OR (failed_revision_id IS NOT NULL AND last_failed_at IS NOT NULL))",
        "failed_starts",
    ),
    Index("deployments_name_key", "name", unique=True, postgresql_where=text("lifecycle <> 'destroyed'")),
    Index("deployments_due_idx", "due_at", postgresql_where=text("due_at IS NOT NULL")),
)

revisions = Table(
    "revisions",
    metadata,
    _id(),
    Column("deployment_id", Uuid, ForeignKey("deployments.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("spec", JSONB, nullable=False),
    _at("created_at", now=True),
    UniqueConstraint("deployment_id", "name"),
    UniqueConstraint("id", "deployment_id"),
)

policies = Table(
    "policies",
    metadata,
    Column("deployment_id", Uuid, ForeignKey("deployments.id"), primary_key=True),
    Column("strategy", Text, nullable=False),
    Column("spec", JSONB, nullable=False),
    Column("limits", JSONB, nullable=False),
    _at("updated_at", now=True),
)

rollouts = Table(
    "rollouts",
    metadata,
    _id(),
    Column("deployment_id", Uuid, ForeignKey("deployments.id"), nullable=False),
    Column("from_revision_id", Uuid, nullable=False),
    Column("to_revision_id", Uuid, nullable=False),
    Column("strategy", Text, nullable=False),
    Column("spec", JSONB, nullable=False),
    Column("limits", JSONB, nullable=False),
    Column("desired_at_start", Integer, nullable=False),
    Column("desired_with_revision", Integer),
    Column("ceiling", Integer, nullable=False),
    Column("floor", Integer, nullable=False),
    Column("actor", Text, nullable=False),
    Column("reason", Text, nullable=False),
    _at("started_at", now=True),
    _at("last_progress_at", now=True),
    _at("deadline", now=True),
    _at("clock_stopped_at"),
    Column("promote_requested", Boolean, nullable=False, server_default="false"),
    Column("failed_routes", Integer, nullable=False, server_default="0"),
    Column("steps", Integer, nullable=False, server_default="0"),
    Column("back_reason", Text),
    Column("outcome", Text),
    _at("ended_at"),
    _revision_of_deployment("from_revision_id", "deployment_id"),
    _revision_of_deployment("to_revision_id", "deployment_id"),
    CheckConstraint("from_revision_id <> to_revision_id", "goes_somewhere"),
    CheckConstraint("floor >= 0 AND floor <= ceiling", "budget"),
    CheckConstraint(f"outcome IN ({words(RolloutOutcome)})", "outcome"),
    CheckConstraint("(outcome IS NULL) = (ended_at IS NULL)", "ended_has_outcome"),
    CheckConstraint("outcome IS NULL OR clock_stopped_at IS NULL", "ended_clock_runs_no_more"),
    Index("rollouts_one_open_key", "deployment_id", unique=True, postgresql_where=text("ended_at IS NULL")),
    Index("rollouts_deployment_id_idx", "deployment_id", "started_at"),
)

routes = Table(
    "routes",
    metadata,
    _id(),
    Column("deployment_id", Uuid, ForeignKey("deployments.id"), nullable=False),
    Column("revision_id", Uuid, nullable=False),
    Column("rollout_id", Uuid, ForeignKey("rollouts.id")),
    Column("status", Text, nullable=False, server_default="provisioning"),
    _at("status_changed_at", now=True),
    Column("traffic_status", Text, nullable=False),
    Column("traffic_ratio", Float, nullable=False, server_default="1"),
    Column("address", Text),
    Column("replica_handle", Text),
    _at("started_at"),
    Column("probe_streak", Integer, nullable=False, server_default="0"),
    Column("status_reason", Text, nullable=False, server_default=""),
    Column("log_tail", Text),
    _at("parked_until"),
    Column("host", Text),
    _at("drain_started_at"),
    Column("drain_xid", Xid8),
    _at("out_of_traffic_at"),
    _at("stop_requested_at"),
    _at("stopped_at"),
    _at("created_at", now=True),
    _revision_of_deployment("revision_id", "deployment_id"),
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
    Column("acked_snapshot", PgSnapshot),
    _at("acked_at"),
    _at("first_seen_at", now=True),
    _at("last_seen_at", now=True),
    CheckConstraint("silence_seconds > 0", "silence_seconds"),
)

publishers = Table("publishers", metadata, Column("id", Text, primary_key=True), _at("seen_at", now=True))

hosts = Table(
    "hosts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("address", Text, nullable=False),
    _at("last_seen_at", now=True),
    Column("silent_looks", Integer, nullable=False, server_default="0"),
    _at("down_since"),
    _at("registered_at", now=True),
    CheckConstraint("silent_looks >= 0", "silent_looks"),
)

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
    _id(),
    Column("deployment_id", Uuid, ForeignKey("deployments.id"), nullable=False),
    Column("rollout_id", Uuid, ForeignKey("rollouts.id")),
    Column("phase", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("error_code", Text),
    Column("target", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="1"),
    _at("created_at", now=True),
    _at("updated_at", now=True),
    CheckConstraint("attempts > 0", "attempts"),
    Index("deployment_history_deployment_id_idx", "deployment_id", "updated_at"),
)

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
    _at("at", now=True),
    CheckConstraint("value NOT IN ('NaN', 'Infinity', '-Infinity')", "value"),
    CheckConstraint("missing >= 0", "missing"),
)

commands = Table(
    "commands",
    metadata,
    Column("request_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("payload", JSONB, nullable=False),
    Column("actor", Text, nullable=False),
    Column("result", JSONB),
    _at("created_at", now=True),
)

for guard in (CEILING, FLOOR):
    event.listen(metadata, "after_create", DDL(guard))  # type: ignore[no-untyped-call] # SQLAlchemy leaves it so
