"""Worker hosts that show signs of life, fall silent and go down."""

from functools import partial
from typing import Any

from sqlalchemy import Engine

from db.commands.execute import CommandResult
from db.connection.transactions import in_transaction
from db.replicas.heartbeats import HostFacts, HostsTurned, look_at_signs_of_life, show_sign_of_life
from domain.devices.needs import parse_resources
from tests.support.rows.deployments import ask, write

LOOKS = 3


def up(engine: Engine, *names: str) -> None:
    for name in names:
        in_transaction(engine, partial(show_sign_of_life, host=name, address="127.0.0.1"))


def says(engine: Engine, host: str, **facts: Any) -> None:
    """A heartbeat of a worker of this host, with these facts."""
    in_transaction(engine, partial(show_sign_of_life, host=host, address="127.0.0.1", facts=HostFacts(**facts)))


def has(engine: Engine, host: str, resources: str) -> None:
    """A heartbeat that says what the host has."""
    says(engine, host, resources=parse_resources(resources))


def drain(engine: Engine, name: str) -> CommandResult:
    return ask(engine, "drain_host", host=name, actor="ops")


def silent(engine: Engine, name: str) -> None:
    write(engine, "UPDATE hosts SET last_seen_at = clock_timestamp() - interval '1 hour' WHERE name = %s", name)


def deaf(engine: Engine, name: str) -> None:
    says(engine, name, is_deaf=True)
    write(engine, "UPDATE hosts SET unasked_since = clock_timestamp() - interval '1 hour' WHERE name = %s", name)


def turned(engine: Engine) -> HostsTurned:
    """What one look finds."""
    return in_transaction(engine, partial(look_at_signs_of_life, fresh_seconds=2.5, looks=LOOKS))


def look(engine: Engine) -> tuple[list[str], list[str]]:
    """The hosts that one look finds to be down, and back."""
    found = turned(engine)
    return sorted(found.down), sorted(found.back)


def go_down(engine: Engine, name: str) -> None:
    silent(engine, name)
    for _ in range(LOOKS):
        found = look(engine)
    assert found == ([name], [])


def go_deaf(engine: Engine, *names: str) -> None:
    for name in names:
        deaf(engine, name)
    for _ in range(LOOKS):
        found = turned(engine)
    assert found.deaf == set(names)
