"""Notes when a tick of beat last reached a worker: beat itself knows no database."""

from psycopg import Connection

# a time that lies ahead is from before the database's clock was set back
_NOTE = """
    INSERT INTO beat DEFAULT VALUES
    ON CONFLICT (is_only) DO UPDATE SET ticked_at = clock_timestamp()
     WHERE beat.ticked_at NOT BETWEEN clock_timestamp() - interval '3 seconds' AND clock_timestamp()
"""


def note_tick(connection: Connection) -> None:
    """A tick has come. Written down every 3 s at most."""
    connection.execute(_NOTE)
