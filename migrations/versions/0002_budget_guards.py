"""budget guards, and the foreign keys of endpoints that 0001 declares too early for Alembic to make them"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

CEILING = """
CREATE FUNCTION routes_within_ceiling() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[] := ARRAY(
        SELECT DISTINCT endpoint_id FROM created
         WHERE status NOT IN ('terminating', 'terminated', 'failed') AND parked_until IS NULL);
    broken record;
BEGIN
    SELECT e.name, e.lifecycle, count(*) AS live, b.ceiling INTO broken
      FROM endpoints e
      JOIN routes r ON r.endpoint_id = e.id
       AND r.status NOT IN ('terminating', 'terminated', 'failed') AND r.parked_until IS NULL
      LEFT JOIN rollouts o ON o.id = e.rollout_id,
           LATERAL (SELECT CASE WHEN e.lifecycle IN ('destroying', 'destroyed') THEN 0
                                ELSE coalesce(o.ceiling, e.desired_replicas + 1) END AS ceiling) b
     WHERE e.id = ANY(ids)
     GROUP BY e.id, b.ceiling
    HAVING count(*) > b.ceiling
     ORDER BY e.name
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING
            MESSAGE = concat(broken.name, ': ', broken.live, ' live replicas are more than the ', broken.ceiling,
                             ' allowed while ', broken.lifecycle),
            ERRCODE = 'RW001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER routes_within_ceiling AFTER INSERT ON routes REFERENCING NEW TABLE AS created
    FOR EACH STATEMENT EXECUTE FUNCTION routes_within_ceiling();
"""

FLOOR = """
CREATE FUNCTION routes_above_floor() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[] := ARRAY(
        SELECT DISTINCT endpoint_id
          FROM (SELECT id, endpoint_id FROM was WHERE status = 'healthy' AND traffic_status = 'active'
                UNION ALL -- and no join, which would be planned for one row and compare each row with each
                SELECT id, endpoint_id FROM became
                 WHERE status IN ('terminating', 'terminated')
                    OR (traffic_status = 'inactive' AND status <> 'failed')) one
         GROUP BY id, endpoint_id
        HAVING count(*) = 2);
    broken record;
BEGIN
    SELECT e.name, e.lifecycle, count(r.id) AS serving, b.floor INTO broken
      FROM endpoints e
      LEFT JOIN routes r ON r.endpoint_id = e.id AND r.status = 'healthy' AND r.traffic_status = 'active'
      LEFT JOIN rollouts o ON o.id = e.rollout_id,
           LATERAL (SELECT coalesce(o.floor, e.desired_replicas) AS floor) b
     WHERE e.id = ANY(ids) AND e.lifecycle NOT IN ('destroying', 'destroyed')
     GROUP BY e.id, b.floor
    HAVING count(r.id) < b.floor
     ORDER BY e.name
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING
            MESSAGE = concat(broken.name, ': ', broken.serving, ' healthy replicas in traffic are fewer than the ',
                             broken.floor, ' to keep while ', broken.lifecycle),
            ERRCODE = 'RW002', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER routes_above_floor AFTER UPDATE ON routes REFERENCING OLD TABLE AS was NEW TABLE AS became
    FOR EACH STATEMENT EXECUTE FUNCTION routes_above_floor();
"""


def upgrade() -> None:
    # rollouts that began before the guards are not held to them
    op.add_column("rollouts", sa.Column("ceiling", sa.Integer(), server_default="2147483647", nullable=False))
    op.add_column("rollouts", sa.Column("floor", sa.Integer(), server_default="0", nullable=False))
    op.alter_column("rollouts", "ceiling", server_default=None)
    op.alter_column("rollouts", "floor", server_default=None)
    op.create_check_constraint(op.f("rollouts_budget_check"), "rollouts", "floor >= 0 AND floor <= ceiling")
    op.create_foreign_key(
        op.f("endpoints_current_revision_id_fkey"),
        "endpoints",
        "revisions",
        ["current_revision_id", "id"],
        ["id", "endpoint_id"],
    )
    op.create_foreign_key(
        op.f("endpoints_deploying_revision_id_fkey"),
        "endpoints",
        "revisions",
        ["deploying_revision_id", "id"],
        ["id", "endpoint_id"],
    )
    op.create_foreign_key(op.f("endpoints_rollout_id_fkey"), "endpoints", "rollouts", ["rollout_id"], ["id"])
    op.execute(CEILING)
    op.execute(FLOOR)


def downgrade() -> None:
    op.execute("DROP TRIGGER routes_above_floor ON routes")
    op.execute("DROP TRIGGER routes_within_ceiling ON routes")
    op.execute("DROP FUNCTION routes_above_floor()")
    op.execute("DROP FUNCTION routes_within_ceiling()")
    for name in ("rollout_id", "deploying_revision_id", "current_revision_id"):
        op.drop_constraint(op.f(f"endpoints_{name}_fkey"), "endpoints", type_="foreignkey")
    op.drop_constraint(op.f("rollouts_budget_check"), "rollouts", type_="check")
    op.drop_column("rollouts", "floor")
    op.drop_column("rollouts", "ceiling")
