"""The budgets in Postgres: triggers that refuse what our own decisions must never do, whoever asks for it.

RW001  a statement creates live routes, and leaves more of them than the ceiling
RW002  a statement takes healthy serving routes out of traffic, and leaves fewer of them than the floor

                    ceiling                    floor
    in a rollout    rollouts.ceiling           rollouts.floor
    otherwise       desired + 1                desired
    being destroyed 0, nothing is created      none, everything is drained

The ceiling counts live routes that are not parked; where count_stopping is true, of the rollout or otherwise of the
deployment, it counts those that are stopping too.

Judged is what a statement does, not what it finds: replicas that fall ill are never refused, nor is draining those
that do not serve. Each trigger looks once at all rows of its statement, and sees the deployment as it stands then:
routes are written before their deployment changes its state, promotions before drains. Whoever changes routes holds
the lock of the deployment, so nothing is locked here.

Migrations carry frozen copies of this text; a test holds the two together.
"""

from db.schema.statuses import ACTIVE, DRAINED, PRESENT

CEILING = f"""
CREATE FUNCTION routes_within_ceiling() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[] := ARRAY(
        SELECT DISTINCT deployment_id FROM created
         WHERE {ACTIVE} AND parked_until IS NULL);
    broken record;
BEGIN
    SELECT d.name, d.lifecycle, count(*) AS counted, b.ceiling,
           CASE WHEN b.count_stopping THEN 'live or stopping' ELSE 'live' END AS which INTO broken
      FROM deployments d
      LEFT JOIN rollouts o ON o.id = d.rollout_id
     CROSS JOIN LATERAL (SELECT CASE WHEN d.lifecycle IN ('destroying', 'destroyed') THEN 0
                                     ELSE coalesce(o.ceiling, d.desired_replicas + 1) END AS ceiling,
                                coalesce(o.count_stopping, d.count_stopping) AS count_stopping) b
      JOIN routes r ON r.deployment_id = d.id AND r.{PRESENT}
       AND CASE r.status WHEN 'terminating' THEN b.count_stopping ELSE r.parked_until IS NULL END
     WHERE d.id = ANY(ids)
     GROUP BY d.id, b.ceiling, b.count_stopping
    HAVING count(*) > b.ceiling
     ORDER BY d.name
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING
            MESSAGE = concat(broken.name, ': ', broken.counted, ' ', broken.which, ' replicas are more than the ',
                             broken.ceiling, ' allowed while ', broken.lifecycle),
            ERRCODE = 'RW001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER routes_within_ceiling AFTER INSERT ON routes REFERENCING NEW TABLE AS created
    FOR EACH STATEMENT EXECUTE FUNCTION routes_within_ceiling();
"""

FLOOR = f"""
CREATE FUNCTION routes_above_floor() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[] := ARRAY(
        SELECT DISTINCT deployment_id
          FROM (SELECT id, deployment_id FROM was WHERE status = 'healthy' AND traffic_status = 'active'
                UNION ALL -- and no join, which would be planned for one row and compare each row with each
                SELECT id, deployment_id FROM became
                 WHERE {DRAINED}
                    OR (traffic_status = 'inactive' AND status <> 'failed')) served
         GROUP BY id, deployment_id
        HAVING count(*) = 2);
    broken record;
BEGIN
    SELECT d.name, d.lifecycle, count(r.id) AS serving, b.floor INTO broken
      FROM deployments d
      LEFT JOIN routes r ON r.deployment_id = d.id AND r.status = 'healthy' AND r.traffic_status = 'active'
      LEFT JOIN rollouts o ON o.id = d.rollout_id,
           LATERAL (SELECT coalesce(o.floor, d.desired_replicas) AS floor) b
     WHERE d.id = ANY(ids) AND d.lifecycle NOT IN ('destroying', 'destroyed')
     GROUP BY d.id, b.floor
    HAVING count(r.id) < b.floor
     ORDER BY d.name
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
