"""what a fleet needs in order to run for years; added beside what the version before reads and writes"""

import re
from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def _floor_before() -> str:
    """The statement that makes the guard of the floor what the migration before has made it."""
    before = Path(__file__).with_name("0001_start.sql").read_text(encoding="utf-8")
    [body] = re.findall(r"^CREATE FUNCTION (routes_above_floor\(\).*?^END \$\$);$", before, re.MULTILINE | re.DOTALL)
    return f"CREATE OR REPLACE FUNCTION {body}"


_UNDO: tuple[str, ...] = (
    "DROP TRIGGER rollout_settles_traffic ON rollouts",
    "DROP FUNCTION rollout_settles_traffic",
    "DELETE FROM entrances WHERE reserved",
    "ALTER TABLE entrances DROP COLUMN reserved",
    "ALTER TABLE rollouts DROP COLUMN traffic, DROP COLUMN traffic_before",
    "ALTER TABLE revisions DROP COLUMN wire",
    "DROP TABLE request_sums",
    "DROP TABLE requests",
    _floor_before(),  # before the columns that the newer one reads
    "ALTER TABLE deployments DROP COLUMN waits_for, DROP COLUMN may_surge",
    "ALTER TABLE revisions DROP COLUMN is_walled",
    "ALTER TABLE installation DROP COLUMN counted_at",
    """
    ALTER TABLE hosts DROP COLUMN drained_by, DROP COLUMN drained_at, DROP COLUMN deaf_since, DROP COLUMN deaf_looks,
        DROP COLUMN unasked_since, DROP COLUMN back_at, DROP COLUMN replica_user, DROP COLUMN secrets_for_all, DROP COLUMN webhooks
    """,
    "ALTER TABLE metric_values DROP COLUMN silent, DROP COLUMN proxies",
    "DELETE FROM metric_values WHERE series LIKE '% of proxies'",
    "DELETE FROM autoscaling_rules WHERE source = 'proxy'",
    """
    ALTER TABLE autoscaling_rules DROP CONSTRAINT autoscaling_rules_source_check,
        ADD CONSTRAINT autoscaling_rules_source_check CHECK (source IN ('replicas', 'pushed'))
    """,
    "DROP TRIGGER rollout_weighed ON rollouts",
    "DROP TRIGGER rollout_begins_weighed ON rollouts",
    "DROP FUNCTION rollout_weighed",
    "DROP INDEX rollouts_weighed_idx",
    """
    ALTER TABLE rollouts DROP COLUMN weight_known_at, DROP COLUMN weight_xid, DROP COLUMN weight, DROP COLUMN stage
    """,
    "DROP TABLE proxy_counters",
    "DROP TABLE answers",
    "DROP TABLE intervals",
    "DROP TABLE evidence_points",
    "DROP TABLE evidence",
    "ALTER TABLE proxies DROP COLUMN told_at, DROP COLUMN stats_address",
    "DROP TABLE drain_looks",
    "ALTER TABLE rollouts DROP COLUMN through_freeze",
    "DROP TABLE wishes",
    "DROP TABLE deployment_group_members",
    "DROP TABLE deployment_groups",
    "DROP TABLE freezes",
    "DROP TABLE receipts",
    "ALTER TABLE routes DROP COLUMN seat",
    "ALTER TABLE deployments DROP COLUMN has_seats",
    "ALTER TABLE routes DROP COLUMN kept_until",
    "ALTER TABLE routes DROP COLUMN healthy_at",
    "DROP TABLE sessions",
    "DROP TABLE tokens",
    "DROP TABLE beat",
    "ALTER TABLE rollouts DROP COLUMN traceparent",
    "DROP TABLE outbox",
    "DROP TABLE subscriptions",
    "DROP INDEX commands_created_at_idx, deployment_history_rollout_id_idx, deployments_destroyed_idx",
    "DROP INDEX rollouts_from_revision_id_idx, rollouts_to_revision_id_idx, routes_revision_id_idx, routes_rollout_id_idx",
    "UPDATE installation SET contract = 1",
    "ALTER TABLE deployments DROP COLUMN protocol",
    "ALTER TABLE deployments DROP COLUMN idle_timeout_seconds",
    "DROP TABLE host_secrets",
    "DROP TABLE acme_accounts",
    "DROP TABLE certificates",
    "ALTER TABLE deployments DROP COLUMN maintenance",
    "ALTER TABLE deployments DROP COLUMN rules",
    "ALTER TABLE routes ADD CONSTRAINT routes_deployment_id_fkey FOREIGN KEY(deployment_id) REFERENCES deployments",
    "ALTER TABLE rollouts ADD CONSTRAINT rollouts_deployment_id_fkey FOREIGN KEY(deployment_id) REFERENCES deployments",
    "ALTER TABLE rollouts RESET (fillfactor)",
    """
    DO $$
    DECLARE
        step rollout_steps;
        changed jsonb;
        saw jsonb;
    BEGIN
        FOR step IN SELECT * FROM rollout_steps
                     WHERE rollout_id IN (SELECT rollout_id FROM rollout_steps WHERE whole_step IS NOT NULL)
                     ORDER BY rollout_id, step_no LOOP
            changed := step.inputs -> 'changed';
            IF changed IS NULL THEN
                saw := step.inputs -> 'deployment';
                CONTINUE;
            END IF;
            saw := saw || (changed -> 'deployment') || CASE WHEN changed ? 'rollout' THEN
                       jsonb_build_object('rollout', (saw -> 'rollout') || (changed -> 'rollout')) ELSE '{}' END
                || jsonb_build_object('routes', (
                       SELECT coalesce(jsonb_agg(r.route ORDER BY r.route ->> 'id'), '[]')
                         FROM (SELECT old.route || coalesce(changed -> 'routes' -> (old.route ->> 'id'), '{}')
                                 FROM jsonb_array_elements(saw -> 'routes') old (route)
                                WHERE NOT changed -> 'gone' ? (old.route ->> 'id')
                               UNION ALL
                               SELECT jsonb_build_object('id', new.id) || new.route
                                 FROM jsonb_each(changed -> 'routes') new (id, route)
                                WHERE NOT jsonb_path_exists(saw, '$.routes[*] ? (@.id == $id)',
                                                            jsonb_build_object('id', new.id))) r (route)));
            UPDATE rollout_steps SET inputs = jsonb_build_object('deployment', saw, 'now', step.inputs -> 'now')
             WHERE rollout_id = step.rollout_id AND step_no = step.step_no;
        END LOOP;
    END $$
    """,
    "ALTER TABLE rollout_steps DROP COLUMN whole_step, RESET (toast_tuple_target)",
    "DROP TRIGGER rollouts_cut ON rollouts",
    "DROP FUNCTION count_cut_rollouts",
    "DROP FUNCTION count_ended",
    "DROP FUNCTION rollout_seconds",
    "DROP TABLE rollout_counts",
    "DROP INDEX rollouts_contradicting_idx, rollouts_ended_at_idx, rollouts_unsealed_idx",
    """
    ALTER TABLE rollouts DROP COLUMN unanswered, DROP COLUMN in_use, DROP COLUMN last_failure, DROP COLUMN is_undo,
        DROP COLUMN is_sealed
    """,
    "ALTER TABLE deployments DROP COLUMN came_up_at, DROP COLUMN short_lives",
)
"""A statement for each thing that the migration adds, the last one first."""


_VIRTUAL_FROM = (18,)


def upgrade() -> None:
    bind, statements = op.get_bind(), Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    if (bind.dialect.server_version_info or _VIRTUAL_FROM) < _VIRTUAL_FROM:  # nobody works there yet: 0.1.0 needs 18
        statements = statements.replace(" VIRTUAL;", " STORED;")
    bind.exec_driver_sql(statements)


def downgrade() -> None:
    for statement in _UNDO:
        op.execute(statement)
