"""Worker hosts that show signs of life, fall silent and go down."""

from functools import partial

from sqlalchemy import Engine

from db.connection.engine import in_transaction
from db.replicas.hosts import look_at_signs_of_life, show_sign_of_life
from tests.support.rows.deployments import write

LOOKS = 3


def up(engine: Engine, *names: str) -> None:
    for name in names:
        in_transaction(engine, partial(show_sign_of_life, host=name, address="127.0.0.1"))


def silent(engine: Engine, name: str) -> None:
    write(engine, "UPDATE hosts SET last_seen_at = clock_timestamp() - interval '1 hour' WHERE name = %s", name)


def look(engine: Engine) -> tuple[list[str], list[str]]:
    down, back = in_transaction(engine, lambda connection: look_at_signs_of_life(connection, 2.5, LOOKS))
    return sorted(down), sorted(back)


def go_down(engine: Engine, name: str) -> None:
    silent(engine, name)
    for _ in range(LOOKS):
        found = look(engine)
    assert found == ([name], [])
