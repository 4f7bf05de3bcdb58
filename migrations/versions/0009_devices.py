"""what hosts have, and the devices that each replica holds"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_STATEMENTS = (
    # by kind and device, how much there is: {"gpu": {"0": 1}, "memory_gb": {"": 240}}; so it is in routes.devices
    "ALTER TABLE hosts ADD COLUMN resources jsonb DEFAULT '{}' NOT NULL",
    "ALTER TABLE routes ADD COLUMN devices jsonb",
    # whether one of its revisions needs devices: a cycle reads none of the following where it is false
    "ALTER TABLE deployments ADD COLUMN has_needs boolean DEFAULT false NOT NULL",
    """
    CREATE TABLE held_devices (
        route_id uuid NOT NULL,
        kind text NOT NULL,
        device text NOT NULL, -- its id on the host; empty for an amount
        host text NOT NULL,
        amount double precision NOT NULL,
        free_at timestamptz, -- once the replica has gone
        CONSTRAINT held_devices_pkey PRIMARY KEY (route_id, kind, device),
        CONSTRAINT held_devices_amount_check CHECK (amount > 0),
        CONSTRAINT held_devices_route_id_fkey FOREIGN KEY (route_id) REFERENCES routes ON DELETE CASCADE
    )
    """,
    "CREATE INDEX held_devices_host_idx ON held_devices (host, kind, device)",
    # one at a time, so that two transactions cannot give away the same device; the lock ends with the transaction
    """
    CREATE FUNCTION hold_devices() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE broken record;
    BEGIN
        PERFORM pg_advisory_xact_lock(7276531);
        DELETE FROM held_devices WHERE free_at <= clock_timestamp();
        INSERT INTO held_devices (route_id, kind, device, host, amount)
        SELECT NEW.id, k.key, d.key, NEW.host, d.value::float8
          FROM jsonb_each(NEW.devices) k, jsonb_each_text(k.value) d;
        SELECT h.kind, h.device, sum(h.amount) AS held,
               coalesce((SELECT (resources -> h.kind ->> h.device)::float8 FROM hosts WHERE name = NEW.host), 0) AS most
          INTO broken
          FROM held_devices h
         WHERE h.host = NEW.host
           AND (h.kind, h.device) IN (SELECT kind, device FROM held_devices WHERE route_id = NEW.id)
         GROUP BY h.kind, h.device
        HAVING sum(h.amount) > coalesce(
                   (SELECT (resources -> h.kind ->> h.device)::float8 FROM hosts WHERE name = NEW.host), 0)
         LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'device % % of host %: % held of %',
                broken.kind, broken.device, NEW.host, broken.held, broken.most
                USING ERRCODE = 'check_violation', CONSTRAINT = 'held_devices_one_owner';
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE FUNCTION free_devices() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE held_devices
           SET free_at = NEW.stopped_at + make_interval(secs => coalesce(
                   (SELECT (spec ->> 'release_seconds')::float8 FROM revisions WHERE id = NEW.revision_id), 0))
         WHERE route_id = NEW.id;
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER hold_devices_of_new AFTER INSERT ON routes
    FOR EACH ROW WHEN (NEW.devices IS NOT NULL) EXECUTE FUNCTION hold_devices()
    """,
    """
    CREATE TRIGGER hold_devices_of_placed AFTER UPDATE OF devices ON routes
    FOR EACH ROW WHEN (NEW.devices IS NOT NULL AND OLD.devices IS NULL) EXECUTE FUNCTION hold_devices()
    """,
    """
    CREATE TRIGGER free_devices_of_gone AFTER UPDATE OF stopped_at ON routes
    FOR EACH ROW WHEN (NEW.devices IS NOT NULL AND OLD.stopped_at IS NULL AND NEW.stopped_at IS NOT NULL)
    EXECUTE FUNCTION free_devices()
    """,
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    for trigger in ("free_devices_of_gone", "hold_devices_of_placed", "hold_devices_of_new"):
        op.execute(f"DROP TRIGGER {trigger} ON routes")
    op.execute("DROP FUNCTION free_devices, hold_devices")
    op.execute("DROP TABLE held_devices")
    op.execute("ALTER TABLE deployments DROP COLUMN has_needs")
    op.execute("ALTER TABLE routes DROP COLUMN devices")
    op.execute("ALTER TABLE hosts DROP COLUMN resources")
