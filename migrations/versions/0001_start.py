"""the first schema: every table, and the triggers that hold the budgets"""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TABLES = (
    "commands",
    "installation",
    "publishers",
    "hosts",
    "proxies",
    "metric_values",
    "autoscaling_rules",
    "entrances",
    "deployment_history",
    "rollout_steps",
    "routes",
    "rollouts",
    "policies",
    "revisions",
    "deployments",
)


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))


def downgrade() -> None:
    op.execute(f"DROP TABLE {', '.join(_TABLES)} CASCADE")  # revisions, rollouts and deployments name each other
    op.execute("DROP FUNCTION routes_within_ceiling, routes_above_floor")
