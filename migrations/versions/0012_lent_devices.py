"""a replica that sleeps lends its devices, and takes them again when it is woken"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_LENT = "NEW.devices IS NOT NULL AND OLD.slept_at IS NULL AND NEW.slept_at IS NOT NULL"
_TAKEN = "NEW.devices IS NOT NULL AND OLD.slept_at IS NOT NULL AND NEW.slept_at IS NULL"

_STATEMENTS = (
    # a replica is sent to sleep once its last requests are answered
    "ALTER TABLE routes ADD COLUMN parked_at timestamptz",
    """
    CREATE INDEX routes_lent_idx ON routes (id)
     WHERE slept_at IS NOT NULL AND devices IS NOT NULL AND stopped_at IS NULL
    """,
    """
    CREATE FUNCTION lend_devices() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM held_devices WHERE route_id = NEW.id;
        RETURN NULL;
    END $$
    """,
    f"""
    CREATE TRIGGER lend_devices_of_sleeping AFTER UPDATE OF slept_at ON routes
    FOR EACH ROW WHEN ({_LENT}) EXECUTE FUNCTION lend_devices()
    """,
    # as one that is placed: refused where somebody else has them
    f"""
    CREATE TRIGGER hold_devices_of_woken AFTER UPDATE OF slept_at ON routes
    FOR EACH ROW WHEN ({_TAKEN}) EXECUTE FUNCTION hold_devices()
    """,
    "DELETE FROM held_devices x USING routes r WHERE r.id = x.route_id AND r.slept_at IS NOT NULL",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    for trigger in ("hold_devices_of_woken", "lend_devices_of_sleeping"):
        op.execute(f"DROP TRIGGER {trigger} ON routes")
    op.execute("DROP FUNCTION lend_devices")
    op.execute("DROP INDEX routes_lent_idx")
    op.execute("ALTER TABLE routes DROP COLUMN parked_at")
