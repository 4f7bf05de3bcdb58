"""What has changed since the last look: every change that a page shows is one, and a look without any finds nothing."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, LiteralString

import pytest
from psycopg import Connection
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.locking.row_locks import ALWAYS, count_change
from db.views.fleet_changes import Changes, caught_up, changes_since
from tests.support.pictures.pictures import DESTROYING, PROVISIONING
from tests.support.rows.deployments import ask, make_deployment

_LATE: LiteralString = "UPDATE deployments SET due_at = clock_timestamp() - interval '16 seconds' WHERE id = %s"
_DUE_AGAIN: LiteralString = "UPDATE deployments SET due_at = clock_timestamp() + interval '9 seconds' WHERE id = %s"
_WAITS: LiteralString = "UPDATE deployments SET reason = 'waiting: 1 new starting' WHERE id = %s"


def look(engine: Engine, before: Changes | None = None) -> Changes:
    known, since = (before.states, before.at) if before else ({}, None)
    return in_transaction(engine, lambda connection: changes_since(connection, known, since))


def write(engine: Engine, statement: LiteralString, *values: object) -> None:
    in_transaction(engine, lambda connection: connection.execute(statement, values))


def names(found: Changes) -> list[str]:
    return [view.name for view in found.deployments]


def test_the_first_look_knows_everything_and_tells_nothing(engine: Engine) -> None:
    made = make_deployment(engine, "■■■")
    first = look(engine)
    assert (set(first.states), first.deployments, first.noted) == ({made.id}, (), ())
    again = look(engine, first)
    assert (again.states, again.deployments, again.noted) == (first.states, (), ())


@pytest.mark.parametrize("statement", [_WAITS, _LATE])
def test_what_it_waits_for_is_a_change_and_so_is_that_nobody_looks_at_it(
    engine: Engine, statement: LiteralString
) -> None:
    made, _ = make_deployment(engine, "■■|◇", status=PROVISIONING), make_deployment(engine, "■", name="other")
    first = look(engine)
    write(engine, statement, made.id)
    assert names(look(engine, first)) == ["web"]


def test_a_look_that_is_put_off_is_no_change_until_it_is_late(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    first = look(engine)
    write(engine, _DUE_AGAIN, made.id)
    assert names(look(engine, first)) == []
    write(engine, _LATE, made.id)
    late = look(engine, first)
    write(engine, _DUE_AGAIN, made.id)
    assert (names(late), names(look(engine, late))) == (["web"], ["web"])


def test_a_replica_that_changes_is_a_change_of_its_deployment(engine: Engine) -> None:
    made = make_deployment(engine, "■■■")
    first = look(engine)
    in_transaction(engine, lambda connection: count_change(connection, [made.id], mark=ALWAYS))
    assert names(look(engine, first)) == ["web"]


def test_a_command_comes_with_what_was_noted_and_who_asked(engine: Engine) -> None:
    make_deployment(engine, "■■■")
    first = look(engine)
    ask(engine, "scale", actor="ann", deployment="web", desired_replicas=4, reason="a feast")
    found = look(engine, first)
    assert [(view.name, view.desired_replicas) for view in found.deployments] == [("web", 4)]
    (noted,) = found.noted
    assert (noted.deployment, noted.actor, "a feast" in noted.message) == ("web", "ann", True)


def test_one_that_is_made_and_one_that_is_gone_are_told(engine: Engine) -> None:
    made = make_deployment(engine, "", status=DESTROYING)
    first = look(engine)
    make_deployment(engine, "■", name="new")
    write(engine, "UPDATE deployments SET lifecycle = 'destroyed' WHERE id = %s", made.id)
    second = look(engine, first)
    assert [(view.name, view.lifecycle) for view in second.deployments] == [("new", "ready"), ("web", "destroyed")]
    assert names(look(engine, second)) == []


def catch_up(engine: Engine, since: datetime, only: Sequence[str] | None = None) -> Changes:
    return in_transaction(engine, lambda connection: caught_up(connection, only, since))


def test_who_catches_up_hears_how_all_are_and_first_which_are_gone_since(engine: Engine) -> None:
    def now(connection: Connection[Any]) -> datetime:
        (found,) = connection.execute("SELECT clock_timestamp() + interval '1 minute'").fetchone() or (None,)
        assert isinstance(found, datetime)
        return found

    begun = datetime(2020, 1, 1, tzinfo=UTC)
    gone = make_deployment(engine, "", status=DESTROYING)
    write(engine, "UPDATE deployments SET lifecycle = 'destroyed' WHERE id = %s", gone.id)
    make_deployment(engine, "■■■")
    make_deployment(engine, "■", name="api")
    ask(engine, "scale", actor="ann", deployment="web", desired_replicas=4)
    found = catch_up(engine, begun)
    assert [(view.name, view.lifecycle) for view in found.deployments] == [
        ("web", "destroyed"),
        ("api", "ready"),
        ("web", "ready"),
    ]
    assert [noted.actor for noted in found.noted] == ["ann"]
    assert names(catch_up(engine, begun, ["api"])) == ["api"]
    later = catch_up(engine, in_transaction(engine, now))
    assert (names(later), later.noted) == (["api", "web"], [])
